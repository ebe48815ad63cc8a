/* The tables of a run as one section, and packed records as pieces. */
#ifndef NI_PARTIAL_TABLES_H
#define NI_PARTIAL_TABLES_H

#include "partial.h"

/*
 * Numbers of a partial and those of the run. Storing: number[k] is the run's of the partial's k-th, place[i]
 * the partial's of the run's i-th. Loading: number[k] likewise, no places.
 */
struct ni_numbering {
  uint32_t *number, *place;
  size_t n;
};
struct ni_partial_numbers {
  struct ni_numbering process, member, cell;
  uint8_t mix[NI_MIX_MAX + 1]; /* what a code of a packed record becomes */
  unsigned n_mix;
};

/*
 * Storing: puts everything into its order first. Loading: adds everything to the run's. 0 or -ENOMEM; bad as
 * in wire.h.
 */
int ni_partial_order(struct ni_run *r, struct ni_partial_numbers *x);
void ni_partial_wire_tables(struct ni_wire *w, struct ni_run *r, struct ni_partial_numbers *x);
void ni_partial_numbers_free(struct ni_partial_numbers *x);

#endif
