#include "match.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/model/sums/blame/blame.h"
#include "stat.h"

static int by_name(const struct ni_diff_item *x, const struct ni_diff_item *y) {
  if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
  return x->key < y->key ? -1 : x->key > y->key;
}

/* Two communicators of the same ranks are told apart by the size of what they carry. */
static int by_key(const void *a, const void *b) {
  const struct ni_diff_item *x = a, *y = b;
  double less = x->bytes != y->bytes ? x->bytes - y->bytes : x->per_step - y->per_step;
  int order = by_name(x, y);
  return order ? order : less < 0 ? -1 : less > 0;
}

int ni_diff_in_order(const void *a, const void *b) {
  const struct ni_diff_item *x = ((const struct ni_diff_row *)a)->item[0], *y = ((const struct ni_diff_row *)b)->item[0];
  if (x->kind == y->kind && x->like != y->like) return x->like < y->like ? -1 : 1;
  return by_key(x, y);
}

/* Of a step with its pauses, and of pauses and waiting, all counts. */
static void means(struct ni_diff_run *r, float *scratch) {
  for (struct ni_diff_item *x = r->item; x < r->item + r->n; x++) {
    bool all = x->kind == NI_DIFF_STEP && (x->key == NI_DIFF_MEAN || x->key == NI_DIFF_OUTSIDE || x->key == NI_DIFF_WAITING);
    if (!x->x) continue;
    struct ni_diff_mean m = ni_diff_mean(x->x, r->bins, all ? 0 : 0.1, scratch);
    x->value = m.mean, x->se = m.se, x->df = m.df;
  }
}

const struct ni_diff_row *ni_diff_step(const struct ni_diff *d, uint64_t part) {
  for (size_t i = 0; i < d->n; i++)
    if (d->row[i].item[0]->kind == NI_DIFF_STEP && d->row[i].item[0]->key == part) return &d->row[i];
  return NULL;
}

/* Own time of a step, of the places that both runs of a rank have; its steps vary as those of all computing do. */
static void own_time(struct ni_diff *d, struct ni_diff_item *x[2]) {
  double all = 0, sum[2] = {0, 0};
  for (uint32_t a = 0; a < x[0]->n_places; a++) all += x[0]->place[a].mean_us;
  for (uint32_t a = 0, b = 0; a < x[0]->n_places && b < x[1]->n_places;) {
    const struct ni_blame_place *p = &x[0]->place[a], *q = &x[1]->place[b];
    if (p->name == q->name) sum[0] += p->mean_us, sum[1] += q->mean_us;
    a += p->name <= q->name;
    b += q->name <= p->name;
  }
  for (int k = 0; k < 2; k++) {
    const struct ni_diff_item *step = d->run[k].item, *of = step + (step[NI_DIFF_COMPUTE].value > 0 ? NI_DIFF_COMPUTE : NI_DIFF_TYPICAL);
    x[k]->value = sum[0] > all / 4 ? sum[k] : NAN;
    x[k]->se = sum[k] * of->se / of->value;
    x[k]->df = of->df;
  }
}

/* The mean of rows [from, end) of ranks or links, of their series each as a part of its own mean. */
static void group(struct ni_diff *d, size_t from, size_t end, enum ni_diff_kind kind, uint64_t like, float *scratch) {
  struct ni_diff_row *row = &d->row[d->n++], *first = &d->row[from];
  double n = (double)(end - from);
  *row = (struct ni_diff_row){.step_us = NAN};
  for (int k = 0; k < 2; k++) {
    struct ni_diff_item *g = row->item[k] = &d->group[d->n_groups++], *one = first->item[k];
    uint32_t bins = one->x ? d->run[k].bins : 0;
    *g = (struct ni_diff_item){.kind = kind, .like = like, .key = like, .members = (uint32_t)(end - from), .df = one->df};
    if (kind == NI_DIFF_ROLE) snprintf(g->name, sizeof g->name, "%s", one->group);
    else if (like == NI_DIFF_ALL_RANKS) snprintf(g->name, sizeof g->name, "all ranks");
    else snprintf(g->name, sizeof g->name, "%.48s (ranks %" PRIu64 " to %" PRIu64 ")", one->group, one->key, d->row[end - 1].item[k]->key);
    for (size_t i = from; i < end; i++) {
      g->value += d->row[i].item[k]->value / n;
      g->per_step += d->row[i].item[k]->per_step / n;
      g->se += d->row[i].item[k]->se / n;
    }
    for (uint32_t b = 0; b < bins; b++) {
      float sum = 0, have = 0;
      for (size_t i = from; i < end; i++) {
        const struct ni_diff_item *x = d->row[i].item[k];
        if (!isnan(x->x[b])) sum += x->x[b] / (float)x->value, have++;
      }
      scratch[b] = have > 0 ? sum / have : NAN;
    }
    struct ni_diff_mean m = ni_diff_mean(scratch, bins, 0.1, scratch + bins);
    if (!isnan(m.mean)) g->se = g->value * m.se, g->df = m.df;
  }
  row->change = row->item[1]->value / row->item[0]->value - 1;
}

/* Hosts are those whose ranks are one host's in both runs. */
static void groups(struct ni_diff *d, float *scratch) {
  size_t n = d->n, ranks[2] = {0, 0};
  for (size_t i = 0, end; i < n; i = end) {
    struct ni_diff_item **one = d->row[i].item;
    bool same = true;
    for (end = i; end < n && d->row[end].item[0]->kind == one[0]->kind && d->row[end].item[0]->like == one[0]->like; end++)
      same &= d->row[end].item[1]->like == one[1]->like;
    if (one[0]->kind == NI_DIFF_RANK) {
      if (!ranks[1]) ranks[0] = i;
      ranks[1] = end;
    }
    if (one[0]->kind == NI_DIFF_LINK) group(d, i, end, NI_DIFF_ROLE, one[0]->like, scratch);
    else if (one[0]->kind == NI_DIFF_RANK && same) group(d, i, end, NI_DIFF_HOST, one[0]->like, scratch);
  }
  if (ranks[1]) group(d, ranks[0], ranks[1], NI_DIFF_HOST, NI_DIFF_ALL_RANKS, scratch);
}

/* false: only one has it, or it is next to nothing. */
static bool pair(struct ni_diff *d, struct ni_diff_item *x[2]) {
  double least = x[0]->kind == NI_DIFF_STEP ? NI_DIFF_OF_STEP * d->run[0].item[NI_DIFF_TYPICAL].value : 0;
  if (d->blind && x[0]->kind <= NI_DIFF_RANK) return true;
  if (x[0]->kind == NI_DIFF_RANK) own_time(d, x);
  if (x[0]->value < least && x[1]->value < least) return true;
  if (!(x[0]->value > 0 && x[1]->value > 0)) return false;
  d->row[d->n++] = (struct ni_diff_row){.item = {x[0], x[1]}, .change = x[1]->value / x[0]->value - 1, .step_us = NAN};
  return true;
}

int ni_diff_match(struct ni_diff *d) {
  struct ni_diff_run *a = &d->run[0], *b = &d->run[1];
  float *scratch = malloc((a->bins + b->bins + 1) * 2 * sizeof *scratch);
  d->row = calloc(2 * a->n + 1, sizeof *d->row);
  d->group = calloc(2 * a->n + 2, sizeof *d->group);
  if (scratch && d->row && d->group) {
    for (int k = 0; k < 2; k++) {
      means(&d->run[k], scratch);
      qsort(d->run[k].item, d->run[k].n, sizeof *a->item, by_key);
    }
    for (size_t i = 0, k = 0; i < a->n || k < b->n;) {
      struct ni_diff_item *x[2] = {&a->item[i], &b->item[k]};
      int order = i == a->n ? 1 : k == b->n ? -1 : by_name(x[0], x[1]);
      bool both = order == 0 && pair(d, x);
      d->only[0] += order <= 0 && !both;
      d->only[1] += order >= 0 && !both;
      i += order <= 0;
      k += order >= 0;
    }
    qsort(d->row, d->n, sizeof *d->row, ni_diff_in_order);
    groups(d, scratch);
    qsort(d->row, d->n, sizeof *d->row, ni_diff_in_order);
  }
  free(scratch);
  return d->row && d->group && scratch ? 0 : -ENOMEM;
}
