#include "protobuf.h"

#include <endian.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/bytes/varint.h"
#include "exporter/base/text/safe_text.h"

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5, TEXT_MAX = 1024 };
#define BITS(d) \
  (((union { \
     double of; \
     uint64_t bits; \
   }){d}) \
       .bits)

struct ni_pb_reader ni_pb_read(const void *bytes, size_t len) {
  const uint8_t *at = bytes ? bytes : (const uint8_t *)"";
  return (struct ni_pb_reader){.at = at, .end = at + len};
}

static bool read_varint(struct ni_pb_reader *r, uint64_t *v) {
  *v = 0;
  for (unsigned shift = 0; r->at < r->end && shift < 64; shift += 7) {
    uint8_t c = *r->at++;
    *v |= (uint64_t)(c & 0x7f) << shift;
    if (c < 0x80)
      return true;
  }
  return false;
}

bool ni_pb_next(struct ni_pb_reader *r, struct ni_pb_field *f) {
  uint64_t tag, n = 0, little = 0;
  *f = (struct ni_pb_field){0};
  if (r->bad || r->at == r->end)
    return false;
  r->bad = true; /* until all of it is there */
  if (!read_varint(r, &tag) || tag > UINT32_MAX || tag >> 3 == 0)
    return false;
  f->number = (uint32_t)tag >> 3;
  f->type = tag & 7;
  if (f->type == FIXED64 || f->type == FIXED32)
    n = f->type == FIXED64 ? 8 : 4;
  else if (f->type != VARINT && f->type != BYTES)
    return false;
  else if (!read_varint(r, f->type == VARINT ? &f->value : &n))
    return false;
  if (n > (uint64_t)(r->end - r->at))
    return false;
  if (f->type == BYTES) {
    f->bytes = r->at;
    f->len = n;
  } else if (n) {
    memcpy(&little, r->at, n);
    f->value = le64toh(little);
  }
  r->at += n;
  r->bad = false;
  return true;
}

struct ni_pb_reader ni_pb_inside(const struct ni_pb_field *f) {
  struct ni_pb_reader r = ni_pb_read(f->bytes, f->len);
  r.bad = f->type != BYTES;
  return r;
}

double ni_pb_f64(const struct ni_pb_field *f) {
  return f->type == FIXED64 ? ((union {
                                uint64_t bits;
                                double of;
                              }){f->value})
                                  .of
                            : NAN;
}

bool ni_pb_text(const struct ni_pb_field *f, char *to, size_t cap) {
  char raw[TEXT_MAX + 4]; /* with the whole of the last character that has room */
  if (cap > TEXT_MAX)
    cap = TEXT_MAX;
  size_t n = f->len < cap + 3 ? f->len : cap + 3;
  for (size_t i = 0; i < n; i++)
    raw[i] = f->bytes[i] ? (char)f->bytes[i] : '\x01';
  raw[n] = 0;
  ni_safe_text(raw, to, cap);
  return f->type == BYTES && f->len < cap;
}

static void append_bytes(struct ni_pb_writer *w, const void *p, size_t n) {
  if (!w->failed && w->cap - w->n < n && !ni_array_more(&w->bytes, &w->cap, w->n + n, 1))
    w->failed = true;
  if (w->failed || !n)
    return;
  memcpy(w->bytes + w->n, p, n);
  w->n += n;
}

static void append_varint(struct ni_pb_writer *w, uint64_t v) {
  uint8_t bytes[NI_VARINT_MAX];
  append_bytes(w, bytes, (size_t)(ni_put_varint(bytes, v) - bytes));
}

void ni_pb_put_u64(struct ni_pb_writer *w, uint32_t number, uint64_t v) {
  append_varint(w, (uint64_t)number << 3 | VARINT);
  append_varint(w, v);
}

void ni_pb_put_i64(struct ni_pb_writer *w, uint32_t number, int64_t v) {
  ni_pb_put_u64(w, number, (uint64_t)v);
}

void ni_pb_put_fixed64(struct ni_pb_writer *w, uint32_t number, uint64_t v) {
  append_varint(w, (uint64_t)number << 3 | FIXED64);
  append_bytes(w, &(uint64_t){htole64(v)}, 8);
}

void ni_pb_put_f64(struct ni_pb_writer *w, uint32_t number, double v) {
  ni_pb_put_fixed64(w, number, BITS(v));
}

/* One byte that is no UTF-8 makes receivers refuse the whole message. */
void ni_pb_put_text(struct ni_pb_writer *w, uint32_t number, const char *text) {
  char safe[TEXT_MAX];
  size_t n = strlen(ni_safe_text(text, safe, sizeof safe));
  if (n)
    ni_pb_put_bytes(w, number, safe, n);
}

void ni_pb_put_bytes(struct ni_pb_writer *w, uint32_t number, const void *bytes, size_t len) {
  ni_pb_begin(w, number);
  append_varint(w, len);
  append_bytes(w, bytes, len);
}

size_t ni_pb_begin(struct ni_pb_writer *w, uint32_t number) {
  append_varint(w, (uint64_t)number << 3 | BYTES);
  return w->n;
}

/* The length goes before what was written since: that moves. */
void ni_pb_end(struct ni_pb_writer *w, size_t mark) {
  uint8_t head[10];
  size_t end = w->n;
  append_varint(w, end - mark);
  if (w->failed)
    return;
  size_t n = w->n - end;
  memcpy(head, w->bytes + end, n);
  memmove(w->bytes + mark + n, w->bytes + mark, end - mark);
  memcpy(w->bytes + mark, head, n);
}

void ni_pb_free(struct ni_pb_writer *w) {
  free(w->bytes);
  *w = (struct ni_pb_writer){0};
}
