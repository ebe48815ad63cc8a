/*
 * What causes cost: the job run once more without them.
 *
 * The sample holds all ranks' operations of the same steps, in blocks. A block is a graph: an operation of a
 * rank starts its own time after the one that had ended last before it (and not before the one before it on
 * its slot has ended); an operation ends its transfer after the last of its ranks has started it. Delays
 * spread by that alone, through all communicators: so no clock is needed but each rank's own, and nobody's
 * waiting is counted twice. Run as recorded the graph takes as long as the steps took; run with a cause taken
 * away (own time as long as that of its peers, pauses left out, transfers as quick as those of their peers)
 * it says how long they would have taken: the difference is what the cause costs. Following what each
 * operation waited for from the end back to the begin says what the run's time consists of.
 *
 * Sources: what-if analysis of stragglers (arXiv 2505.05713) for the idea; the rest follows from how kernels
 * of a stream run. Threads: the main one. Memory: 24 bytes an operation of a block of one rank, and 60 one of
 * all its ranks. Time: operations of the sample for each cause at work in their block. Failure: -ENOMEM.
 */
#ifndef NI_BLAME_REPLAY_H
#define NI_BLAME_REPLAY_H

#include "causes.h"

struct ni_replay {
  double run_us; /* of the job */
  /* replayed / recorded time of the sample: 1 where the graph explains all of it */
  double model;
  /* shares of the run: what is on the way from its begin to its end. They add up to 1 */
  double own, pauses, transfer;
  double without_us;      /* the run without any of the causes */
  uint32_t blocks, steps; /* replayed */
};

/* Fills cost_us, low_us and high_us of each cause. The samples stay. */
int ni_replay_once(struct ni_blame *b, struct ni_causes *causes, struct ni_replay *out);
/* The same for the last time: gives the samples back. */
int ni_replay(struct ni_blame *b, struct ni_causes *causes, struct ni_replay *out);

#endif
