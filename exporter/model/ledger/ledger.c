/*
 * What the ledger is made of: problems with their places, counts by name, processes and members by what they
 * are called.
 */
#include "ledger.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/text/plural.h"

uint64_t ni_sampling_of(const struct ni_line *l) {
  if (l->kind == NI_LINE_CONTROL)
    return l->control.sample;
  const char *value =
      l->kind == NI_LINE_PROCESS ? ni_pairs_value(&l->process.settings, "NCCL_INSPECTOR_SAMPLE") : NULL;
  return value && strncmp(value, "1/", 2) == 0 ? strtoull(value + 2, NULL, 10) : 0;
}

unsigned ni_expiry_limits(const struct ni_process_line *p) {
  return (ni_pairs_value(&p->settings, "NCCL_INSPECTOR_DIR_MAX_BYTES") ? NI_EXPIRES_BY_SIZE : 0u) |
      (ni_pairs_value(&p->settings, "NCCL_INSPECTOR_KEEP_SECONDS") ? NI_EXPIRES_BY_AGE : 0u);
}

const char *ni_expiry_text(unsigned limits) {
  static const char *const text[] = {"a limit of its settings, whose line is not there",
                                     "NCCL_INSPECTOR_DIR_MAX_BYTES", "NCCL_INSPECTOR_KEEP_SECONDS",
                                     "NCCL_INSPECTOR_DIR_MAX_BYTES or NCCL_INSPECTOR_KEEP_SECONDS"};
  return text[limits & 3];
}

#define TEXTS(code, name, one, many) {name, one, many},
static const struct {
  const char *name, *one, *many;
} problems[NI_PROBLEM_COUNT] = {NI_PROBLEMS(TEXTS)};

const char *const ni_implausible_names[NI_IMPLAUSIBLE_COUNT] = {
    "time_zero", "time_over_one_hour", "bandwidth_over_10000_gbs", "bandwidth_negative"};

const char *ni_problem_name(enum ni_problem_code code) { return problems[code].name; }
const char *ni_problem_text(enum ni_problem_code code, uint64_t count) {
  return ni_plural(count, problems[code].one, problems[code].many);
}

static void add_place(struct ni_problem *p, uint64_t count, struct ni_where place) {
  p->count += count;
  if (p->places < NI_LEDGER_WHERES)
    p->where[p->places] = place;
  else
    free(place.text);
  p->places++;
}

void ni_ledger_problem(struct ni_ledger *c, enum ni_problem_code code, uint64_t count, const char *where,
                       ...) {
  struct ni_where place = {0};
  va_list ap;
  va_start(ap, where);
  if (c->problem[code].places < NI_LEDGER_WHERES && vasprintf(&place.text, where, ap) < 0)
    place.text = NULL;
  va_end(ap);
  add_place(&c->problem[code], count, place);
}

/* "PATH:" and what is behind the number. */
static struct ni_where make_place(const struct ni_ledger *c, uint64_t line_no, const char *what, va_list ap) {
  struct ni_where place = {.line = line_no, .at = strlen(c->file->path) + 1};
  char *more = NULL;
  if (vasprintf(&more, what, ap) < 0)
    more = NULL;
  if (asprintf(&place.text, "%s:%s", c->file->path, more ? more : "") < 0)
    place.text = NULL;
  free(more);
  return place;
}

void ni_ledger_problem_at(struct ni_ledger *c, enum ni_problem_code code, uint64_t count, uint64_t line_no,
                          const char *what, ...) {
  struct ni_where place = {0};
  va_list ap;
  va_start(ap, what);
  if (c->problem[code].places < NI_LEDGER_WHERES)
    place = make_place(c, line_no, what, ap);
  va_end(ap);
  add_place(&c->problem[code], count, place);
}

int ni_tally_add(struct ni_tally *t, const char *name, uint64_t count) {
  size_t i = t->last;
  if (i >= t->n || strcmp(t->item[i].name, name) != 0)
    for (i = 0; i < t->n && strcmp(t->item[i].name, name) != 0; i++) {}
  if (i == t->n) {
    if (t->n == NI_LEDGER_NAMES) {
      t->other += count;
      t->last = i;
      return 0;
    }
    t->item[i].name = strdup(name);
    if (!t->item[i].name)
      return -ENOMEM;
    t->item[i].count = 0;
    t->n++;
  }
  t->item[i].count += count;
  t->last = i;
  return 0;
}

int ni_ledger_sample(struct ni_ledger *c, uint64_t line_no, const char *what, ...) {
  if (c->n_samples == NI_LEDGER_SAMPLES)
    return 0;
  va_list ap;
  va_start(ap, what);
  c->sample[c->n_samples] = make_place(c, line_no, what, ap);
  va_end(ap);
  if (!c->sample[c->n_samples].text)
    return -ENOMEM;
  c->n_samples++;
  return 0;
}

int64_t ni_ledger_accounts(struct ni_ledger *c, int64_t k) {
  if (k < 0)
    return k;
  while (c->n_processes < c->who.n_processes) {
    struct ni_ledger_process *p = calloc(1, sizeof *p);
    if (!p || !ni_array_room(c->process, c->n_processes, c->cap_processes)) {
      free(p);
      return -ENOMEM;
    }
    p->file = c->file;
    c->process[c->n_processes++] = p;
  }
  while (c->n_members < c->who.n_members) {
    struct ni_ledger_member *x = calloc(1, sizeof *x);
    if (!x || !ni_array_room(c->member, c->n_members, c->cap_members)) {
      free(x);
      return -ENOMEM;
    }
    x->process = c->process[c->who.member[c->n_members].process];
    x->ours = x->process->ours;
    c->member[c->n_members++] = x;
  }
  return k;
}

const char *ni_ledger_clock_wrong(const struct ni_ledger_clock *a, const struct ni_ledger_clock *b) {
  if (!a)
    return NULL;
  if (b->ticks < a->ticks || b->monotonic_ns < a->monotonic_ns)
    return "runs backwards";
  double told = (double)(b->ticks - a->ticks) * b->ns_per_tick,
         real = (double)(b->monotonic_ns - a->monotonic_ns);
  double off = fabs(told - real);
  return off > 1e6 && off > 1e-3 * real ? "ticks and monotonic_ns disagree by more than 0.1 %" : NULL;
}

int ni_ledger_merge_funcs(struct ni_ledger_member *a, struct ni_ledger_member *b) {
  for (struct ni_ledger_func *f; (f = b->funcs);) {
    struct ni_ledger_func *g = a->funcs;
    while (g && strcmp(g->name, f->name) != 0)
      g = g->next;
    if (g) {
      int e = ni_seq_set_merge(&g->sn, &f->sn);
      if (e < 0)
        return e;
      b->funcs = f->next;
      ni_seq_set_free(&f->sn);
      free(f->name);
      free(f);
    } else {
      b->funcs = f->next;
      f->next = a->funcs;
      a->funcs = f;
    }
  }
  return 0;
}

static void free_member(struct ni_ledger_member *x) {
  for (struct ni_ledger_func *f = x->funcs, *after; f; f = after) {
    after = f->next;
    ni_seq_set_free(&f->sn);
    free(f->name);
    free(f);
  }
  for (int k = 0; k < NI_KIND_COUNT; k++) {
    ni_seq_set_free(&x->kind[k].rec_sn);
    free(x->kind[k].cause);
  }
  ni_anchors_free(&x->anchors);
  free(x);
}

void ni_ledger_free(struct ni_ledger *c) {
  for (size_t i = 0; i < c->n_members; i++)
    free_member(c->member[i]);
  for (size_t i = 0; i < c->n_processes; i++)
    free(c->process[i]);
  for (int i = 0; i < NI_PROBLEM_COUNT; i++)
    for (int k = 0; k < NI_LEDGER_WHERES; k++)
      free(c->problem[i].where[k].text);
  for (size_t i = 0; i < c->n_samples; i++)
    free(c->sample[i].text);
  struct ni_tally *tallies[] = {&c->funcs,  &c->dropped_by,  &c->filtered_by,
                                &c->strays, &c->fallback_by, &c->unknown_kinds};
  for (size_t i = 0; i < sizeof tallies / sizeof *tallies; i++)
    for (size_t k = 0; k < tallies[i]->n; k++)
      free(tallies[i]->item[k].name);
  free(c->process);
  free(c->member);
  ni_who_free(&c->who);
  for (size_t i = 0; i < c->n_series; i++)
    free(c->series[i].host);
  free(c->series);
  ni_granules_free(c->granules);
  *c = (struct ni_ledger){0};
}

/* The series of this file, or a new one of that host. */
static struct ni_ledger_series *find_or_add_series(struct ni_ledger *c, const char *path, const char *host) {
  struct ni_ledger_series *s = c->n_series ? &c->series[c->n_series - 1] : NULL;
  if (s && s->path == path)
    return s;
  if (!ni_array_room(c->series, c->n_series, c->cap_series) || !c->series)
    return NULL;
  s = &c->series[c->n_series];
  *s = (struct ni_ledger_series){.path = path, .host = strdup(host)};
  if (!s->host)
    return NULL;
  c->n_series++;
  return s;
}

int ni_ledger_add_series(struct ni_ledger *c, const struct ni_line *l) {
  struct ni_ledger_series *s = find_or_add_series(c, c->file->path, l->meta.hostname);
  if (!s)
    return -ENOMEM;
  c->control_lines++;
  if (l->kind == NI_LINE_COUNTER_NAMES) {
    if (!l->counter_names.interval_ns)
      return 0;
    s->interval_ns = l->counter_names.interval_ns;
    if (l->counter_names.n_counters > s->counters)
      s->counters = l->counter_names.n_counters;
    return 0;
  }
  const struct ni_sample_line *k = &l->counters;
  if (k->first)
    return 0;
  if (k->full)
    s->sweeps++;
  else
    s->samples++;
  s->missed += k->missed;
  if (k->sample_sn >= s->to_sn)
    s->to_sn = k->sample_sn + 1;
  return 0;
}

int ni_ledger_merge_series(struct ni_ledger *all, struct ni_ledger *part) {
  for (size_t i = 0; i < part->n_series; i++) {
    const struct ni_ledger_series *b = &part->series[i];
    struct ni_ledger_series *a = find_or_add_series(all, b->path, b->host);
    if (!a)
      return -ENOMEM;
    ni_add_counts(a->added, b->added);
    if (b->interval_ns)
      a->interval_ns = b->interval_ns;
    if (b->counters > a->counters)
      a->counters = b->counters;
    if (b->to_sn > a->to_sn)
      a->to_sn = b->to_sn;
  }
  return 0;
}

void ni_ledger_judge_series(struct ni_ledger *c) {
  for (size_t i = 0; i < c->n_series; i++) {
    const struct ni_ledger_series *s = &c->series[i];
    uint64_t there = s->samples + s->sweeps;
    if (s->missed)
      ni_ledger_problem(c, NI_PROBLEM_COUNTERS_MISSED, s->missed, "%s", s->path);
    if (s->to_sn > there)
      ni_ledger_problem(c, NI_PROBLEM_COUNTERS_LOST, s->to_sn - there, "%s", s->path);
  }
}
