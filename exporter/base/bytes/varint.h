/*
 * Whole numbers in as few bytes as they need: seven bits a byte, the lowest first, all but the last with the
 * top bit set (LEB128). Of numbers with a sign the small ones are short, either way, when they are folded
 * first. Pure; any thread.
 */
#ifndef NI_VARINT_H
#define NI_VARINT_H

#include <stdint.h>

enum { NI_VARINT_MAX = 10 }; /* bytes */

/* Returns the end. */
static inline uint8_t *ni_put_varint(uint8_t *p, uint64_t v) {
  for (; v >= 128; v >>= 7)
    *p++ = (uint8_t)(v | 128);
  *p++ = (uint8_t)v;
  return p;
}

static inline uint64_t ni_fold(uint64_t d) { return d << 1 ^ (uint64_t)((int64_t)d >> 63); }
static inline uint64_t ni_unfold(uint64_t z) { return z >> 1 ^ (uint64_t)(-(int64_t)(z & 1)); }

#endif
