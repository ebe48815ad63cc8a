/*
 * Operations whose end was not seen. Operations of one communicator run one after the other on a rank. So if
 * a later one has finished there, an open one is over and hangs nowhere.
 *
 * Operations of one launch may end in any order. They are called nearly at the same time. For those, a later
 * one tells only if a peer has finished this one as well. One thread.
 */
#ifndef NI_HANG_LOST_H
#define NI_HANG_LOST_H

#include "model.h"

/* Has it finished this collective, or a later one of that function? `open` of the member is in order. */
bool ni_hang_has_finished(const struct ni_hang_member *x, uint16_t func, uint64_t sn);
/*
 * Removes them from `open` of all members, whose order stays, and counts them in `lost`. Each one's `who` is
 * set. 0 or -ENOMEM.
 */
int ni_hang_drop_lost(struct ni_hang_model *m);

#endif
