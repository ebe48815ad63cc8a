/*
 * The metadata at the end of a Parquet file.
 *
 * Row groups are described when they are written and kept as bytes (about 2.5 kB for 17 columns); the rest is added
 * when the file ends. Pure functions over a ni_tc, whose `failed` the caller asks.
 */
#ifndef NI_PARQUET_PQ_FOOTER_H
#define NI_PARQUET_PQ_FOOTER_H

#include "column_chunk.h"

/* Where a chunk of a row group went. */
struct ni_chunk_place {
  uint64_t dict_offset; /* 0: no dictionary page */
  uint64_t data_offset;
};

/* Appends the RowGroup struct. */
void ni_footer_row_group(struct ni_tc *t, const struct ni_pq_field *fields, const struct ni_chunk *chunks,
                         const struct ni_chunk_place *places, size_t n_fields, enum ni_pq_codec codec, uint64_t n_rows);

struct ni_footer {
  const struct ni_pq_field *fields;
  size_t n_fields;
  const struct ni_tc *row_groups; /* n_row_groups RowGroup structs, one after the other */
  uint64_t n_row_groups, n_rows;
};

/* Appends the FileMetaData struct, its length and the closing magic. */
void ni_footer_file(struct ni_tc *t, const struct ni_footer *f);

#endif
