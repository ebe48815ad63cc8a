/*
 * Which step of one rank is which of another: by the numbers of operations, not by clocks.
 *
 * The k-th operation of a communicator is one for all its ranks. So each slot of collectives keeps two
 * *anchors*: the first and the last operation of one function and size, with the step that it was in and its
 * place in it. Two ranks with a common communicator compare where they were at the same number; ranks that
 * share none are joined through others. Stages with messages alone are joined by the k-th message that one
 * sends and the next receives, one after the other. Only what nothing joins is put side by side by time.
 *
 * ni_anchor_update() of blame.h keeps them. Threads: the main one. Ownership: none. Failure: -ENOMEM.
 */
#ifndef NI_SUMMARY_NUMBER_H
#define NI_SUMMARY_NUMBER_H

#include "exporter/model/sums/ranks/blame.h"

/* Fills shift of all judged ranks, bins, bin_steps, steps and whole_steps of b. */
int ni_number_steps(struct ni_blame *b);

#endif
