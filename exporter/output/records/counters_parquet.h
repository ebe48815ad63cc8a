/*
 * The samples of counters as a table: OUT/parquet_counters/<file of the series>.parquet, a row for each
 * counter that changed between two samples, and one for each that has no number.
 *
 * Threads: one. Failure: -errno; ni_run_fail() has been told why.
 */
#ifndef NI_COUNTERS_PARQUET_H
#define NI_COUNTERS_PARQUET_H

#include "exporter/model/sums/counters.h"

struct ni_counters_table;

/* 0 or -ENOMEM. ni_counters_table_free() frees it, and drops a file that was not ended. */
int ni_counters_table_new(struct ni_counters_table **out, struct ni_run *r);
void ni_counters_table_free(struct ni_counters_table *t);
struct ni_counters_also ni_counters_table_sink(struct ni_counters_table *t);

#endif
