#include "own_map.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/model/sums/blame/alike.h"
#include "exporter/model/sums/ranks/quantile.h"
#include "exporter/model/sums/findings.h"

/* Pauses of the rank in the middle, of each bin: what all do at once makes nobody late. */
static void usual_pauses(const struct ni_blame *b, float *pauses, float *scratch) {
  for (uint32_t k = 0; k < b->bins; k++) {
    size_t n = 0;
    for (uint32_t r = 0; r < b->n_ranks; r++) {
      const struct ni_blame_cell *c = b->rank[r].judged ? ni_blame_cell_at(b, r, k) : NULL;
      if (c)
        scratch[n++] = c->burst;
    }
    pauses[k] = n ? ni_blame_quantile(scratch, n, 0.5) : 0;
  }
}

/* Of one rank and bin, in us of a step; NAN: nothing to compare. */
static double beyond(const struct ni_blame *b, const float *pauses, uint32_t rank, uint32_t bin) {
  const struct ni_blame_cell *c = b->rank[rank].judged ? ni_blame_cell_at(b, rank, bin) : NULL;
  const float us = b->beyond_us[(size_t)rank * b->bins + bin];
  return c && !isnan(us) ? us + (c->burst - pauses[bin]) / (float)b->bin_steps : NAN;
}

/* The last bin that begins at `us` or before, from `at` on. */
static uint32_t bin_at(const struct ni_summary *s, uint32_t at, double us) {
  while (at + 1 < s->n_step_bins && (double)s->step[at + 1].start_us <= us)
    at++;
  return at;
}

static void fill_row(const struct ni_blame *b, struct ni_summary *s, const float *pauses, uint32_t rank,
                     double step_us) {
  struct ni_heat *h = &s->heat;
  const size_t row = (size_t)b->rank[rank].process * h->bins;
  const double wide = (double)(s->last_us - s->first_us) / h->bins;
  uint32_t from = 0;
  for (uint32_t t = 0; t < h->bins; t++) {
    const double begin = (double)s->first_us + t * wide;
    double sum = 0;
    uint32_t n = 0;
    from = bin_at(s, from, begin);
    const uint32_t to = bin_at(s, from, begin + wide - 1);
    for (uint32_t k = from; k <= to; k++) {
      const double us = beyond(b, pauses, rank, k);
      if (!isnan(us) && (double)s->step[k].start_us < begin + wide) {
        sum += us;
        n++;
      }
    }
    h->count[row + t] = n;
    h->relative[row + t] = n ? (float)(sum / n / step_us) : NAN;
  }
}

int ni_own_map(const struct ni_blame *b, struct ni_summary *s) {
  double us[3];
  if (!s->by_own_time || !s->heat.rows || !b->beyond_us || !s->n_step_bins || !ni_steps_us(s, us))
    return 0;
  float *pauses = malloc((b->bins + 1) * sizeof *pauses);
  float *scratch = malloc((b->n_ranks + 1) * sizeof *scratch);
  const int e = pauses && scratch ? 0 : -ENOMEM;
  if (e == 0)
    usual_pauses(b, pauses, scratch);
  s->heat.by_own = e == 0;
  for (uint32_t r = 0; e == 0 && r < b->n_ranks; r++)
    if (b->rank[r].process < s->heat.rows)
      fill_row(b, s, pauses, r, us[1]);
  free(pauses);
  free(scratch);
  return e;
}
