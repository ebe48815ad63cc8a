/*
 * Slots for KernelCh events that overlap one already open on the same channel and direction (NCCL 2.31 on):
 * the first has the chain's cell (comm.h), the others a slot each. So have those of channels from NI_CHANNELS
 * on, which only RCCL has: cells for 256 would be 24 KiB more of each communicator.
 *
 * Up to NCCL 2.30 a chain is polled at its head, so there is never a second. From 2.31 on a thread of NCCL's
 * own looks at all works at every pass, and works fused into one batch of a kernel all start before the first
 * of them stops: then as many are open on one channel and direction as the batch has works.
 *
 *   free ──open──▶ LIVE ──stop──▶ free, generation + 1     slots of the events' class, in a pool of their own
 *
 * Threads: the communicator's poller opens, fills and closes; the dump thread looks (all words that it reads
 * are atomic), and closes the pool with the communicator. Slots go back to the pool at once: nothing of them
 * is written.
 */
#ifndef NI_CHAN_MORE_H
#define NI_CHAN_MORE_H

#include "plugin/slots/comm.h"

struct ni_arena;

/* The tag's payload of a new one, with its operation (as ni_chan_cell.open has it), place and start stamp; 0:
 * the arena has no slot. index: 2 x channel + direction. */
uint64_t ni_more_open(struct ni_comm *c, uint32_t index, uint64_t parent, uint64_t start_ns);

/* The open one that a payload names, or NULL: foreign, stopped before. */
struct ni_event_slot *ni_more_of(uint64_t payload);

void ni_more_close(struct ni_event_slot *e, uint64_t payload);

/* Channels, as bits, on which such a one of the operation is open; *above: how many of those from NI_CHANNELS
 * on. Dump thread: a snapshot. */
uint64_t ni_more_channels(struct ni_comm *c, uint64_t parent, int32_t *above);

#endif
