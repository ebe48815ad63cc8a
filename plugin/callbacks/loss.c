#include "loss.h"

#include "plugin/slots/beside/annex.h"
#include "plugin/slots/done_ring.h"
#include "plugin/slots/state.h"

void ni_stray(enum ni_stray why) { ni_add_rlx(&ni_g.stray[why], 1); }

/* The mark: the lowest of those that are lost and not told. Release pairs with the exchange in ni_lines_gaps. */
static void mark_first(struct ni_gap_mark *m, uint64_t mark) {
  uint64_t first = ni_load_rlx(&m->first);
  while ((first == 0 || first > mark) && !ni_cas_rel(&m->first, &first, mark)) {
  }
}

/* The range first, then the count (release, pairs with ni_lines_gaps' acquire), so that a range reported with a count covers
 * it; and the mark once more, because ni_lines_gaps may have taken the first before there was a count. */
void ni_lose(struct ni_comm_kind *k, enum ni_drop why, uint64_t rec_sn) {
  struct ni_gap_mark *m = &k->gap[why];
  NI_TESTPOINT();
  uint64_t last = ni_load_rlx(&m->last);
  while (last < rec_sn + 1 && !ni_cas_rlx(&m->last, &last, rec_sn + 1)) {
  }
  mark_first(m, rec_sn + 1);
  NI_TESTPOINT();
  (void)atomic_fetch_add_explicit(&k->dropped[why], 1, memory_order_release);
  mark_first(m, rec_sn + 1);
}

/* Whoever takes from the queue was held up for a whole round of it, with one place reserved. The slot goes back to its pool. */
void ni_lose_finished(struct ni_comm *c, struct ni_op *op, uint32_t slot) {
  struct ni_comm_kind *k = &c->kind[op->kind];
  ni_lose(k, NI_DROP_OVERWRITTEN, op->rec_sn);
  ni_annex_give(c, op);
  ni_store_rlx(&op->state, ni_state_gen(ni_load_rlx(&op->state)) + 1); /* relaxed: the put releases it */
  ni_pool_put_chain(&ni_g.arena, &k->pool, slot, slot);
}

/* POOL_KEEP=last: takes the oldest finished record's slot for the new operation. */
uint32_t ni_lose_oldest(struct ni_comm *c, struct ni_comm_kind *k, enum ni_kind kind) {
  struct ni_done_ring *ring = ni_g.ring[c->index];
  for (uint32_t i = 0; ring && i <= ring->mask; i++) {
    uint32_t slot = ni_done_ring_pop(ring);
    if (!slot) return 0;
    struct ni_op *op = ni_arena_op(&ni_g.arena, slot);
    if (op->kind != kind) { /* one queue serves both pools: put the other kind back, at the young end */
      if (ni_done_ring_push(ring, slot) < 0) ni_lose_finished(c, op, slot);
      continue;
    }
    ni_lose(k, NI_DROP_OVERWRITTEN, op->rec_sn);
    ni_annex_give(c, op);
    /* The slot begins a new life, as it does when the dump thread frees it. Relaxed: the caller publishes. */
    ni_store_rlx(&op->state, ni_state_gen(ni_load_rlx(&op->state)) + 1);
    return slot;
  }
  return 0;
}
