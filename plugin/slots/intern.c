#include "intern.h"

#include <string.h>

#include "format/names.h"

void ni_intern_reset(struct ni_intern *t, struct ni_interned *text) {
  memset((void *)text, 0, NI_INTERN_TEXTS * sizeof *text);
  memset((void *)t, 0, sizeof *t);
  t->text = text;
  ni_store_rlx(&t->n, 1);
  ni_store_rlx(&t->empty, NI_INTERN_NONE);
}

/*
 * A number is reserved, its text written, and only then the pointer published: whoever finds the pointer
 * finds the text. Two threads that meet the same new string at once may both reserve a number; the one that
 * loses the hash slot uses the winner's and leaves its own unused.
 */
uint8_t ni_intern_add(struct ni_intern *t, const char *s) {
  enum { BUSY = 1 }; /* no string literal lies at address 1 */
  uint32_t empty = ni_load_rlx(&t->empty);
  uint32_t mine = *s || empty == NI_INTERN_NONE ? 0 : empty; /* empty texts share a number */
  for (uint32_t probe = 0, i = ni_intern_slot(s); probe < NI_INTERN_HASH;
       probe++, i = (i + 1) % NI_INTERN_HASH) {
    uintptr_t key = ni_load_acq(&t->hash[i].key);
    if (key == (uintptr_t)s)
      return (uint8_t)ni_load_rlx(&t->hash[i].id);
    if (key)
      continue; /* taken by another string, or being filled: the next slot does as well */
    if (!mine) {
      mine = ni_add_rlx(&t->n, 1);
      if (mine >= NI_INTERN_TEXTS) {
        ni_store_rlx(&t->n, NI_INTERN_TEXTS);
        ni_add_rlx(&t->overflow, 1);
        return 0;
      }
      struct ni_interned *x = &t->text[mine];
      size_t len = strnlen(s, NI_INTERN_CHARS - 1);
      memcpy(x->text, s, len);
      x->elem_bytes = (uint8_t)ni_datatype_bytes(x->text);
      ni_store_rel(&x->ready, 1); /* pairs with ni_intern_text */
      if (len == 0)
        ni_store_rlx(&t->empty, (uint8_t)mine); /* before the pointer is published, below */
    }
    if (atomic_compare_exchange_strong_explicit(&t->hash[i].key, &key, BUSY, memory_order_relaxed,
                                                memory_order_relaxed)) {
      ni_store_rlx(&t->hash[i].id, mine);
      ni_store_rel(&t->hash[i].key, (uintptr_t)s); /* pairs with the loads above and in ni_intern_id */
      return (uint8_t)mine;
    }
    /* Lost the slot; to the same string perhaps. A second number for one text is harmless, waiting is not. */
  }
  ni_add_rlx(&t->overflow, 1);
  return 0;
}

const char *ni_intern_text(const struct ni_intern *t, uint8_t id) {
  if (id == 0 || id >= NI_INTERN_TEXTS || !ni_load_acq(&t->text[id].ready))
    return "Unknown";
  return t->text[id].text;
}
