/*
 * What counters and launches say of each finding's subject, into its `evidence`: from the host over GPU and
 * NVLink to the NIC.
 *
 * Each rung says what is off, with the figure of the worst of the subject's devices and the median of all
 * others of the kind, or that it is as elsewhere. Figures are of the time in which collectives were in flight
 * (exporter/model/counters/beside.h). Launch, without any counter: a GPU with enough to do starts a kernel
 * long after the call, one that waits for its CPU at once. Threads: the main one, after the judgement. 0 or
 * -ENOMEM.
 */
#ifndef NI_EVIDENCE_H
#define NI_EVIDENCE_H

#include <math.h>

#include "exporter/model/sums/ranks/blame.h"

int ni_add_evidence(const struct ni_blame *b, struct ni_summary *s);
/* Which part of a rank's operations began as soon as they were launched; NAN: it had none. */
static inline float ni_launch_share(const struct ni_blame_rank *o) {
  return o->ops ? (float)o->late_ops / (float)o->ops : (float)NAN;
}

#endif
