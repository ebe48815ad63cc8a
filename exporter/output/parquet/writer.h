/*
 * A flat Parquet file, written column batch by column batch.
 *
 * Model: create → append* → finish, or abort at any point. Rows gather in pages (one per column), pages in a
 * row group that stays in memory, encoded and compressed, until it is full; then it goes to the file in one
 * piece. A row group is full at `row_group_rows` rows, or earlier when the writer holds `memory_bytes`.
 * finish writes the footer. Where pages and row groups end depends on the rows alone, never on how they were
 * cut into batches: the same rows in the same order give the same bytes.
 *
 * What is written: format version 1, data page v1, OPTIONAL columns, RLE_DICTIONARY while the distinct values
 * stay few, PLAIN otherwise, a CRC for every page, min/max/null_count for every column chunk. docs/parquet.md
 * says why.
 *
 * Threads: one writer is used by one thread at a time; different writers by different threads at once. No
 * shared state. Ownership: the writer copies what it keeps. Arrays given to append may be reused when it
 * returns. Failure: 0 or a negative errno. An error of append or finish is final for the writer: later calls
 * return it again, and the only thing left to do is abort. ni_pq_error() names the file and the reason. Not
 * promised: durability (no fsync), reading, nested columns.
 */
#ifndef NI_PARQUET_WRITER_H
#define NI_PARQUET_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/base/text/utf8.h"

enum ni_pq_type {
  NI_PQ_INT64 = 0, /* int64_t. Never unsigned: Spark reads UINT_64 as a decimal */
  NI_PQ_DOUBLE,    /* double; every bit pattern survives, NaN is not null */
  /*
   * uint32_t codes into a ni_pq_dict. What is no valid UTF-8 is replaced by U+FFFD: readers refuse such a
   * column.
   */
  NI_PQ_STRING,
  NI_PQ_TYPE_COUNT
};

enum ni_pq_codec { NI_PQ_ZSTD = 0, NI_PQ_SNAPPY, NI_PQ_CODEC_COUNT };

/* Longest string the writer takes: a value must fit into a page. */
#define NI_PQ_STR_MAX_BYTES (16u << 20)

struct ni_pq_field {
  const char *name; /* valid UTF-8, not empty, unique in the file */
  enum ni_pq_type type;
};

/*
 * A dictionary of the caller's. `epoch` names its contents: while it stays the same (and is not 0) a code
 * keeps its string and the dictionary only grows, so the writer looks each code up once a row group. 0:
 * looked up in each append.
 */
struct ni_pq_dict {
  const struct ni_str *values;
  uint32_t n;
  uint64_t epoch;
};

/* One column of a batch. */
struct ni_pq_column {
  /* n_rows values of the field's C type; what stands at a null is not looked at */
  const void *values;
  const uint8_t *valid;          /* n_rows bytes, 0 is null; NULL: all are valid */
  const struct ni_pq_dict *dict; /* of strings, NULL for others */
  bool repeat;                   /* values[0] and valid[0] stand for every row */
};

/* All zero is the default. */
struct ni_pq_options {
  enum ni_pq_codec codec;
  int level;               /* of zstd, -7..19; 0: the default, 1. snappy has none */
  uint32_t row_group_rows; /* 0: 262144; at most INT32_MAX */
  uint32_t page_rows;      /* 0: 8192; at most 131072. Rounded up to a multiple of 8 */
  /* distinct values after which a column chunk turns to PLAIN; 0: 16384; at most 32768 */
  uint32_t dict_entries;
  /* 0: 16 MiB. Held at most, one slice of 1024 rows and the codec's own state aside */
  size_t memory_bytes;
  bool no_dict; /* every column PLAIN */
};

struct ni_pq_totals {
  uint64_t rows, row_groups, file_bytes;
};

struct ni_pq;

/*
 * Makes the file `path`, which must not be there yet. `fields` and `options` (NULL: default) are copied;
 * names are not, they must last. On success *out is the writer, which finish or abort frees. On failure *out
 * is NULL and `message` tells why. -EINVAL: no such level; -ENOTSUP: codec not built in; -ENOMEM; or what
 * open() gave.
 */
int ni_pq_create(struct ni_pq **out, const char *path, const struct ni_pq_field *fields, size_t n_fields,
                 const struct ni_pq_options *options, char *message, size_t message_bytes);

/*
 * Adds n_rows rows; `columns` has one entry per field. -EINVAL: a missing array, strings without a dictionary
 * or a dictionary without strings, a code outside its dictionary; -EMSGSIZE: a string over
 * NI_PQ_STR_MAX_BYTES; -ENOMEM; or what write() gave.
 */
int ni_pq_append(struct ni_pq *w, const struct ni_pq_column *columns, size_t n_rows);

/*
 * Writes the last row group and the footer, closes. On success frees w and fills totals (may be NULL). On
 * failure w lives on for ni_pq_error and must be aborted.
 */
int ni_pq_finish(struct ni_pq *w, struct ni_pq_totals *totals);

/* Removes what was written and frees w. NULL is fine. */
void ni_pq_abort(struct ni_pq *w);

/* Text of the first error, "" when there was none. Lives as long as w. */
const char *ni_pq_error(const struct ni_pq *w);

/* Bytes that w holds now, without the codec's own state. */
size_t ni_pq_memory_bytes(const struct ni_pq *w);

#endif
