#include <math.h>

#include "spells.h"

/*
 * Of the excess in bursts: so much there may be between the first and the last one. A rank that is late all
 * the time from some step on has bins in between that are a little less late, and before that it was not.
 */
#define QUIET 0.25f
#define OF_RUN_LEAST 0.02f
#define OF_RUN_MOST 0.55f

enum {
  SILENT = 3,        /* a pause of another rank silences two bins */
  EPISODE_OF_TEN = 9 /* a burst that has so many of ten bins of all bursts is an episode */
};

/*
 * longer: in a bin: it can belong to a burst. mean: in all of them: own time that no place is compared for is
 * not in it, so a GPU that computes 40 % longer may show as 11 %. apart: times the noise of a bin: less is
 * chance, of a bin alone more often than of two in a row. holes: so many bins in a row of a burst can be as
 * usual.
 */
static const struct burst_rule {
  float longer, mean, apart;
  uint32_t bins_min, bursts_min, holes;
} rules[] = {
    [NI_BURSTS_IN_A_ROW] =
        {.longer = 0.06f, .mean = 0.07f, .apart = 4, .bins_min = 2, .bursts_min = 2, .holes = 1},
    [NI_BURSTS_OF_ONE] = {.longer = 0.05f, .mean = 0.05f, .apart = 6, .bins_min = 1, .bursts_min = 6}};

static bool is_longer(float x, float floor) { return !isnan(x) && x >= floor; }

/*
 * The burst that begins at `from`: bins that are longer, up to `most` in a row of them not. Bins that say
 * nothing, as where another rank pauses, end none. Its end.
 */
static uint32_t find_burst_end(const float *x, uint32_t bins, uint32_t from, float floor, uint32_t most) {
  uint32_t to = from + 1, holes = 0;
  for (uint32_t k = from + 1; k < bins && holes <= most && k < to + SILENT; k++) {
    if (isnan(x[k]))
      continue;
    holes = is_longer(x[k], floor) ? 0 : holes + 1;
    if (!holes)
      to = k + 1;
  }
  return to;
}

struct ni_bursts ni_find_bursts(const float *x, uint32_t bins, float noise, enum ni_burst_shape shape,
                                bool *hit) {
  struct ni_bursts b = {0}, none;
  const struct burst_rule *rule = &rules[shape];
  const float floor = fmaxf(rule->longer, rule->apart * noise);
  double in = 0, out = 0;
  uint32_t quiet = 0, seen = 0, longest = 0, first = bins, last = 0;
  for (uint32_t k = 0; k < bins; k++)
    hit[k] = false;
  for (uint32_t k = 0, to; k < bins; k = to) {
    to = k + 1;
    if (!is_longer(x[k], floor))
      continue;
    to = find_burst_end(x, bins, k, floor, rule->holes);
    if (to - k < rule->bins_min)
      continue;
    for (uint32_t i = k; i < to; i++)
      hit[i] = true;
    if (b.n == 0)
      first = k;
    last = to;
    if (to - k > longest)
      longest = to - k;
    b.n++;
    b.bins += to - k;
  }
  for (uint32_t k = 0; k < bins; k++) {
    if (isnan(x[k]))
      continue;
    if (hit[k]) {
      in += fminf(x[k], 1);
      seen++;
    } else if (k > first && k < last) {
      out += fminf(fmaxf(x[k], -1), 1);
      quiet++;
    }
  }
  b.excess = seen ? (float)(in / seen) : 0;
  b.area = (float)in;
  none = (struct ni_bursts){.area = b.area};
  const float rest = quiet ? (float)(out / quiet) : 0;
  const bool share =
      (float)b.bins >= OF_RUN_LEAST * (float)bins && (float)b.bins <= OF_RUN_MOST * (float)bins;
  /* One that holds nearly all of them is an episode. */
  const bool several = b.n >= rule->bursts_min && longest * 10 < b.bins * EPISODE_OF_TEN;
  const bool is_high = b.excess >= rule->mean && rest <= QUIET * b.excess;
  if (share && several && is_high)
    return b;
  for (uint32_t k = 0; k < bins; k++)
    hit[k] = false;
  return none;
}
