#include "pack.h"

#include <stdlib.h>

#include "exporter/base/array.h"

static void wire_tally(struct ni_wire *w, struct ni_tally *t) {
  ni_wire_count(w, &t->n, 2);
  if (t->n > NI_LEDGER_NAMES) w->bad = true, t->n = 0;
  for (size_t i = 0; i < t->n; i++) {
    ni_wire_text(w, &t->item[i].name);
    ni_wire_u64(w, &t->item[i].count);
    if (!t->item[i].name) w->bad = true;
    if (w->bad && w->load) {
      t->n = t->item[i].name ? i + 1 : i;
      return;
    }
  }
  ni_wire_u64(w, &t->other);
}

static void wire_where(struct ni_wire *w, struct ni_where *x) {
  ni_wire_text(w, &x->text);
  ni_wire_u64(w, &x->line);
  uint64_t at = x->at;
  ni_wire_u64(w, &at);
  x->at = (size_t)at;
  if (w->load && x->text && at > strlen(x->text)) w->bad = true, x->at = 0;
}

static void wire_problem(struct ni_wire *w, struct ni_problem *p) {
  ni_wire_u64(w, &p->count);
  ni_wire_u64(w, &p->places);
  for (uint64_t i = 0; i < p->places && i < NI_LEDGER_WHERES; i++) wire_where(w, &p->where[i]);
}

static void wire_set(struct ni_wire *w, struct ni_seq_set *s) {
  ni_wire_count(w, &s->n, 2);
  if (w->load && s->n && !ni_array_exact(&s->range, &s->cap, s->n, sizeof *s->range)) w->bad = true, s->n = 0;
  uint64_t at = 0, there = 0;
  for (size_t i = 0; i < s->n; i++) { /* distances, which cannot fall */
    struct ni_seq_range *r = &s->range[i];
    uint64_t gap = r->from - at, more = r->to - r->from;
    ni_wire_u64(w, &gap);
    ni_wire_u64(w, &more);
    if (w->load && (gap > UINT64_MAX - at || more > UINT64_MAX - at - gap || (i && gap < 2) || w->bad)) {
      w->bad = true;
      s->n = i;
      return;
    }
    *r = (struct ni_seq_range){at + gap, at + gap + more};
    there += more + 1;
    at = r->to;
  }
  ni_wire_u64(w, &s->distinct);
  ni_wire_u64(w, &s->doubles);
  ni_wire_u64(w, &s->unsure);
  ni_wire_u64(w, &s->floor);
  ni_wire_u64(w, &s->lowest);
  ni_wire_u64(w, &s->highest);
  if (w->load && (s->distinct < there || (s->n && (s->lowest > s->range[0].from || s->highest != s->range[s->n - 1].to)) ||
                  s->lowest > s->highest))
    w->bad = true;
}

static void wire_kind(struct ni_wire *w, struct ni_ledger_kind *k) {
  wire_set(w, &k->rec_sn);
  ni_wire_u64s(w, k->added, sizeof k->added / sizeof *k->added);
  ni_wire_bool(w, &k->stated);
  ni_wire_u64s(w, k->newest, sizeof k->newest / sizeof *k->newest);
  ni_wire_u64(w, &k->nvidia_dropped);
  size_t n = k->n_causes;
  ni_wire_count(w, &n, 2);
  if (w->load && n && !(k->cause = calloc(n, sizeof *k->cause))) w->bad = true, n = 0;
  k->n_causes = (uint32_t)n;
  for (size_t i = 0; i < n; i++) {
    ni_wire_below(w, &k->cause[i].name, NI_LEDGER_NAMES + 1);
    ni_wire_u64(w, &k->cause[i].count);
  }
}

static void wire_funcs(struct ni_wire *w, struct ni_ledger_member *x) {
  size_t n = 0;
  for (const struct ni_ledger_func *f = x->funcs; f; f = f->next) n++;
  ni_wire_count(w, &n, 8);
  struct ni_ledger_func **at = &x->funcs;
  for (size_t i = 0; i < n && !w->bad; i++, at = &(*at)->next) {
    if (w->load && !(*at = calloc(1, sizeof **at))) {
      w->bad = true;
      return;
    }
    ni_wire_text(w, &(*at)->name);
    if (!(*at)->name) w->bad = true;
    wire_set(w, &(*at)->sn);
  }
}

static void wire_clock(struct ni_wire *w, struct ni_ledger_clock *k) {
  ni_wire_u64(w, &k->ticks);
  ni_wire_u64(w, &k->monotonic_ns);
  ni_wire_u64(w, &k->line_no);
  ni_wire_f64(w, &k->ns_per_tick);
}

static void wire_process(struct ni_wire *w, struct ni_ledger *c, size_t i) {
  struct ni_who_process name = w->load ? (struct ni_who_process){0} : c->who.process[i];
  ni_wire_text(w, &name.host);
  ni_wire_text(w, &name.origin);
  ni_wire_i64(w, &name.pid);
  ni_wire_u64(w, &name.start_ns);
  if (w->load) {
    bool sound = !w->bad && name.host && name.origin &&
                 ni_ledger_accounts(c, ni_who_process(&c->who, name.host, name.pid, name.start_ns, name.origin)) == (int64_t)i &&
                 c->n_processes == i + 1;
    free(name.host);
    free(name.origin);
    if (!sound) {
      w->bad = true;
      return;
    }
  }
  struct ni_ledger_process *p = c->process[i];
  bool *const is[] = {&p->ours, &p->control_lines, &p->rollups, &p->has_line, &p->killed, &p->has_clock};
  for (size_t k = 0; k < sizeof is / sizeof *is; k++) ni_wire_bool(w, is[k]);
  ni_wire_u32(w, &p->limits);
  ni_wire_u64(w, &p->sample);
  wire_clock(w, &p->first_clock);
  wire_clock(w, &p->clock);
}

static void wire_member(struct ni_wire *w, struct ni_ledger *c, size_t i) {
  struct ni_who_member name = w->load ? (struct ni_who_member){0} : c->who.member[i];
  ni_wire_below(w, &name.process, c->n_processes);
  ni_wire_u64(w, &name.hash);
  ni_wire_u64(w, &name.init_ns);
  ni_wire_i32(w, &name.rank);
  ni_wire_i32(w, &name.n_ranks);
  ni_wire_i32(w, &name.nnodes);
  ni_wire_text(w, &name.name);
  if (w->load) {
    const struct ni_ident id = ni_who_ident(&name);
    bool sound = !w->bad && ni_ledger_accounts(c, ni_who_member(&c->who, name.process, 0, &id, name.init_ns)) == (int64_t)i &&
                 c->n_members == i + 1;
    free(name.name);
    if (!sound) {
      w->bad = true;
      return;
    }
  }
  struct ni_ledger_member *x = c->member[i];
  bool *const is[] = {&x->final, &x->ours, &x->killed};
  for (size_t k = 0; k < sizeof is / sizeof *is; k++) ni_wire_bool(w, is[k]);
  ni_wire_u64(w, &x->stats_at);
  for (int k = 0; k < NI_KIND_COUNT; k++) wire_kind(w, &x->kind[k]);
  ni_wire_u64s(w, x->events_there, NI_EVENT_COUNT);
  ni_wire_u64(w, &x->proxy_lines);
  ni_wire_u64(w, &x->proxy_flushed);
  for (int k = 0; k < NI_EVENT_COUNT; k++) {
    struct ni_event_stats *e = &x->events.kind[k];
    ni_wire_u64(w, &e->started);
    ni_wire_u64(w, &e->written);
    ni_wire_u64(w, &e->dropped);
    ni_wire_u64(w, &e->in_flight);
  }
  wire_funcs(w, x);
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
    if (w->load) *s = (struct ni_ledger_series){.path = c->file->path}, c->n_series = i + 1;
    ni_wire_text(w, &s->host);
    if (!s->host) w->bad = true;
    ni_wire_u64s(w, s->added, sizeof s->added / sizeof *s->added);
    ni_wire_u64(w, &s->counters);
    ni_wire_u64(w, &s->interval_ns);
    ni_wire_u64(w, &s->to_sn);
  }
}

/* Names of causes are numbers of dropped_by. */
static bool causes_named(const struct ni_ledger *c) {
  for (size_t i = 0; i < c->n_members; i++)
    for (int k = 0; k < NI_KIND_COUNT; k++)
      for (uint32_t m = 0; m < c->member[i]->kind[k].n_causes; m++)
        if (c->member[i]->kind[k].cause[m].name >= c->dropped_by.n && c->member[i]->kind[k].cause[m].name != NI_LEDGER_NAMES) return false;
  return true;
}

void ni_ledger_wire(struct ni_wire *w, struct ni_ledger *c) {
  struct ni_tally *const tallies[] = {&c->funcs, &c->dropped_by, &c->filtered_by, &c->strays, &c->fallback_by, &c->unknown_kinds};
  size_t n = c->n_processes, m = c->n_members, samples = c->n_samples;
  ni_wire_u64s(w, c->totals, sizeof c->totals / sizeof *c->totals);
  ni_wire_u64s(w, c->reasons, NI_REJ_COUNT);
  ni_wire_u64s(w, c->events, NI_EVENT_COUNT);
  ni_wire_u64s(w, c->implausible, NI_IMPLAUSIBLE_COUNT);
  for (size_t i = 0; i < sizeof tallies / sizeof *tallies; i++) wire_tally(w, tallies[i]);
  ni_wire_count(w, &samples, 3);
  if (samples > NI_LEDGER_SAMPLES) w->bad = true, samples = 0;
  for (size_t i = 0; i < samples; i++) {
    wire_where(w, &c->sample[i]);
    if (w->load) c->n_samples = i + 1;
    if (!c->sample[i].text) w->bad = true;
  }
  for (int i = 0; i < NI_PROBLEM_COUNT; i++) wire_problem(w, &c->problem[i]);
  ni_wire_bool(w, &c->first);
  ni_wire_u64(w, &c->file_lines);
  ni_wire_count(w, &n, 8);
  for (size_t i = 0; i < n && !w->bad; i++) wire_process(w, c, i);
  ni_wire_count(w, &m, 8);
  for (size_t i = 0; i < m && !w->bad; i++) wire_member(w, c, i);
  wire_series(w, c);
  if (w->load && !w->bad && !causes_named(c)) w->bad = true;
}
