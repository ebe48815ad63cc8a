/*
 * The metadata of a Parquet file: Thrift's compact protocol, writing side, just what page headers and the
 * footer need; the numbers that Parquet gives its structs; and the footer.
 *
 * A growing byte buffer with the stack of field ids that the protocol's deltas need. The first failure to
 * allocate sticks: later calls do nothing, and the owner asks `failed` once at the end. Used by one thread;
 * ni_tc_free frees.
 *
 * Row groups are described when they are written and kept as bytes (about 2.5 kB for 17 columns); the rest is
 * added when the file ends.
 */
#ifndef NI_PARQUET_METADATA_H
#define NI_PARQUET_METADATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/base/bytes/varint.h"
#include "writer.h"

enum ni_tc_type { NI_TC_I32 = 5, NI_TC_I64 = 6, NI_TC_BINARY = 8, NI_TC_LIST = 9, NI_TC_STRUCT = 12 };

#define NI_TC_DEPTH 8 /* Parquet's flat footer nests 5 deep */

struct ni_tc {
  uint8_t *data;
  size_t len, cap;
  int depth;
  int16_t last_id[NI_TC_DEPTH];
  bool failed;
};

void ni_tc_free(struct ni_tc *t);
/* Empties it and keeps the memory. */
void ni_tc_reset(struct ni_tc *t);

void ni_tc_raw(struct ni_tc *t, const void *p, size_t n);
void ni_tc_field_i32(struct ni_tc *t, int id, int32_t v);
void ni_tc_field_i64(struct ni_tc *t, int id, int64_t v);
void ni_tc_field_binary(struct ni_tc *t, int id, const void *p, size_t n);
void ni_tc_field_text(struct ni_tc *t, int id, const char *s);
/*
 * A struct field; its members follow, then ni_tc_end. id 0: an element of a list, which has no field header.
 */
void ni_tc_begin(struct ni_tc *t, int id);
void ni_tc_end(struct ni_tc *t);
/* A list field of n elements of one type; the elements follow. */
void ni_tc_field_list(struct ni_tc *t, int id, enum ni_tc_type type, size_t n);
void ni_tc_element_i32(struct ni_tc *t, int32_t v);
void ni_tc_element_text(struct ni_tc *t, const char *s);

/*
 * ---- numbers of the format (parquet.thrift of apache/parquet-format): field ids and enum values that are
 * written ----
 */

enum { TYPE_INT64 = 2, TYPE_DOUBLE = 5, TYPE_BYTE_ARRAY = 6 };
enum { CONVERTED_UTF8 = 0 };
enum { REPETITION_OPTIONAL = 1 };
enum { ENCODING_PLAIN = 0, ENCODING_RLE = 3, ENCODING_RLE_DICTIONARY = 8 };
enum { PAGE_TYPE_DATA = 0, PAGE_TYPE_DICTIONARY = 2 };

/* PageHeader, DataPageHeader, DictionaryPageHeader */
enum {
  PAGE_TYPE = 1,
  PAGE_UNCOMPRESSED = 2,
  PAGE_COMPRESSED = 3,
  PAGE_CRC = 4,
  PAGE_DATA_HEADER = 5,
  PAGE_DICT_HEADER = 7
};
enum { DATA_NUM_VALUES = 1, DATA_ENCODING = 2, DATA_DEFINITION_ENCODING = 3, DATA_REPETITION_ENCODING = 4 };
enum { DICT_NUM_VALUES = 1, DICT_ENCODING = 2 };

/* SchemaElement; LogicalType is a union of structs */
enum {
  SCHEMA_TYPE = 1,
  SCHEMA_REPETITION = 3,
  SCHEMA_NAME = 4,
  SCHEMA_NUM_CHILDREN = 5,
  SCHEMA_CONVERTED = 6,
  SCHEMA_LOGICAL = 10
};
enum { LOGICAL_STRING = 1 };

/* Statistics */
enum {
  STAT_MAX_OLD = 1,
  STAT_MIN_OLD = 2,
  STAT_NULL_COUNT = 3,
  STAT_MAX = 5,
  STAT_MIN = 6,
  STAT_NAN_COUNT = 9
};

/* ColumnChunk, ColumnMetaData, PageEncodingStats, RowGroup */
enum { CHUNK_FILE_OFFSET = 2, CHUNK_META = 3 };
enum {
  META_TYPE = 1,
  META_ENCODINGS = 2,
  META_PATH = 3,
  META_CODEC = 4,
  META_NUM_VALUES = 5,
  META_UNCOMPRESSED = 6,
  META_COMPRESSED = 7,
  META_DATA_PAGE_OFFSET = 9,
  META_DICT_PAGE_OFFSET = 11,
  META_STATISTICS = 12,
  META_ENCODING_STATS = 13
};
enum { ENCODING_STAT_PAGE_TYPE = 1, ENCODING_STAT_ENCODING = 2, ENCODING_STAT_COUNT = 3 };
enum { GROUP_COLUMNS = 1, GROUP_BYTES = 2, GROUP_ROWS = 3, GROUP_FILE_OFFSET = 5, GROUP_COMPRESSED = 6 };

/* FileMetaData; ColumnOrder is a union, TYPE_ORDER an empty struct */
enum {
  FILE_VERSION = 1,
  FILE_SCHEMA = 2,
  FILE_ROWS = 3,
  FILE_GROUPS = 4,
  FILE_CREATED_BY = 6,
  FILE_ORDERS = 7
};
enum { ORDER_TYPE = 1 };

/* ---- the footer ---- */

struct ni_chunk;

/* Where a chunk of a row group went. */
struct ni_chunk_place {
  uint64_t dict_offset; /* 0: no dictionary page */
  uint64_t data_offset;
};

/* Appends the RowGroup struct. */
void ni_footer_row_group(struct ni_tc *t, const struct ni_pq_field *fields, const struct ni_chunk *chunks,
                         const struct ni_chunk_place *places, size_t n_fields, enum ni_pq_codec codec,
                         uint64_t n_rows);

struct ni_footer {
  const struct ni_pq_field *fields;
  size_t n_fields;
  const struct ni_tc *row_groups; /* n_row_groups RowGroup structs, one after the other */
  uint64_t n_row_groups, n_rows;
};

/* Appends the FileMetaData struct, its length and the closing magic. */
void ni_footer_file(struct ni_tc *t, const struct ni_footer *f);

#endif
