/*
 * Sums of each log, for `summary --approximate`: what tables and percentiles need, and nothing of single
 * operations.
 *
 *   records of a log, as they were read (segments) ─┐
 *   its sums in the index, of what was not read ────┴─▶ its sums ─▶ the index            (ni_log_sums_all)
 *                                                           └─▶ of all logs, cell by cell (ni_log_sums_cell)
 *
 * A log has a row for each rank, function, size, timing source: counts, when, algorithms and protocols, and
 * two distributions (packed/dist.h), of times and of bandwidths. Up to NI_LOG_SUMS_EXACT different values are
 * kept as they are; more become the histogram with steps of 0.8 %. Counts, sums, least and largest stay
 * exact. Rows are added up in whole numbers, so what a log has does not depend on how often it was looked at
 * while it grew, nor the result on the order of logs.
 *
 * What is not in it: whatever compares ranks (operations, transfer, waiting, who is late), records that are
 * there twice, roll-ups, counters, points and bins of time.
 *
 * In the index they are hostile: ni_log_sums_sound() looks at every number before they are believed. A forged
 * row says what its owner could have put into the log: no more records than the log has, no value that a
 * record could not have.
 */
#ifndef NI_LOG_SUMS_H
#define NI_LOG_SUMS_H

#include "exporter/model/sums/cell_figures.h"

#define NI_LOG_SUMS_EXACT 16

/* For struct ni_atlas_wants. Any thread. */
bool ni_log_sums_sound(const uint8_t *bytes, size_t n, uint64_t records);
/*
 * After reading, before ni_build_begin(): the records go, and each cell has its rows instead. Main thread,
 * with helpers. 0 or -errno.
 */
int ni_log_sums_all(struct ni_run *r);
/* Adds the rows of a cell, which are then gone. By the thread that has the cell. 0 or -ENOMEM. */
int ni_log_sums_cell(struct ni_cell_sums *c, struct ni_sums *t, struct ni_sum_cell *cell);
void ni_log_sums_free(struct ni_run *r);

#endif
