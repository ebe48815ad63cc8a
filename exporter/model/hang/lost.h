/*
 * Operations whose end was not seen. Those of one communicator run one after the other on a rank, so what is
 * open while a later one has finished there is over, and hangs nowhere.
 *
 * Those of one launch may end in any order. They are called nearly at once: then a later one tells only where
 * a peer has finished this one, too. One thread.
 */
#ifndef NI_HANG_LOST_H
#define NI_HANG_LOST_H

#include "model.h"

/* Of a member whose `open` is in order: has it finished this collective, or a later one of that function? */
bool ni_hang_has_finished(const struct ni_hang_member *x, uint16_t func, uint64_t sn);
/*
 * Removes them from `open` of all members, whose order stays, and counts them in `lost`. Each one's `who` is
 * set. 0 or -ENOMEM.
 */
int ni_hang_drop_lost(struct ni_hang_model *m);

#endif
