#include "causes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "alike.h"
#include "exporter/base/array.h"
#include "quantile.h"

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

int ni_congestion_cost(const struct ni_blame *b, const struct ni_causes *causes, struct ni_cause *c) {
  const struct ni_summary *s = b->s;
  float *quiet = malloc((b->bins + 1) * sizeof *quiet);
  double sum = 0;
  size_t n = 0, hit = 0;
  if (!quiet) return -ENOMEM;
  for (int pass = 0; pass < 2; pass++) {
    float usual = pass ? ni_blame_quantile(quiet, n, 0.5) : 0;
    for (size_t k = 1; k + 2 < s->n_step_bins; k++) { /* the first and the last ones are not whole */
      float us = (float)(s->step[k + 1].start_us - s->step[k].start_us);
      if (!s->step[k].start_us || !s->step[k + 1].start_us) continue;
      if (pass == 0 && !causes->crowded[k]) quiet[n++] = us;
      if (pass == 1 && causes->crowded[k]) sum += us - usual, hit++;
    }
  }
  float apart = n ? quiet[n - 1 - n / 6] - quiet[n / 6] : 0; /* sorted; two standard deviations */
  double doubt = apart * sqrt((double)hit) + 0.1 * fabs(sum);
  free(quiet);
  c->cost_us = fmax(0, sum);
  c->low_us = fmax(0, sum - doubt);
  c->high_us = fmax(0, sum + doubt);
  return 0;
}

void ni_causes_free(struct ni_causes *c) {
  for (uint32_t i = 0; i < c->n; i++) free(c->item[i].item);
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
