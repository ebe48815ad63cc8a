/*
 * From a written block to free slots, and to communicators that are done with.
 *
 *   held ─▶ free list with a new generation
 *     └─ retired ─▶ rest, because a late child may still name it ─▶ free list
 *
 * Dump role.
 */
#ifndef NI_SETTLE_H
#define NI_SETTLE_H

#include "drain.h"

#define NI_REST_MS 5000u /* a retired slot rests at least so long */
/* and so many ticks: a stopped process wakes with the clock far ahead */
#define NI_REST_TICKS 50u

/*
 * The open block is on disk: settles its records, frees slots, and marks the communicators whose last lines
 * it had.
 */
void ni_settle_block(struct ni_drain *d);
/* A retired operation that leaves no record: rests, then its slot is free. */
void ni_settle_rest(struct ni_drain *d, struct ni_kind_writer *k, uint32_t slot);
/* A slot whose operation leaves no line, whether it was retired or not. */
void ni_settle_give(struct ni_drain *d, struct ni_comm_writer *s, int kind, uint32_t slot);
/* Gives rested slots back and releases communicators that are done with; what they had started and dropped
 * goes into d->gone_*. */
void ni_settle_release(struct ni_drain *d);

#endif
