/*
 * How many operations of each function were recorded before a rank's first one.
 *
 * In a communicator: align.h has found at which place of all its operations each rank's recording begins.
 * What lies before that, others have recorded, and they say which functions it was.
 *
 * Communicators side by side (tensor groups, data groups) run the same program, and readers take one number
 * for one place of it. So where all ranks have steps, each communicator counts up to the same number of each
 * function by the first step that all of them recorded from its begin on. Where some have none, it is by the
 * end of an operation of a communicator that all are in, if there is one (the sum over all ranks that ends a
 * step): each rank's own times say what lies behind it.
 *
 * Ranks that cannot be told (NI_ALIGN_APART) and those whose numbers have holes are left as they are.
 *
 * One thread. Ownership: counts are their seat's, for ni_align_free(). Failure: -ENOMEM.
 */
#ifndef NI_IMPORT_BEFORE_H
#define NI_IMPORT_BEFORE_H

#include "align.h"

/* Where the seats end that have the hash of seat `from`. Seats: in order of their hash. */
size_t ni_before_end_of(const struct ni_align *a, size_t from);
/* s: all seats of a communicator, with how and ahead. Adds to their counts. */
int ni_before_count(struct ni_align_seat *s, size_t n);
/* When that was done for each communicator: counts all of them up to the same moment. */
int ni_before_beside(struct ni_align *a);

#endif
