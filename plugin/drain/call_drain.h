/*
 * API calls that have no Coll yet: which of them will have none, and are records themselves (docs/events.md).
 * Dump role.
 *
 *   cell (call_cell.h) ──its group is over──▶ event slot ─┐
 *   event slot of a call with a line, or without a cell ──┴─▶ judged: its Coll came, it waits, or is a record
 *
 * So that the black box has it, such a collective has a slot of an operation from the first look at its call
 * until its record is on disk, as any other:
 *
 *   none ──take──▶ CLOSED without LIVE: nobody's but the dump role's, and a reader's of the box
 *                    ├─done, with its numbers─▶ LIVE, CLOSED, KDONE, DONE ──write() (settle.c)──▶ free
 *                    └─its Coll came, or it was never launched, or it leaves no line─▶ free
 *
 * There is none, and the collective is recorded without, with pools of a fixed size, which are the
 * application's operations', or when more than half of the arena is in use: it never takes an operation's
 * place.
 */
#ifndef NI_CALL_DRAIN_H
#define NI_CALL_DRAIN_H

#include "drain.h"

/* Copies calls whose group is over to event slots, at the end of s->ev.todo. 1: there were such. */
int ni_calls_take(struct ni_comm_writer *s);

/*
 * 1 the call is decided, and its record, if it is one, in the block; 0 it waits; negative errno: the block
 * takes no more.
 */
int ni_call_judge(struct ni_drain *d, struct ni_comm_writer *s, struct ni_event_slot *e, enum ni_end end);

/*
 * One that waits, into s->ev.wait, which is in the order of the calls: so their numbers are the same on all
 * ranks.
 */
void ni_call_wait(struct ni_event_writer *ev, uint32_t slot);

/* The record of a collective that has no Coll: e is its call (NI_SRC_API) or the copy engine's event. slot:
 * as above; 0: one is taken if there is one. 0, or as ni_block_room. */
int ni_call_record(struct ni_drain *d, struct ni_comm_writer *s, const struct ni_event_slot *e,
                   enum ni_src src, uint32_t slot);

#endif
