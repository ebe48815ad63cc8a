/*
 * Where somebody set a host's clock, by the numbers of the operations: from which one on each stream,
 * which is what one rank of a communicator did of one function, is behind a step (clocks/host_clock.h).
 *
 * Records of a stream lie in the segments of many cells, one a size. Its numbers go through all of them, so
 * they are merged by number, once, before anybody reads one of them alone: what is a few records of a size
 * here and there is together a row without gaps (clocks/turn.h says how a step is seen in it). Only streams
 * of hosts whose clocks have steps are read, one after the other, and nothing is kept but the numbers.
 *
 * Threads: the main one; what is found is read-only then. Failure: -ENOMEM, -errno of the spill file.
 */
#ifndef NI_SUMMARY_TURNS_H
#define NI_SUMMARY_TURNS_H

#include "exporter/model/sums/state.h"

/*
 * r->turns, when processes have their clocks. All ranks of a team, each of which hears of all streams. 0 or
 * -errno. ni_tables_free() frees it.
 */
int ni_turns_find(struct ni_run *r);
/* stream: turns not used. NULL: its clock has no steps. */
const struct ni_clock_turns *ni_turns_of(const struct ni_turns *t, const struct ni_turns_stream *stream);

#endif
