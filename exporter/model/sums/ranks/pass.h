/*
 * One rank's tables, from its own operations: slots, steps, own time, transfers, pauses and the sample for
 * the replay.
 *
 * Own time lies between the end of what an operation waits for and its start (places.h). `dev` is what it has
 * beyond the baseline. A rank pauses where it neither ends nor starts an operation for NI_BLAME_BURST_US more
 * than the baseline, and half as long again: that is no `dev`. Where it computes while operations run, a gap
 * is longer also where the rank waited less in the operation before: then it has to have put off the rank's
 * own operations as well. Gaps before which a record is missing count
 * nowhere.
 *
 * Memory: NI_PASS_CHUNK operations at a time. Threads: one a rank. Failure: as stream.h.
 */
#ifndef NI_BLAME_PASS_H
#define NI_BLAME_PASS_H

#include "stream.h"

#define NI_PASS_CHUNK (1u << 15)

/* Fills b->rank[process] but for cls, shift and link. item: its pieces. */
int ni_blame_pass(struct ni_blame *b, uint32_t process, const struct ni_blame_piece *item, size_t n);

#endif
