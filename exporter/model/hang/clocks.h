/*
 * The clocks of hosts, put right: a collective ends on all of its ranks at nearly one time, whatever their clocks say.
 *
 * Of two hosts those who are members of one communicator are compared, by the ends of the newest collectives that both have
 * finished; the middle one of the differences counts, of three at least. Of a communicator whose hash comes back in another run
 * of the job, members of one run are compared: those whose ranks were in it equally often, each time with the other's same time.
 * Hosts without a communicator in common are compared by way of others. The clock that most agree with is right. What differs by
 * less than NI_HANG_SKEW_NS is left as it is: an end is known as well as the operation's time is, and no limit of the judge is so
 * short.
 *
 * One thread. No state.
 */
#ifndef NI_HANG_CLOCKS_H
#define NI_HANG_CLOCKS_H

#include "model.h"

#define NI_HANG_SKEW_NS INT64_C(1000000000)

/* All times of processes and members of a model that is read whole become those of one clock; skew_ns says by how much they were
 * ahead. Each one's `who` is set. Once for each model. 0 or -ENOMEM. */
int ni_hang_align_clocks(struct ni_hang_model *m);
/* Moves all times of one process, or of one member, by that much; 0, which is no time, stays. */
void ni_hang_move_process(struct ni_hang_process *p, int64_t by_ns);
void ni_hang_move_member(struct ni_hang_member *x, int64_t by_ns);

#endif
