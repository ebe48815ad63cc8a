/*
 * Hosts whose GPUs are slow, by the paces of their ranks (ranks/paces.h): where ranks are not compared step
 * by step, as engines that serve requests have none, or where no steps are found.
 *
 * A rank's pace of each function and size is compared with the lower quartile of all ranks that have the
 * same, those of one run and kind of communicator. How much longer it takes in all is the sum over its
 * paces, each as often as it has operations. A host is slow where three quarters of its ranks or more take
 * NI_PACE_SLOW longer, none of them by far more than the others: that would be the rank. It has to be the
 * same in small operations and in large ones, since a GPU that is slow is so whatever it computes. Where
 * decoding alone takes longer, or large batches more than small ones, contexts are longer: that is other
 * work. Where messages, or what lies between a communicator's ranks, are not in the logs, a gap can hold
 * them, and nobody is told.
 *
 * Threads: the main one, after all passes. Failure: -ENOMEM.
 */
#ifndef NI_BLAME_HOST_PACES_H
#define NI_BLAME_HOST_PACES_H

#include "exporter/model/sums/ranks/blame.h"

/* Its ranks take so much longer than others: less can be GPUs that differ, and other contexts, */
#define NI_PACE_SLOW 0.03
/* and where messages join stages so much: layers differ by less (NI_CAUSE_STAGE of what may be work). */
#define NI_PACE_SLOW_STAGE 0.045
/* It is so many times as far from ranks of other hosts as these are from each other. */
#define NI_PACE_APART 5.0
/* The smallest third of the sizes and the largest one take longer by so much of what all do, each. */
#define NI_PACE_OF_ALL 0.5
/* Of fewer sizes, or within a factor of four, nobody knows whether small and large ones take longer alike. */
#define NI_PACE_SIZES 3u
#define NI_PACE_RANGE 8 /* classes (ranks/paces.h) */

/* Fills `paced` of the hosts. */
int ni_paces_tell(const struct ni_blame *b, struct ni_summary *s);

#endif
