/*
 * One rank's step as lanes: what it does on each communicator, in most of its steps.
 *
 * Its operations are gone through twice: first to find what each lane is in most steps (variants.h), then to
 * fill the places of the lanes from the steps that have just that. Messages to MANY_PEERS others, or to all
 * others, are one lane.
 *
 * Threads: one for each call; several ranks at once. Failure: -ENOMEM, -errno of the spill file.
 */
#ifndef NI_PATTERN_LANES_H
#define NI_PATTERN_LANES_H

#include "exporter/model/sums/ranks/stream.h"
#include "pattern.h"

/* What is needed beside the rank's own. label: by communicator of the result. */
struct ni_lanes_of {
  struct ni_run *r;
  const struct ni_summary *s;
  char *const *label;
  const struct ni_datatypes *types;
};

/*
 * of: the rank's tables, with the mark of its steps; piece: its pieces. to: its operations, what it did
 * beyond the bounds, and why it has no program, where it has none. out is the caller's in any case: lane and
 * place are to be freed.
 */
int ni_lanes_find(const struct ni_lanes_of *x, const struct ni_blame_rank *of,
                  const struct ni_blame_piece *piece, size_t n, struct ni_program *out,
                  struct ni_pattern_rank *to);

/* A place as a number: function and size; the same in each process. */
uint64_t ni_place_hash(const struct ni_pattern_place *p, bool sizes_vary);

#endif
