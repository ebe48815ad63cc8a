/*
 * One column of the row group under construction: the open page, the finished pages, the dictionary, the
 * statistics.
 *
 *   append ─▶ open page (codes, or bytes as they will stand in the file)
 *       ─▶ close: encode, compress, header ─▶ blocks
 *
 * A chunk starts in DICT mode. It turns to PLAIN for good when its dictionary is full, or when the first page
 * shows that nearly all values are distinct; the next row groups of that column then start PLAIN. Pages end
 * by rows or by bytes, on their own in each column.
 *
 * Threads: the writer's only. Ownership: ni_chunk_free frees all; the environment is shared by a writer's
 * columns. Failure: -ENOMEM, -EIO (codec), -EINVAL (code outside its dictionary), -EMSGSIZE. The chunk is
 * then good for free only.
 */
#ifndef NI_PARQUET_COLUMN_CHUNK_H
#define NI_PARQUET_COLUMN_CHUNK_H

#include "page_codec.h"
#include "pq_dict.h"
#include "metadata.h"
#include "writer.h"

/* Rows handled at once: temporary arrays of this size stay in the first-level cache. */
#define NI_SLICE_ROWS 1024u
/* A page of long strings ends here, whatever its rows. */
#define NI_PAGE_BYTES 65536u
#define NI_VALUE_BYTES 8u /* of a number */
/* What the columns of one writer share. */
struct ni_chunk_env {
  struct ni_page_codec codec;
  uint32_t page_rows, dict_entries;
  bool no_dict;
  struct ni_tc header;    /* page header under construction */
  uint8_t *body, *packed; /* page before and after compression */
  size_t body_cap, packed_cap;
  char *utf8; /* replaced text */
  size_t utf8_cap;
  uint64_t dense[NI_SLICE_ROWS]; /* values or codes of a slice without its nulls */
};

void ni_chunk_env_free(struct ni_chunk_env *env);
size_t ni_chunk_env_memory_bytes(const struct ni_chunk_env *env);

/* The finished pages until their row group is written, in small blocks: what a doubling buffer a column keeps
 * in reserve would be half of the memory. */
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

/* Longer texts are no use as bounds, and pages of them would bloat the footer. */
#define NI_STAT_TEXT_BYTES 256u

/* Bounds so far; `has` is false while there is no value (NaN is none). */
struct ni_chunk_stats {
  bool has, text_too_long;
  int64_t int_min, int_max;
  double dbl_min, dbl_max;
  char text_min[NI_STAT_TEXT_BYTES], text_max[NI_STAT_TEXT_BYTES];
  uint32_t text_min_len, text_max_len;
};

enum ni_chunk_mode { NI_CHUNK_DICT, NI_CHUNK_PLAIN };

struct ni_chunk {
  enum ni_pq_type type;
  bool is_text; /* else a value has NI_VALUE_BYTES */
  enum ni_chunk_mode mode;
  bool start_plain; /* the dictionary did not pay in the row group before */

  /* the open page */
  uint32_t page_rows, page_values;
  bool page_has_nulls;
  uint8_t *level_bits; /* one bit a row, valid when page_has_nulls */
  uint16_t *codes;     /* DICT: page_values of them */
  uint8_t *plain;      /* PLAIN: room for the levels, then plain_len bytes of values */
  size_t plain_len, plain_cap;

  struct ni_dict dict;
  uint16_t *code_map; /* caller's code -> ours */
  uint32_t code_map_n;
  size_t code_map_cap;
  uint64_t code_map_epoch;

  /* the chunk */
  struct ni_blocks pages;
  uint64_t n_rows, n_nulls, n_nans, uncompressed_bytes, compressed_bytes;
  uint32_t n_plain_pages, n_dict_pages;
  struct ni_chunk_stats stats;
};

void ni_chunk_init(struct ni_chunk *c, enum ni_pq_type type, const struct ni_chunk_env *env);
void ni_chunk_free(struct ni_chunk *c);
/* Ready for the next row group. */
void ni_chunk_reset(struct ni_chunk *c, const struct ni_chunk_env *env);

/* Adds rows [off, off + n) of a column; n at most NI_SLICE_ROWS. */
int ni_chunk_append(struct ni_chunk *c, struct ni_chunk_env *env, const struct ni_pq_column *in, size_t off,
                    uint32_t n);
/* Ends the open page and takes the dictionary into the statistics: the chunk is complete. */
int ni_chunk_close(struct ni_chunk *c, struct ni_chunk_env *env);
/*
 * The dictionary page, compressed, in env->packed and its header in env->header; *packed_len 0 when the chunk
 * has none. Adds to the chunk's sizes. Valid until the next call with env.
 */
int ni_chunk_dict_page(struct ni_chunk *c, struct ni_chunk_env *env, size_t *packed_len);

/*
 * Bytes held, without code_map: its size follows the caller's batches, and row groups must not end by those.
 */
size_t ni_chunk_memory_bytes(const struct ni_chunk *c, const struct ni_chunk_env *env);

#endif
