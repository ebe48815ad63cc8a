/*
 * Which kinds of event are recorded, and what NCCL is asked for; both can change while the job runs.
 *
 * State: one word of kinds (format/events.h) in ni_g, and per NCCL in the process its activation mask, one
 * int that NCCL reads without a lock. The set is written under the registry lock, read by callbacks relaxed:
 * a callback that comes at the moment of a change is treated by the old set or the new one, and what was
 * started under the old set is finished under it (NCCL latches its mask per task, and for good in a captured
 * graph).
 */
#ifndef NI_EVENT_MASKS_H
#define NI_EVENT_MASKS_H

#include <stdbool.h>
#include <stdint.h>

#include "format/events.h"

/* NCCL's activation mask for kinds: what interface vN knows, without P2p where p2p is false. Pure. */
int ni_masks_value(uint32_t kinds, int interface, bool p2p);

/*
 * Switches to kinds from now on, for this and all later communicators: any thread of the plugin that does not
 * hold the registry lock, never a callback. Operations that NCCL has enqueued before go on as they began.
 * false: nothing was changed, because kernelch would be switched while a communicator lives, in a release
 * where that spoils device times.
 */
bool ni_masks_set(uint32_t kinds);
uint32_t ni_masks_kinds(void);
/* Has another than this plugin written a mask since the last look? *found: what is there now, *asked: what we
 * would have. The dump role; takes the registry lock. */
bool ni_masks_changed(int *found, int *asked);
/* The same for the time to come only: before the first communicator. */
void ni_masks_take(uint32_t kinds);

/* Called by init and finalize with the registry lock held: a communicator uses, or no longer uses, this
 * NCCL's mask. Use returns the place in ni_g.mask[] and writes the mask. */
uint8_t ni_masks_use(int *mask);
void ni_masks_leave(uint8_t id);

#endif
