#include "baseline.h"

#include <stddef.h>

#define NARROWER 0.75f /* times as wide: then the other slot is waited for as well */
/*
 * Ten times as narrow: then it is, whatever a line through the samples says. One start that is some ms wrong,
 * as at the begin of a log (the clocks of GPU and CPU are not yet related well), outweighs all others in a
 * line, and is not among the middle 60 %.
 */
#define FAR_NARROWER 0.1f
/* times as far as stamps are off: so much later than the set it did not wait for that alone */
#define AT_ONCE 4.0f
#define STEADY 0.35f /* of the median, and STEADY_US: as wide as the times of a place may be */
#define STEADY_US 60.0f
#define HARDLY_WIDER 1.5f /* times as wide: the other slot may be waited for all the same */
#define SLOPE_ERROR 0.25  /* standard error up to which a slope says something */

/*
 * Samples are in order of time. A rank that becomes slow, or is slow for a while, has two baselines: each of
 * so many blocks has its own.
 */
enum { SORTED = 48, SLOPE_SAMPLES = 8, BLOCKS = 6 };
enum { ADDED_SLOTS = 3 }; /* beside its own, at most */

struct gap_times { /* since the last end of a set: of SORTED samples at most */
  uint32_t n;
  /*
   * of the middle 60 %; where the blocks have their own middles between that and what the deviations from
   * these have
   */
  float middle, width;
};

static void insert_sorted(float *x, uint32_t n, float v) {
  for (; n > 0 && x[n - 1] > v; n--)
    x[n] = x[n - 1];
  x[n] = v;
}

static float measure_width(const float *x, uint32_t n) { return x[n - 1 - n / 5] - x[n / 5]; }

static struct gap_times measure_times(const float *gap, uint32_t n, uint32_t slots, uint64_t set) {
  const uint32_t step = (n + SORTED - 1) / SORTED;
  float all[SORTED], block[SORTED], off[SORTED];
  uint32_t m = 0, in = 0, first = 0, total = (n + step - 1) / step;
  for (uint32_t i = 0; i < n; i += step) {
    float least = INFINITY;
    for (uint32_t k = 0; k < slots; k++)
      if (set >> k & 1 && gap[i * slots + k] < least)
        least = gap[i * slots + k];
    insert_sorted(all, m++, least);
    insert_sorted(block, in++, least);
    if (m * BLOCKS / total == (m - 1) * BLOCKS / total)
      continue;
    float middle = block[in / 2];
    for (uint32_t k = 0; k < in; k++)
      insert_sorted(off, first++, isfinite(middle) ? block[k] - middle : INFINITY);
    in = 0;
  }
  /* eight numbers lie closer to their own middle than to that of all */
  float plain = measure_width(all, m), rest = 1.15f * measure_width(off, first);
  return (struct gap_times){m, all[m / 2], rest < plain ? sqrtf(rest * plain) : plain};
}

struct slope {
  /* spread: standard deviation of how much later the slot ended than the set, us */
  double slope, error, spread;
  uint32_t n; /* samples in which it did */
};

struct moments {
  double x, y, xx, xy, yy;
  uint32_t m;
};

static struct slope fit_line(const struct moments *s) {
  struct slope l = {.error = INFINITY, .n = s->m};
  double m = s->m;
  if (s->m < SLOPE_SAMPLES)
    return l;
  double vx = s->xx / m - s->x / m * (s->x / m), vy = s->yy / m - s->y / m * (s->y / m),
         c = s->xy / m - s->x / m * (s->y / m);
  if (vx <= 0)
    return l;
  l.slope = c / vx;
  l.spread = sqrt(vx);
  double rest = vy - l.slope * c;
  l.error = sqrt((rest > 0 ? rest : 0) / (vx * m));
  return l;
}

/* How much later slot k ended than the set, in us; y: the time since the end of the set. */
static float measure_lateness(const float *gap, uint32_t slots, uint64_t set, uint32_t k, float *y) {
  *y = INFINITY;
  for (uint32_t j = 0; j < slots; j++)
    if (set >> j & 1 && gap[j] < *y)
      *y = gap[j];
  return *y - gap[k];
}

/* What measure_lateness() says in nearly all samples: three times the reach of the middle 60 %, both ways. */
static void bound_lateness(const float *gap, uint32_t n, uint32_t slots, uint64_t set, uint32_t k, float far,
                           float *from, float *to) {
  const uint32_t step = (n + SORTED - 1) / SORTED;
  float all[SORTED], y;
  uint32_t m = 0;
  for (uint32_t i = 0; i < n; i += step) {
    const float x = measure_lateness(gap + (size_t)i * slots, slots, set, k, &y);
    if (x > 0 && y < far)
      insert_sorted(all, m++, x);
  }
  *from = -INFINITY;
  *to = INFINITY;
  if (m < SLOPE_SAMPLES)
    return;
  const float w = measure_width(all, m);
  *from = all[m / 5] - 3 * w;
  *to = all[m - 1 - m / 5] + 3 * w;
}

/*
 * How the time since the end of the set moves with the end of slot k, where k ended later by from..to; far:
 * times beyond say nothing.
 */
static struct slope measure_slope(const float *gap, uint32_t n, uint32_t slots, uint64_t set, uint32_t k,
                                  float far, float from, float to) {
  struct moments all = {0}, rest = {0};
  for (uint32_t b = 0; b < BLOCKS; b++) {
    struct moments of = {0};
    for (uint32_t i = b * n / BLOCKS; i < (b + 1) * n / BLOCKS; i++) {
      float y;
      const float x = measure_lateness(gap + (size_t)i * slots, slots, set, k, &y);
      const bool is_usable = x > 0 && y < far && x >= from && x <= to;
      if (!is_usable)
        continue;
      of.m++;
      of.x += x;
      of.y += y;
      of.xx += (double)x * x;
      of.xy += (double)x * y;
      of.yy += (double)y * y;
    }
    all.m += of.m;
    all.x += of.x;
    all.y += of.y;
    all.xx += of.xx;
    all.xy += of.xy;
    all.yy += of.yy;
    if (of.m == 0)
      continue;
    rest.m += of.m; /* the deviations from the block's own means */
    rest.xx += of.xx - of.x * of.x / of.m;
    rest.xy += of.xy - of.x * of.y / of.m;
    rest.yy += of.yy - of.y * of.y / of.m;
  }
  struct slope plain = fit_line(&all), own = fit_line(&rest);
  return own.error < plain.error ? own : plain;
}

static bool is_slope_certain(const struct slope *s) {
  return s->n >= SLOPE_SAMPLES && s->error <= SLOPE_ERROR;
}

/*
 * Where a slot's ends move by no more than their stamps are off, starts do not move with the stamps in any
 * case.
 */
static bool is_slope_within_stamps(const struct slope *s, float off_us) {
  return s->slope <= 0.5 && s->spread < off_us;
}

/*
 * The line through the samples. A stamp that is far off makes another operation look like the last one, and
 * one such sample outweighs all others in a line: where the times become narrower with the slot and the line
 * says that it is not waited for, it is drawn again without what is far from most.
 */
static struct slope measure_robust_slope(const float *gap, uint32_t n, uint32_t slots, uint64_t set,
                                         uint32_t k, float far, bool narrower) {
  float from, to;
  const struct slope all = measure_slope(gap, n, slots, set, k, far, -INFINITY, INFINITY);
  if (!narrower || !is_slope_certain(&all) || all.slope > 0.5)
    return all;
  bound_lateness(gap, n, slots, set, k, far, &from, &to);
  const struct slope most = measure_slope(gap, n, slots, set, k, far, from, to);
  return (struct slope){most.slope, most.error, most.spread, all.n};
}

/*
 * The slot that is waited for as well, the one that makes the times narrowest; slots: none. t: times since
 * the end of what is known to be waited for. What may be waited for, and nothing tells, becomes the
 * alternative.
 */
static uint32_t find_next_slot(struct ni_baseline *u, const float *gap, uint32_t n, uint32_t slots,
                               bool first, float off_us, const struct gap_times *t) {
  const float far = 3 * t->middle + 1000;
  uint32_t with = slots, untold = slots;
  float narrowest = INFINITY;
  for (uint32_t k = 0; k < slots; k++) {
    if (u->waits_for >> k & 1)
      continue;
    const struct gap_times with_it = measure_times(gap, n, slots, u->waits_for | UINT64_C(1) << k);
    const float w = with_it.width;
    const bool is_narrower = w < t->width * NARROWER, is_hardly_wider = w <= HARDLY_WIDER * t->width;
    const struct slope s = measure_robust_slope(gap, n, slots, u->waits_for, k, far, is_narrower);
    bool told = is_slope_certain(&s) && !is_slope_within_stamps(&s, off_us);
    if (w < t->width * FAR_NARROWER)
      told = false;
    const bool nearly_always = s.n * 10 >= n * 8;
    const bool at_once = nearly_always && with_it.middle <= off_us && t->middle >= AT_ONCE * off_us;
    const bool in_doubt = is_narrower || (first && nearly_always && is_hardly_wider);
    const bool waits = at_once || (told ? s.slope > 0.5 : in_doubt);
    const bool may_wait = !waits && !told && nearly_always && is_hardly_wider;
    if (may_wait && (untold == slots || with_it.middle < u->alternative_us)) {
      u->alternative_us = with_it.middle;
      untold = u->alternative_slot = k;
    }
    if (!waits || w >= narrowest)
      continue;
    narrowest = w;
    with = k;
  }
  return with;
}

/* What was taken for one that is waited for before the right one was found. Returns the times without it. */
static struct gap_times drop_needless_slots(struct ni_baseline *u, const float *gap, uint32_t n,
                                            uint32_t slots, uint32_t slot, struct gap_times t) {
  for (uint32_t k = 0; k < slots; k++) {
    if (k == slot || !(u->waits_for >> k & 1))
      continue;
    const struct gap_times less = measure_times(gap, n, slots, u->waits_for & ~(UINT64_C(1) << k));
    if (!(less.width < t.width * NARROWER))
      continue;
    u->waits_for &= ~(UINT64_C(1) << k);
    t = less;
  }
  return t;
}

/* Samples in which nothing else ended since its own slot did. */
static uint32_t count_alone(const float *gap, uint32_t n, uint32_t slots, uint32_t slot) {
  uint32_t alone = 0;
  for (uint32_t i = 0; i < n; i++) {
    bool other = false;
    for (uint32_t k = 0; k < slots; k++)
      other |= gap[i * slots + k] < gap[i * slots + slot];
    alone += !other;
  }
  return alone;
}

/* A slot that it waits for ended last before it in nearly all samples: as what ended the step before. */
static bool follows_one_slot(const struct ni_baseline *u, const float *gap, uint32_t n, uint32_t slots) {
  for (uint32_t k = 0; k < slots; k++)
    if (u->waits_for >> k & 1 && count_alone(gap, n, slots, k) * 10 >= n * 8)
      return true;
  return false;
}

void ni_baseline_find(struct ni_baseline *u, const float *gap, uint32_t n, uint32_t slots, uint32_t slot,
                      bool first, float off_us) {
  u->waits_for = UINT64_C(1) << slot;
  u->us = u->alternative_us = NAN;
  u->steady = u->alone = false;
  if (n < 5)
    return;
  struct gap_times t = measure_times(gap, n, slots, u->waits_for);
  for (int more = 0; more < ADDED_SLOTS; more++) {
    const uint32_t with = find_next_slot(u, gap, n, slots, first, off_us, &t);
    if (with == slots)
      break;
    u->alternative_us = NAN;
    u->waits_for |= UINT64_C(1) << with;
    t = measure_times(gap, n, slots, u->waits_for);
  }
  t = drop_needless_slots(u, gap, n, slots, slot, t);
  const bool follows_own = count_alone(gap, n, slots, slot) * 10 >= n * 8;
  if (follows_own) { /* then what it waits for is known, whatever chance shows in the others */
    u->waits_for = UINT64_C(1) << slot;
    t = measure_times(gap, n, slots, u->waits_for);
    u->alone = true;
  }
  u->alone |= first && follows_one_slot(u, gap, n, slots);
  u->us = t.middle;
  u->width = t.width;
  /*
   * Where nothing else can be waited for, times that vary are the rank's own: of one slot all, else what a
   * step begins with behind what always ends the one before, as input that is late by chance.
   */
  const bool is_own = slots == 1 || (first && u->alone);
  u->steady = isfinite(u->us) && (is_own || t.width <= STEADY * u->us + STEADY_US);
  u->alone &= u->steady;
}
