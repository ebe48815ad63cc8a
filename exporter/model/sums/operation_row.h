/* What ni_figures_all() hands to its sink (exporter/base/sink.h). what: const struct ni_cell *. row: const struct ni_operation_row *. */
#ifndef NI_OPERATION_ROW_H
#define NI_OPERATION_ROW_H

#include <stdint.h>

/* An operation; of P2P one side of it. In order of (sn, communicator). */
struct ni_operation_row {
  const char *id;              /* "0x..." */
  uint64_t sn, msg_bytes;
  double mean_busbw_gbs;       /* NAN: none of the records has one */
  uint64_t count;
  int32_t n_ranks;
  const int32_t *nnodes;       /* distinct, ascending */
  unsigned n_nnodes;
  uint64_t first_us, last_us;  /* dump times */
  int32_t rank, peer;          /* P2P */
};

#endif
