#include "wire.h"

#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "varint.h"

struct ni_wire ni_wire_load(const void *bytes, size_t n) {
  const uint8_t *at = bytes;
  return (struct ni_wire){.load = true, .at = at, .end = n ? at + n : at}; /* of nothing bytes may be NULL */
}

void ni_wire_free(struct ni_wire *w) {
  free(w->bytes);
  *w = (struct ni_wire){0};
}

static uint8_t *reserve_bytes(struct ni_wire *w, size_t n) {
  bool has_room = w->bytes && w->n + n <= w->cap;
  if (!w->bad && !has_room && !ni_array_more(&w->bytes, &w->cap, w->n + n, 1))
    w->bad = true;
  return w->bad ? NULL : w->bytes + w->n;
}

static uint64_t read_varint(struct ni_wire *w) {
  uint64_t v = 0;
  for (unsigned shift = 0; !w->bad; shift += 7) {
    if (w->at == w->end)
      break;
    /* One number has one form, or equal contents would have unequal bytes. */
    bool is_too_large = shift > 63 || (shift == 63 && *w->at > 1), has_zero_behind = shift && !*w->at;
    if (is_too_large || has_zero_behind)
      break;
    v |= (uint64_t)(*w->at & 127) << shift;
    if (!(*w->at++ & 128))
      return v;
  }
  w->bad = true;
  return 0;
}

void ni_wire_u64(struct ni_wire *w, uint64_t *v) {
  if (w->load) {
    *v = read_varint(w);
    return;
  }
  uint8_t *p = reserve_bytes(w, NI_VARINT_MAX);
  if (!p)
    return;
  w->n = (size_t)(ni_put_varint(p, *v) - w->bytes);
}

void ni_wire_u64s(struct ni_wire *w, uint64_t *v, size_t n) {
  for (size_t i = 0; i < n; i++)
    ni_wire_u64(w, &v[i]);
}

void ni_wire_i64(struct ni_wire *w, int64_t *v) {
  uint64_t z = ni_fold((uint64_t)*v);
  ni_wire_u64(w, &z);
  *v = (int64_t)ni_unfold(z);
}

void ni_wire_u32(struct ni_wire *w, uint32_t *v) {
  uint64_t x = *v;
  ni_wire_u64(w, &x);
  if (x > UINT32_MAX) {
    w->bad = true;
    x = 0;
  }
  *v = (uint32_t)x;
}

void ni_wire_i32(struct ni_wire *w, int32_t *v) {
  int64_t x = *v;
  ni_wire_i64(w, &x);
  if (x < INT32_MIN || x > INT32_MAX) {
    w->bad = true;
    x = 0;
  }
  *v = (int32_t)x;
}

void ni_wire_bool(struct ni_wire *w, bool *v) {
  uint64_t x = *v;
  ni_wire_u64(w, &x);
  if (x > 1)
    w->bad = true;
  *v = x == 1;
}

void ni_wire_f64(struct ni_wire *w, double *v) {
  uint64_t bits;
  memcpy(&bits, v, sizeof bits);
  ni_wire_u64(w, &bits);
  memcpy(v, &bits, sizeof bits);
}

void ni_wire_count(struct ni_wire *w, size_t *n, size_t least) {
  uint64_t x = *n;
  ni_wire_u64(w, &x);
  if (w->load && x > (uint64_t)(w->end - w->at) / least) {
    w->bad = true;
    x = 0;
  }
  *n = (size_t)x;
}

void ni_wire_below(struct ni_wire *w, uint32_t *v, size_t end) {
  ni_wire_u32(w, v);
  if (w->load && *v >= end) {
    w->bad = true;
    *v = 0;
  }
}

const uint8_t *ni_wire_bytes(struct ni_wire *w, const void *bytes, size_t n) {
  if (w->load) {
    const uint8_t *at = w->at;
    if (n > (size_t)(w->end - w->at))
      w->bad = true;
    if (w->bad)
      return NULL;
    if (n)
      w->at += n; /* of nothing bytes w->at may be NULL */
    return at;
  }
  uint8_t *p = reserve_bytes(w, n);
  if (p && n)
    memcpy(p, bytes, n);
  if (p)
    w->n += n;
  return p;
}

void ni_wire_text(struct ni_wire *w, char **text) {
  uint64_t n = !w->load && *text ? strlen(*text) + 1 : 0; /* 0: NULL */
  ni_wire_u64(w, &n);
  if (!w->load) {
    if (n)
      ni_wire_bytes(w, *text, n - 1);
    return;
  }
  *text = NULL;
  if (!n)
    return;
  const uint8_t *at = ni_wire_bytes(w, NULL, n - 1);
  if (at && memchr(at, 0, n - 1))
    w->bad = true;
  if (at && !w->bad && !(*text = strndup((const char *)at, n - 1)))
    w->bad = true;
}
