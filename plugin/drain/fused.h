/*
 * Calls that share one symmetric kernel (callbacks 3.9): the first, the head, has all its channels, the
 * others, the tails, have none. A tail is finished with its bracket, but how long the kernel took is known
 * with its head's last channel.
 *
 *   tail on todo ──its head is not formatted yet──▶ waiting
 *   waiting ──head formatted, given up, or the communicator ends──▶ todo
 *
 * A tail without its head's time has that of its bracket. All of it is the dump role's.
 */
#ifndef NI_FUSED_H
#define NI_FUSED_H

#include "drain.h"
#include "format/timing.h"

/* Takes a tail that has to wait out of its way: true, and it is no longer the first of todo. */
bool ni_fused_set_aside(struct ni_comm_writer *s);

/* The time of a head is known; t may be without any. Its tails go on. */
void ni_fused_head(struct ni_drain *d, struct ni_comm_writer *s, uint32_t group, const struct ni_timing_in *t,
                   int64_t gpu_start_ns);

/* A head was given up: its tails go on without its time. */
void ni_fused_give_up(struct ni_drain *d, struct ni_comm_writer *s, uint32_t group);

/*
 * The communicator ends, and all heads that ever will be are formatted: nobody waits any more. true: somebody
 * did.
 */
bool ni_fused_end(struct ni_drain *d, struct ni_comm_writer *s);

/* What is known of the kernel of this Group; NULL: nothing. */
const struct ni_fused_span *ni_fused_span_of(const struct ni_comm_writer *s, uint32_t group);

#endif
