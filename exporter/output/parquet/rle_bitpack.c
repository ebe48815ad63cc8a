#include "rle_bitpack.h"

#include <string.h>

#include "thrift_compact.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "packs by 64-bit loads and stores; both targets are little-endian");

static inline uint64_t load8(const void *p) {
  uint64_t v;
  memcpy(&v, p, 8);
  return v;
}

/* Four codes of 16 bits to 4 * width bits: pairs in 32-bit lanes first, then the two pairs. */
static inline uint64_t squeeze4(uint64_t x, unsigned width) {
  const uint64_t lanes = 0x0000ffff0000ffffull;
  uint64_t y = (x & lanes) | ((x >> 16) & lanes) << width;
  return (y & 0xffffffffull) | (y >> 32) << (2 * width);
}

/* Eight codes to `width` bytes; writes 16 and lets the next call overwrite the rest. */
static inline uint8_t *pack8(uint8_t *out, const uint16_t *codes, unsigned width) {
  uint64_t lo = squeeze4(load8(codes), width), hi = squeeze4(load8(codes + 4), width);
  unsigned shift = 4 * width;
  uint64_t first = shift < 64 ? lo | hi << shift : lo;
  uint64_t second = shift < 64 ? hi >> (64 - shift) : hi;
  memcpy(out, &first, 8);
  memcpy(out + 8, &second, 8);
  return out + width;
}

/* Length of the run of equal codes at the start of codes[0..n). */
static size_t run_length(const uint16_t *codes, size_t n) {
  uint64_t same = codes[0] * 0x0001000100010001ull;
  size_t i = 0;
  while (i + 4 <= n && load8(codes + i) == same) i += 4;
  while (i < n && codes[i] == codes[0]) i++;
  return i;
}

uint8_t *ni_hybrid_encode(uint8_t *out, uint16_t *codes, size_t n, unsigned width) {
  /* What pads the last group must fit the width too: a wider value would run into its neighbours. */
  memset(codes + n, 0, NI_CODE_SLACK * sizeof *codes);
  /* A run costs a header, its value and the header of the literals after it: below this many values it does not pay. */
  const size_t min_run = width >= 8 ? 16 : (size_t)(128 / width);
  size_t i = 0;
  while (i < n) {
    size_t start = i, run = 0;
    while (i < n) {
      uint64_t same = codes[i] * 0x0001000100010001ull;
      if (load8(codes + i) == same && load8(codes + i + 4) == same) {
        run = run_length(codes + i, n - i);
        if (run >= min_run) break;
      }
      run = 0;
      i += 8;
    }
    if (i > start) { /* literals: whole groups of 8, the last one of a page padded with zeros */
      size_t groups = (i - start) / 8;
      out = ni_put_varint(out, groups << 1 | 1);
      for (size_t g = 0; g < groups; g++) out = pack8(out, codes + start + 8 * g, width);
    }
    if (run) {
      out = ni_put_varint(out, run << 1);
      *out++ = (uint8_t)codes[i];
      if (width > 8) *out++ = (uint8_t)(codes[i] >> 8);
      i += run;
    }
  }
  return out;
}

uint8_t *ni_hybrid_same(uint8_t *out, size_t n, unsigned level) {
  out = ni_put_varint(out, n << 1);
  *out++ = (uint8_t)level;
  return out;
}

uint8_t *ni_hybrid_bitmap(uint8_t *out, const uint8_t *bits, size_t n) {
  size_t groups = (n + 7) / 8;
  out = ni_put_varint(out, groups << 1 | 1);
  memcpy(out, bits, groups);
  return out + groups;
}
