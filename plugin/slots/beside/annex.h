/*
 * What only some operations have: the application's tag, and the phases of a symmetric kernel (callbacks
 * 3.9).
 *
 * An annex is a slot of its own beside the operation's, from a pool of its communicator that takes memory
 * when the first one is needed. It has no flag in its state, so whoever walks over slots of operations passes
 * over it, and it lies in their pages, so that the black box has it. An operation that finds no slot has
 * neither tag nor phases; that is counted (NI_STRAY_NO_ANNEX).
 *
 *   none ──the operation's start──▶ filled: the tag, no phase ──poller──▶ phases, too
 *        ──the operation's slot is given back──▶ free
 *
 * Threads: the starter takes and fills it before the operation's LIVE store. The poller alone writes the
 * phases, by plain (relaxed) stores before the KDONE exchange that hands them to the dump thread. It is given
 * back by whoever gives the operation's slot back, at the same time, so that no late callback meets another
 * operation's.
 */
#ifndef NI_ANNEX_H
#define NI_ANNEX_H

#include "plugin/slots/comm.h"

struct ni_annex {
  _Atomic uint64_t state; /* the generation alone */
  _Atomic uint32_t next;
  uint32_t pad;
  uint64_t user_tag; /* as NCCL gave it; 0: untagged */
  /* GPU clock, over all channels; 0: no phase said it yet. ni_phases_of (format/timing.h) reads them. */
  /* when the last channel began to compute; all ones: stamps came that cannot be true */
  _Atomic uint64_t compute_from_ns;
  _Atomic uint64_t compute_to_ns; /* when the last channel had computed */
  uint8_t spare[NI_SLOT_BYTES - 40];
};
_Static_assert(sizeof(struct ni_annex) == NI_SLOT_BYTES, "one slot");
_Static_assert(offsetof(struct ni_annex, next) == offsetof(struct ni_op, next), "pools serve both");

enum { NI_PHASE_INITIAL_SYNC = 0, NI_PHASE_COMPUTE = 1, NI_PHASE_FINAL_SYNC = 2, NI_PHASE_COUNT = 3 };

/* A slot with this tag and no phases; 0: there is none (counted). Callbacks; lock-free. */
uint32_t ni_annex_take(struct ni_comm *c, uint64_t user_tag);

/*
 * Gives the annex of an operation back, if it has one. With the operation's slot; any thread that owns that.
 */
void ni_annex_give(struct ni_comm *c, struct ni_op *op);

/* NULL: it has none. */
struct ni_annex *ni_annex_of(const struct ni_op *op);

/*
 * The poller: a phase of one channel begins, or has ended. channel_ns: the channel's own begin. Times by the
 * GPU's clock.
 */
void ni_annex_begin(struct ni_annex *x, uint32_t phase, uint64_t channel_ns, uint64_t ns);
void ni_annex_end(struct ni_annex *x, uint32_t phase, uint64_t channel_ns, uint64_t ns);

#endif
