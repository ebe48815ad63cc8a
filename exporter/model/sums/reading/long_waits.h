/*
 * How often each rank was long in operations, by the roll-ups of its log: all of its operations, also those
 * that a sample left out of the records.
 *
 * A roll-up has a histogram of times. Of it the long ones are kept, in steps of half an octave, for each
 * member of a communicator: apart for collectives in which all ranks do the same, so that one can be compared
 * with another, and for the rest (messages, and collectives with a root). Brackets around the enqueue are no
 * times of a kernel and are left out.
 *
 * Threads: ni_long_waits_add() under the run's lock, the others the main one. Ownership: the run's,
 * ni_long_waits_free(); s->long_waits the summary's. Failure: -ENOMEM.
 */
#ifndef NI_SUMMARY_LONG_WAITS_H
#define NI_SUMMARY_LONG_WAITS_H

#include "exporter/model/sums/partial/tables.h"
#include "exporter/model/sums/state.h"

/* Takes what a line of this member says. func: its text. */
int ni_long_waits_add(struct ni_run *r, uint32_t member, const char *func, const struct ni_rollup_line *l);
/* Both ways, as the tables of a partial. */
void ni_long_waits_wire(struct ni_wire *w, struct ni_run *r, const struct ni_partial_numbers *x);
/* Fills s->long_waits, by seat; r->seat_at is there. Without roll-ups it stays NULL, and with filters. */
int ni_long_waits_build(const struct ni_run *r, struct ni_summary *s);
void ni_long_waits_free(struct ni_run *r);

/* The least time of that step and above, and the one in its middle, in us. */
double ni_long_waits_edge_us(unsigned step);
double ni_long_waits_middle_us(unsigned step);

#endif
