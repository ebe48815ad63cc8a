#include "saved.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"

#define ALL(p, array) ni_pack_u64s(p, array, sizeof(array) / sizeof *(array))

static void pack_tally(struct ni_pack *p, struct ni_tally *t) {
  size_t n = t->n;
  ni_pack_count(p, &n, 2);
  p->bad |= n > NI_LEDGER_NAMES;
  for (size_t i = 0; i < n && !p->bad; i++) {
    ni_pack_text(p, &t->item[i].name);
    ni_pack_u64(p, &t->item[i].count);
    p->bad |= !t->item[i].name;
    t->n = p->bad && ni_pack_reads(p) ? t->n : i + 1;
    if (p->bad && t->n <= i) free(t->item[i].name);
  }
  ni_pack_u64(p, &t->other);
}

/* A place: its text without the path that it begins with. */
static void pack_place(struct ni_pack *p, const char *path, struct ni_where *w) {
  size_t n = strlen(path);
  bool here = w->text && strncmp(w->text, path, n) == 0;
  char *rest = w->text && here ? w->text + n : w->text;
  ni_pack_u64(p, &w->line);
  ni_pack_bool(p, &here);
  ni_pack_text(p, &rest);
  if (!ni_pack_reads(p)) return;
  w->at = w->line ? n + 1 : 0;
  w->text = NULL;
  if (rest && here && asprintf(&w->text, "%s%s", path, rest) < 0) {
    w->text = NULL;
    p->bad = true;
  }
  if (rest && !here) w->text = rest;
  else free(rest);
  p->bad |= w->line && (!w->text || !here || strlen(w->text) < w->at);
}

static void pack_numbers(struct ni_pack *p, struct ni_seq_set *s) {
  size_t n = s->n;
  uint64_t before = 0;
  ni_pack_count(p, &n, 2);
  if (ni_pack_reads(p)) {
    if (n > NI_SEQ_SET_MAX || (n && !ni_array_exact(&s->range, &s->cap, n, sizeof *s->range))) p->bad = true;
    s->n = p->bad ? 0 : n;
  }
  for (size_t i = 0; i < s->n; i++) {
    struct ni_seq_range *r = &s->range[i];
    uint64_t gap = r->from - before, len = r->to - r->from;
    ni_pack_u64(p, &gap);
    ni_pack_u64(p, &len);
    r->from = before + gap;
    r->to = r->from + len;
    p->bad |= r->from < before || r->to < r->from || (i && gap < 2) || r->to == UINT64_MAX;
    before = r->to;
  }
  ni_pack_u64(p, &s->distinct);
  ni_pack_u64(p, &s->doubles);
  ni_pack_u64(p, &s->unsure);
  ni_pack_u64(p, &s->floor);
  ni_pack_u64(p, &s->lowest);
  ni_pack_u64(p, &s->highest);
}

static void pack_kind(struct ni_pack *p, const struct ni_ledger *c, struct ni_ledger_kind *k) {
  pack_numbers(p, &k->rec_sn);
  ALL(p, k->added);
  ALL(p, k->newest);
  ni_pack_u64(p, &k->nvidia_dropped);
  ni_pack_bool(p, &k->stated);
  size_t n = k->n_causes;
  ni_pack_count(p, &n, 2);
  if (ni_pack_reads(p) && n && !p->bad) p->bad = !(k->cause = calloc(n, sizeof *k->cause));
  if (ni_pack_reads(p)) k->n_causes = p->bad ? 0 : (uint32_t)n;
  for (uint32_t i = 0; i < k->n_causes; i++) {
    ni_pack_u32(p, &k->cause[i].name);
    ni_pack_u64(p, &k->cause[i].count);
    p->bad |= k->cause[i].name >= c->dropped_by.n && k->cause[i].name != NI_LEDGER_NAMES;
  }
}

static void pack_clock(struct ni_pack *p, struct ni_ledger_clock *k) {
  ni_pack_u64(p, &k->ticks);
  ni_pack_u64(p, &k->monotonic_ns);
  ni_pack_u64(p, &k->line_no);
  ni_pack_double(p, &k->ns_per_tick);
}

/* The process whose number is i; one that is read is asked for, as its lines would. */
static void pack_process(struct ni_pack *p, struct ni_ledger *c, size_t i) {
  struct ni_who_process w = {0};
  if (!ni_pack_reads(p)) w = c->who.process[i];
  ni_pack_text(p, &w.host);
  ni_pack_i64(p, &w.pid);
  ni_pack_u64(p, &w.start_ns);
  if (ni_pack_reads(p)) {
    p->bad |= !w.host;
    int64_t k = p->bad ? -1 : ni_ledger_accounts(c, ni_who_process_in(&c->who, w.host, w.pid, w.start_ns, c->file->path));
    p->bad |= k != (int64_t)i;
    free(w.host);
  }
  if (p->bad) return;
  struct ni_ledger_process *x = c->process[i];
  ni_pack_bool(p, &x->ours);
  ni_pack_bool(p, &x->control_lines);
  ni_pack_bool(p, &x->rollups);
  ni_pack_bool(p, &x->has_line);
  ni_pack_bool(p, &x->killed);
  ni_pack_u32(p, &x->limits);
  ni_pack_u64(p, &x->sample);
  ni_pack_bool(p, &x->has_clock);
  pack_clock(p, &x->first_clock);
  pack_clock(p, &x->clock);
  p->bad |= x->limits > 3;
}

/* NVIDIA's numbers, function by function. */
static void pack_funcs(struct ni_pack *p, struct ni_ledger_member *x) {
  size_t n = 0;
  for (const struct ni_ledger_func *f = x->funcs; f; f = f->next) n++;
  ni_pack_count(p, &n, 8);
  struct ni_ledger_func **to = &x->funcs;
  for (size_t i = 0; i < n && !p->bad; i++) {
    if (ni_pack_reads(p) && !(*to = calloc(1, sizeof **to))) {
      p->bad = true;
      return;
    }
    ni_pack_text(p, &(*to)->name);
    pack_numbers(p, &(*to)->sn);
    p->bad |= !(*to)->name;
    to = &(*to)->next;
  }
}

static void pack_member(struct ni_pack *p, struct ni_ledger *c, size_t i) {
  struct ni_who_member w = {0};
  if (!ni_pack_reads(p)) w = c->who.member[i];
  ni_pack_u32(p, &w.process);
  ni_pack_u64(p, &w.hash);
  ni_pack_u64(p, &w.init_ns);
  ni_pack_i32(p, &w.rank);
  ni_pack_i32(p, &w.n_ranks);
  ni_pack_i32(p, &w.nnodes);
  ni_pack_text(p, &w.name);
  if (ni_pack_reads(p)) {
    const struct ni_ident id = ni_who_ident(&w);
    p->bad |= w.process >= c->n_processes;
    int64_t k = p->bad ? -1 : ni_ledger_accounts(c, ni_who_member(&c->who, w.process, c->file->run, &id, w.init_ns));
    p->bad |= k != (int64_t)i;
    free(w.name);
  }
  if (p->bad) return;
  struct ni_ledger_member *x = c->member[i];
  ni_pack_bool(p, &x->final);
  ni_pack_bool(p, &x->ours);
  ni_pack_bool(p, &x->killed);
  ni_pack_u64(p, &x->stats_at);
  for (int k = 0; k < NI_KIND_COUNT; k++) pack_kind(p, c, &x->kind[k]);
  ALL(p, x->events_there);
  ni_pack_u64(p, &x->proxy_lines);
  ni_pack_u64(p, &x->proxy_flushed);
  for (int k = 0; k < NI_EVENT_COUNT; k++) {
    struct ni_event_stats *s = &x->events.kind[k];
    ni_pack_u64(p, &s->started);
    ni_pack_u64(p, &s->written);
    ni_pack_u64(p, &s->dropped);
    ni_pack_u64(p, &s->in_flight);
  }
  pack_funcs(p, x);
}

static void pack_problems(struct ni_pack *p, struct ni_ledger *c) {
  for (int i = 0; i < NI_PROBLEM_COUNT && !p->bad; i++) {
    struct ni_problem *x = &c->problem[i];
    ni_pack_u64(p, &x->count);
    ni_pack_u64(p, &x->places);
    for (uint64_t k = 0; k < x->places && k < NI_LEDGER_WHERES && !p->bad; k++) pack_place(p, c->file->path, &x->where[k]);
  }
  size_t n = c->n_samples;
  ni_pack_count(p, &n, 3);
  p->bad |= n > NI_LEDGER_SAMPLES;
  for (size_t i = 0; i < n && !p->bad; i++) {
    pack_place(p, c->file->path, &c->sample[i]);
    p->bad |= !c->sample[i].text;
    c->n_samples = i + 1;
  }
}

void ni_ledger_pack(struct ni_pack *p, struct ni_ledger *c) {
  size_t processes = c->n_processes, members = c->n_members;
  ALL(p, c->totals);
  ALL(p, c->reasons);
  ALL(p, c->events);
  ALL(p, c->implausible);
  ni_pack_u64(p, &c->file_lines);
  pack_tally(p, &c->funcs);
  pack_tally(p, &c->dropped_by);
  pack_tally(p, &c->filtered_by);
  pack_tally(p, &c->strays);
  pack_tally(p, &c->fallback_by);
  pack_tally(p, &c->unknown_kinds);
  pack_problems(p, c);
  ni_pack_count(p, &processes, 8);
  for (size_t i = 0; i < processes && !p->bad; i++) pack_process(p, c, i);
  ni_pack_count(p, &members, 8);
  for (size_t i = 0; i < members && !p->bad; i++) pack_member(p, c, i);
}
