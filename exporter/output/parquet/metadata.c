#include "metadata.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "column_chunk.h"

void ni_tc_free(struct ni_tc *t) {
  free(t->data);
  memset(t, 0, sizeof *t);
}

void ni_tc_reset(struct ni_tc *t) {
  t->len = 0;
  t->depth = 0;
  t->last_id[0] = 0;
}

static bool reserve_bytes(struct ni_tc *t, size_t n) {
  t->failed |= t->cap - t->len < n && !ni_array_more(&t->data, &t->cap, t->len + n, 1);
  return !t->failed;
}

void ni_tc_raw(struct ni_tc *t, const void *p, size_t n) {
  if (n == 0 || !reserve_bytes(t, n))
    return;
  memcpy(t->data + t->len, p, n);
  t->len += n;
}

static void append_varint(struct ni_tc *t, uint64_t v) {
  if (reserve_bytes(t, NI_VARINT_MAX))
    t->len = (size_t)(ni_put_varint(t->data + t->len, v) - t->data);
}

static void append_zigzag(struct ni_tc *t, int64_t v) { append_varint(t, ni_fold((uint64_t)v)); }

static void append_byte(struct ni_tc *t, uint8_t b) { ni_tc_raw(t, &b, 1); }

static void append_header(struct ni_tc *t, int id, enum ni_tc_type type) {
  int delta = id - t->last_id[t->depth];
  /* Every id in Parquet's structs is below 16 and written in rising order, so the short form always fits. */
  assert(delta > 0 && delta < 16);
  append_byte(t, (uint8_t)(delta << 4 | (int)type));
  t->last_id[t->depth] = (int16_t)id;
}

void ni_tc_field_i32(struct ni_tc *t, int id, int32_t v) {
  append_header(t, id, NI_TC_I32);
  append_zigzag(t, v);
}

void ni_tc_field_i64(struct ni_tc *t, int id, int64_t v) {
  append_header(t, id, NI_TC_I64);
  append_zigzag(t, v);
}

void ni_tc_field_binary(struct ni_tc *t, int id, const void *p, size_t n) {
  append_header(t, id, NI_TC_BINARY);
  append_varint(t, n);
  ni_tc_raw(t, p, n);
}

void ni_tc_field_text(struct ni_tc *t, int id, const char *s) { ni_tc_field_binary(t, id, s, strlen(s)); }

void ni_tc_begin(struct ni_tc *t, int id) {
  if (id)
    append_header(t, id, NI_TC_STRUCT);
  assert(t->depth + 1 < NI_TC_DEPTH);
  t->last_id[++t->depth] = 0;
}

void ni_tc_end(struct ni_tc *t) {
  append_byte(t, 0);
  assert(t->depth > 0);
  t->depth--;
}

void ni_tc_field_list(struct ni_tc *t, int id, enum ni_tc_type type, size_t n) {
  append_header(t, id, NI_TC_LIST);
  if (n < 15) {
    append_byte(t, (uint8_t)(n << 4 | (unsigned)type));
  } else {
    append_byte(t, (uint8_t)(0xf0 | (unsigned)type));
    append_varint(t, n);
  }
}

void ni_tc_element_i32(struct ni_tc *t, int32_t v) { append_zigzag(t, v); }

void ni_tc_element_text(struct ni_tc *t, const char *s) {
  size_t n = strlen(s);
  append_varint(t, n);
  ni_tc_raw(t, s, n);
}

/* parquet-mr parses this form, and distrusts the statistics of a file whose writer it cannot parse. */
#define CREATED_BY "nccl-inspector version " NI_VERSION " (build " NI_GIT_REV ")"

static int choose_physical_type(enum ni_pq_type type) {
  return type == NI_PQ_STRING ? TYPE_BYTE_ARRAY : type == NI_PQ_DOUBLE ? TYPE_DOUBLE : TYPE_INT64;
}

static void put_bounds(struct ni_tc *t, const void *min, const void *max, bool old) {
  ni_tc_field_binary(t, old ? STAT_MAX_OLD : STAT_MAX, max, 8);
  ni_tc_field_binary(t, old ? STAT_MIN_OLD : STAT_MIN, min, 8);
}

/*
 * One set of bounds in PLAIN form. The old pair is defined by signed comparison, so strings do not have it.
 */
static void put_min_max(struct ni_tc *t, const struct ni_chunk *c, bool old) {
  const struct ni_chunk_stats *st = &c->stats;
  if (!st->has || (c->type == NI_PQ_STRING && (old || st->text_too_long)))
    return;
  if (c->type == NI_PQ_STRING) {
    ni_tc_field_binary(t, STAT_MAX, st->text_max, st->text_max_len);
    ni_tc_field_binary(t, STAT_MIN, st->text_min, st->text_min_len);
  } else if (c->type == NI_PQ_DOUBLE) {
    /* Zeros of both signs compare equal: the bounds must hold either. */
    double min = st->dbl_min == 0 ? -0.0 : st->dbl_min, max = st->dbl_max == 0 ? 0.0 : st->dbl_max;
    put_bounds(t, &min, &max, old);
  } else {
    put_bounds(t, &st->int_min, &st->int_max, old);
  }
}

static void put_statistics(struct ni_tc *t, const struct ni_chunk *c) {
  ni_tc_begin(t, META_STATISTICS);
  put_min_max(t, c, true);
  ni_tc_field_i64(t, STAT_NULL_COUNT, (int64_t)c->n_nulls);
  put_min_max(t, c, false);
  if (c->type == NI_PQ_DOUBLE)
    ni_tc_field_i64(t, STAT_NAN_COUNT, (int64_t)c->n_nans);
  ni_tc_end(t);
}

static void put_encoding_stat(struct ni_tc *t, int page_type, int encoding, uint32_t n) {
  if (n == 0)
    return;
  ni_tc_begin(t, 0);
  ni_tc_field_i32(t, ENCODING_STAT_PAGE_TYPE, page_type);
  ni_tc_field_i32(t, ENCODING_STAT_ENCODING, encoding);
  ni_tc_field_i32(t, ENCODING_STAT_COUNT, (int32_t)n);
  ni_tc_end(t);
}

static void put_chunk(struct ni_tc *t, const struct ni_pq_field *field, const struct ni_chunk *c,
                      const struct ni_chunk_place *place, enum ni_pq_codec codec) {
  const bool dict = c->n_dict_pages > 0;
  ni_tc_begin(t, 0);
  ni_tc_field_i64(t, CHUNK_FILE_OFFSET, 0); /* deprecated; 0 says that no copy of the metadata is elsewhere */
  ni_tc_begin(t, CHUNK_META);
  ni_tc_field_i32(t, META_TYPE, choose_physical_type(c->type));
  ni_tc_field_list(t, META_ENCODINGS, NI_TC_I32, dict ? 3 : 2);
  ni_tc_element_i32(t, ENCODING_PLAIN); /* of the dictionary page too */
  ni_tc_element_i32(t, ENCODING_RLE);
  if (dict)
    ni_tc_element_i32(t, ENCODING_RLE_DICTIONARY);
  ni_tc_field_list(t, META_PATH, NI_TC_BINARY, 1);
  ni_tc_element_text(t, field->name);
  ni_tc_field_i32(t, META_CODEC, ni_page_codec_id(codec));
  ni_tc_field_i64(t, META_NUM_VALUES, (int64_t)c->n_rows);
  ni_tc_field_i64(t, META_UNCOMPRESSED, (int64_t)c->uncompressed_bytes);
  ni_tc_field_i64(t, META_COMPRESSED, (int64_t)c->compressed_bytes);
  ni_tc_field_i64(t, META_DATA_PAGE_OFFSET, (int64_t)place->data_offset);
  if (place->dict_offset)
    ni_tc_field_i64(t, META_DICT_PAGE_OFFSET, (int64_t)place->dict_offset);
  put_statistics(t, c);
  ni_tc_field_list(t, META_ENCODING_STATS, NI_TC_STRUCT, (dict ? 2u : 0u) + (c->n_plain_pages > 0));
  put_encoding_stat(t, PAGE_TYPE_DICTIONARY, ENCODING_PLAIN, dict);
  put_encoding_stat(t, PAGE_TYPE_DATA, ENCODING_RLE_DICTIONARY, c->n_dict_pages);
  put_encoding_stat(t, PAGE_TYPE_DATA, ENCODING_PLAIN, c->n_plain_pages);
  ni_tc_end(t);
  ni_tc_end(t);
}

void ni_footer_row_group(struct ni_tc *t, const struct ni_pq_field *fields, const struct ni_chunk *chunks,
                         const struct ni_chunk_place *places, size_t n_fields, enum ni_pq_codec codec,
                         uint64_t n_rows) {
  uint64_t bytes = 0, compressed = 0;
  ni_tc_begin(t, 0);
  ni_tc_field_list(t, GROUP_COLUMNS, NI_TC_STRUCT, n_fields);
  for (size_t i = 0; i < n_fields; i++) {
    put_chunk(t, &fields[i], &chunks[i], &places[i], codec);
    bytes += chunks[i].uncompressed_bytes;
    compressed += chunks[i].compressed_bytes;
  }
  ni_tc_field_i64(t, GROUP_BYTES, (int64_t)bytes);
  ni_tc_field_i64(t, GROUP_ROWS, (int64_t)n_rows);
  ni_tc_field_i64(t, GROUP_FILE_OFFSET,
                  (int64_t)(places[0].dict_offset ? places[0].dict_offset : places[0].data_offset));
  ni_tc_field_i64(t, GROUP_COMPRESSED, (int64_t)compressed);
  ni_tc_end(t);
}

static void put_text_type(struct ni_tc *t) {
  ni_tc_field_i32(t, SCHEMA_CONVERTED, CONVERTED_UTF8);
  ni_tc_begin(t, SCHEMA_LOGICAL);
  ni_tc_begin(t, LOGICAL_STRING);
  ni_tc_end(t);
  ni_tc_end(t);
}

static void put_schema(struct ni_tc *t, const struct ni_footer *f) {
  ni_tc_field_list(t, FILE_SCHEMA, NI_TC_STRUCT, f->n_fields + 1);
  ni_tc_begin(t, 0); /* the root */
  ni_tc_field_text(t, SCHEMA_NAME, "schema");
  ni_tc_field_i32(t, SCHEMA_NUM_CHILDREN, (int32_t)f->n_fields);
  ni_tc_end(t);
  for (size_t i = 0; i < f->n_fields; i++) {
    ni_tc_begin(t, 0);
    ni_tc_field_i32(t, SCHEMA_TYPE, choose_physical_type(f->fields[i].type));
    ni_tc_field_i32(t, SCHEMA_REPETITION, REPETITION_OPTIONAL);
    ni_tc_field_text(t, SCHEMA_NAME, f->fields[i].name);
    if (f->fields[i].type == NI_PQ_STRING)
      put_text_type(t);
    ni_tc_end(t);
  }
}

void ni_footer_file(struct ni_tc *t, const struct ni_footer *f) {
  size_t start = t->len;
  ni_tc_field_i32(t, FILE_VERSION, 1);
  put_schema(t, f);
  ni_tc_field_i64(t, FILE_ROWS, (int64_t)f->n_rows);
  ni_tc_field_list(t, FILE_GROUPS, NI_TC_STRUCT, f->n_row_groups);
  ni_tc_raw(t, f->row_groups->data, f->row_groups->len);
  ni_tc_field_text(t, FILE_CREATED_BY, CREATED_BY);
  /* Without an order given for every column, readers must ignore min_value and max_value. */
  ni_tc_field_list(t, FILE_ORDERS, NI_TC_STRUCT, f->n_fields);
  for (size_t i = 0; i < f->n_fields; i++) {
    ni_tc_begin(t, 0);
    ni_tc_begin(t, ORDER_TYPE);
    ni_tc_end(t);
    ni_tc_end(t);
  }
  const uint8_t stop = 0;
  ni_tc_raw(t, &stop, 1);
  uint32_t len = (uint32_t)(t->len - start);
  ni_tc_raw(t, &len, 4);
  ni_tc_raw(t, "PAR1", 4);
}
