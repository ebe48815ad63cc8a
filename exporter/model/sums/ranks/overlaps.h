/*
 * Which of a rank's operations run one after the other, and which side by side, by the stamps of the first
 * ones.
 *
 * Stamps are measurements: those of kernels that run back to back overlap by a little, and nothing says by
 * how much but the operations themselves. Slots whose operations hold those of others are *overlapped*: the
 * rank computes while they run.
 *
 * Pure but for the rank's slots. Threads: one a rank. Failure: -ENOMEM.
 */
#ifndef NI_BLAME_OVERLAPS_H
#define NI_BLAME_OVERLAPS_H

#include "stream.h"

#define NI_PLACE_OVERLAP_LEAST_NS INT64_C(2000) /* twice the coarsest timer */
#define NI_PLACE_OVERLAP_MOST_NS INT64_C(300000)

/*
 * By how much stamps of back-to-back kernels overlap: nineteen in twenty of those that do. Collectives of
 * one communicator follow each other in any case. Of two slots one follows the other where its operations
 * hardly ever begin long before the other's end: what it overlaps with begins anywhere in it. What overlaps
 * by half of the shorter one and more are calls that NCCL has put into one kernel. op: the first n.
 */
int ni_overlaps_measure(const struct ni_blame_rank *o, const struct ni_blame_op *op, size_t n,
                        int64_t *overlap_ns);
/*
 * Which slots are overlapped: while an operation of theirs runs, operations of another one begin, more often
 * (for each of theirs) than the other way round. Overlapped gradients hold many operations of the layers;
 * these see the begin of one of the gradients now and then.
 */
void ni_overlaps_find_slots(struct ni_blame_rank *o, const struct ni_blame_op *op, size_t n,
                            int64_t overlap_ns);

#endif
