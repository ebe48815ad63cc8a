#include "pack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"

#define ALL(w, array) ni_wire_u64s(w, array, sizeof(array) / sizeof *(array))

static void wire_tally(struct ni_wire *w, struct ni_tally *t) {
  size_t n = t->n;
  ni_wire_count(w, &n, 2);
  w->bad |= n > NI_LEDGER_NAMES;
  for (size_t i = 0; i < n && !w->bad; i++) {
    NI_WIRE(w, &t->item[i].name, &t->item[i].count);
    w->bad |= !t->item[i].name;
    if (t->item[i].name)
      t->n = i + 1; /* to be freed with the ledger */
  }
  ni_wire_u64(w, &t->other);
}

/* A place: its text without the path that it begins with. */
static void wire_where(struct ni_wire *w, const char *path, struct ni_where *x) {
  size_t n = strlen(path);
  bool here = x->text && strncmp(x->text, path, n) == 0;
  char *rest = x->text && here ? x->text + n : x->text;
  NI_WIRE(w, &x->line, &here, &rest);
  if (!w->load)
    return;
  x->at = x->line ? n + 1 : 0;
  x->text = NULL;
  if (rest && here && asprintf(&x->text, "%s%s", path, rest) < 0) {
    x->text = NULL;
    w->bad = true;
  }
  if (rest && !here)
    x->text = rest;
  else
    free(rest);
  const bool is_whole = x->text && here && strlen(x->text) >= x->at;
  w->bad |= x->line && !is_whole;
}

static void wire_wheres(struct ni_wire *w, struct ni_ledger *c) {
  for (int i = 0; i < NI_PROBLEM_COUNT && !w->bad; i++) {
    struct ni_problem *p = &c->problem[i];
    NI_WIRE(w, &p->count, &p->places);
    for (uint64_t k = 0; k < p->places && k < NI_LEDGER_WHERES && !w->bad; k++)
      wire_where(w, c->file->path, &p->where[k]);
  }
  size_t n = c->n_samples;
  ni_wire_count(w, &n, 3);
  w->bad |= n > NI_LEDGER_SAMPLES;
  for (size_t i = 0; i < n && !w->bad; i++) {
    wire_where(w, c->file->path, &c->sample[i]);
    w->bad |= !c->sample[i].text;
    c->n_samples = i + 1;
  }
}

static void wire_kind(struct ni_wire *w, const struct ni_ledger *c, struct ni_ledger_kind *k) {
  ni_seq_set_wire(w, &k->rec_sn);
  ALL(w, k->added);
  ALL(w, k->newest);
  NI_WIRE(w, &k->nvidia_dropped, &k->stated);
  size_t n = k->n_causes;
  ni_wire_count(w, &n, 2);
  if (w->load) {
    w->bad |= n && !(k->cause = calloc(n, sizeof *k->cause));
    k->n_causes = w->bad ? 0 : (uint32_t)n;
  }
  for (uint32_t i = 0; i < k->n_causes; i++) {
    NI_WIRE(w, &k->cause[i].name, &k->cause[i].count);
    w->bad |= k->cause[i].name >= c->dropped_by.n && k->cause[i].name != NI_LEDGER_NAMES;
  }
}

static void wire_clock(struct ni_wire *w, struct ni_ledger_clock *k) {
  NI_WIRE(w, &k->ticks, &k->monotonic_ns, &k->line_no, &k->ns_per_tick);
}

/* The process whose number is i; one that is loaded is asked for, as its lines would. */
static void wire_process(struct ni_wire *w, struct ni_ledger *c, size_t i) {
  struct ni_who_process name = w->load ? (struct ni_who_process){0} : c->who.process[i];
  NI_WIRE(w, &name.host, &name.pid, &name.start_ns);
  if (w->load) {
    w->bad |= !name.host ||
        ni_ledger_accounts(
            c, ni_who_process_in(&c->who, name.host, name.pid, name.start_ns, c->file->path)) != (int64_t)i;
    free(name.host);
  }
  if (w->bad)
    return;
  struct ni_ledger_process *p = c->process[i];
  NI_WIRE(w, &p->ours, &p->imported, &p->control_lines, &p->rollups, &p->has_line, &p->killed, &p->has_clock);
  ni_wire_below(w, &p->limits, 4);
  ni_wire_u64(w, &p->sample);
  wire_clock(w, &p->first_clock);
  wire_clock(w, &p->clock);
}

static void wire_funcs(struct ni_wire *w, struct ni_ledger_member *x) {
  size_t n = 0;
  for (const struct ni_ledger_func *f = x->funcs; f; f = f->next)
    n++;
  ni_wire_count(w, &n, 8);
  struct ni_ledger_func **at = &x->funcs;
  for (size_t i = 0; i < n && !w->bad; i++, at = &(*at)->next) {
    if (w->load && !(*at = calloc(1, sizeof **at))) {
      w->bad = true;
      return;
    }
    ni_wire_text(w, &(*at)->name);
    w->bad |= !(*at)->name;
    ni_seq_set_wire(w, &(*at)->sn);
  }
}

static void wire_member(struct ni_wire *w, struct ni_ledger *c, size_t i) {
  struct ni_who_member name = w->load ? (struct ni_who_member){0} : c->who.member[i];
  ni_wire_below(w, &name.process, c->n_processes);
  NI_WIRE(w, &name.hash, &name.init_ns, &name.rank, &name.n_ranks, &name.nnodes, &name.name);
  if (w->load) {
    const struct ni_ident id = ni_who_ident(&name);
    w->bad = w->bad ||
        ni_ledger_accounts(c, ni_who_member(&c->who, name.process, c->file->run, &id, name.init_ns)) !=
            (int64_t)i;
    free(name.name);
  }
  if (w->bad)
    return;
  struct ni_ledger_member *x = c->member[i];
  NI_WIRE(w, &x->final, &x->ours, &x->killed, &x->stats_started);
  for (int k = 0; k < NI_KIND_COUNT; k++)
    wire_kind(w, c, &x->kind[k]);
  ALL(w, x->events_there);
  NI_WIRE(w, &x->proxy_lines, &x->proxy_flushed);
  for (int k = 0; k < NI_EVENT_COUNT; k++) {
    struct ni_event_stats *e = &x->events.kind[k];
    NI_WIRE(w, &e->started, &e->written, &e->dropped, &e->in_flight);
  }
  wire_funcs(w, x);
  ni_anchors_wire(w, &x->anchors);
}

static void wire_series(struct ni_wire *w, struct ni_ledger *c) {
  size_t n = c->n_series;
  ni_wire_count(w, &n, 1);
  for (size_t i = 0; i < n && !w->bad; i++) {
    if (w->load && !ni_array_room(c->series, i, c->cap_series)) {
      w->bad = true;
      return;
    }
    struct ni_ledger_series *s = &c->series[i];
    if (w->load) {
      *s = (struct ni_ledger_series){.path = c->file->path};
      c->n_series = i + 1;
    }
    ni_wire_text(w, &s->host);
    w->bad |= !s->host;
    ALL(w, s->added);
    NI_WIRE(w, &s->counters, &s->interval_ns, &s->to_sn);
  }
}

void ni_ledger_wire(struct ni_wire *w, struct ni_ledger *c) {
  struct ni_tally *const tallies[] = {&c->funcs,  &c->dropped_by,  &c->filtered_by,
                                      &c->strays, &c->fallback_by, &c->unknown_kinds};
  size_t processes = c->n_processes, members = c->n_members;
  ALL(w, c->totals);
  ALL(w, c->reasons);
  ALL(w, c->events);
  ALL(w, c->implausible);
  ni_wire_u64(w, &c->file_lines);
  for (size_t i = 0; i < sizeof tallies / sizeof *tallies; i++)
    wire_tally(w, tallies[i]);
  wire_wheres(w, c);
  ni_wire_count(w, &processes, 8);
  for (size_t i = 0; i < processes && !w->bad; i++)
    wire_process(w, c, i);
  ni_wire_count(w, &members, 8);
  for (size_t i = 0; i < members && !w->bad; i++)
    wire_member(w, c, i);
  wire_series(w, c);
  if (w->load && w->at == w->end)
    return; /* of an older partial result, which has nothing of GPUs' clocks */
  for (size_t i = 0; i < members && !w->bad; i++)
    ni_anchors_wire_clock(w, &c->member[i]->anchors);
}
