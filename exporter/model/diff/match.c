#include "match.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/model/sums/blame/blame.h"
#include "stat.h"

static int by_key(const void *a, const void *b) {
  const struct ni_diff_item *x = *(const struct ni_diff_item *const *)a, *y = *(const struct ni_diff_item *const *)b;
  if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
  return x->key < y->key ? -1 : x->key > y->key;
}

/* Means of the series: of a step with its pauses, and of pauses and waiting, all of it counts. */
static void means(struct ni_diff_run *r, float *scratch) {
  for (size_t i = 0; i < r->n; i++) {
    struct ni_diff_item *x = &r->item[i];
    bool all =
        x->kind == NI_DIFF_STEP && (x->key == NI_DIFF_MEAN || x->key == NI_DIFF_OUTSIDE || x->key == NI_DIFF_WAITING);
    struct ni_diff_mean m;
    if (!x->x) continue;
    m = ni_diff_mean(x->x, x->n, all ? 0 : 0.1, scratch);
    x->value = m.mean, x->se = m.se, x->df = m.df;
  }
}

const struct ni_diff_row *ni_diff_step(const struct ni_diff *d, uint64_t part) {
  for (size_t i = 0; i < d->n; i++)
    if (d->row[i].item[0]->kind == NI_DIFF_STEP && d->row[i].item[0]->key == part) return &d->row[i];
  return NULL;
}

/* All quantities that both have, in the order of A. */
static int match(struct ni_diff *d) {
  struct ni_diff_run *a = &d->run[0], *b = &d->run[1];
  size_t most = a->n > b->n ? a->n : b->n;
  struct ni_diff_item **at = malloc((b->n + 1) * sizeof *at), *one, **found;
  float *scratch = malloc((4096 + most) * sizeof *scratch + (a->bins + b->bins) * sizeof *scratch);
  d->row = calloc(a->n + 1, sizeof *d->row);
  if (at && scratch && d->row) {
    means(a, scratch);
    means(b, scratch);
    for (size_t i = 0; i < b->n; i++) at[i] = &b->item[i];
    qsort(at, b->n, sizeof *at, by_key);
    for (size_t i = 0; i < a->n; i++) {
      one = &a->item[i];
      found = bsearch(&one, at, b->n, sizeof *at, by_key);
      if (d->blind && one->kind <= NI_DIFF_RANK) continue;
      double least = one->kind == NI_DIFF_STEP ? NI_DIFF_OF_STEP * a->item[NI_DIFF_TYPICAL].value
                                               : 0; /* of a part: less is nothing */
      if (found && one->value < least && (*found)->value < least) continue;
      bool both = found && one->members == (*found)->members &&
                  (one->kind == NI_DIFF_HOST || (one->value > 0 && (*found)->value > 0));
      if (both)
        d->row[d->n++] =
            (struct ni_diff_row){.item = {one, *found}, .change = (*found)->value / one->value - 1, .step_us = NAN};
      else d->only[0]++;
    }
    d->only[1] = b->n > a->n - d->only[0] ? b->n - (a->n - d->only[0]) : 0;
  }
  int e = at && scratch && d->row ? 0 : -ENOMEM;
  free(at);
  free(scratch);
  return e;
}

double ni_diff_own_error(const struct ni_diff_row *r) {
  return hypot((1 + r->change) * r->item[0]->se, r->item[1]->se) / r->item[0]->value;
}

struct place {
  double ratio, us;
};
static int by_ratio(const void *a, const void *b) {
  const struct place *x = a, *y = b;
  return x->ratio < y->ratio ? -1 : x->ratio > y->ratio;
}

/*
 * Own time of a step by means over the run, of the places that both runs of a rank have. B's is A's times the mean ratio of the
 * places, the lowest and the highest fifth of the time left out: in a few places the two runs may have told differently what an
 * operation waits for. How far places lie apart is a part of the error.
 */
static bool usual_of(struct ni_diff_item *x[2]) {
  struct place *at = malloc((x[0]->n_places + 1) * sizeof *at);
  double all = 0, both = 0, sum = 0, from = 0;
  size_t n = 0;
  for (uint32_t a = 0; a < x[0]->n_places; a++) all += x[0]->place[a].mean_us;
  for (uint32_t a = 0, b = 0; at && a < x[0]->n_places && b < x[1]->n_places;) {
    const struct ni_blame_place *p = &x[0]->place[a], *q = &x[1]->place[b];
    if (p->name == q->name) at[n++] = (struct place){q->mean_us / p->mean_us, p->mean_us}, both += p->mean_us;
    a += p->name <= q->name;
    b += q->name <= p->name;
  }
  if (at) qsort(at, n, sizeof *at, by_ratio);
  for (size_t i = 0; i < n; i++) {
    double low = fmax(from, 0.2 * both), high = fmin(from += at[i].us, 0.8 * both);
    if (high > low) sum += (high - low) * at[i].ratio;
  }
  sum /= 0.6 * both;
  double *off = malloc((n + 1) * sizeof *off), squares = 0, apart = 0;
  for (size_t i = 0; off && i < n; i++)
    off[i] = fabs(at[i].ratio - at[n / 2].ratio), squares += pow(at[i].us / both, 2);
  if (off) apart = 1.4826 * ni_diff_median(off, n) * sqrt(squares);
  free(off);
  free(at);
  if (!(both > all / 4)) return false;
  for (int k = 0; k < 2; k++) {
    double usual = k ? both * sum : both;
    x[k]->se = usual * hypot(x[k]->se / x[k]->value, k ? apart : 0);
    x[k]->value = x[k]->usual_us = usual;
  }
  return true;
}

static void own_times(struct ni_diff *d) {
  for (size_t i = 0; i < d->n; i++) {
    struct ni_diff_item **x = d->row[i].item;
    if (x[0]->kind != NI_DIFF_RANK) continue;
    d->row[i].change = usual_of(x) ? x[1]->value / x[0]->value - 1 : NAN;
  }
  for (size_t i = 0; i < d->n; i++) {
    struct ni_diff_item **x = d->row[i].item;
    double usual[2] = {0, 0}, n = 0, error = 0;
    if (x[0]->kind != NI_DIFF_HOST) continue;
    for (size_t k = 0; k < d->n; k++) {
      struct ni_diff_item **rank = d->row[k].item;
      if (rank[0]->kind != NI_DIFF_RANK || (x[0]->key != NI_DIFF_ALL_RANKS && rank[0]->like != x[0]->key) ||
          isnan(d->row[k].change))
        continue;
      usual[0] += rank[0]->usual_us, usual[1] += rank[1]->usual_us, n++;
      error += ni_diff_own_error(&d->row[k]); /* ranks of a host err alike */
    }
    d->row[i].change = n * 2 > x[0]->members ? usual[1] / usual[0] - 1 : NAN;
    for (int k = 0; k < 2; k++) x[k]->value = usual[k] / n, x[k]->se = k ? x[k]->value * error / n : 0, x[k]->df = 60;
  }
  size_t kept = 0;
  for (size_t i = 0; i < d->n; i++) {
    if (isnan(d->row[i].change)) d->only[0]++, d->only[1]++;
    else d->row[kept++] = d->row[i];
  }
  d->n = kept;
}

int ni_diff_match(struct ni_diff *d) {
  int e = match(d);
  if (e == 0) own_times(d);
  return e;
}
