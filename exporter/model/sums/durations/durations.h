/*
 * What stands out by durations alone: where own time is not known, or beside it.
 *
 * Late ranks: late_processes.h. Slow communicators, and hosts within which these lie: slow_comms.h. What
 * neither shows, but makes all of a host's bandwidths low, is told last. Main thread.
 */
#ifndef NI_DURATIONS_H
#define NI_DURATIONS_H

#include "exporter/model/sums/model.h"

/*
 * Judges communicators, processes and hosts, and fills `finding`. Reads comm, process, host and by_comm.
 * -ENOMEM.
 */
int ni_judge_by_durations(struct ni_summary *s);
/*
 * By who comes last to each operation: own time is not known, or where it can be compared is not, as steps do
 * not repeat.
 */
bool ni_durations_are_of_seats(const struct ni_summary *s);

#endif
