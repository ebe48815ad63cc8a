/*
 * Random numbers by name: a draw depends on the seed and on what it is for (step, rank, place), never on what
 * was drawn before. So a job with a fault and the same job without it have the same noise, and their times
 * can be subtracted. Pure; any thread.
 */
#ifndef NI_JOBS_DRAW_H
#define NI_JOBS_DRAW_H

#include "exporter/base/mix.h"

enum nj_draw { /* what a draw is for */
               NJ_DRAW_SHAPE = 1,
               NJ_DRAW_RANK,
               NJ_DRAW_JITTER,
               NJ_DRAW_TRANSFER,
               NJ_DRAW_SKEW,
               NJ_DRAW_LAUNCH,
               NJ_DRAW_PAUSE,
               NJ_DRAW_ROUTE,
               NJ_DRAW_CLOCK,
               NJ_DRAW_FAULT,
               NJ_DRAW_NAME,
               NJ_DRAW_STAGES,
               NJ_DRAW_PLANTED,
               NJ_DRAW_BATCH,
               NJ_DRAW_WEATHER,
               NJ_DRAW_STAMP
};

static inline uint64_t nj_draw(uint64_t seed, enum nj_draw what, uint64_t a, uint64_t b, uint64_t c) {
  uint64_t x = ni_mix(seed * 0x9e3779b97f4a7c15u + (uint64_t)what + 1);
  x = ni_mix(x ^ (a + 1) * 0xd6e8feb86659fd93u);
  return ni_mix(x + (b + 1) * 0xa0761d6478bd642fu + (c + 1) * 0xe7037ed1a0b428dbu);
}

/* 0 <= x < 1. */
static inline double nj_unit(uint64_t x) { return (double)(x >> 11) * 0x1p-53; }

/* Mean 0, deviation 1, within 3.5: the sum of four even numbers. */
static inline double nj_normal(uint64_t x) {
  double sum = (double)((x & 0xffff) + (x >> 16 & 0xffff) + (x >> 32 & 0xffff) + (x >> 48)) / 65536.0;
  return (sum - 2) * 1.7320508075688772;
}

#endif
