/*
 * Jobs that go from the state (live.h) before or after their time, with all that is theirs. Items have other numbers then.
 * For live.c and live_tick.c. One thread.
 */
#ifndef NI_LIVE_ROOM_H
#define NI_LIVE_ROOM_H

#include "live.h"

/* goes: as many as there are jobs. false: none of them goes. */
bool ni_live_drop(struct ni_live *l, const bool *goes);
/*
 * Where something of that user found no room (l->full, but for files and NVIDIA's sums): a job goes, by the rule of live.h.
 * false: none does, since he has his share, which is counted. l->sated: 0 at the beginning of a batch.
 */
bool ni_live_room(struct ni_live *l, uint32_t uid);

#endif
