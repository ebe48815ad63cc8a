#include "index.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

uint64_t ni_hash_seed;

__attribute__((constructor)) static void read_hash_seed(void) {
  /* the kernel's, 16 bytes */
  memcpy(&ni_hash_seed, (const void *)(uintptr_t)getauxval(AT_RANDOM), sizeof ni_hash_seed);
}

uint64_t ni_hash_text(uint64_t hash, const char *part) {
  uint64_t word;
  hash = ni_hash(hash, 0);
  for (size_t left = strlen(part), n; left; left -= n, part += n) {
    n = left < sizeof word ? left : sizeof word;
    word = 0;
    memcpy(&word, part, n);
    hash = ni_hash(hash, word);
  }
  return hash;
}

static void insert_place(struct ni_index *x, struct ni_index_place new) {
  size_t i = new.hash &(x->cap - 1);
  while (x->place[i].number)
    i = (i + 1) & (x->cap - 1);
  x->place[i] = new;
}

int ni_index_add(struct ni_index *x, uint64_t hash, uint32_t number) {
  if (2 * (x->n + 1) > x->cap) {
    struct ni_index more = {.n = x->n, .cap = x->cap ? 2 * x->cap : 64};
    if (!(more.place = calloc(more.cap, sizeof *more.place)))
      return -ENOMEM;
    for (size_t i = 0; i < x->cap; i++)
      if (x->place[i].number)
        insert_place(&more, x->place[i]);
    free(x->place);
    *x = more;
  }
  insert_place(x, (struct ni_index_place){(uint32_t)hash, number + 1});
  x->n++;
  return 0;
}

void ni_index_free(struct ni_index *x) {
  free(x->place);
  *x = (struct ni_index){0};
}
