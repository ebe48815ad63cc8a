/*
 * Verbose records: when each channel of an operation started, delivered its stamp and stopped, by the CPU's
 * clock, and in which order.
 *
 *   starter: a page for the slot ─▶ poller: notes into it
 *       ─▶ dump thread: reads it with the record; the page stays with the slot
 *
 * Only while NCCL_INSPECTOR_DUMP_VERBOSE is on: a page of 4 KiB for each operation in flight or waiting to be
 * written, from an arena of its own, of half the size of NCCL_INSPECTOR_POOL_MAX_BYTES; an operation that
 * finds none has a record without a trace, and is counted. Until verbose is switched on for the first time
 * there is no memory at all, and callbacks pay nothing beyond the branch that they have anyway (extra.h).
 * Pages of slots go back when the slot is next used without verbose, or with its communicator.
 *
 * Of RCCL's channels those from NI_CHANNELS on are left out: a page has no room for them.
 *
 * Threads: as the slot's (op.h): the starter fills before its start returns to NCCL, the poller before its
 * release of prog or KDONE. A poller that is late by a whole life of the slot writes into a page, never
 * beside one. All words are relaxed.
 */
#ifndef NI_CHAN_TRACE_H
#define NI_CHAN_TRACE_H

#include "plugin/slots/extra.h"
#include "format/record.h"

enum ni_trace_what { NI_TRACE_START = 0, NI_TRACE_STOP, NI_TRACE_RECORD };

struct ni_trace_page {
  _Atomic uint32_t sn; /* of the last event: 1 is the operation's start */
  _Atomic uint32_t stop_sn;
  _Atomic uint64_t stop_ticks; /* end of the bracket; 0: not yet */
  _Atomic uint64_t seen;       /* channels that started */
  struct {
    _Atomic uint64_t ticks[3]; /* by enum ni_trace_what; 0: did not come */
    _Atomic uint32_t sn[3];
  } cell[NI_CHANNELS];
};
_Static_assert(sizeof(struct ni_trace_page) <= NI_PAGE_BYTES, "one page an operation");

/*
 * ---- callbacks, on the long way (extra.h): any handle, also NULL, foreign and outdated ones; nothing is
 * counted ----
 */
void ni_trace_started(const void *handle);  /* what start has returned */
void ni_trace_stamped(const void *handle);  /* the channel's stop stamp has come */
void ni_trace_stopping(const void *handle); /* its stop comes: before it is carried out */

/* ---- init and dump role ---- */

/*
 * Switches; makes the memory at the first "on". 1: it was the other way. Without memory it stays off, and
 * NCCL's log says so.
 */
int ni_verbose_set(int on);
/* The trace of a finished operation, or NULL. out is filled. */
const struct ni_trace *ni_trace_read(uint32_t slot, struct ni_trace *out);
/* Gives the pages of a pool's slots back; the pool is about to be closed. */
struct ni_pool;
void ni_trace_leave(struct ni_pool *pool);
/* Keeps memory ahead of the callbacks. */
void ni_trace_ahead(void);

#endif
