/*
 * Stages of a pipeline beside each other: how much longer one of them computes, though stages do not have the
 * same places.
 *
 * A layer computes as long in one stage as in another. So the times between operations of one stage, all of
 * them by one factor, are found again in the other; where only whole passes lie between messages their
 * lengths are compared instead, for as many layers. A stage is known by that rank of its class that is
 * nearest to its peers. Threads: the main one. Failure: -ENOMEM.
 */
#ifndef NI_COMPARE_STAGES_H
#define NI_COMPARE_STAGES_H

#include "exporter/model/sums/ranks/blame.h"

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
