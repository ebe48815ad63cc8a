/*
 * The clocks of hosts, put right by the mechanism of all commands (exporter/model/clocks/hosts.h), which says
 * what is compared and how.
 *
 * Logs bring completion times from all of a run. Where of some host there are black boxes alone, all are
 * compared by the newest operations that each rank has finished: a box says when they were called and how
 * long they took, so an end is known to about NI_HANG_END_NS, and clocks that are nearer stay as they are; no
 * limit of the judge is so short.
 *
 * Runs are not told apart here: a communicator's hash that comes back is another life of it.
 *
 * One thread. No state.
 */
#ifndef NI_HANG_CLOCKS_H
#define NI_HANG_CLOCKS_H

#include "model.h"

#define NI_HANG_END_NS INT64_C(500000000)

/*
 * All times of processes and members of a model that is read whole become those of one clock: m->clocks, and
 * skew_ns, which says by how much a process's begin was ahead. Each one's `who` is set. Once for each model.
 * 0 or -ENOMEM.
 */
int ni_hang_align_clocks(struct ni_hang_model *m);
/* Moves all times of one process, or of one member, by that much; 0, which is no time, stays. */
void ni_hang_move_process(struct ni_hang_process *p, int64_t by_ns);
void ni_hang_move_member(struct ni_hang_member *x, int64_t by_ns);

#endif
