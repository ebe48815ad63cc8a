/*
 * What a run loses by a rank that comes late, where own time is not known as the logs are a sample.
 *
 * Of several communicators that with the most operations tells: its ranks go on when an operation has ended,
 * so all that they wait there is lost. Where a rank has one communicator alone it computes beside what it
 * exchanges:
 * - Between nothing and all of the waiting is lost, and half is taken.
 * - All of it are AllReduces: gradients, which nobody needs before the step ends. The same lateness is waited
 *   for in one bucket after the other, so a step loses no more than what is waited for in that of them that
 *   waits longest.
 *
 * Roll-ups count all operations; without them what the sample has is taken so many times.
 *
 * Threads: the main one, once figures are summed. Nothing is allocated.
 */
#ifndef NI_SUMMARY_SAMPLED_COSTS_H
#define NI_SUMMARY_SAMPLED_COSTS_H

#include "exporter/model/sums/model.h"

struct ni_sampled_cost {
  double us, low_us, high_us;
  bool of_gradients, halved; /* how it was found; neither: all that is waited */
};

/* waited_us: what all others waited for the process in this communicator, with what is not recorded. */
struct ni_sampled_cost ni_find_sampled_cost(const struct ni_summary *s, uint32_t process, uint32_t comm,
                                            double waited_us);
/* The communicator in which a process has most operations by its roll-ups; UINT32_MAX: it has none. */
uint32_t ni_find_rolled_comm(const struct ni_summary *s, uint32_t process);
/* What the others waited there at least beyond the process, by the roll-ups. */
double ni_find_rolled_wait_us(const struct ni_summary *s, uint32_t process, uint32_t comm);
/* So many steps, by what the communicator does least often; 0: too few are recorded. Chance has its part. */
double ni_estimate_sampled_steps(const struct ni_summary *s, uint32_t comm);

#endif
