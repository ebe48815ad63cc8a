/*
 * A page of a column chunk as it stands in the file: levels and values, compressed, behind its header.
 *
 * Codes and levels go by Parquet's run-length / bit-packing hybrid: pure functions over the caller's buffers;
 * output buffers need the stated room.
 *
 *   data page v1:  4 bytes length | definition levels | values        (one compressed unit)
 *
 * Reads the open page of a chunk and appends the result to its blocks. Threads, ownership, failure:
 * column_chunk.h.
 */
#ifndef NI_PARQUET_PAGE_BUILD_H
#define NI_PARQUET_PAGE_BUILD_H

#include "column_chunk.h"

/* Bytes kept free before the values of a PLAIN page, for the levels of `page_rows` rows. */
static inline size_t ni_level_room(uint32_t page_rows) { return 4 + 8 + page_rows / 8 + 4; }

/* Sets or clears the level bits of rows [row, row + n). */
void ni_level_bits_fill(uint8_t *bits, uint32_t row, uint32_t n, bool valid);
/* Takes the level bits of rows [row, row + n) from bytes. */
void ni_level_bits_add(uint8_t *bits, uint32_t row, const uint8_t *valid, uint32_t n);

/* The open page (at least one row) to the chunk's blocks; the caller empties the open page. */
int ni_page_close(struct ni_chunk *c, struct ni_chunk_env *env);
/* The dictionary page to env->header and env->packed. */
int ni_page_dict(struct ni_chunk *c, struct ni_chunk_env *env, size_t *packed_len);

void ni_blocks_free(struct ni_blocks *b);

/* Bits needed for codes 0..n-1, at least 1: a width of 0 is legal and not every reader takes it. */
static inline unsigned ni_code_width(uint32_t n) { return n <= 2 ? 1 : 32 - (unsigned)__builtin_clz(n - 1); }

/* Codes are read eight at a time from any index, so an array is this much longer than what it holds. */
#define NI_CODE_SLACK 8

/* Room that ni_hybrid_encode needs for n values of `width` bits. */
static inline size_t ni_hybrid_bound(size_t n, unsigned width) { return (n + 8) / 8 * (width + 6) + 32; }

/*
 * Encodes n codes of `width` (1..16) bits; all codes fit the width. The array needs room for NI_CODE_SLACK
 * more codes, which are overwritten. Returns the end of the output.
 */
uint8_t *ni_hybrid_encode(uint8_t *out, uint16_t *codes, size_t n, unsigned width);

/* Levels of n rows that are all `level` (0 or 1): one run, at most 6 bytes. */
uint8_t *ni_hybrid_same(uint8_t *out, size_t n, unsigned level);

/*
 * Levels from a bitmap (least significant bit first, bits past n are 0): one bit-packed run; room n / 8 + 8.
 */
uint8_t *ni_hybrid_bitmap(uint8_t *out, const uint8_t *bits, size_t n);

#endif
