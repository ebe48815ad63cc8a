/* All operations joined, handed on, and summed up: the phase between reading and the result. */
#ifndef NI_SUMMARY_FIGURES_H
#define NI_SUMMARY_FIGURES_H

#include "exporter/base/sink.h"
#include "state.h"

/*
 * Joins all cells, in r->opt.jobs threads, and fills what the result has of them; their segments are given back. rows: where
 * each operation goes (operation_row.h), a stream for each cell; NULL: nowhere. Main thread. 0 or -errno, told by ni_run_fail().
 */
int ni_figures_all(struct ni_run *r, struct ni_summary *s, const struct ni_sink *rows);

#endif
