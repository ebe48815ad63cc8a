/*
 * Bytes that only grow, in blocks of one size: the finished pages of a column chunk, until its row group is written.
 *
 * Small blocks instead of one doubling buffer: a row group has a list per column, and what a doubling buffer keeps in
 * reserve would be half of the memory. Threads: its writer's only. ni_blocks_free empties it.
 */
#ifndef NI_PARQUET_CHUNK_BLOCKS_H
#define NI_PARQUET_CHUNK_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

/* With malloc's own header a block stays within 16 KiB. */
#define NI_BLOCK_BYTES (16384u - 64u)

struct ni_block {
  struct ni_block *next;
  size_t used;
  uint8_t data[NI_BLOCK_BYTES];
};

struct ni_blocks {
  struct ni_block *first, *last;
  size_t n_blocks;
  uint64_t bytes;
};

/* 0 or -ENOMEM (what was appended is then incomplete, the list still valid to free). */
int ni_blocks_append(struct ni_blocks *b, const void *p, size_t n);
void ni_blocks_free(struct ni_blocks *b);

#endif
