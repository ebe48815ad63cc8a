/* Tables of the page, and its heat map. */
#ifndef NI_PAGE_TABLES_H
#define NI_PAGE_TABLES_H

#include "exporter/base/text/json_write.h"
#include "exporter/model/sums/model.h"

/* Communicators, hosts, processes, outliers, slices, ranks over time. 0 or -ENOMEM. */
int ni_page_tables_write(struct ni_json *j, const struct ni_summary *s);

/*
 * Which column of the heat map stands for a bin of time; source has heat.bins entries, heat.bins in one means
 * that nothing follows. Logs with start times: its own. Logs that only say when a record was dumped have
 * their records in a few bins with nothing between; a dump holds what ran since the one before, so a bin
 * takes the next column that has anything.
 */
void ni_heat_sources(const struct ni_summary *s, uint32_t *source);

#endif
