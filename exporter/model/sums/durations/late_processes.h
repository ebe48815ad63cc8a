/*
 * Which ranks come late, told by the durations of one operation on all ranks: who comes last has the shortest
 * one. A slow link makes it longer for all, so it makes nobody late. Main thread.
 */
#ifndef NI_LATE_PROCESSES_H
#define NI_LATE_PROCESSES_H

#include "exporter/model/sums/evidence/seat_findings.h"

/*
 * out: in which part of its operations, 0 to 1, the median rank was late (of an even number: the lower one);
 * 0 without ranks. -ENOMEM.
 */
int ni_durations_find_late_share(const struct ni_summary *s, double *out);
/*
 * Appends those that stand out beside s->late_share_median. explained: by host, set where one of its ranks
 * has come late, which explains a low bandwidth. -ENOMEM.
 */
int ni_durations_name_late(const struct ni_summary *s, struct ni_found *out, bool *explained);

#endif
