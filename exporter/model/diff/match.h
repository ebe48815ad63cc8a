/*
 * Which quantity of A is which of B, and what both took. Threads: one. Failure: -ENOMEM.
 */
#ifndef NI_DIFF_MATCH_H
#define NI_DIFF_MATCH_H

#include "diff.h"

/* Fills d->row, d->n and d->only: all quantities that both runs have, in the order of A, with their change. */
int ni_diff_match(struct ni_diff *d);
/* A row's error by its steps and its places, as a part of A. */
double ni_diff_own_error(const struct ni_diff_row *r);
/* The row of a part of the step; NULL: none. */
const struct ni_diff_row *ni_diff_step(const struct ni_diff *d, uint64_t part);

#endif
