/*
 * Invariants: a slot is on the free list, ahead of the bump pointer, or owned by one operation. The free
 * list's poppers are any starters, its pushers the dump thread or, of chan_more.h's pool, the poller: the tag
 * serves any number of either. A popper may read `next` of a slot that another popper has just taken; the tag
 * in the head then makes its exchange fail.
 */
#include "slot_pool.h"

#include <errno.h>
#include <string.h>

static uint32_t chunk_slots(const struct ni_arena *a, const struct ni_pool *p, uint32_t page) {
  return a->hdr->chunk_pages[ni_load_rlx(&a->page[page].cls)] * NI_SLOTS_PER_PAGE / p->stride;
}

static uint64_t bump_make(uint32_t slot, uint32_t left) { return slot | (uint64_t)left << 32; }

/* Links a chunk that we own into the pool's list. Release pairs with the acquire in ni_pool_walk. */
static void chunk_link(struct ni_arena *a, struct ni_pool *p, uint32_t page, uint32_t slots) {
  ni_add_rlx(&p->capacity, slots);
  uint32_t head = ni_load_rlx(&p->chunks);
  do
    ni_store_rlx(&a->page[page].next, head);
  while (!ni_cas_rel(&p->chunks, &head, page));
}

int ni_pool_open(struct ni_arena *a, struct ni_pool *p, enum ni_chunk_class step_class, int grow,
                 uint32_t fixed_slots) {
  memset(p, 0, sizeof *p);
  p->step_class = (uint8_t)step_class;
  p->fixed = !grow;
  p->stride = 1;
  uint32_t page = ni_arena_take(a, grow ? NI_CHUNK_OP_FIRST : step_class);
  if (!page)
    return -ENOMEM;
  uint32_t slots = grow ? chunk_slots(a, p, page) : fixed_slots;
  chunk_link(a, p, page, slots);
  ni_store_rlx(&p->bump, bump_make(page * NI_SLOTS_PER_PAGE, slots));
  return 0;
}

/*
 * A slot that nobody has had. The first of a page is written before it is read: where the callbacks are
 * faster than the dump thread, which touches pages ahead of them, a read would map the shared zero page, and
 * the write after it would cost a second fault with a flush of every core's TLB. The slot after it is fetched
 * meanwhile.
 */
static uint32_t fresh(struct ni_arena *a, uint32_t slot) {
  struct ni_op *op = ni_arena_op(a, slot);
  if (slot % NI_SLOTS_PER_PAGE == 0)
    (void)atomic_fetch_or_explicit(&op->state, 0, memory_order_relaxed);
  __builtin_prefetch(op + 1, 1);
  __builtin_prefetch((const char *)(op + 1) + 64, 1);
  return slot;
}

void ni_pool_open_empty(struct ni_pool *p, enum ni_chunk_class step_class, uint8_t stride, uint32_t limit) {
  memset(p, 0, sizeof *p);
  p->step_class = (uint8_t)step_class;
  p->stride = stride;
  p->limit = limit;
}

uint32_t ni_pool_get(struct ni_arena *a, struct ni_pool *p, int *why_cap) {
  /*
   * Acquire pairs with put_chain's release: `next` of the slot and its state word as the dump thread left
   * them.
   */
  uint64_t head = ni_load_acq(&p->free_head);
  while ((uint32_t)head) {
    uint64_t next = ni_load_rlx(&ni_arena_op(a, (uint32_t)head)->next) | ((head >> 32) + 1) << 32;
    NI_TESTPOINT();
    if (ni_cas_acq(&p->free_head, &head, next)) {
      /*
       * The next operation's slot, written last a flush ago, is in no cache of this core: fetch it meanwhile.
       */
      const char *ahead = (const char *)ni_arena_op(a, (uint32_t)next);
      __builtin_prefetch(ahead, 1);
      __builtin_prefetch(ahead + 64, 1);
      return (uint32_t)head;
    }
  }
  /* Relaxed would do for the slots (fresh memory carries nobody's stores), but a chunk that was given back
   * and taken again does: acquire pairs with the release of the exchange that installed it. */
  uint64_t bump = ni_load_acq(&p->bump);
  for (;;) {
    uint32_t left = (uint32_t)(bump >> 32);
    if (left) {
      if (ni_cas_acq(&p->bump, &bump, bump_make((uint32_t)bump + p->stride, left - 1)))
        return fresh(a, (uint32_t)bump);
      continue;
    }
    /* two that grow at once: a chunk over */
    if (p->fixed || (p->limit && ni_load_rlx(&p->capacity) >= p->limit)) {
      *why_cap = 0;
      return 0;
    }
    uint32_t page = ni_arena_take(a, (enum ni_chunk_class)p->step_class);
    if (!page) {
      *why_cap = 1;
      return 0;
    }
    uint32_t slots = chunk_slots(a, p, page), first = page * NI_SLOTS_PER_PAGE;
    NI_TESTPOINT();
    /*
     * Strong, so that a chunk is not returned for a spurious failure; release pairs with the acquires above.
     */
    if (atomic_compare_exchange_strong_explicit(&p->bump, &bump, bump_make(first + p->stride, slots - 1),
                                                memory_order_acq_rel, memory_order_acquire)) {
      chunk_link(a, p, page, slots);
      ni_add_rlx(&p->growths, 1);
      return fresh(a, first);
    }
    ni_arena_give(a, (enum ni_chunk_class)p->step_class, page); /* another thread grew the pool first */
  }
}

void ni_pool_put_chain(struct ni_arena *a, struct ni_pool *p, uint32_t first, uint32_t last) {
  uint64_t head = ni_load_rlx(&p->free_head), mine;
  do {
    ni_store_rlx(&ni_arena_op(a, last)->next, (uint32_t)head);
    mine = first | (head & ~UINT64_C(0xffffffff));
    NI_TESTPOINT();
  } while (!ni_cas_rel(&p->free_head, &head, mine)); /* release: pairs with ni_pool_get */
}

void ni_pool_walk(struct ni_arena *a, struct ni_pool *p,
                  void (*fn)(struct ni_op *op, uint32_t slot, void *arg), void *arg) {
  /* pairs with chunk_link: first the list, then how many slots it has at least */
  uint32_t page = ni_load_acq(&p->chunks);
  NI_TESTPOINT();
  uint32_t left_total = ni_pool_capacity(p);
  for (; page; page = ni_load_rlx(&a->page[page].next)) {
    uint32_t n = chunk_slots(a, p, page);
    if (n > left_total)
      n = left_total; /* a fixed pool uses only a part of its chunk */
    left_total -= n;
    for (uint32_t i = 0, slot = page * NI_SLOTS_PER_PAGE; i < n; i++, slot += p->stride)
      fn(ni_arena_op(a, slot), slot, arg);
  }
}

void ni_pool_close(struct ni_arena *a, struct ni_pool *p) {
  uint32_t page = ni_load_acq(&p->chunks);
  while (page) {
    uint32_t next = ni_load_rlx(&a->page[page].next);
    ni_arena_give(a, (enum ni_chunk_class)ni_load_rlx(&a->page[page].cls), page);
    page = next;
  }
  /*
   * A callback that is late by a whole finalize finds a pool that has nothing and takes nothing: fixed first.
   */
  p->fixed = 1;
  ni_store_rlx(&p->bump, 0);
  ni_store_rlx(&p->free_head, 0);
  ni_store_rlx(&p->chunks, 0);
  ni_store_rlx(&p->capacity, 0);
}
