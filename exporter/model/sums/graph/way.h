/*
 * The longest way through a block as recorded: from its last operation back, what each waited for. What lies
 * on it is what the run's time consists of; and a scenario that leaves all of it as it is takes as long.
 *
 * One thread. Ownership: ni_way_free(). Failure: -ENOMEM.
 */
#ifndef NI_GRAPH_WAY_H
#define NI_GRAPH_WAY_H

#include "graph.h"

/*
 * A part of the longest way through the block as recorded: a join, and the node that came last to it, whose
 * own time is on the way as well (NI_BLAME_NONE: it is not).
 */
struct ni_way_part {
  uint32_t join, node, rank;
};

struct ni_way {
  struct ni_way_part *part; /* of the last block that was followed */
  uint32_t n;
  size_t cap;
  double own, pauses, transfer; /* of all blocks, us */
  double *path;                 /* by communicator: transfers on the way */
};

/* w: all 0. Room for the communicators of b. */
int ni_way_begin(struct ni_way *w, const struct ni_blame *b);
/* From the last operation back: what each waited for. Call it after the run as recorded, which took `end`. */
int ni_way_follow(struct ni_way *w, const struct ni_graph *g, double end);
/* The longest way is as long as before. Then the block is as well, whatever else is shorter. */
bool ni_way_is_unchanged(const struct ni_way *w, const struct ni_graph *g);
/*
 * Runs the scenario. What it saves is put down to the communicators on the longest way, by how much shorter
 * each part of it gets. took: the block as recorded; lost: by communicator. Returns what it saves.
 */
double ni_way_attribute(const struct ni_way *w, struct ni_graph *g, double took, double *lost);
void ni_way_free(struct ni_way *w);

#endif
