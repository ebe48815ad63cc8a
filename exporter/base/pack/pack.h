/*
 * Numbers and texts as bytes and back, by one function for both ways: what is written is what is read.
 *
 *   struct ni_pack p = {0};                     writes; or NI_PACK_OF(bytes, n), which reads
 *   ni_pack_u64(&p, &x->count);                 puts it, or takes it
 *   if (p.bad) ...                              once, at the end: no memory, or no sound bytes
 *
 * Numbers are little-endian groups of seven bits, so the bytes do not depend on the machine. Bytes that are read are hostile: nothing
 * outside of them is read, and nothing is allocated that they are too short for. After the first fault numbers are 0 and texts NULL.
 *
 * One thread for each. Ownership: `bytes` of a writer is the caller's to free; texts that were read are the caller's.
 */
#ifndef NI_PACK_H
#define NI_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ni_pack {
  uint8_t *bytes;      /* written */
  size_t n, cap;
  const uint8_t *at, *end; /* to be read; at NULL: the struct writes */
  bool bad;
};
#define NI_PACK_OF(from, size) {.at = (from), .end = (const uint8_t *)(from) + (size)}

void ni_pack_u64(struct ni_pack *p, uint64_t *v);
void ni_pack_i64(struct ni_pack *p, int64_t *v);
void ni_pack_u32(struct ni_pack *p, uint32_t *v); /* more than that is bad; also below */
void ni_pack_i32(struct ni_pack *p, int32_t *v);
void ni_pack_bool(struct ni_pack *p, bool *v);
void ni_pack_double(struct ni_pack *p, double *v);
void ni_pack_u64s(struct ni_pack *p, uint64_t *v, size_t n);
/* NULL stays NULL. What is read was allocated, and has no NUL in it. */
void ni_pack_text(struct ni_pack *p, char **text);
/* How many items follow, each of `least` bytes at least (1 or more). */
void ni_pack_count(struct ni_pack *p, size_t *n, size_t least);
/* n bytes as they are: puts from, or returns where they lie in what is read; NULL: they do not. */
const uint8_t *ni_pack_bytes(struct ni_pack *p, const void *from, size_t n);
static inline bool ni_pack_reads(const struct ni_pack *p) { return p->at != NULL; }

#endif
