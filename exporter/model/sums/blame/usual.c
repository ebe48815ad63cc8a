#include "usual.h"

#define NARROWER 0.75f /* times as wide: then the other slot is waited for as well */
#define STEADY 0.35f   /* of the median, and STEADY_US: as wide as the times of a place may be */
#define STEADY_US 60.0f
#define SLOPE_ERROR 0.25 /* standard error up to which a slope says something */

enum { SORTED = 48, SLOPE_SAMPLES = 8 };

/* Times since the last end of a set, in order: of SORTED samples at most. Returns how many. */
static uint32_t sorted(const float *gap, uint32_t n, uint32_t slots, uint64_t set, float *out) {
  uint32_t step = (n + SORTED - 1) / SORTED, m = 0;
  for (uint32_t i = 0; i < n; i += step) {
    float least = INFINITY;
    for (uint32_t k = 0; k < slots; k++)
      if (set >> k & 1 && gap[i * slots + k] < least) least = gap[i * slots + k];
    uint32_t at = m++;
    for (; at > 0 && out[at - 1] > least; at--) out[at] = out[at - 1];
    out[at] = least;
  }
  return m;
}

static float width(const float *x, uint32_t n) { return x[n - 1 - n / 5] - x[n / 5]; }

struct slope {
  double slope, error;
  uint32_t n;                  /* samples in which the slot ended later than the set */
};

/* How the time since the end of the set moves with the end of slot k, where k ended later; far: times beyond say nothing. */
static struct slope slope_of(const float *gap, uint32_t n, uint32_t slots, uint64_t set, uint32_t k, float far) {
  double sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0;
  uint32_t m = 0;
  for (uint32_t i = 0; i < n; i++) {
    float y = INFINITY;
    for (uint32_t j = 0; j < slots; j++)
      if (set >> j & 1 && gap[i * slots + j] < y) y = gap[i * slots + j];
    float x = y - gap[i * slots + k]; /* how much later it ended */
    if (!(x > 0) || !(y < far)) continue;
    sx += x, sy += y, sxx += (double)x * x, sxy += (double)x * y, syy += (double)y * y;
    m++;
  }
  struct slope s = {0, INFINITY, m};
  if (m < SLOPE_SAMPLES) return s;
  double vx = sxx / m - sx / m * (sx / m), vy = syy / m - sy / m * (sy / m), c = sxy / m - sx / m * (sy / m);
  if (vx <= 0) return s;
  s.slope = c / vx;
  double rest = vy - s.slope * c;
  s.error = sqrt((rest > 0 ? rest : 0) / (vx * m));
  return s;
}

void ni_usual_find(struct ni_usual *u, const float *gap, uint32_t n, uint32_t slots, uint32_t slot, bool first) {
  float x[SORTED], best;
  u->waits_for = UINT64_C(1) << slot;
  u->us = u->or_us = NAN;
  u->steady = u->alone = false;
  if (n < 5) return;
  uint32_t m = sorted(gap, n, slots, u->waits_for, x);
  best = width(x, m);
  for (int more = 0; more < 3; more++) {
    uint32_t with = slots, untold = slots;
    float narrowest = INFINITY, far = 3 * x[m / 2] + 1000;
    for (uint32_t k = 0; k < slots; k++) {
      float y[SORTED];
      if (u->waits_for >> k & 1) continue;
      (void)sorted(gap, n, slots, u->waits_for | UINT64_C(1) << k, y);
      float w = width(y, m);
      struct slope s = slope_of(gap, n, slots, u->waits_for, k, far);
      bool told = s.n >= SLOPE_SAMPLES && s.error <= SLOPE_ERROR;
      bool waits = told ? s.slope > 0.5 : w < best * NARROWER || (first && s.n * 10 >= n * 8 && w <= 1.5f * best);
      if (!waits && !told && s.n * 10 >= n * 8 && w <= 1.5f * best && (untold == slots || y[m / 2] < u->or_us)) {
        u->or_us = y[m / 2];
        untold = u->or_slot = k;
      }
      if (!waits || w >= narrowest) continue;
      narrowest = w;
      with = k;
    }
    if (with == slots) break;
    u->or_us = NAN;
    u->waits_for |= UINT64_C(1) << with;
    m = sorted(gap, n, slots, u->waits_for, x);
    best = width(x, m);
  }
  uint32_t alone = 0;
  for (uint32_t i = 0; i < n; i++) {
    bool other = false;
    for (uint32_t k = 0; k < slots; k++) other |= gap[i * slots + k] < gap[i * slots + slot];
    alone += !other;
  }
  if (alone * 10 >= n * 8) { /* then what it waits for is known, whatever chance shows in the others */
    u->waits_for = UINT64_C(1) << slot;
    m = sorted(gap, n, slots, u->waits_for, x);
    best = width(x, m);
    u->alone = true;
  }
  u->us = x[m / 2];
  u->width = best;
  u->steady = isfinite(u->us) && (slots == 1 || best <= STEADY * u->us + STEADY_US); /* of one slot nothing else is waited for */
  u->alone &= u->steady;
}
