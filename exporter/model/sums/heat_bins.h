/*
 * Which column of the heat map stands for a bin of time.
 *
 * Logs with start times: its own. Logs that only say when a record was dumped have their records in a few bins with
 * nothing between; a dump holds what ran since the one before, so a bin takes the next column that has anything.
 *
 * Threads: pure, any. Failure: none.
 */
#ifndef NI_HEAT_BINS_H
#define NI_HEAT_BINS_H

#include "model.h"

/* source: heat.bins entries; heat.bins in an entry means that nothing follows. */
void ni_heat_sources(const struct ni_summary *s, uint32_t *source);

#endif
