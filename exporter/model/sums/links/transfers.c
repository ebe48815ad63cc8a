#include "transfers.h"

#include <math.h>

#include "exporter/model/sums/ranks/quantile.h"

double ni_transfers_step_us(const struct ni_blame *b) {
  double best = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    const struct ni_blame_rank *o = &b->rank[i];
    const double us = o->judged && o->n_steps ? (double)(o->last_ns - o->first_ns) / 1e3 / o->n_steps : 0;
    best = fmax(best, us);
  }
  return best;
}

bool ni_transfers_are_long(const struct ni_blame_link *l, double step_us) {
  return !isnan(l->mean_us) && l->n_ranks > 1 && l->mean_us * l->per_step >= NI_CAUSE_LINK_OF_STEP * step_us;
}

bool ni_transfers_have_all_ranks(const struct ni_blame *b, const struct ni_blame_link *l) {
  const uint32_t all = l->from < 0 ? (uint32_t)b->s->comm[l->comm].n_ranks : 2;
  return l->n_ranks >= all;
}

float ni_transfers_noise(const float *x, uint32_t bins, float *scratch) {
  size_t n = 0;
  float last = NAN;
  for (uint32_t k = 0; k < bins; k++) {
    if (isnan(x[k]))
      continue;
    if (!isnan(last))
      scratch[n++] = fabsf(x[k] - last);
    last = x[k];
  }
  return n ? ni_blame_quantile(scratch, n, 0.5) * NI_CAUSE_NOISE : 0;
}

float ni_transfers_drop_threshold(float noise) { return fmaxf(NI_CAUSE_DROP, NI_CAUSE_SIGMA * noise); }

float ni_transfers_neighbour(const float *x, uint32_t bins, uint32_t k, int step) {
  for (int64_t i = (int64_t)k + step; i >= 0 && i < bins; i += step)
    if (!isnan(x[i]))
      return x[i];
  return NAN;
}

uint32_t ni_transfers_known(const float *x, uint32_t from, uint32_t to) {
  uint32_t n = 0;
  for (uint32_t k = from; k < to; k++)
    n += !isnan(x[k]);
  return n;
}
