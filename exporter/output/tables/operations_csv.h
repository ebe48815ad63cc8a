/*
 * The contract's CSV of each cell, summary/<size>/summary_<type>_<function>_<size>.csv: a line for each
 * operation, through a buffer of its own.
 *
 * Columns, forms and order of rows: docs/exporter.md. P2P has `rank` and `p2p_peer` behind the contract's
 * columns. Times are UTC, with --compat the local time zone.
 */
#ifndef NI_OPERATIONS_CSV_H
#define NI_OPERATIONS_CSV_H

#include "exporter/base/sink.h"
#include "exporter/model/sums/state.h"

/* For ni_figures_sum(). Files go below r->tmp_dir; r lives as long as the sink. */
struct ni_sink ni_operations_csv(struct ni_run *r);
/*
 * The parts of files that other processes of a team wrote go behind ours, where ours is the first one. All
 * have ended theirs. 0 or -errno.
 */
int ni_operations_csv_join(const struct ni_run *r, const struct ni_summary *s);

#endif
