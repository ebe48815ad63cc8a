/*
 * Who comes last to symmetric kernels, by the wait for their peers that these kernels time themselves
 * (`initial_sync_ns`).
 *
 * The last rank to come to a barrier waits for nobody, each other one for as long as it came earlier. A
 * GPU's own clock times that, so clocks of hosts need not agree, and a kernel's length has no part in it: a
 * rank that is 100 us late to kernels of 5 ms shows. For each rank cell_figures.h adds up how much later
 * than the peers in the middle it came; a mean that stands out is a late rank.
 *
 * A rank may be late because it had to wait for a late one in another communicator: its own time
 * (ranks/blame.h) is as that of its peers then, and it is not named. Where own time is not judged, of ranks
 * that share a communicator the latest is. Where most ranks of a host are late by themselves and none of them
 * stands out, it is the host: one finding. Main thread. Not for approximate figures.
 */
#ifndef NI_SUMMARY_WAITS_H
#define NI_SUMMARY_WAITS_H

#include "exporter/model/sums/state.h"

/* Adds a finding for each late rank or host that no other finding names; to that of one that has a name,
 * evidence. 0 or -ENOMEM. */
int ni_add_wait_findings(const struct ni_run *r, struct ni_summary *s);

#endif
