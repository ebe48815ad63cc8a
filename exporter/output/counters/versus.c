#include "versus.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_unusual(const void *a, const void *b) {
  const struct ni_versus_row *x = a, *y = b;
  double v = fabs(x->rate[1] - x->rate[0]), w = fabs(y->rate[1] - y->rate[0]);
  if (x->unusual != y->unusual) return x->unusual > y->unusual ? -1 : 1;
  if (v != w) return v > w ? -1 : 1;
  int d = x->of && y->of ? strverscmp(x->of->name, y->of->name) : 0;
  return d ? d : strcmp(x->name, y->name);
}

static bool has_rate(const struct ni_pair_row *r) { return r->change.seconds > 0 && r->change.state <= NI_CHANGE_CHANGED; }

static int by_counter(const void *a, const void *b) {
  const struct ni_versus_row *x = a, *y = b;
  return x->source != y->source ? (int)x->source - (int)y->source : strcmp(x->name, y->name);
}

/* One row for each counter of a source: what it did at all entities. */
static void add_up(struct ni_versus *v) {
  for (size_t i = 0; i < v->n_rows; i++) v->sum[i] = v->row[i];
  qsort(v->sum, v->n_rows, sizeof *v->sum, by_counter);
  for (size_t i = 0; i < v->n_rows; i++) {
    struct ni_versus_row *r = &v->sum[i], *to = &v->sum[v->n_sums];
    if (i && by_counter(r, to - 1) == 0) {
      for (int x = 0; x < 2; x++) to[-1].rate[x] += r->rate[x];
      continue;
    }
    *to = *r;
    to->of = NULL;
    v->n_sums++;
  }
}

/* Those that differ enough come to the front, in order. Returns how many. */
static size_t sort(struct ni_versus_row *row, size_t n, double min_diff) {
  size_t kept = 0;
  for (size_t i = 0; i < n; i++) {
    struct ni_versus_row *r = &row[i];
    double d = fabs(r->rate[1] - r->rate[0]);
    if (!(d > 0) || d < min_diff) continue;
    r->unusual = ni_counter_unusual(r->name, r->rate[1], r->rate[0]);
    row[kept++] = *r;
  }
  qsort(row, kept, sizeof *row, by_unusual);
  return kept;
}

/* All counters that moved in either run, of entities that both have. A gauge's level is no rate. */
static void gather(struct ni_versus *v) {
  const struct ni_pair *good = &v->run[0]->pair, *bad = &v->run[1]->pair;
  const struct ni_pair_entity *same = NULL;
  uint32_t last = UINT32_MAX;
  for (uint32_t i = 0; i < bad->n_rows; i++) {
    const struct ni_pair_row *b = &bad->row[i], *g;
    const struct ni_entity *e = bad->entity[b->entity].of;
    if (last != b->entity) same = ni_pair_entity_of(good, e), last = b->entity;
    if (b->what.kind == NI_METRIC_GAUGE || !same || !(g = ni_pair_row(good, (uint32_t)(same - good->entity), b->name))) continue;
    if (!has_rate(b) || !has_rate(g)) {
      v->without_number++;
      continue;
    }
    if (!b->change.delta && !g->change.delta) continue;
    v->row[v->n_rows++] = (struct ni_versus_row){e, e->source, b->name, b->what, {ni_pair_rate(g), ni_pair_rate(b)}, 0};
  }
}

bool ni_versus_make(struct ni_versus *out, const struct ni_counters_view *good, const struct ni_counters_view *bad, double min_diff) {
  size_t most = bad->pair.n_rows + 1;
  *out = (struct ni_versus){.run = {good, bad}, .row = malloc(most * sizeof *out->row), .sum = malloc(most * sizeof *out->sum)};
  if (!out->row || !out->sum) {
    ni_versus_free(out);
    return false;
  }
  gather(out);
  add_up(out);
  out->n_rows = sort(out->row, out->n_rows, min_diff);
  out->n_sums = sort(out->sum, out->n_sums, min_diff);
  return true;
}

void ni_versus_free(struct ni_versus *v) {
  free(v->row);
  free(v->sum);
  *v = (struct ni_versus){.row = NULL};
}

static bool same_finding(const struct ni_counter_finding *a, const struct ni_counter_finding *b) {
  return strcmp(a->id, b->id) == 0 && strcmp(a->entity, b->entity) == 0 && !a->row == !b->row && (!a->row || strcmp(a->row->name, b->row->name) == 0);
}

const struct ni_counter_finding *ni_versus_new(const struct ni_versus *v, int which, size_t *at) {
  const struct ni_counter_findings *own = &v->run[which]->findings, *other = &v->run[!which]->findings;
  while (*at < own->n) {
    const struct ni_counter_finding *f = &own->finding[(*at)++];
    bool both = false;
    for (size_t i = 0; i < other->n && !both; i++) both = same_finding(f, &other->finding[i]);
    if (!both) return f;
  }
  return NULL;
}
