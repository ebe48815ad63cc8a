/*
 * Protocol Buffers' wire format, bounded: fields are read where they lie, and nothing is allocated by
 * reading.
 *
 *   bytes ─▶ ni_pb_reader ─▶ ni_pb_next() gives a field after another
 *       ─▶ the caller's switch over numbers; unknown ones are passed over
 *   ni_pb_writer ─▶ fields in the order of the calls ─▶ bytes
 *
 * Source: protobuf.dev, "Encoding". Groups (wire types 3 and 4) are refused. Numbers of fields: 1 to 2^29 -
 * 1. One thread per struct. Ownership: a writer's bytes are given back with ni_pb_free(); a reader owns
 * nothing.
 */
#ifndef NI_PROTOBUF_H
#define NI_PROTOBUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ni_pb_reader {
  const uint8_t *at, *end;
  bool bad; /* what came is no sound message: ni_pb_next() has said false for it */
};
struct ni_pb_field {
  uint32_t number;
  uint8_t type;         /* 0 varint, 1 fixed64, 2 bytes, 5 fixed32 */
  uint64_t value;       /* of types 0, 1 and 5; the bits of a double */
  const uint8_t *bytes; /* of type 2 */
  size_t len;
};

struct ni_pb_reader ni_pb_read(const void *bytes, size_t len);
/* false: the end, or bad. */
bool ni_pb_next(struct ni_pb_reader *r, struct ni_pb_field *f);
/* The reader of a field that is a message; one of another type is bad. */
struct ni_pb_reader ni_pb_inside(const struct ni_pb_field *f);
/* The double of a field; NaN where it is of another type. */
double ni_pb_f64(const struct ni_pb_field *f);
/*
 * A field's text, safe to print (safe_text.h), cut between characters; cap: 1,024 at most. true: it is
 * shorter than cap, and is text.
 */
bool ni_pb_text(const struct ni_pb_field *f, char *to, size_t cap);

struct ni_pb_writer { /* all 0: empty */
  uint8_t *bytes;
  size_t n, cap;
  bool failed; /* there was no memory: bytes are of no use */
};
void ni_pb_put_u64(struct ni_pb_writer *w, uint32_t number, uint64_t v);
/* as int32, int64: negative ones take ten bytes */
void ni_pb_put_i64(struct ni_pb_writer *w, uint32_t number, int64_t v);
void ni_pb_put_fixed64(struct ni_pb_writer *w, uint32_t number, uint64_t v);
void ni_pb_put_f64(struct ni_pb_writer *w, uint32_t number, double v);
/* made safe, 1,023 bytes at most; "" is not put */
void ni_pb_put_text(struct ni_pb_writer *w, uint32_t number, const char *text);
void ni_pb_put_bytes(struct ni_pb_writer *w, uint32_t number, const void *bytes, size_t len);
/* A message inside: what is put between the two calls is its. The mark is what ni_pb_end() wants. */
size_t ni_pb_begin(struct ni_pb_writer *w, uint32_t number);
void ni_pb_end(struct ni_pb_writer *w, size_t mark);
void ni_pb_free(struct ni_pb_writer *w);

#endif
