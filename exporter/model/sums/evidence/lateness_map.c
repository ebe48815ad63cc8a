#include "lateness_map.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/model/sums/blame/peer_groups.h"
#include "exporter/model/sums/ranks/quantile.h"
#include "exporter/model/sums/findings.h"

/* Pauses of the rank in the middle, of each bin: what all do at once makes nobody late. */
static void find_baseline_pauses(const struct ni_blame *b, float *pauses, float *scratch) {
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
static double compute_beyond(const struct ni_blame *b, const float *pauses, uint32_t rank, uint32_t bin) {
  const struct ni_blame_cell *c = b->rank[rank].judged ? ni_blame_cell_at(b, rank, bin) : NULL;
  const float us = b->beyond_us[(size_t)rank * b->bins + bin];
  return c && !isnan(us) ? us + (c->burst - pauses[bin]) / (float)b->bin_steps : NAN;
}

/* The last bin that begins at `us` or before, from `at` on. */
static uint32_t find_map_bin(const struct ni_summary *s, uint32_t at, double us) {
  while (at + 1 < s->n_step_bins && (double)s->step[at + 1].start_us <= us)
    at++;
  return at;
}

static void fill_map_row(const struct ni_blame *b, struct ni_summary *s, const float *pauses, uint32_t rank,
                         double step_us) {
  struct ni_heat *h = &s->heat;
  const size_t row = (size_t)b->rank[rank].process * h->bins;
  const double wide = (double)(s->last_us - s->first_us) / h->bins;
  uint32_t from = 0;
  for (uint32_t t = 0; t < h->bins; t++) {
    const double begin = (double)s->first_us + t * wide;
    double sum = 0;
    uint32_t n = 0;
    from = find_map_bin(s, from, begin);
    const uint32_t to = find_map_bin(s, from, begin + wide - 1);
    for (uint32_t k = from; k <= to; k++) {
      const double us = compute_beyond(b, pauses, rank, k);
      if (!isnan(us) && (double)s->step[k].start_us < begin + wide) {
        sum += us;
        n++;
      }
    }
    h->count[row + t] = n;
    h->relative[row + t] = n ? (float)(sum / n / step_us) : NAN;
  }
}

int ni_fill_lateness_map(const struct ni_blame *b, struct ni_summary *s) {
  double us[3];
  const bool has_steps = s->by_own_time && b->beyond_us && s->n_step_bins;
  if (!has_steps || !s->heat.rows || !ni_steps_us(s, us))
    return 0;
  float *pauses = malloc((b->bins + 1) * sizeof *pauses);
  float *scratch = malloc((b->n_ranks + 1) * sizeof *scratch);
  const int e = pauses && scratch ? 0 : -ENOMEM;
  if (e == 0)
    find_baseline_pauses(b, pauses, scratch);
  s->heat.by_own = e == 0;
  for (uint32_t r = 0; e == 0 && r < b->n_ranks; r++)
    if (b->rank[r].process < s->heat.rows)
      fill_map_row(b, s, pauses, r, us[1]);
  free(pauses);
  free(scratch);
  return e;
}
