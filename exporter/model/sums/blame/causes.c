#include "causes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "alike.h"
#include "quantile.h"
#include "exporter/base/array.h"
#include "quantile.h"

enum { COST_RANKS = 64 };      /* whose steps are looked at */

struct ni_cause *ni_cause_add(struct ni_causes *c, enum ni_finding_kind kind, enum ni_finding_level level, uint32_t of) {
  if (c->n == NI_CAUSES_MAX) {
    c->left_out++;
    return NULL;
  }
  c->item[c->n] = (struct ni_cause){.kind = kind, .level = level, .of = of, .other = NI_BLAME_NONE, .lead = {1, 1}};
  return &c->item[c->n++];
}

int ni_cause_item(struct ni_cause *c, uint32_t item) {
  size_t cap = c->n_items;
  if (!ni_array_exact(&c->item, &cap, c->n_items + 1, sizeof *c->item)) return -ENOMEM;
  c->item[c->n_items++] = item;
  return 0;
}

/* What one rank's bins that are hit took longer than the median of its others, by its own clock; apart: two standard deviations of these. */
static double longer_us(const struct ni_blame *b, uint32_t rank, const bool *hit, float *quiet, float *apart) {
  double sum = 0;
  size_t n = 0, hits = 0;
  for (int pass = 0; pass < 2; pass++) {
    const float usual = pass ? ni_blame_quantile(quiet, n, 0.5) : 0;
    for (uint32_t k = 1; k + 2 < b->bins; k++) { /* the first and the last ones are not whole */
      const struct ni_blame_cell *at = ni_blame_cell_at(b, rank, k), *next = ni_blame_cell_at(b, rank, k + 1);
      const float us = at && next ? (float)(next->start_ns - at->start_ns) / 1e3f : NAN;
      if (isnan(us)) continue;
      if (pass == 0 && !hit[k]) quiet[n++] = us;
      if (pass == 1 && hit[k]) sum += us - usual, hits++;
    }
  }
  if (n == 0 || n < hits) return NAN;
  *apart = (quiet[n - 1 - n / 6] - quiet[n / 6]) * (float)sqrt((double)hits); /* sorted */
  return sum;
}

/* Ranks see a wait in the one or the other of two steps: so it is summed up before they are compared. A clock that was set moves few of them. */
int ni_steps_cost(const struct ni_blame *b, const bool *hit, struct ni_cause *c) {
  const uint32_t every = b->n_ranks / COST_RANKS + 1;
  float *quiet = malloc((b->bins + 1) * sizeof *quiet), sum[COST_RANKS + 1], apart[COST_RANKS + 1], away = 0;
  size_t n = 0;
  if (!quiet) return -ENOMEM;
  for (uint32_t i = 0; i < b->n_ranks && n < COST_RANKS; i += every) {
    const double us = b->rank[i].judged ? longer_us(b, i, hit, quiet, &away) : NAN;
    if (isnan(us)) continue;
    apart[n] = away;
    sum[n++] = (float)us;
  }
  free(quiet);
  if (n == 0) return 0;
  double us = ni_blame_quantile(sum, n, 0.5), doubt = ni_blame_quantile(apart, n, 0.5) + 0.1 * fabs(us);
  if (c->most_us > 0) us = fmin(us, c->most_us);
  c->cost_us = fmax(0, us);
  c->low_us = fmax(0, us - doubt);
  c->high_us = fmax(0, us + doubt);
  return 1;
}

void ni_causes_free(struct ni_causes *c) {
  for (uint32_t i = 0; i < c->n; i++) free(c->item[i].item), free(c->item[i].hit);
  free(c->crowded);
}

bool ni_longest_above(const float *x, uint32_t n, float floor, uint32_t *from, uint32_t *to) {
  double sum = 0, best = 0;
  uint32_t start = 0;
  *from = *to = 0;
  for (uint32_t k = 0; k < n; k++) {
    if (!isnan(x[k])) sum += x[k] - floor;
    if (sum <= 0) {
      sum = 0;
      start = k + 1;
    } else if (sum > best) {
      best = sum;
      *from = start;
      *to = k + 1;
    }
  }
  return best > 0;
}
