/*
 * The done list of one communicator: finished operations on their way to the dump thread.
 *
 * Intrusive (ni_op.next), last in first out, any number of pushers, one drainer that takes everything with
 * one exchange. It cannot be full. No tag is needed: nobody pops single entries.
 *
 * Not promised: order between threads. Within one pusher the drained chain is newest first; the drainer turns
 * it round.
 */
#ifndef NI_DONE_LIST_H
#define NI_DONE_LIST_H

#include "arena.h"

struct ni_done_list {
  _Atomic uint32_t head; /* slot, 0 = empty */
};

/* Pushes a finished operation. Lock-free, callbacks. Returns 1 when the list was empty before. Release pairs
 * with the acquire in ni_done_drain: all stores to the operation made before are seen by the drainer. */
static inline int ni_done_push(struct ni_arena *a, struct ni_done_list *l, uint32_t slot) {
  struct ni_op *op = ni_arena_op(a, slot);
  uint32_t head = ni_load_rlx(&l->head);
  do {
    ni_store_rlx(&op->next, head);
    NI_TESTPOINT();
  } while (!ni_cas_rel(&l->head, &head, slot));
  return head == 0;
}

/* Takes all entries, oldest first; 0 when there is none. Dump thread only. *n is their number. */
static inline uint32_t ni_done_drain(struct ni_arena *a, struct ni_done_list *l, uint32_t *n) {
  uint32_t slot = ni_swap_acq(&l->head, 0), turned = 0;
  *n = 0;
  while (slot) {
    struct ni_op *op = ni_arena_op(a, slot);
    uint32_t next = ni_load_rlx(&op->next);
    ni_store_rlx(&op->next, turned);
    turned = slot;
    slot = next;
    ++*n;
  }
  return turned;
}

#endif
