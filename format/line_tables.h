/*
 * The keys of every kind of line as tables for the reader (exporter/input/parse/parse_simdjson.cc), made from
 * lines.def.
 *
 * A table lists the keys of one JSON object with type, place and range. Offsets are relative to the struct
 * that belongs to the table. Constant after ni_tables_init().
 */
#ifndef NI_LINE_TABLES_H
#define NI_LINE_TABLES_H

#include "line.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NI_KEY_MAX 40 /* longest key with its closing quote, rounded up to 8 */

enum ni_field_type {
  NI_F_U64,   /* 0 to 2^63-1 */
  NI_F_STAMP, /* as U64: dump_timestamp_us, the one value that every flush changes */
  NI_F_I64,
  NI_F_I32, /* >= min */
  NI_F_U32,
  NI_F_INTEGERS = NI_F_U32, /* up to here */
  NI_F_BOOL,
  NI_F_STR,
  NI_F_F64,      /* null, "nan", NaN, "inf" and inf: no value */
  NI_F_BW,       /* as F64, 0 to NI_BW_MAX_GBS */
  NI_F_TIMING,   /* name of a timing source -> enum ni_timing */
  NI_F_OBSERVED, /* "observed" -> true */
  NI_F_SRC,      /* name of ni_src_names -> enum ni_src; up to here without a map of the structure */
  NI_F_HASH,     /* "0x..." up to 16 digits -> uint64_t */
  NI_F_BY,       /* object of numbers -> struct ni_by */
  NI_F_HIST,     /* object of numbers by lower edge in ns -> uint64_t[NI_HIST_BUCKETS] */
  NI_F_PAIRS,    /* object of strings -> struct ni_pairs */
  NI_F_NUMBERS,  /* array of integers and nulls -> struct ni_numbers */
  NI_F_METRICS,  /* array of objects, sub-table -> struct ni_metric_names */
  NI_F_OBJECT,   /* sub-table */
  NI_F_TRACE,    /* sub-table into the parser's trace */
  NI_F_EVENTS,   /* array of objects, sub-table into trace->event[i] */
  NI_F_STEPS,    /* array of objects, sub-table -> struct ni_proxy_steps */
  NI_F_KIND,     /* top level: the record itself, sub-table, arg is the line kind */
};

enum {
  NI_FLAG_REQUIRED = 1,
  NI_FLAG_NULL = 2, /* null keeps the default */
  NI_FLAG_P2P = 4,  /* NI_F_KIND: the record is a p2p_perf */
};

struct ni_key_table;

struct ni_field {
  char key[NI_KEY_MAX]; /* with the closing quote: a match includes the end of the name */
  uint8_t len;          /* with the quote */
  uint8_t type, flags;
  int8_t min; /* NI_F_I32 */
  uint16_t offset;
  /* bit of ni_record.has to set when there is a value; of an object: offset of a bool to set */
  uint16_t has;
  uint8_t arg;
  struct ni_key_table *sub;
};

struct ni_key_table {
  const struct ni_field *field;
  uint32_t n;           /* <= 64 */
  uint64_t required;    /* bit per field; written by ni_tables_init() from the flags */
  const void *defaults; /* written first; NULL: none */
  uint32_t size;        /* of the struct */
};

extern struct ni_key_table ni_table_line; /* top level: header, metadata, then the kinds */

/* Completes the tables; any number of calls from any thread. */
void ni_tables_init(void);

/* Names as they appear in messages and in JSON output; never NULL. */
const char *ni_reject_name(enum ni_reject reason);
const char *ni_line_kind_name(enum ni_line_kind kind);
/* The key of an operation's line. */
const char *ni_op_key(bool p2p);

#ifdef __cplusplus
}
#endif

#endif
