/*
 * NCCL's constant strings, interned by pointer identity.
 *
 * func, datatype, algo and proto of a descriptor point at string literals inside libnccl (callbacks 4.1). A
 * callback finds the number of a pointer with one probe of a small hash table and compares no text; the text
 * is copied at the first sight of a pointer, so that it can be written after libnccl is gone. The same text
 * under two pointers gets two numbers, which is harmless. The table is emptied when the number of live
 * communicators goes from 0 to 1, because a reloaded libnccl may reuse an address for another text.
 *
 * Threads: lookup is lock-free, any thread; text by the dump thread; reset by init with no other communicator
 * alive. The hash holds pointers and lives outside the arena; the texts lie in it.
 */
#ifndef NI_INTERN_H
#define NI_INTERN_H

#include "plugin/os/atomics.h"

#define NI_INTERN_TEXTS 128u /* NCCL 2.30 has about 50 */
#define NI_INTERN_HASH 512u
#define NI_INTERN_CHARS 46u
#define NI_INTERN_NONE 255u /* no number */

struct ni_interned {
  _Atomic uint8_t ready; /* release store by the inserter after the copy, acquire by ni_intern_text */
  uint8_t elem_bytes;    /* size if it is a datatype's name, 1 otherwise */
  char text[NI_INTERN_CHARS];
};

struct ni_intern {
  _Atomic uint32_t n;        /* numbers given out; 0 is "no string" */
  _Atomic uint32_t overflow; /* strings that found no number: they read as "Unknown" */
  /*
   * number of an empty text, once there is one, written before its pointer is published; else NI_INTERN_NONE
   */
  _Atomic uint8_t empty;
  struct {
    _Atomic uintptr_t key;
    _Atomic uint32_t id;
  } hash[NI_INTERN_HASH];
  struct ni_interned *text; /* [NI_INTERN_TEXTS], in the arena: the black box has them */
};

/* Empties the table. text: its memory from here on. */
void ni_intern_reset(struct ni_intern *t, struct ni_interned *text);

/*
 * Slow path of ni_intern_id: copies the text and publishes it. Bounded; reads at most NI_INTERN_CHARS - 1
 * bytes.
 */
uint8_t ni_intern_add(struct ni_intern *t, const char *s);

/*
 * The string of a number; "Unknown" for 0 and for one that is not published yet. Valid until the next reset.
 */
const char *ni_intern_text(const struct ni_intern *t, uint8_t id);

static inline uint32_t ni_intern_slot(const char *s) {
  return (uint32_t)(((uintptr_t)s * UINT64_C(0x9e3779b97f4a7c15)) >> 55) % NI_INTERN_HASH;
}

/* Number of a string, 0 for NULL. Lock-free; no text is read after the first sight of a pointer. */
static inline uint8_t ni_intern_id(struct ni_intern *t, const char *s) {
  if (ni_unlikely(!s))
    return 0;
  uint32_t i = ni_intern_slot(s);
  /* Acquire pairs with the key's release store in ni_intern_add: the id is there. */
  if (ni_likely(ni_load_acq(&t->hash[i].key) == (uintptr_t)s))
    return (uint8_t)ni_load_rlx(&t->hash[i].id);
  return ni_intern_add(t, s);
}

/* Bytes of one element of the datatype with this number. */
static inline uint32_t ni_intern_elem_bytes(const struct ni_intern *t, uint8_t id) {
  uint32_t b = t->text[id].elem_bytes;
  return b ? b : 1;
}

#endif
