/*
 * How many steps a rank has, by what comes again and again: the rarest of it, unless that is an evaluation, a
 * checkpoint, or a loss that is looked at now and then, and something else tells the steps.
 *
 * Pure; any thread.
 */
#ifndef NI_BLAME_STEP_COUNT_H
#define NI_BLAME_STEP_COUNT_H

#include "grams.h"

/* n: operations of the rank that were looked at. The rarest number of times that is one of steps; 0: none. */
uint32_t ni_steps_estimate(const struct ni_blame *b, const struct ni_blame_rank *rank,
                           const struct ni_grams *g, size_t n);

#endif
