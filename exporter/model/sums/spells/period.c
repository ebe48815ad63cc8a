#include <math.h>
#include <stdlib.h>

#include "exporter/base/order.h"
#include "spells.h"

#define ALIKE 0.3f     /* times the third longest moment: shorter ones have another reason */
#define REGULAR 0.8    /* of the distances are one period, or two, where a moment was missed, */
#define ONE_PERIOD 0.6 /* and so many are one */
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

struct ni_period ni_find_period(const struct ni_spell_moment *at, uint32_t n, bool *in) {
  struct ni_period p = {0}, none = {0};
  float *scratch = malloc((n + 1) * sizeof *scratch);
  uint32_t *distance = malloc((n + 1) * sizeof *distance), distances = 0, last = 0, regular = 0, once = 0;
  float shortest = INFINITY, longest = 0;
  double sum = 0;
  for (uint32_t i = 0; i < n; i++)
    in[i] = false;
  const float least =
      scratch && distance ? find_least_length(at, n, scratch) : INFINITY; /* no memory: no period is found */
  for (uint32_t i = 0; i < n; i++) {
    if (at[i].us < least)
      continue;
    in[i] = true;
    if (p.n++ == 0)
      p.first = at[i].step;
    else
      distance[distances++] = at[i].step - last;
    last = at[i].step;
    sum += at[i].us;
    shortest = fminf(shortest, at[i].us);
    longest = fmaxf(longest, at[i].us);
  }
  if (p.n >= MOMENTS_MIN) {
    qsort(distance, distances, sizeof *distance, by_distance);
    p.steps = distance[(distances - 1) / 2];
    p.us = (float)(sum / p.n);
    for (uint32_t i = 0; i < distances; i++) {
      bool one = is_near(distance[i], p.steps);
      once += one;
      regular += one || is_near(distance[i], 2.0 * p.steps);
    }
  }
  free(scratch);
  free(distance);
  const bool is_regular = regular >= REGULAR * distances && once >= ONE_PERIOD * distances;
  const bool are_same_length = once == distances && longest <= FEW_ALIKE * shortest;
  const bool are_enough = p.n >= MOMENTS_MIN && (p.n >= FEW || are_same_length);
  const bool so = are_enough && is_regular && p.steps >= STEPS_MIN;
  for (uint32_t i = 0; i < n && !so; i++)
    in[i] = false;
  return so ? p : none;
}
