/*
 * Own time of a block without what stamps are off by.
 *
 * The last rank to come to an operation decides when it ends. Where stamps are off by as much as ranks
 * differ, who comes last as recorded is a rank whose stamp is late, far more often than it was so: a rank
 * that really is late seems to put off its peers by less than it does. So what a rank costs is asked of own
 * time from which that is taken out.
 *
 * Ranks of one host end an operation of theirs together, by one clock: what a stamp of an end is off by is
 * seen, and belongs to the own time behind it. Stamps of starts are taken to be off as far. What that adds to
 * the spread of own time in a place of the step is known, and each one is brought nearer to their mean by as
 * much: the mean is right.
 *
 * Usage: after ni_graph_load(), for each block; sets `denoised` of its nodes. Own time with a pause in it
 * stays as it is, and so does all of a rank of whose host fewer than NI_STAMPS_PEERS take part in its
 * operations. One thread. Failure: -ENOMEM.
 */
#ifndef NI_BLAME_STAMPS_H
#define NI_BLAME_STAMPS_H

#include "graph.h"

#define NI_STAMPS_OFF_US 5.0f /* stamps that overlap by less do not matter */
/* Of how far own time lies from its mean this part stays in any case. */
#define NI_STAMPS_LEAST 0.2f
enum {
  NI_STAMPS_PEERS = 3, /* ranks of a host whose ends are compared */
  NI_STAMPS_ENDS = 16, /* ends of a rank that say how far they are off */
  NI_STAMPS_TIMES = 4  /* times in a place of the step that have a mean */
};

int ni_stamps_denoise(struct ni_graph *g);
/* Stamps of half of the ranks that are judged overlap by enough for that to matter. scratch: room for all. */
bool ni_stamps_are_off(const struct ni_blame *b, float *scratch);

#endif
