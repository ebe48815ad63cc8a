/*
 * The page of two sweeps, with what counters did between them over time where there is a series. One call at
 * a time.
 */
#ifndef NI_COUNTERS_OVER_TIME_H
#define NI_COUNTERS_OVER_TIME_H

#include <stdbool.h>

#include "exporter/output/counters/view.h"

/*
 * Writes the page to path. series: a file that `counters record` or `run` wrote; NULL: none. false: who has
 * said why not.
 */
bool ni_counters_page_over_time(const struct ni_counters_view *v, const char *series, const char *path,
                                const char *who);

#endif
