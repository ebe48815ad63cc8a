/*
 * Usual own time of ranks with the same work side by side, place by place; and of stages, which do not have
 * the same work.
 *
 * What a rank waits for in a place is found for each rank by itself (baseline.h), so two ranks may measure
 * from different ends there. A place in which many are far from what they are elsewhere is left out, and a
 * rank that is so and waits for something else than most. Threads: the main one. Failure: -ENOMEM.
 */
#ifndef NI_BLAME_COMPARE_H
#define NI_BLAME_COMPARE_H

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
/*
 * Of a stage, compared with the middle one of the stages that are like it (of two: with the other one). A
 * stage without tensor parallelism that has no like is compared with the first and the last one.
 */
struct ni_stage_more {
  float share; /* it computes longer by so much; 0 where nothing can be compared */
  /*
   * It is the first or the last one, and an embedding or a loss would look the same; or none of the others
   * has as many layers, and layers can differ.
   */
  bool can_be_work;
  bool at_end;    /* it is the first or the last one */
  bool by_layers; /* it is so for as many layers as some of the others have, by the gradients */
};
/* By class; of a rank that over_us says is like its peers. */
int ni_compare_stages(const struct ni_blame *b, const float *over_us, struct ni_stage_more *more);

#endif
