/*
 * One operation in flight: a 128-byte slot of the arena, two cache lines.
 *
 * State word (64 bits, the only word on which two threads meet):
 *
 *   31..0 generation | 39..32 flags | 47..40 want (255: unknown)
 *
 *   free ──start──▶ LIVE ──stop──▶ LIVE|CLOSED ──┐
 *                     └─ last child ▶ LIVE|KDONE ─┴─▶ +DONE (pushed on the done list)
 *   +DONE ──write()──▶ free, generation + 1
 *                                      dump thread:  +RETIRED (no callback will complete it)
 *
 * Threads. "Starter" is the application thread or the graph host function, "poller" the proxy progress
 * thread. The starter fills the descriptor and publishes with the LIVE store; NCCL hands the operation to the
 * poller under a mutex. The completion rule needs to know which of two events comes last: the bracket's stop
 * (starter) or the last channel's stop (poller). Each sets its flag with one compare-exchange; the one whose
 * result shows both adds DONE in the same exchange, so it is unique, and it is acq_rel, so that the stores of
 * both threads travel to the dump thread with the push. Channels are counted by the poller alone, in `prog`,
 * by plain load and store: one thread serves all channels of an operation (callbacks 4.6; from 2.31 on NCCL's
 * profiler thread). Debug builds assert it. That keeps 15 of 17 read-modify-writes of an 8-channel collective
 * out of the hot path; against a counter in the state word it costs nothing in safety, because a count only
 * ever leads to a flag through the exchange above.
 *
 * Nothing in a slot is a pointer: strings are numbers of the intern table, the communicator is a page number.
 */
#ifndef NI_OP_H
#define NI_OP_H

#include <stddef.h>

#include "plugin/os/atomics.h"
#include "handle.h"

#define NI_SLOT_BYTES 128u
/* MAXCHANNELS of NCCL since 2.25.1; those beyond, of RCCL, have no cell (chan_more.h) */
#define NI_CHANNELS 64u
#define NI_WANT_UNKNOWN 255u

enum {
  NI_OP_LIVE = 1 << 0,
  NI_OP_CLOSED = 1 << 1,   /* the start/stop bracket is over */
  NI_OP_KDONE = 1 << 2,    /* as many channels stopped as were wanted */
  NI_OP_DONE = 1 << 3,     /* finished: on the done list, or the dump thread's */
  NI_OP_RETIRED = 1 << 4,  /* finished by the dump thread's judgement: a late child may still come */
  NI_OP_GIVEN_UP = 1 << 5, /* with RETIRED: incomplete, there is no record */
  NI_OP_SETTLED = 1 << 6,  /* with RETIRED: written or counted; the slot rests */
  NI_OP_TOLD = 1 << 7,     /* in flight for so long that its stuck line was written */
};

/* Where an operation comes from (op->origin). */
enum {
  NI_OP_CALLED = 1 << 0,    /* its API call is known (interface v5 and later) */
  NI_OP_REPLAYED = 1 << 1,  /* from a CUDA graph */
  NI_OP_API = 1 << 2,       /* none of NCCL's: a collective known by its call alone (call_drain.h) */
  NI_OP_CE = 1 << 3,        /* the same by the copy engine's events */
  NI_OP_SYMMETRIC = 1 << 4, /* a symmetric kernel (callbacks 3.9) */
  NI_OP_FUSED = 1 << 5,     /* with SYMMETRIC: one of several calls in one kernel */
  NI_OP_TAIL = 1 << 6,      /* with FUSED: not the first of them, so it has no channels of its own */
};

/* Why GPU stamps of an operation cannot be true (op->bad). Order as in the log's timing_fallback_by. */
enum ni_bad {
  NI_BAD_ZERO_STAMP = 0,
  NI_BAD_STOP_BEFORE_START,
  NI_BAD_BEFORE_PREVIOUS, /* older than the previous work on the same channel and direction */
  NI_BAD_SPAN_TOO_LONG,   /* over an hour; decided by the dump thread */
  NI_BAD_AFTER_ARRIVAL,   /* stopped after the host saw it; decided by the dump thread */
  NI_BAD_NO_STOP_STAMP,   /* stop came without the state that carries the stamp (v3) */
  /* from its start: NCCL may read another work's stamps on some channels (format/apart.h) */
  NI_BAD_COUNTERS_APART,
  /* the rate of the GPU's clock is not known, or not what it was taken for; decided by the dump thread */
  NI_BAD_CLOCK_RATE,
  NI_BAD_COUNT
};

/*
 * NCCL latches the mask when the task is made (or the graph captured), we see it when the operation starts.
 */
enum ni_mask_doubt {
  NI_MASK_SURE = 0,   /* KernelCh has been on ever since */
  NI_MASK_MAYBE_NONE, /* it was off at some time: if a channel comes, all will; perhaps none does */
  NI_MASK_OFF,        /* it is off now: probably no channel comes */
};

struct ni_op {
  /* line 0: met by starter and poller */
  _Atomic uint64_t state;
  /*
   * Of the one list that it is on: slot index, 0 ends (slot 0 lies in the arena's header). Free list;
   * watched, with an unknown channel count; done list.
   */
  _Atomic uint32_t next;
  /* channels started << 16 | stopped; poller only, read by the dump thread (acquire) */
  _Atomic uint32_t prog;
  _Atomic uint64_t gpu_start_ns; /* earliest start stamp; poller only */
  _Atomic uint64_t gpu_stop_ns;  /* latest stop stamp; poller only */
  _Atomic uint64_t ticks_first;  /* arrival of the first channel's start; poller only */
  _Atomic uint64_t ticks_done;   /* arrival of the last channel's stop; poller only */
  uint32_t group_ord;            /* ordinal of the Group on its communicator; starter */
  uint32_t comm_page;            /* starter */
  /* enum ni_kind; starter: ni_poke, as func, sn and rec_sn, which a proxy operation looks at */
  uint8_t kind;
  uint8_t dir;         /* 1: Recv, the other chain of a channel; starter */
  _Atomic uint8_t bad; /* bit set of enum ni_bad; poller */
  uint8_t mask_doubt;  /* enum ni_mask_doubt; starter */
  uint32_t call_sn;    /* number of its API call, low half; with NI_OP_CALLED. Starter */
  /* line 1: written by the starter, read by the dump thread */
  uint64_t ticks_start;
  /* end of the bracket; only where it may become the finish (want 0 or unknown) or all that is known */
  uint64_t ticks_stop;
  uint64_t sn; /* coll_sn or p2p_sn */
  uint64_t count;
  uint64_t rec_sn;
  int32_t root;                        /* or peer */
  uint8_t func, datatype, algo, proto; /* numbers of the intern table */
  uint8_t nchannels;                   /* as NCCL gave it, where it can be trusted */
  /* NCCL's name of a symmetric kernel, number of the intern table; 0: none */
  uint8_t kernel;
  /* NI_OP_CALLED and so on. NI_OP_FUSED comes to a head with its first tail, before its bracket ends */
  uint8_t origin;
  uint8_t poller;     /* debug builds: who serves the channels */
  uint32_t annex;     /* slot of what only some operations have (annex.h); 0: none */
  uint32_t seen_prog; /* dump thread: prog at the last look */
  uint32_t seen_ms;   /* dump thread: when prog was last seen to move, ms of its own clock */
};
_Static_assert(sizeof(struct ni_op) == NI_SLOT_BYTES, "two cache lines");
_Static_assert(offsetof(struct ni_op, ticks_start) == 64, "line 1");

#define NI_STATE_FLAG(f) ((uint64_t)(f) << 32)

static inline uint32_t ni_state_gen(uint64_t s) { return (uint32_t)s; }
static inline uint32_t ni_state_flags(uint64_t s) { return (uint32_t)(s >> 32) & 0xff; }
static inline uint32_t ni_state_want(uint64_t s) { return (uint32_t)(s >> 40) & 0xff; }
static inline uint64_t ni_state_make(uint32_t gen, uint32_t flags, uint32_t want) {
  return gen | NI_STATE_FLAG(flags) | (uint64_t)want << 40;
}
static inline int ni_op_in_flight(uint64_t state) {
  return (ni_state_flags(state) & (NI_OP_LIVE | NI_OP_DONE | NI_OP_RETIRED)) == NI_OP_LIVE;
}
static inline uint32_t ni_prog_started(uint32_t prog) { return prog >> 16; }
static inline uint32_t ni_prog_stopped(uint32_t prog) { return prog & 0xffff; }

/* Does the tag's generation name this life of the slot? */
static inline int ni_state_is(uint64_t state, uint32_t handle_gen) {
  return (ni_state_gen(state) & NI_H_GEN_MASK) == handle_gen && (ni_state_flags(state) & NI_OP_LIVE);
}

/*
 * Sets flag (CLOSED or KDONE) on the operation that gen names. Returns the state after it, with DONE when
 * this call completed the operation; 0 when the slot lives another life or the flag was set before: nothing
 * was changed then. Linearisation point of "finished": the successful exchange that adds DONE. acq_rel:
 * acquires the other thread's stores (descriptor or stamps) that its own exchange released, and releases both
 * to done_push's reader.
 */
static inline uint64_t ni_op_set(struct ni_op *op, uint32_t handle_gen, uint32_t flag) {
  uint64_t old = ni_load_acq(&op->state), now;
  do {
    uint32_t f = ni_state_flags(old);
    if (ni_unlikely(!ni_state_is(old, handle_gen) || (f & (flag | NI_OP_RETIRED))))
      return 0;
    f |= flag;
    uint32_t want = ni_state_want(old);
    if ((f & NI_OP_CLOSED) && ((f & NI_OP_KDONE) || want == 0))
      f |= NI_OP_DONE;
    now = ni_state_make(ni_state_gen(old), f, want);
  } while (!ni_cas_acqrel(&op->state, &old, now));
  return now;
}

#endif
