/* Which quantity of A is which of B, and what both took. Threads: one. Failure: -ENOMEM. */
#ifndef NI_DIFF_MATCH_H
#define NI_DIFF_MATCH_H

#include "diff.h"

/* Fills d->row, d->n and d->only: all quantities that both runs have, by kind, like and key, with their change. */
int ni_diff_match(struct ni_diff *d);
/* The order of rows that ni_diff_match() makes, for qsort(). */
int ni_diff_in_order(const void *a, const void *b);
/* The row of a part of the step; NULL: none. */
const struct ni_diff_row *ni_diff_step(const struct ni_diff *d, uint64_t part);

#endif
