/* All operations joined, handed on, and summed up: the phase between reading and the result. */
#ifndef NI_SUMMARY_FIGURES_H
#define NI_SUMMARY_FIGURES_H

#include "exporter/base/sink.h"
#include "state.h"

/* An operation; of P2P one side of it. In order of (sn, communicator). */
struct ni_operation_row {
  const char *id; /* "0x..." */
  uint64_t sn, msg_bytes;
  double mean_busbw_gbs; /* NAN: none of the records has one */
  uint64_t count;
  int32_t n_ranks;
  const int32_t *nnodes; /* distinct, ascending */
  unsigned n_nnodes;
  uint64_t first_us, last_us; /* dump times */
  int32_t rank, peer;         /* P2P */
};

/*
 * Joins all cells, in r->opt.jobs threads, and fills what the result has of them; their segments are given
 * back. rows: where each operation goes, with a const struct ni_cell * as `what` and a const struct
 * ni_operation_row * as `row`; NULL: nowhere. Main thread. 0 or -errno, told by ni_run_fail().
 */
int ni_figures_sum(struct ni_run *r, struct ni_summary *s, const struct ni_sink *rows);

#endif
