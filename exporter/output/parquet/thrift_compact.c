#include "thrift_compact.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"

void ni_tc_free(struct ni_tc *t) {
  free(t->data);
  memset(t, 0, sizeof *t);
}

void ni_tc_reset(struct ni_tc *t) {
  t->len = 0;
  t->depth = 0;
  t->last_id[0] = 0;
}

static bool reserve(struct ni_tc *t, size_t n) {
  if (t->failed) return false;
  if (t->cap - t->len >= n) return true;
  size_t cap = t->cap ? t->cap * 2 : 256;
  while (cap - t->len < n) cap *= 2;
  t->failed = !ni_array_exact(&t->data, &t->cap, cap, 1);
  return !t->failed;
}

void ni_tc_raw(struct ni_tc *t, const void *p, size_t n) {
  if (n == 0 || !reserve(t, n)) return;
  memcpy(t->data + t->len, p, n);
  t->len += n;
}

static void varint(struct ni_tc *t, uint64_t v) {
  if (reserve(t, 10)) t->len = (size_t)(ni_put_varint(t->data + t->len, v) - t->data);
}

static void zigzag(struct ni_tc *t, int64_t v) { varint(t, ((uint64_t)v << 1) ^ (uint64_t)(v >> 63)); }

static void byte(struct ni_tc *t, uint8_t b) { ni_tc_raw(t, &b, 1); }

static void header(struct ni_tc *t, int id, enum ni_tc_type type) {
  int delta = id - t->last_id[t->depth];
  /* Every id in Parquet's structs is below 16 and written in rising order, so the short form always fits. */
  assert(delta > 0 && delta < 16);
  byte(t, (uint8_t)(delta << 4 | (int)type));
  t->last_id[t->depth] = (int16_t)id;
}

void ni_tc_field_i32(struct ni_tc *t, int id, int32_t v) {
  header(t, id, NI_TC_I32);
  zigzag(t, v);
}

void ni_tc_field_i64(struct ni_tc *t, int id, int64_t v) {
  header(t, id, NI_TC_I64);
  zigzag(t, v);
}

void ni_tc_field_binary(struct ni_tc *t, int id, const void *p, size_t n) {
  header(t, id, NI_TC_BINARY);
  varint(t, n);
  ni_tc_raw(t, p, n);
}

void ni_tc_field_text(struct ni_tc *t, int id, const char *s) { ni_tc_field_binary(t, id, s, strlen(s)); }

void ni_tc_begin(struct ni_tc *t, int id) {
  if (id) header(t, id, NI_TC_STRUCT);
  assert(t->depth + 1 < NI_TC_DEPTH);
  t->last_id[++t->depth] = 0;
}

void ni_tc_end(struct ni_tc *t) {
  byte(t, 0);
  assert(t->depth > 0);
  t->depth--;
}

void ni_tc_field_list(struct ni_tc *t, int id, enum ni_tc_type type, size_t n) {
  header(t, id, NI_TC_LIST);
  if (n < 15) {
    byte(t, (uint8_t)(n << 4 | (unsigned)type));
  } else {
    byte(t, (uint8_t)(0xf0 | (unsigned)type));
    varint(t, n);
  }
}

void ni_tc_element_i32(struct ni_tc *t, int32_t v) { zigzag(t, v); }

void ni_tc_element_text(struct ni_tc *t, const char *s) {
  size_t n = strlen(s);
  varint(t, n);
  ni_tc_raw(t, s, n);
}
