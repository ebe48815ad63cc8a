/*
 * Whether the network between hosts is slow now and then, in sampled logs (evidence/crossings.h). Main
 * thread.
 */
#ifndef NI_DURATIONS_CONGESTION_H
#define NI_DURATIONS_CONGESTION_H

#include "exporter/model/sums/evidence/seat_findings.h"

/*
 * Appends a finding where that costs the job time: of the network, or, where it stays slow to the end, of the
 * communicator that shows it. -ENOMEM.
 */
int ni_durations_name_congestion(struct ni_summary *s, struct ni_found *out);

#endif
