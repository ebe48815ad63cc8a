/*
 * Steps: one period of the training loop, found from the sequence of one rank's operations.
 *
 * In each step the same operations come in the same order on each communicator. So the search is for what
 * comes once a step. It may be an operation of one function and size (the norm over the world), two or three
 * in a row where no single one is that rare, or the last of a cluster of equal ones (gradient buckets). It
 * comes at even distances in operations; of several the rarest marks the step, and of those as rare the one
 * on the largest communicator that most own time follows. A step ends with it. What comes less than 20 times
 * (an evaluation) marks no step where something else does. Nor does what comes in a small part of the run,
 * as in evaluations alone. A mark right behind the last one, before a quarter of the usual number of
 * operations, ends none: a barrier of the same size. Where all operations are alike a long gap before one of
 * them marks the step; or its number does, if such gaps lie so many operations apart.
 *
 * --step-by: only operations of one communicator (by name) or function may mark.
 *
 * Ranks with the same work find the same mark, since only the order on single communicators counts.
 * Threads: pure but for its struct; one for each rank. Failure: -ENOMEM.
 */
#ifndef NI_BLAME_STEPS_H
#define NI_BLAME_STEPS_H

#include "exporter/model/sums/ranks/blame.h"

/*
 * op: the first n of the rank, in order of start. wanted: about so many steps; 0: as they show. m->found:
 * there is a mark.
 */
int ni_steps_find(const struct ni_blame *b, const struct ni_blame_rank *rank, const struct ni_blame_op *op,
                  size_t n, uint32_t wanted, struct ni_step_mark *m);
/* The next operation in order of start: does it end a step? Of marks by gaps: did one end before it? */
bool ni_steps_advance(struct ni_step_mark *m, const struct ni_blame_op *op);
#endif
