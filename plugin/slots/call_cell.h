/*
 * API calls of collectives that leave no line of their own, each until its Coll comes: noted in the
 * communicator.
 *
 * NCCL 2.28 and later raises a call before each Coll, asked for or not. Nearly all of them are of use for
 * microseconds: only one that turns out to have no kernel becomes a record (docs/events.md). So a call takes
 * no slot and meets no list.
 *
 *   settled ──CollApi start──▶ noted ──its Coll, or its CeColl──▶ settled
 *                                └─ its group is over and none came
 *                                    ─▶ copied to an event slot, judged there ─▶ settled
 *
 * A call has the cell of its number modulo NI_CALL_CELLS. One that finds it not settled (a group of many
 * calls, many collectives without a kernel) takes an event slot at once.
 *
 * Threads. NCCL takes one call at a time on a communicator and launches it before the next (callbacks 4.6),
 * so plain stores do: the application's thread writes all but `settled`; that is the launching thread's, and
 * the dump role's by exchange. The dump role copies a cell while it may be noted anew, and then looks at
 * `settled` again.
 */
#ifndef NI_CALL_CELL_H
#define NI_CALL_CELL_H

#include "plugin/os/atomics.h"

#define NI_CALL_CELLS 32u

struct ni_call_cell {
  /* number + 1 of the call; 0: none yet. Release, with all below but ticks_stop */
  _Alignas(NI_CACHE_LINE) _Atomic uint64_t noted;
  _Atomic uint64_t settled;                 /* the last one's, when it is of no more use */
  _Atomic uint64_t ticks_start, ticks_stop; /* ticks_stop 0: it has not returned yet */
  _Atomic uint64_t count, group;            /* group: as struct ni_ev_api has it */
  _Atomic uint64_t user_tag;
  _Atomic int32_t root;
  _Atomic uint8_t func, datatype;
};
_Static_assert(sizeof(struct ni_call_cell) == NI_CACHE_LINE, "one line a call");

/* Is the call with this number noted here and waits for its Coll? Any thread. */
static inline int ni_call_waits(const struct ni_call_cell *x, uint64_t number) {
  /* Acquire pairs with ni_call_settle: who saw its group closed sees that its Coll came. */
  return ni_load_acq(&x->noted) == number + 1 && ni_load_acq(&x->settled) != number + 1;
}

/*
 * Its operation has come. Release pairs with the acquires above and in ni_cb_call_note, which writes the cell
 * anew.
 */
static inline void ni_call_settle(struct ni_call_cell *x, uint64_t number) {
  ni_store_rel(&x->settled, number + 1);
}

/*
 * Dump role: the call is judged. Not when its operation has come meanwhile, and the cell has perhaps another
 * call.
 */
static inline void ni_call_judged(struct ni_call_cell *x, uint64_t number) {
  uint64_t was = ni_load_rlx(&x->settled);
  if (was != number + 1 && ni_load_rlx(&x->noted) == number + 1)
    (void)atomic_compare_exchange_strong_explicit(&x->settled, &was, number + 1, memory_order_release,
                                                  memory_order_relaxed);
}

#endif
