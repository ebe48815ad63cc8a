/*
 * Islands: ranks that wait for each other in each step, while those of different islands meet in some steps
 * alone, as where hosts train by themselves and exchange what they learned each so many steps (local SGD,
 * DiLoCo).
 *
 * A rank that is late in one step holds up its own island in that step, and the others where they meet next.
 * So how long a step takes differs between islands, and what they do where they meet is no step like others.
 * Ranks are of one island if communicators join them that are used in most steps.
 *
 * Threads: the main one, once links are there (blame/peer_groups.h). Ownership: the tables of the blame.
 * Failure: -ENOMEM.
 */
#ifndef NI_WORK_ISLANDS_H
#define NI_WORK_ISLANDS_H

#include "exporter/model/sums/ranks/blame.h"

/*
 * Fills island and n_islands of b, and measures what joins islands; leaves them where all ranks meet in each
 * step. Links are there, and are not compared yet.
 */
int ni_islands_find(struct ni_blame *b);
/* Fills exchange once links have classes; where islands never meet there are none. */
int ni_islands_find_exchanges(struct ni_blame *b);

/* Are its ranks of different islands? b->island is there. */
bool ni_islands_are_joined(const struct ni_blame *b, const struct ni_blame_link *l);

/* us that the rank waits in the bin for ranks of other islands. */
float ni_islands_measure_wait(const struct ni_blame *b, uint32_t rank, uint32_t bin);

/* Do islands meet in this bin? */
static inline bool ni_islands_meet(const struct ni_blame *b, uint32_t bin) {
  return b->exchange && b->exchange[bin];
}

#endif
