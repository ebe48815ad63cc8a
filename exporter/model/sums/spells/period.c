#include <math.h>
#include <stdlib.h>

#include "exporter/base/order.h"
#include "spells.h"

#define ALIKE 0.3f     /* times the third longest moment: shorter ones have another reason */
#define REGULAR 0.8    /* of the distances are one period, or two, where a moment was missed, */
#define ONE_PERIOD 0.6 /* and so many are one */
#define EXACT 0.9      /* of the distances are as many steps: it is counted in steps */
#define SLACK 0.04     /* of a period, and one step at least: distances may differ by that */
#define FEW 4u /* where moments are fewer, all distances are one period, and lengths differ by less than */
#define FEW_ALIKE 1.6f /* this factor */

enum { MOMENTS_MIN = 3, STEPS_MIN = 4 };

static NI_ORDER_OF(by_number, float);
static NI_ORDER_OF(by_distance, uint32_t);

static bool is_near(uint32_t distance, double want) { return fabs(distance - want) <= fmax(1, SLACK * want); }

/* From which length on moments are looked at; INFINITY: there are too few. */
static float find_least_length(const struct ni_spell_moment *at, uint32_t n, float *scratch) {
  for (uint32_t i = 0; i < n; i++)
    scratch[i] = at[i].us;
  qsort(scratch, n, sizeof *scratch, by_number);
  return n < MOMENTS_MIN ? INFINITY : ALIKE * scratch[n - MOMENTS_MIN];
}

/* What tells whether moments are a period, beside their number. */
struct spacing {
  uint32_t distances, once, regular; /* of one period; of one or two; */
  uint32_t exact;                    /* of so many steps, not one more or less */
  float shortest, longest;           /* moments, us */
};

/* distance: room for n. */
static struct ni_period measure_period(const struct ni_spell_moment *at, uint32_t n, const bool *in,
                                       uint32_t *distance, struct spacing *s) {
  struct ni_period p = {0};
  uint32_t last = 0;
  double sum = 0;
  *s = (struct spacing){.shortest = INFINITY};
  for (uint32_t i = 0; i < n; i++) {
    if (!in[i])
      continue;
    if (p.n++ == 0)
      p.first = at[i].step;
    else
      distance[s->distances++] = at[i].step - last;
    last = at[i].step;
    sum += at[i].us;
    s->shortest = fminf(s->shortest, at[i].us);
    s->longest = fmaxf(s->longest, at[i].us);
  }
  if (p.n < MOMENTS_MIN)
    return p;
  qsort(distance, s->distances, sizeof *distance, by_distance);
  p.steps = distance[(s->distances - 1) / 2];
  p.us = (float)(sum / p.n);
  for (uint32_t i = 0; i < s->distances; i++) {
    const bool one = is_near(distance[i], p.steps);
    s->once += one;
    s->exact += distance[i] == p.steps || distance[i] == 2 * p.steps;
    s->regular += one || is_near(distance[i], 2.0 * p.steps);
  }
  return p;
}

static bool is_period(const struct ni_period *p, const struct spacing *s) {
  const bool is_regular = s->regular >= REGULAR * s->distances && s->once >= ONE_PERIOD * s->distances;
  const bool are_same_length = s->once == s->distances && s->longest <= FEW_ALIKE * s->shortest;
  const bool are_enough = p->n >= MOMENTS_MIN && (p->n >= FEW || are_same_length);
  return are_enough && is_regular && p->steps >= STEPS_MIN;
}

/*
 * Leaves out moments before the first period has passed that none follows a period later: compilation and the
 * first allocations make the first steps of a run longer, whatever comes each so many steps.
 */
static void leave_out_first(const struct ni_spell_moment *at, uint32_t n, uint32_t period, bool *in) {
  uint32_t last = n;
  for (uint32_t i = 0; i < n; i++) {
    if (!in[i])
      continue;
    if (last < n && (at[last].step > period || is_near(at[i].step - at[last].step, period)))
      return;
    if (last < n)
      in[last] = false;
    last = i;
  }
}

struct ni_period ni_find_period(const struct ni_spell_moment *at, uint32_t n, bool *in) {
  float *scratch = malloc((n + 1) * sizeof *scratch);
  uint32_t *distance = malloc((n + 1) * sizeof *distance);
  struct spacing s;
  /* no memory: no period is found */
  const float least = scratch && distance ? find_least_length(at, n, scratch) : INFINITY;
  for (uint32_t i = 0; i < n; i++)
    in[i] = at[i].us >= least;
  struct ni_period p = measure_period(at, n, in, distance, &s);
  if (!is_period(&p, &s)) {
    leave_out_first(at, n, p.steps, in);
    p = measure_period(at, n, in, distance, &s);
  }
  free(scratch);
  free(distance);
  p.exact = s.exact >= EXACT * s.distances;
  if (is_period(&p, &s))
    return p;
  for (uint32_t i = 0; i < n; i++)
    in[i] = false;
  return (struct ni_period){0};
}
