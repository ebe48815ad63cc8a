/*
 * The pool of one communicator and kind: slots for operations or events in flight.
 *
 *   get:  free list ─▶ fresh slot of the newest chunk ─▶ new chunk from the arena ─▶ 0: counted by the caller
 *   put:  the dump thread gives slots back when the write() that holds their record has returned
 *
 * call     | get (starter)   put (dump thread)   walk (dump thread)   close (dump thread)
 * get      | free            free                free                 needs the communicator closed
 * put      |                 free                free                 same thread
 *
 * Lock-free: a failed exchange means another thread took a slot or a chunk. get never allocates from the heap
 * and makes no system call; it meets a page fault only when it overtakes the dump thread's touch_ahead. Slots
 * used first are used again first (LIFO), and a fresh one is taken only when none is free: so the number of
 * fresh slots ever taken is the high water of operations in flight or waiting to be written.
 */
#ifndef NI_SLOT_POOL_H
#define NI_SLOT_POOL_H

#include "arena.h"

struct ni_pool {
  _Atomic uint64_t free_head; /* slot 32 | tag 32; the tag is raised at each pop */
  _Atomic uint64_t bump;      /* next fresh slot 32 | fresh slots left 32 */
  _Atomic uint32_t chunks;    /* first page of the newest chunk; linked by ni_page.next */
  _Atomic uint32_t capacity;  /* slots in all chunks */
  _Atomic uint32_t growths;
  uint8_t fixed;      /* 1: never grows after open */
  uint8_t step_class; /* enum ni_chunk_class */
  uint8_t stride;     /* slots of one object; its number is that of its first slot */
  uint8_t pad;
  uint32_t limit; /* capacity at which it stops growing; 0: none */
};

/*
 * Opens an empty pool. grow: first chunk of one page, then steps. Not grow: exactly fixed_slots slots in one
 * chunk of step_class, which must hold them. 0 or -ENOMEM (the arena's cap). init only.
 */
int ni_pool_open(struct ni_arena *a, struct ni_pool *p, enum ni_chunk_class step_class, int grow,
                 uint32_t fixed_slots);

/* Opens a pool of objects of `stride` slots that holds nothing yet and takes its first chunk when it is
 * needed. limit: objects, reached by whole chunks; 0: as many as the arena gives. Never fails. */
void ni_pool_open_empty(struct ni_pool *p, enum ni_chunk_class step_class, uint8_t stride, uint32_t limit);

/* A slot, owned by the caller until it is published; 0 when the pool is full (*why_cap = 0) or the arena has
 * no chunk left (*why_cap = 1). Lock-free, any number of threads. */
uint32_t ni_pool_get(struct ni_arena *a, struct ni_pool *p, int *why_cap);

/*
 * Gives back a chain of slots linked by ni_op.next from first to last. Lock-free; the dump thread, or the
 * pool's one user.
 */
void ni_pool_put_chain(struct ni_arena *a, struct ni_pool *p, uint32_t first, uint32_t last);

/*
 * A slot's next life. Relaxed: the push that follows releases it, and stale handles see one generation or the
 * other.
 */
static inline void ni_slot_new_life(struct ni_op *op) {
  ni_store_rlx(&op->state, ni_state_make(ni_state_gen(ni_load_rlx(&op->state)) + 1, 0, 0));
}
/* The slot's life is over: gives it back alone. */
static inline void ni_pool_give(struct ni_arena *a, struct ni_pool *p, uint32_t slot) {
  ni_slot_new_life(ni_arena_op(a, slot));
  ni_pool_put_chain(a, p, slot, slot);
}

/* Calls fn for every slot that was ever taken from the pool. Dump thread only; slots may live meanwhile. */
void ni_pool_walk(struct ni_arena *a, struct ni_pool *p,
                  void (*fn)(struct ni_op *op, uint32_t slot, void *arg), void *arg);

/* Gives all chunks back. Dump thread, after the communicator was closed and its records were written. */
void ni_pool_close(struct ni_arena *a, struct ni_pool *p);

static inline uint32_t ni_pool_capacity(const struct ni_pool *p) { return ni_load_rlx(&p->capacity); }
static inline uint32_t ni_pool_high_water(const struct ni_pool *p) {
  return ni_load_rlx(&p->capacity) - (uint32_t)(ni_load_rlx(&p->bump) >> 32);
}

#endif
