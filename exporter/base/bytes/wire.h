/*
 * Numbers and texts as bytes, and back, for files that nccl-inspector itself reads again: one function says
 * what a struct consists of, and serves both directions.
 *
 *   static void wire(struct ni_wire *w, struct point *p) { NI_WIRE(w, &p->at, &p->name); }
 *   store: a wire of zeros ─▶ that ─▶ bytes, n              load: ni_wire_load(bytes, n) ─▶ that
 *
 * Numbers are of variable length, so they mean the same on every machine. Bytes are hostile: what does not
 * fit makes the wire `bad`; from then on nothing is read, and numbers are 0, texts NULL. Counts are bounded
 * by the bytes that are left.
 *
 * Threads: one for each. Ownership: ni_wire_free() of what stores; texts that were loaded are the caller's,
 * to be freed.
 */
#ifndef NI_WIRE_H
#define NI_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ni_wire {
  bool load, bad; /* bad: bytes that cannot be, or no memory */
  uint8_t *bytes; /* of what stores */
  size_t n, cap;
  const uint8_t *at, *end; /* of what loads: the caller's */
};

struct ni_wire ni_wire_load(const void *bytes, size_t n);
void ni_wire_free(struct ni_wire *w);

void ni_wire_u64(struct ni_wire *w, uint64_t *v);
void ni_wire_u64s(struct ni_wire *w, uint64_t *v, size_t n);
void ni_wire_i64(struct ni_wire *w, int64_t *v);
void ni_wire_u32(struct ni_wire *w, uint32_t *v);
void ni_wire_i32(struct ni_wire *w, int32_t *v);
void ni_wire_bool(struct ni_wire *w, bool *v);
void ni_wire_f64(struct ni_wire *w, double *v);
/* NULL stays NULL. */
void ni_wire_text(struct ni_wire *w, char **text);
/* One to eight members by pointers to them, whose types choose among the functions above. */
#define NI_WIRE(w, ...) \
  NI_WIRE_SO_MANY(__VA_ARGS__, NI_WIRE_8, NI_WIRE_7, NI_WIRE_6, NI_WIRE_5, NI_WIRE_4, NI_WIRE_3, NI_WIRE_2, \
                  NI_WIRE_1, )(w, __VA_ARGS__)
#define NI_WIRE_SO_MANY(a, b, c, d, e, f, g, h, wire, ...) wire
#define NI_WIRE_1(w, p) \
  _Generic((p), \
      uint64_t *: ni_wire_u64, \
      int64_t *: ni_wire_i64, \
      uint32_t *: ni_wire_u32, \
      int32_t *: ni_wire_i32, \
      bool *: ni_wire_bool, \
      double *: ni_wire_f64, \
      char **: ni_wire_text)(w, p)
#define NI_WIRE_2(w, p, q) (NI_WIRE_1(w, p), NI_WIRE_1(w, q))
#define NI_WIRE_3(w, p, ...) (NI_WIRE_1(w, p), NI_WIRE_2(w, __VA_ARGS__))
#define NI_WIRE_4(w, p, ...) (NI_WIRE_1(w, p), NI_WIRE_3(w, __VA_ARGS__))
#define NI_WIRE_5(w, p, ...) (NI_WIRE_1(w, p), NI_WIRE_4(w, __VA_ARGS__))
#define NI_WIRE_6(w, p, ...) (NI_WIRE_1(w, p), NI_WIRE_5(w, __VA_ARGS__))
#define NI_WIRE_7(w, p, ...) (NI_WIRE_1(w, p), NI_WIRE_6(w, __VA_ARGS__))
#define NI_WIRE_8(w, p, ...) (NI_WIRE_1(w, p), NI_WIRE_7(w, __VA_ARGS__))
/* How many items follow, of `least` bytes each at least: loading never says more than there can be. */
void ni_wire_count(struct ni_wire *w, size_t *n, size_t least);
/* A number below `end`: loading makes the wire bad else. */
void ni_wire_below(struct ni_wire *w, uint32_t *v, size_t end);
/* n bytes as they are. Loading: where they lie, NULL if there are not so many. */
const uint8_t *ni_wire_bytes(struct ni_wire *w, const void *bytes, size_t n);
/* Numbers of n bytes, the lowest first: for heads of files. */
static inline void ni_put_le(uint8_t *to, uint64_t v, size_t n) {
  for (size_t i = 0; i < n; i++)
    to[i] = (uint8_t)(v >> 8 * i);
}
static inline uint64_t ni_get_le(const uint8_t *from, size_t n) {
  uint64_t v = 0;
  for (size_t i = n; i-- > 0;)
    v = v << 8 | from[i];
  return v;
}
/* Has all been read, and was it sound? */
static inline bool ni_wire_over(const struct ni_wire *w) { return !w->bad && w->at == w->end; }

#endif
