/*
 * The done list of a fixed pool that keeps the newest (NCCL_INSPECTOR_POOL_KEEP=last): a bounded queue, oldest first,
 * from which the dump thread takes at a flush and a starter takes when the pool is empty, overwriting that record.
 *
 * For sizing experiments only; the growing pools use done_list.h. The queue has at least as many places as the pool has
 * slots, so a push finds one, but for the place of a consumer that reserved it and was held up for a whole round. Each cell's
 * turn word says whose move it is (position: free for the producer of that position; position + 1: filled for its
 * consumer), which also orders the entry's stores.
 *
 * Any number of producers and consumers. A consumer that meets a cell whose producer has reserved but not yet filled it
 * sees the queue as empty.
 */
#ifndef NI_DONE_RING_H
#define NI_DONE_RING_H

#include <stdlib.h>

#include "plugin/os/atomics.h"

struct ni_done_cell {
  _Atomic uint64_t turn;
  uint32_t slot;
};

struct ni_done_ring {
  uint64_t mask;
  struct ni_done_cell *cell;
  _Alignas(NI_CACHE_LINE) _Atomic uint64_t in;
  _Alignas(NI_CACHE_LINE) _Atomic uint64_t out;
};

/* A queue for at least n slots, freed by the owner with ni_done_ring_free; NULL: ENOMEM. init only. */
static inline struct ni_done_ring *ni_done_ring_new(uint32_t n) {
  uint64_t cap = 2;
  while (cap < (uint64_t)n + 1) cap *= 2;
  struct ni_done_ring *r = aligned_alloc(NI_CACHE_LINE, sizeof *r);
  struct ni_done_cell *cell = calloc(cap, sizeof *cell);
  if (!r || !cell) {
    free(r);
    free(cell);
    return NULL;
  }
  r->mask = cap - 1;
  r->cell = cell;
  ni_store_rlx(&r->in, 0);
  ni_store_rlx(&r->out, 0);
  for (uint64_t i = 0; i < cap; i++) ni_store_rlx(&cell[i].turn, i);
  return r;
}

static inline void ni_done_ring_free(struct ni_done_ring *r) {
  if (r) free(r->cell);
  free(r);
}

/* 0, or -1 when the place is still a consumer's that has been held up since the queue's last round. */
static inline int ni_done_ring_push(struct ni_done_ring *r, uint32_t slot) {
  uint64_t pos = ni_load_rlx(&r->in);
  for (;;) {
    struct ni_done_cell *c = &r->cell[pos & r->mask];
    int64_t d = (int64_t)(ni_load_acq(&c->turn) - pos); /* pairs with the consumer's release below */
    if (d < 0) return -1;
    if (d > 0) {
      pos = ni_load_rlx(&r->in);
    } else if (ni_cas_rlx(&r->in, &pos, pos + 1)) {
      c->slot = slot;
      ni_store_rel(&c->turn, pos + 1); /* pairs with the acquire in ni_done_ring_pop */
      return 0;
    }
  }
}

/* The oldest slot, 0 when there is none. */
static inline uint32_t ni_done_ring_pop(struct ni_done_ring *r) {
  uint64_t pos = ni_load_rlx(&r->out);
  for (;;) {
    struct ni_done_cell *c = &r->cell[pos & r->mask];
    int64_t d = (int64_t)(ni_load_acq(&c->turn) - (pos + 1));
    if (d < 0) return 0;
    if (d > 0) {
      pos = ni_load_rlx(&r->out);
    } else if (ni_cas_rlx(&r->out, &pos, pos + 1)) {
      uint32_t slot = c->slot;
      ni_store_rel(&c->turn, pos + r->mask + 1); /* free for the producer one round later */
      return slot;
    }
  }
}

#endif
