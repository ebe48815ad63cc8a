/*
 * Thrift's compact protocol, writing side: just what Parquet's page headers and footer need.
 *
 * A growing byte buffer with the stack of field ids that the protocol's deltas need. The first failure to allocate
 * sticks: later calls do nothing, and the owner asks `failed` once at the end. Used by one thread; ni_tc_free frees.
 */
#ifndef NI_PARQUET_THRIFT_COMPACT_H
#define NI_PARQUET_THRIFT_COMPACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ni_tc_type {
  NI_TC_I32 = 5,
  NI_TC_I64 = 6,
  NI_TC_BINARY = 8,
  NI_TC_LIST = 9,
  NI_TC_STRUCT = 12
};

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
/* A struct field; its members follow, then ni_tc_end. id 0: an element of a list, which has no field header. */
void ni_tc_begin(struct ni_tc *t, int id);
void ni_tc_end(struct ni_tc *t);
/* A list field of n elements of one type; the elements follow. */
void ni_tc_field_list(struct ni_tc *t, int id, enum ni_tc_type type, size_t n);
void ni_tc_element_i32(struct ni_tc *t, int32_t v);
void ni_tc_element_text(struct ni_tc *t, const char *s);

/* Writes v as an unsigned LEB128 number and returns the end; at most 10 bytes. Parquet's run headers use it too. */
static inline uint8_t *ni_put_varint(uint8_t *p, uint64_t v) {
  for (; v >= 0x80; v >>= 7) *p++ = (uint8_t)(v | 0x80);
  *p++ = (uint8_t)v;
  return p;
}

#endif
