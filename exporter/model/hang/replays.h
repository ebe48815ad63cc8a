/*
 * Symmetric kernels that a CUDA graph replays, on NCCL 2.31 and later: NCCL tells when the graph comes to
 * one (its bracket), and never that its kernel runs or ends. docs/hang.md has what can be said of them.
 *
 * Such an operation counts as finished when its bracket is over. The next replay of its call, and whatever
 * began behind it on its communicator, shows that it is. Of the newest ones nothing shows it: they are
 * *open* again where a peer has not come to them, since their kernels then wait for it. Where all have come
 * to the same one, it hangs in its kernel or the job is idle: that is told (struct ni_hang_quiet in
 * verdict.h) and is no evidence of a hang.
 *
 * Of a settled model. One thread.
 */
#ifndef NI_HANG_REPLAYS_H
#define NI_HANG_REPLAYS_H

#include "model.h"

/* From this release on, NCCL drops at destroy what it had queued, and replays symmetric kernels. */
#define NI_HANG_DROPS_QUEUED 23100

/*
 * Writers that did not know 2.31 took such replays for operations in flight for ever, and their lines do not
 * say what they are. Removes collectives of one member, in the order of their numbers, that have finished as
 * replays do: no channel has started on them, and their calls span more time than a host runs ahead of a GPU
 * that stands still. 0 or -ENOMEM.
 */
int ni_hang_finish_unknown_replays(struct ni_hang_member *x);
/* Opens the replays that a peer has not come to. 0 or -ENOMEM. */
int ni_hang_open_replays(struct ni_hang_model *m);
/* The newest collective of a member, if it is a replay and nothing shows that it is over; else NULL. */
const struct ni_hang_op *ni_hang_last_replay(const struct ni_hang_member *x);

#endif
