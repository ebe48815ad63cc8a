#include "time_series.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"

/* The one of this file; a new one of that host. */
static struct ni_ledger_series *of_file(struct ni_ledger *c, const char *path, const char *host) {
  struct ni_ledger_series *s = c->n_series ? &c->series[c->n_series - 1] : NULL;
  if (s && s->path == path) return s;
  if (!ni_array_room(c->series, c->n_series, c->cap_series) || !c->series) return NULL;
  s = &c->series[c->n_series];
  *s = (struct ni_ledger_series){.path = path, .host = strdup(host)};
  if (!s->host) return NULL;
  c->n_series++;
  return s;
}

int ni_ledger_take_series(struct ni_ledger *c, const struct ni_line *l) {
  struct ni_ledger_series *s = of_file(c, c->file->path, l->meta.hostname);
  if (!s) return -ENOMEM;
  c->control_lines++;
  if (l->kind == NI_LINE_COUNTER_NAMES) {
    if (!l->counter_names.interval_ns) return 0;
    s->interval_ns = l->counter_names.interval_ns;
    if (l->counter_names.n_counters > s->counters) s->counters = l->counter_names.n_counters;
    return 0;
  }
  const struct ni_sample_line *k = &l->counters;
  if (k->first) return 0;
  if (k->full) s->sweeps++;
  else s->samples++;
  s->missed += k->missed;
  if (k->sample_sn >= s->to_sn) s->to_sn = k->sample_sn + 1;
  return 0;
}

int ni_ledger_merge_series(struct ni_ledger *all, struct ni_ledger *part) {
  for (size_t i = 0; i < part->n_series; i++) {
    const struct ni_ledger_series *b = &part->series[i];
    struct ni_ledger_series *a = of_file(all, b->path, b->host);
    if (!a) return -ENOMEM;
    ni_add_counts(a->added, b->added);
    if (b->interval_ns) a->interval_ns = b->interval_ns;
    if (b->counters > a->counters) a->counters = b->counters;
    if (b->to_sn > a->to_sn) a->to_sn = b->to_sn;
  }
  return 0;
}

void ni_ledger_judge_series(struct ni_ledger *c) {
  for (size_t i = 0; i < c->n_series; i++) {
    const struct ni_ledger_series *s = &c->series[i];
    uint64_t there = s->samples + s->sweeps;
    if (s->missed) ni_ledger_problem(c, NI_PROBLEM_COUNTERS_MISSED, s->missed, "%s", s->path);
    if (s->to_sn > there) ni_ledger_problem(c, NI_PROBLEM_COUNTERS_LOST, s->to_sn - there, "%s", s->path);
  }
}
