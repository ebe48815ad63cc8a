/*
 * Disjoint sets of numbers from 0 on: who works with whom, directly or by others. of[i] leads from i towards
 * the root of its set, which is the set's smallest number.
 *
 *   ni_disjoint_begin(of, n);             each number is a set of its own
 *   ni_disjoint_join(of, a, b);           the sets of a and b are one
 *   ni_disjoint_root(of, a) == ni_disjoint_root(of, b)        they are in one set
 *
 * The array is the caller's. Asking for a root shortens the way to it: one thread at a time uses an array.
 * Numbers may be left out: nobody looks at of[i] unless i is asked for or joined.
 */
#ifndef NI_DISJOINT_H
#define NI_DISJOINT_H

#include <stdint.h>

static inline void ni_disjoint_begin(uint32_t *of, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    of[i] = i;
}

static inline uint32_t ni_disjoint_root(uint32_t *of, uint32_t i) {
  while (of[i] != i)
    i = of[i] = of[of[i]];
  return i;
}

static inline void ni_disjoint_join(uint32_t *of, uint32_t a, uint32_t b) {
  const uint32_t x = ni_disjoint_root(of, a), y = ni_disjoint_root(of, b);
  of[x < y ? y : x] = x < y ? x : y;
}

#endif
