#include "pack.h"

#include <string.h>

#include "exporter/base/array.h"

const uint8_t *ni_pack_bytes(struct ni_pack *p, const void *from, size_t n) {
  if (p->bad) return NULL;
  if (ni_pack_reads(p)) {
    const uint8_t *here = p->at;
    p->bad = n > (size_t)(p->end - p->at);
    p->at += p->bad ? 0 : n;
    return p->bad ? NULL : here;
  }
  if (p->cap - p->n < n && !ni_array_more(&p->bytes, &p->cap, p->n + n, 1)) {
    p->bad = true;
    return NULL;
  }
  if (n) memcpy(p->bytes + p->n, from, n);
  p->n += n;
  return p->bytes;
}

void ni_pack_u64(struct ni_pack *p, uint64_t *v) {
  uint8_t group[10];
  size_t n = 0;
  if (!ni_pack_reads(p)) {
    uint64_t left = *v;
    do group[n++] = (uint8_t)((left & 127) | (left > 127 ? 128 : 0));
    while (left >>= 7);
    ni_pack_bytes(p, group, n);
    return;
  }
  *v = 0;
  for (unsigned shift = 0; !p->bad; shift += 7) {
    const uint8_t *b = ni_pack_bytes(p, NULL, 1);
    /* One number has one form, or equal indexes would have unequal bytes. */
    if (!b || shift > 63 || (shift == 63 && *b > 1) || (shift && !*b)) p->bad = true;
    else *v |= (uint64_t)(*b & 127) << shift;
    if (!p->bad && !(*b & 128)) return;
  }
  *v = 0;
}

void ni_pack_i64(struct ni_pack *p, int64_t *v) {
  uint64_t u = (uint64_t)*v << 1 ^ (*v < 0 ? UINT64_MAX : 0);
  ni_pack_u64(p, &u);
  *v = (int64_t)(u >> 1 ^ (u & 1 ? UINT64_MAX : 0));
}

void ni_pack_u32(struct ni_pack *p, uint32_t *v) {
  uint64_t u = *v;
  ni_pack_u64(p, &u);
  p->bad |= u > UINT32_MAX;
  *v = p->bad ? 0 : (uint32_t)u;
}

void ni_pack_i32(struct ni_pack *p, int32_t *v) {
  int64_t i = *v;
  ni_pack_i64(p, &i);
  p->bad |= i > INT32_MAX || i < INT32_MIN;
  *v = p->bad ? 0 : (int32_t)i;
}

void ni_pack_bool(struct ni_pack *p, bool *v) {
  uint64_t u = *v;
  ni_pack_u64(p, &u);
  p->bad |= u > 1;
  *v = !p->bad && u;
}

void ni_pack_double(struct ni_pack *p, double *v) {
  uint64_t u;
  memcpy(&u, v, sizeof u);
  ni_pack_u64(p, &u);
  memcpy(v, &u, sizeof u);
}

void ni_pack_u64s(struct ni_pack *p, uint64_t *v, size_t n) {
  for (size_t i = 0; i < n; i++) ni_pack_u64(p, &v[i]);
}

void ni_pack_count(struct ni_pack *p, size_t *n, size_t least) {
  uint64_t u = *n;
  ni_pack_u64(p, &u);
  p->bad |= ni_pack_reads(p) && u > (uint64_t)(p->end - p->at) / least;
  *n = p->bad ? 0 : (size_t)u;
}

void ni_pack_text(struct ni_pack *p, char **text) {
  size_t n = !ni_pack_reads(p) && *text ? strlen(*text) + 1 : 0; /* 0: NULL */
  uint64_t u = n;
  ni_pack_u64(p, &u);
  if (!ni_pack_reads(p)) {
    if (u) ni_pack_bytes(p, *text, n - 1);
    return;
  }
  *text = NULL;
  const uint8_t *bytes = u ? ni_pack_bytes(p, NULL, u - 1 > SIZE_MAX ? SIZE_MAX : (size_t)(u - 1)) : NULL;
  if (!bytes) return;
  p->bad = memchr(bytes, 0, (size_t)(u - 1)) != NULL || !(*text = strndup((const char *)bytes, (size_t)(u - 1)));
}
