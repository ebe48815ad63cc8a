/*
 * Gives a slot to a collective that NCCL shows only by its API call or by copy-engine events (docs/events.md), so that the black box
 * has it: from the first look at its call until its record is on disk, as any other operation.
 *
 *   none ──take──▶ CLOSED without LIVE: nobody's but the dump role's, and a reader's of the box
 *                    ├─done, with its numbers─▶ LIVE, CLOSED, KDONE, DONE ──write() (settle.c)──▶ free
 *                    └─drop: its Coll came, or it was never launched, or it leaves no line─▶ free
 *
 * Dump role. Failure: 0, and the collective is as before in no slot: with pools of a fixed size, which are the application's
 * operations', or when more than half of the arena is in use: it never takes an operation's place.
 */
#ifndef NI_CALL_SLOT_H
#define NI_CALL_SLOT_H

#include "plugin/write/comm_writer.h"

/* e: the call, which has no kernel and will have none, or the copy engine's collective; it has stopped. */
uint32_t ni_call_slot_take(const struct ni_comm_writer *s, const struct ni_event_slot *e, enum ni_src src);
/* Its record goes into the block; the slot is freed with those that the block holds. */
void ni_call_slot_done(struct ni_comm_writer *s, uint32_t slot, const struct ni_record *r);
void ni_call_slot_drop(struct ni_comm_writer *s, uint32_t slot); /* 0: nothing */

#endif
