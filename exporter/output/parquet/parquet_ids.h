/*
 * Numbers of the Parquet format (parquet.thrift of apache/parquet-format): field ids and enum values that are written.
 */
#ifndef NI_PARQUET_PARQUET_IDS_H
#define NI_PARQUET_PARQUET_IDS_H

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
enum { STAT_MAX_OLD = 1, STAT_MIN_OLD = 2, STAT_NULL_COUNT = 3, STAT_MAX = 5, STAT_MIN = 6, STAT_NAN_COUNT = 9 };

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

#endif
