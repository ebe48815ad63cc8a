/*
 * Numbers spread evenly, and the same ones in each run: for samples and ids that what is written depends on,
 * and for places whose order does. Whoever looks up by what files say takes ni_hash() (index.h), which nobody
 * can foresee. Pure; any thread.
 */
#ifndef NI_MIX_H
#define NI_MIX_H

#include <stdint.h>

/* Fibonacci hashing: the high bits depend on all bits. */
static inline uint64_t ni_spread(uint64_t x) { return x * 0x9e3779b97f4a7c15u; }

/* All bits depend on all bits (the end of splitmix64). 0 stays 0. */
static inline uint64_t ni_mix(uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

#endif
