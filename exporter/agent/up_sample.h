/*
 * Makes a sample for a head from what the agent has: the newest readings of GPUs, NICs and the host, and what
 * jobs do.
 *
 * Rates of a counter lie between its two newest readings, by the times of these. A driver may leave some
 * counters out of a sweep; their rates stay as they were. Of several counters of an entity with the same
 * unified name the largest counts. GPUs and NICs are in the order of their readings; parts of a GPU (MIG) are
 * left out. Jobs: first those that run, then those that ended. Operations: the oldest first. What exceeds the
 * bounds of the sample is left out.
 *
 * One thread: the one of the agent. Ownership: ni_up_free().
 */
#ifndef NI_UP_SAMPLE_H
#define NI_UP_SAMPLE_H

#include "exporter/output/metrics/metrics.h"
#include "exporter/session/sample.h"

struct ni_up { /* zeros: nothing was read yet */
  struct ni_up_point {
    uint64_t total;
    int64_t mono_ns; /* of the newest reading; 0: there was none */
    double rate;     /* a second; NaN: not known */
  } *point;          /* one a value of in->running, which has them at the same places each time */
  size_t n, cap;
};

/* Once a sweep. The sample's seq and time are 0. For free(); NULL without memory. */
struct ni_sample *ni_up_sample(struct ni_up *u, const struct ni_metrics_in *in);
void ni_up_free(struct ni_up *u);

#endif
