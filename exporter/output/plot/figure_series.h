/* Sums by time, in the buckets of --time-granularity. As figure.h has it. */
#ifndef NI_FIGURE_SERIES_H
#define NI_FIGURE_SERIES_H

#include "figure.h"

void ni_fig_series(FILE *f, const struct ni_figure *fig);           /* first: a group; its kind, function and timing, by communicator */
void ni_fig_series_functions(FILE *f, const struct ni_figure *fig); /* functions beside each other */
void ni_fig_series_hosts(FILE *f, const struct ni_figure *fig);     /* counters of hosts */
/* Is there any that it shows? */
bool ni_fig_series_any_hosts(const struct ni_summary *s);

#endif
