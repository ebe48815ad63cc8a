/*
 * Which quantity of A is which of B, and what changed for certain: each row's error, Holm's correction over
 * all, what matters; and the gate. Threads: one. Failure: -ENOMEM.
 */
#ifndef NI_DIFF_JUDGE_H
#define NI_DIFF_JUDGE_H

#include "diff.h"

/* Fills d->row, d->n, d->only and d->changed, with all quantities that both runs have. */
int ni_diff_judge(struct ni_diff *d);
/* The row of a part of the step; NULL: none. */
const struct ni_diff_row *ni_diff_step(const struct ni_diff *d, uint64_t part);
/* The row of a step's time that is worse by more than limit, with all of its interval above 0; without steps
 * of functions with a tenth of the time or more. NULL: none. */
const struct ni_diff_row *ni_diff_gate(const struct ni_diff *d, double limit);

#endif
