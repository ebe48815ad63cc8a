/*
 * From finished operations to lines in the open block.
 *
 *   done list ─▶ collect.c: todo ─▶ op_record.c: record ─▶ drain.c: line ─▶ block.c: write()
 *       ─▶ settle.c: free slot
 *   unknown channel counts, missing children ─▶ judge.c ─▶ todo
 *   events ─▶ event_drain.c, proxy_drain.c ─▶ lines
 *
 * A slot's way: on the communicator's done list (DONE) ─▶ todo (drained, in order) ─▶ held (its line is in
 * the open block) ─▶ write() has returned ─▶ free list with a new generation. Todo grows when the disk fails:
 * lines are then not formatted, slots stay taken, and in the end the pools meet their cap and count drops.
 * Nothing is thrown away before that.
 *
 * Threads: everything in drain/ is called by whoever holds the dump role (plugin/dump/dump.h). Only the words
 * that say so are met by others.
 */
#ifndef NI_DRAIN_H
#define NI_DRAIN_H

#include "format/line_write.h"
#include "plugin/write/writer.h"

#define NI_MS_NS UINT64_C(1000000)
/* so long a finished operation is held back: network operations that begin late still find it */
#define NI_PATIENCE_MS 100u
#define NI_AWAY_MS 5000u /* a tick so late means that the process did not run */

struct ni_drain {
  struct ni_writer *w;
  /* met by init, finalize, exit */
  _Atomic(struct ni_comm_writer *) joining; /* pushed by init (release), taken by the dump role (acquire) */
  _Atomic uint32_t closings;                /* finalize calls not yet looked at */
  _Atomic uint32_t exiting;                 /* 1: the process leaves */
  /* then: when formatting ends, whatever is left. CLOCK_MONOTONIC */
  uint64_t leave_by_ns;
  /* dump role */
  struct ni_comm_writer *busy;      /* those with operations to format, or in the open block */
  struct ni_comm_writer **by_index; /* registry index -> writer */
  uint32_t cap_index;
  uint32_t n_comms, closed_in_block;
  uint64_t ticks;    /* of the loop */
  uint32_t judge_ms; /* time that judgements go by: at most 200 ms a tick, so that a process that was stopped,
                                      or a starved dump thread, does not make operations look quiet */
  /* CLOCK_MONOTONIC: when the process last began to run again after a stop; 0: never stopped */
  uint64_t awake_ns;
  uint64_t sample;                     /* one record in so many is written */
  uint64_t gone_started, gone_dropped; /* operations of communicators that are over */
  /* of operations formatted so far, from start to the last channel's stop */
  uint64_t longest_ns;
  uint8_t watching; /* of this tick: a communicator has operations to judge */
  /* of this tick: finished operations wait for their network operations */
  uint8_t patient;
  /* finished operations were left unwritten at exit: the black box has them */
  uint8_t gave_up;
  struct ni_trace trace; /* of the record that is being formatted */
};

/* The communicator has operations to format, or lines in the open block. */
static inline void ni_drain_busy(struct ni_drain *d, struct ni_comm_writer *s) {
  if (s->in_busy)
    return;
  s->in_busy = 1;
  s->next_busy = d->busy;
  d->busy = s;
}

/* An operation that NCCL_INSPECTOR_SAMPLE leaves out. */
static inline void ni_drain_sampled(struct ni_comm_writer *s, enum ni_kind kind) {
  _Atomic uint64_t *sampled = &s->comm->kind[kind].filtered[NI_FILTER_SAMPLED];
  ni_store_rlx(sampled, ni_load_rlx(sampled) + 1);
}

/* Formats todo into the open block until it is empty or the block takes no more. 0, or -EBUSY, -EFBIG,
 * -ENOMEM, and -ETIMEDOUT when the process leaves and its time is over. Nothing is lost on an error: what was
 * not formatted stays in todo. */
int ni_drain_format(struct ni_drain *d);
/* At exit, out of time: what is left in todo counts as lost by write_error. Its slots are not used again. */
void ni_drain_give_up(struct ni_drain *d);

/* 0, or why nothing more goes into the open block now: -EFBIG, -ETIMEDOUT. */
int ni_drain_check(const struct ni_drain *d);

#endif
