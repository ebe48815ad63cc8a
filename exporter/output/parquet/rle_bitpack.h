/*
 * Parquet's run-length / bit-packing hybrid, the encoding of dictionary codes and definition levels.
 *
 * Pure functions over the caller's buffers, any thread. Output buffers need the stated room; nothing can fail.
 */
#ifndef NI_PARQUET_RLE_BITPACK_H
#define NI_PARQUET_RLE_BITPACK_H

#include <stddef.h>
#include <stdint.h>

/* Bits needed for codes 0..n-1, at least 1: a width of 0 is legal and not every reader takes it. */
static inline unsigned ni_code_width(uint32_t n) { return n <= 2 ? 1 : 32 - (unsigned)__builtin_clz(n - 1); }

/* Codes are read eight at a time from any index, so an array is this much longer than what it holds. */
#define NI_CODE_SLACK 8

/* Room that ni_hybrid_encode needs for n values of `width` bits. */
static inline size_t ni_hybrid_bound(size_t n, unsigned width) { return (n + 8) / 8 * (width + 6) + 32; }

/*
 * Encodes n codes of `width` (1..16) bits; all codes fit the width. The array needs room for NI_CODE_SLACK more codes,
 * which are overwritten. Returns the end of the output.
 */
uint8_t *ni_hybrid_encode(uint8_t *out, uint16_t *codes, size_t n, unsigned width);

/* Levels of n rows that are all `level` (0 or 1): one run, at most 6 bytes. */
uint8_t *ni_hybrid_same(uint8_t *out, size_t n, unsigned level);

/* Levels from a bitmap (least significant bit first, bits past n are 0): one bit-packed run; room n / 8 + 8. */
uint8_t *ni_hybrid_bitmap(uint8_t *out, const uint8_t *bits, size_t n);

#endif
