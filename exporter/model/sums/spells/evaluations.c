/*
 * Evaluations that the logs hold: steps in which nearly all ranks do far more operations than in others, and
 * which take longer. Where they are periodic they are a note about the job. (An evaluation without operations
 * is a pause of all ranks: pauses.c.)
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/model/sums/blame/peer_groups.h"
#include "exporter/model/sums/ranks/quantile.h"
#include "exporter/model/sums/work/islands.h"
#include "spells.h"

#define FAR_MORE_OPS 1.5f /* times what a rank has in its middle bin */
#define FAR_LONGER 0.1f   /* of the middle bin: so much longer is a step with more */
enum { NEARLY_ALL_OF_TEN = 9 };

/* Operations of a rank in a bin, whether they have own time or not. */
static float count_ops(const struct ni_blame *b, uint32_t rank, uint32_t bin) {
  const struct ni_blame_rank *o = &b->rank[rank];
  const struct ni_blame_cell *c = ni_blame_cell_at(b, rank, bin);
  float n = 0;
  for (uint32_t i = 0; c && i < o->n_slots && i < o->max_slots; i++)
    n += (float)o->link_cell[(size_t)(c - o->cell) * o->max_slots + i].n;
  return n;
}

/* Adds one to each bin in which this rank does far more than in most. */
static void count_far_more(const struct ni_blame *b, uint32_t rank, uint32_t *ranks, float *scratch) {
  size_t n = 0;
  for (uint32_t k = 0; k < b->bins; k++) {
    const float ops = count_ops(b, rank, k);
    if (ops > 0)
      scratch[n++] = ops;
  }
  const float most = FAR_MORE_OPS * ni_blame_quantile(scratch, n, 0.5);
  for (uint32_t k = 0; k < b->bins; k++)
    ranks[k] += count_ops(b, rank, k) > most;
}

/* The moments: bins with far more of nearly all ranks, and how much longer these take. */
static uint32_t gather_long_bins(const struct ni_blame *b, uint32_t judged, const uint32_t *ranks,
                                 const float *us, float *scratch, struct ni_spell_moment *at) {
  size_t n = 0;
  uint32_t moments = 0;
  for (uint32_t k = 0; k < b->bins; k++)
    if (!isnan(us[k]))
      scratch[n++] = us[k];
  const float middle = ni_blame_quantile(scratch, n, 0.5);
  n = 0;
  for (uint32_t k = 0; k < b->bins; k++) {
    const bool far_more = ranks[k] * 10 >= judged * NEARLY_ALL_OF_TEN && !ni_islands_meet(b, k);
    if (!far_more || us[k] <= (1 + FAR_LONGER) * middle)
      continue;
    at[moments++] = (struct ni_spell_moment){.step = k, .us = us[k] - middle, .in_step = 1};
    if (!isnan(us[k]))
      scratch[n++] = us[k] - middle;
  }
  /* nothing comes behind the last one that would end it: it is taken to be as long as the others */
  const float usual = ni_blame_quantile(scratch, n, 0.5);
  for (uint32_t i = 0; i < moments; i++)
    if (isnan(at[i].us))
      at[i].us = usual;
  return n ? moments : 0;
}

/* All ranks pause there, and were named for it. */
static bool is_named(const struct ni_causes *out, const struct ni_spell_moment *at, uint32_t n) {
  for (uint32_t i = 0; i < out->n; i++) {
    const struct ni_cause *c = &out->item[i];
    uint32_t there = 0;
    const bool is_periodic = c->level == NI_LEVEL_JOB && c->kind == NI_FIND_PERIODIC;
    for (uint32_t k = 0; k < n && is_periodic; k++)
      there += ni_cause_is_active(c, at[k].step);
    if (there * 2 > n)
      return true;
  }
  return false;
}

static int name_evaluations(const struct ni_blame *b, const struct ni_period *period,
                            const struct ni_spell_moment *at, uint32_t n, const bool *in, uint32_t judged,
                            struct ni_causes *out) {
  struct ni_cause *c = ni_cause_add(out, NI_FIND_PERIODIC, NI_LEVEL_JOB, 0);
  if (!c)
    return 0;
  c->period = period->steps;
  c->bins_hit = period->n;
  c->excess_us = period->us;
  c->n_peers = judged;
  c->to = b->bins;
  if (!(c->at = calloc(b->bins + 1, sizeof *c->at)))
    return -ENOMEM;
  for (uint32_t i = 0; i < n; i++)
    c->at[at[i].step] = in[i];
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++)
    if (b->rank[i].judged)
      e = ni_cause_add_item(c, i);
  return e;
}

int ni_find_evaluations(const struct ni_blame *b, struct ni_causes *out) {
  if (b->bin_steps > 1)
    return 0; /* a bin has steps of both kinds */
  const size_t bins = b->bins + 1;
  uint32_t *ranks = calloc(bins, sizeof *ranks);
  float *us = malloc(2 * bins * sizeof *us);
  struct ni_spell_moment *at = malloc(bins * sizeof *at);
  bool *in = calloc(bins, sizeof *in);
  int e = ranks && us && at && in ? 0 : -ENOMEM;
  if (e == 0) {
    float *scratch = us + bins;
    uint32_t judged = 0;
    for (uint32_t i = 0; i < b->n_ranks; i++) {
      if (!b->rank[i].judged)
        continue;
      judged++;
      count_far_more(b, i, ranks, scratch);
    }
    e = ni_causes_bin_lengths(b, us);
    const uint32_t n = gather_long_bins(b, judged, ranks, us, scratch, at);
    const struct ni_period period = ni_find_period(at, n, in);
    if (e == 0 && period.steps && !is_named(out, at, n))
      e = name_evaluations(b, &period, at, n, in, judged, out);
  }
  free(ranks);
  free(us);
  free(at);
  free(in);
  return e;
}
