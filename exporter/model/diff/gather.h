/*
 * A run as a list of quantities. Threads: one. Failure: -ENOMEM; what was gathered is freed with the run.
 */
#ifndef NI_DIFF_GATHER_H
#define NI_DIFF_GATHER_H

#include "diff.h"

/* From the tables of a run: those of its ranks may be empty, where it has no steps. */
struct ni_blame;
int ni_diff_gather(struct ni_diff_run *out, const struct ni_summary *s, const struct ni_blame *b);
/*
 * How many communicators of how many ranks there are: of those that were used more than now and then. Sorts.
 */
void ni_diff_layout(struct ni_diff_run *out, int32_t *n_ranks, size_t n);
/*
 * Parts, for those who have them from elsewhere: steps; what a function took, by so many operations of a rank
 * in a step.
 */
int ni_diff_add_steps(struct ni_diff_run *out, const struct ni_step *step, uint32_t n);
int ni_diff_add_function(struct ni_diff_run *out, const char *func, const char *type, uint64_t bytes,
                         enum ni_timing timing, const struct ni_stats *us, bool transfer, double per_step);

#endif
