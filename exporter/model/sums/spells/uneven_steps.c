/*
 * Steps that have more to do than others. Nearly all ranks take longer in them, in one place (pauses.c) or in
 * all of them, and nothing says how far they are from each other. What else was found then, a network that
 * was slow or an evaluation, is no such step, nor are the first ones.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/model/sums/ranks/quantile.h"
#include "spells.h"

/* One in so many of all steps is one; the first ones are so many, and one in so many of all. */
enum { ONE_IN = 40, FIRST = 2, BEGIN = 40 };

static bool is_of_steps(const struct ni_cause *c) {
  return c->kind == NI_FIND_UNEVEN && c->level == NI_LEVEL_JOB;
}

/* Three quarters of the ranks take so much longer in a step: some of them may do something else in it. */
#define MOST_RANKS 0.25

/*
 * What a step takes beside operations in line. Not the own time that is compared among ranks: where
 * operations overlap the computing, that is what is left of it. NAN: not known.
 */
static float get_own_us(const struct ni_blame *b, uint32_t rank, uint32_t bin) {
  const struct ni_blame_cell *c = ni_blame_cell_at(b, rank, bin);
  const struct ni_blame_cell *next = c ? ni_blame_cell_at(b, rank, bin + 1) : NULL;
  return next ? (float)(next->start_ns - c->start_ns) / 1e3f - c->exposed : NAN;
}

/* The median of that over the run; NAN: the rank is not judged, or its steps differ by nature. */
static float measure_usual_us(const struct ni_blame *b, uint32_t rank, float *scratch) {
  size_t n = 0;
  if (!b->rank[rank].judged || b->rank[rank].ops_vary)
    return NAN;
  for (uint32_t k = 0; k < b->bins; k++) {
    const float us = get_own_us(b, rank, k);
    if (!isnan(us))
      scratch[n++] = us;
  }
  return ni_blame_quantile(scratch, n, 0.5);
}

/* x: by how much nearly all ranks take longer in each bin than usual, as a share; NAN: not known. */
static void measure_common_excess(const struct ni_blame *b, const float *usual_us, float *scratch, float *x) {
  for (uint32_t k = 0; k < b->bins; k++) {
    size_t n = 0;
    for (uint32_t i = 0; i < b->n_ranks; i++) {
      const float us = usual_us[i] > 0 ? get_own_us(b, i, k) : NAN;
      if (!isnan(us))
        scratch[n++] = us / usual_us[i] - 1;
    }
    x[k] = ni_blame_quantile(scratch, n, MOST_RANKS);
  }
  x[0] = x[b->bins - 1] = NAN; /* these are not whole */
}

/* One standard deviation of bins, by those that are not longer: up to half of them may be. */
static float measure_noise(const float *x, uint32_t bins, float *scratch) {
  size_t n = 0;
  for (uint32_t k = 0; k < bins; k++)
    if (!isnan(x[k]))
      scratch[n++] = x[k];
  const float high = ni_blame_quantile(scratch, n, NI_CAUSE_SPREAD_HIGH);
  return (high - ni_blame_quantile(scratch, n, NI_CAUSE_SPREAD_LOW)) / NI_CAUSE_SPREAD;
}

/* These steps are those that have more to do, whatever pauses say. hit: by bin. */
static int set_steps(const struct ni_blame *b, struct ni_causes *causes, const bool *hit) {
  struct ni_cause *c = NULL;
  int e = 0;
  for (uint32_t i = 0; i < causes->n; i++)
    if (is_of_steps(&causes->item[i]))
      c = &causes->item[i];
  if (!c) {
    c = ni_cause_add(causes, NI_FIND_UNEVEN, NI_LEVEL_JOB, 0);
    if (!c)
      return 0;
    c->to = b->bins;
    c->at = calloc(b->bins + 1, sizeof *c->at);
    for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++) {
      c->n_peers += b->rank[i].judged;
      e = b->rank[i].judged ? ni_cause_add_item(c, i) : 0;
    }
  }
  for (uint32_t k = 0; c->at && k < b->bins; k++)
    c->at[k] = hit[k];
  return c->at ? e : -ENOMEM;
}

int ni_find_uneven_steps(const struct ni_blame *b, struct ni_causes *causes) {
  if (b->waits_unseen || b->teams_wait_unseen || b->bins < 2 * NI_CAUSE_BINS)
    return 0; /* what all ranks take longer may be a wait for one of them */
  float *scratch = malloc((b->n_ranks + b->bins + 1) * sizeof *scratch);
  float *usual_us = malloc((b->n_ranks + 1) * sizeof *usual_us), *x = malloc((b->bins + 1) * sizeof *x);
  bool *hit = calloc(b->bins + 1, sizeof *hit);
  int e = scratch && usual_us && x && hit ? 0 : -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++)
    usual_us[i] = measure_usual_us(b, i, scratch);
  if (e == 0) {
    measure_common_excess(b, usual_us, scratch, x);
    const float noise = measure_noise(x, b->bins, scratch);
    if (ni_find_bursts(x, b->bins, noise, NI_BURSTS_OF_ONE, hit).n)
      e = set_steps(b, causes, hit);
  }
  free(scratch);
  free(usual_us);
  free(x);
  free(hit);
  return e;
}

/* Another cause that comes and goes is at work in this bin, or was in the one before it. */
static bool is_explained(const struct ni_blame *b, const struct ni_causes *causes, uint32_t bin) {
  for (uint32_t i = 0; i < causes->n; i++) {
    const struct ni_cause *c = &causes->item[i];
    const bool is_other = !is_of_steps(c) && ni_cause_comes_and_goes(b, c);
    if (is_other && (ni_cause_is_active(c, bin) || (bin && ni_cause_is_active(c, bin - 1))))
      return true;
  }
  return false;
}

static void settle(const struct ni_blame *b, struct ni_causes *causes, struct ni_cause *c) {
  const uint32_t first = b->bins / BEGIN + FIRST;
  c->bins_hit = 0;
  for (uint32_t k = 0; k < b->bins; k++) {
    c->at[k] = c->at[k] && k >= first && !is_explained(b, causes, k);
    c->bins_hit += c->at[k];
  }
  c->of_run = (float)c->bins_hit / (float)b->bins;
  const bool are_few = c->bins_hit < NI_SPELLS_UNEVEN_LEAST || c->bins_hit * ONE_IN < b->bins;
  if (are_few || !ni_cause_comes_and_goes(b, c))
    ni_cause_remove(causes, c);
}

void ni_settle_uneven_steps(const struct ni_blame *b, struct ni_causes *causes) {
  for (uint32_t i = causes->n; i-- > 0;)
    if (is_of_steps(&causes->item[i]))
      settle(b, causes, &causes->item[i]);
}
