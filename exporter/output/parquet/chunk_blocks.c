#include "chunk_blocks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int ni_blocks_append(struct ni_blocks *b, const void *p, size_t n) {
  const uint8_t *from = p;
  while (n) {
    if (!b->last || b->last->used == NI_BLOCK_BYTES) {
      struct ni_block *block = malloc(sizeof *block);
      if (!block) return -ENOMEM;
      block->next = NULL;
      block->used = 0;
      if (b->last)
        b->last->next = block;
      else
        b->first = block;
      b->last = block;
      b->n_blocks++;
    }
    size_t m = NI_BLOCK_BYTES - b->last->used;
    if (m > n) m = n;
    memcpy(b->last->data + b->last->used, from, m);
    b->last->used += m;
    b->bytes += m;
    from += m;
    n -= m;
  }
  return 0;
}

void ni_blocks_free(struct ni_blocks *b) {
  for (struct ni_block *block = b->first, *next; block; block = next) {
    next = block->next;
    free(block);
  }
  *b = (struct ni_blocks){0};
}
