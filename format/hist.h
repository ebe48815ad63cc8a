/*
 * Buckets of the histograms in `rollup` lines: four to each power of two of nanoseconds, so a bucket is 19 to
 * 25 % wide.
 *
 * Bucket 0 holds everything below 1024 ns (below which no clock of the log tells operations apart), the last
 * one everything from 2^36 ns (69 s) on. A log names a bucket by its lower edge. Writer
 * (plugin/write/rollup.c) and reader (exporter) share this file. Pure functions, any thread.
 */
#ifndef NI_HIST_H
#define NI_HIST_H

#include <stdint.h>

#define NI_HIST_FIRST_LOG2 10u /* bucket 1 begins at 2^10 ns */
#define NI_HIST_LAST_LOG2 36u  /* the last bucket begins at 2^36 ns */
#define NI_HIST_BUCKETS (2u + 4u * (NI_HIST_LAST_LOG2 - NI_HIST_FIRST_LOG2))

/* Bucket of a time; 0 .. NI_HIST_BUCKETS - 1. */
static inline uint32_t ni_hist_bucket(uint64_t ns) {
  if (ns < UINT64_C(1) << NI_HIST_FIRST_LOG2)
    return 0;
  uint32_t e = 63u - (uint32_t)__builtin_clzll(ns);
  if (e >= NI_HIST_LAST_LOG2)
    return NI_HIST_BUCKETS - 1;
  return 1u + 4u * (e - NI_HIST_FIRST_LOG2) + (uint32_t)(ns >> (e - 2) & 3);
}

/* Lower edge of a bucket in ns; of NI_HIST_BUCKETS and above: UINT64_MAX, the upper edge of the last. */
static inline uint64_t ni_hist_edge(uint32_t bucket) {
  if (bucket == 0)
    return 0;
  if (bucket >= NI_HIST_BUCKETS)
    return UINT64_MAX;
  uint32_t quarter = bucket - 1;
  return (UINT64_C(4) + quarter % 4) << (NI_HIST_FIRST_LOG2 + quarter / 4 - 2);
}

#endif
