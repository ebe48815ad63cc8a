/*
 * Usual own time of ranks with the same work side by side, place by place. Stages of a pipeline do not have
 * the same work (stages.h); who else gets ahead of a late rank is another question (leads.h).
 *
 * What a rank waits for in a place is found for each rank by itself (baseline.h), so two ranks may measure
 * from different ends there. A place in which many are far from what they are elsewhere is left out, and a
 * rank that is so and waits for something else than most. Threads: the main one. Failure: -ENOMEM.
 */
#ifndef NI_COMPARE_PLACES_H
#define NI_COMPARE_PLACES_H

#include "exporter/model/sums/blame/causes.h"

struct ni_compared {
  uint32_t *member; /* n ranks of one class, of blame.rank */
  uint32_t n;
  /*
   * Own time of a step that is seen, and what is taken for all of it. Where operations overlap the computing
   * much of it is not seen between them. Then half of the step is taken.
   */
  float level_us, of_us;
  /* by rank: usual own time of a step more than that of its peers; NAN: nothing can be compared */
  float *over_us;
  float *seen_us;       /* by rank: the own time of its peers that over_us is beside */
  struct ni_lead *lead; /* by rank */
};

/*
 * Compares with the lower quartile of the class, over the places that half of the members have. Fills all but
 * member and n.
 */
int ni_compare_places(const struct ni_blame *b, struct ni_compared *w);

#endif
