/*
 * A sample for a head out of what the agent has: the newest readings of GPUs, NICs and the host, and what
 * jobs do.
 *
 * Rates of a counter are between its two newest readings, by their own times: a driver may leave some out of
 * a sweep, whose rates stay as they were. Of an entity's counters with one unified name the largest counts.
 * GPUs and NICs are in the order of their readings; parts of a GPU (MIG) are left out. Jobs: those that run,
 * then those that ended; operations: the oldest first. What is beyond the sample's bounds is left out.
 *
 * One thread: the agent's. Ownership: ni_up_free().
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
