/*
 * Reads the time series of counters in the input and sets them beside the processes of the summary. After all
 * ranges were read and ni_build_begin(), before ni_build_end(). Main thread. 0 or -ENOMEM, or what sample()
 * returned.
 */
#ifndef NI_SUMS_COUNTERS_H
#define NI_SUMS_COUNTERS_H

#include "exporter/model/counters/series.h"
#include "state.h"

/* Who else wants the samples: a table of them. A negative result ends the reading. */
struct ni_counters_also {
  void *arg;
  int (*begin)(void *arg, size_t file_no); /* of r->file */
  int (*end)(void *arg);                   /* that one is over */
  int (*pair)(void *arg, const struct ni_series_sample *after, const struct ni_reading *before);
};
/* also NULL: nobody. */
int ni_counters_build(struct ni_run *r, struct ni_summary *s, const struct ni_counters_also *also);

#endif
