/*
 * The keys of every kind of line, as tables: what parse_simdjson.cc walks, and nothing else reads.
 *
 * A table lists the keys of one JSON object with type, place and range. Adding a key to the format is one line in
 * parse_fields.c. Offsets are relative to the struct that belongs to the table. Constant after ni_tables_init().
 */
#ifndef NI_PARSE_FIELDS_H
#define NI_PARSE_FIELDS_H

#include "exporter/input/parse_text.h"

#ifdef __cplusplus
extern "C" {
#endif

#define NI_KEY_MAX 40 /* longest key with its closing quote, rounded up to 8 */

enum ni_field_type {
  NI_F_U64,    /* 0 to 2^63-1 */
  NI_F_I64,
  NI_F_I32,    /* >= min */
  NI_F_U32,
  NI_F_BOOL,
  NI_F_STR,
  NI_F_HASH,   /* "0x..." up to 16 digits -> uint64_t */
  NI_F_F64,    /* null, "nan", NaN, "inf" and inf: no value */
  NI_F_BW,     /* as F64, 0 to NI_BW_MAX_GBS */
  NI_F_TIMING, /* name of a timing source -> enum ni_timing */
  NI_F_OBSERVED, /* "observed" -> true */
  NI_F_SRC,    /* name of ni_src_names -> enum ni_src */
  NI_F_BY,     /* object of numbers -> struct ni_by */
  NI_F_HIST,   /* object of numbers by lower edge in ns -> uint64_t[NI_HIST_BUCKETS] */
  NI_F_PAIRS,  /* object of strings -> struct ni_pairs */
  NI_F_OBJECT, /* sub-table */
  NI_F_TRACE,  /* sub-table into the parser's trace */
  NI_F_EVENTS, /* array of objects, sub-table into trace->event[i] */
  NI_F_STEPS,  /* array of objects, sub-table -> struct ni_proxy_steps */
  NI_F_KIND,   /* top level: the record itself, sub-table, arg is the line kind */
};

enum {
  NI_FLAG_REQUIRED = 1,
  NI_FLAG_NULL = 2, /* null keeps the default */
  NI_FLAG_P2P = 4,  /* NI_F_KIND: the record is a p2p_perf */
};

struct ni_table;

struct ni_field {
  char key[NI_KEY_MAX]; /* with the closing quote: a match includes the end of the name */
  uint8_t len;          /* with the quote */
  uint8_t type, flags;
  int8_t min;           /* NI_F_I32 */
  uint16_t offset;
  uint16_t has;         /* bit of ni_record.has to set when there is a value; of an object: offset of a bool to set */
  uint8_t arg;
  struct ni_table *sub;
};

struct ni_table {
  const struct ni_field *field;
  uint32_t n;           /* <= 64 */
  uint64_t required;    /* bit per field; written by ni_tables_init() from the flags */
  const void *defaults; /* written first; NULL: zeros */
  uint32_t size;        /* of the struct */
  uint32_t has_at;      /* 1 + offset of the uint32_t has, 0: none */
};

extern struct ni_table ni_table_line;             /* top level */
extern const struct ni_field *const ni_field_timestamp; /* dump_timestamp_us: the one value that every flush changes */

/* Completes the tables; any number of calls from any thread. */
void ni_tables_init(void);

/* key holds its closing quote, and as the field's may be read up to the next multiple of 8. */
static inline bool ni_field_is(const struct ni_field *f, const char *key) {
  unsigned i = 0, len = f->len;
  for (; i + 8 <= len; i += 8)
    if (ni_text_load8(key + i) != ni_text_load8(f->key + i)) return false;
  unsigned rest = len - i;
  if (!rest) return true;
  uint64_t d = ni_text_load8(key + i) ^ ni_text_load8(f->key + i);
  return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? !(d << (64 - 8 * rest)) : !(d >> (64 - 8 * rest));
}

/* Number of the field with this key, or -1. Lines come with the keys in the order of the table, so the field after the
 * last one found, *next, is tried first. */
static inline int ni_table_find(const struct ni_table *t, const char *key, unsigned *next) {
  for (unsigned i = *next; i < t->n; i++)
    if (ni_field_is(&t->field[i], key)) return (int)(*next = i + 1) - 1;
  for (unsigned i = 0; i < *next && i < t->n; i++)
    if (ni_field_is(&t->field[i], key)) return (int)(*next = i + 1) - 1;
  return -1;
}

#ifdef __cplusplus
}
#endif

#endif
