/*
 * Which counters ask to be looked at first: not those that rose most (idle cycles and good codewords lead
 * every such list).
 *
 * A counter that proves a finding comes first. Then by how far its rate is from the usual one, in doublings:
 * that of the other NICs of its kind, or that of a good run. Errors and losses weigh in the small, others
 * from one a second on. What counts that nothing happens, or that all is well, comes last. Pure; any thread.
 */
#ifndef NI_COUNTER_RANK_H
#define NI_COUNTER_RANK_H

#include "verdict.h"

/*
 * Doublings between a rate and the usual one; below 0: of a counter of idleness or health. usual NAN: nobody
 * knows.
 */
double ni_counter_unusual(const char *name, double rate, double usual);

struct ni_ranked {
  uint32_t row;
  double usual; /* the median rate of the others, in units a second; NAN: there are none */
  double unusual;
};

/* One for each row of the pair: those of an entity where they lie in the pair, the most unusual first, then
 * those that did not change. The caller frees it; NULL: no memory. */
struct ni_ranked *ni_rank(const struct ni_pair *p, const struct ni_counter_findings *f);

#endif
