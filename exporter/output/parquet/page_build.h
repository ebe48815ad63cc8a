/*
 * A page of a column chunk as it stands in the file: levels and values, compressed, behind its header.
 *
 *   data page v1:  4 bytes length | definition levels | values        (one compressed unit)
 *
 * Reads the open page of a chunk and appends the result to its blocks. Threads, ownership, failure: column_chunk.h.
 */
#ifndef NI_PARQUET_PAGE_BUILD_H
#define NI_PARQUET_PAGE_BUILD_H

#include "column_chunk.h"
#include "rle_bitpack.h"

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

#endif
