/*
 * The graph without some causes: what a rank's own time and a transfer would be without each of them.
 *
 * What they would be is learned from the sample itself: a transfer as long as those of its size on like links
 * while no cause is at work; own time shorter by the share of its cause, or place by place of the step as
 * that of ranks that are not late; launches as quick as elsewhere.
 *
 *   ni_scenario_begin()     the causes; ni_scenario_learn() goes once through the sample, to its begin again
 *   ni_scenario_reset()     after a block is loaded into x->g: as recorded
 *   ni_scenario_remove()    takes one more cause away; then ni_graph_run()
 *
 * One thread. Ownership: ni_scenario_free(). Failure: -ENOMEM.
 */
#ifndef NI_GRAPH_SCENARIO_H
#define NI_GRAPH_SCENARIO_H

#include "exporter/model/sums/blame/causes.h"
#include "graph.h"

struct ni_scenario {
  struct ni_graph g;
  const struct ni_causes *causes;
  uint64_t *causes_of; /* of a link: bit i: cause i */
  bool *launch_late;   /* of a rank: its CPU is slow */
  uint32_t *late_by;   /* of a rank that is late (g.is_late): the first cause by which it is */
};

/* ni_scenario_free() is due in any case. causes: the caller's, in their place until then. */
int ni_scenario_begin(struct ni_scenario *x, const struct ni_blame *b, const struct ni_causes *causes);
/* blocks: of the run, of which the sample has some. */
int ni_scenario_learn(struct ni_scenario *x, uint32_t blocks);
void ni_scenario_reset(struct ni_scenario *x);
void ni_scenario_remove(struct ni_scenario *x, uint32_t cause);
/* The cause makes own time longer, other than by pauses. */
bool ni_scenario_shortens_own_time(const struct ni_cause *c);
void ni_scenario_free(struct ni_scenario *x);

#endif
