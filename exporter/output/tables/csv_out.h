/*
 * The contract's CSV of one cell: a line for each operation, through a buffer of its own.
 *
 * Columns, forms and order of rows: docs/exporter.md. P2P has `rank` and `p2p_peer` behind the contract's columns. Times
 * are UTC, with --compat the local time zone. Threads: one per file. Failure: the first -errno stays and comes back from
 * every later call.
 */
#ifndef NI_SUMMARY_CSV_OUT_H
#define NI_SUMMARY_CSV_OUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "exporter/model/sums/join.h"

struct ni_csv;

struct ni_csv_row {
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

int ni_csv_open(struct ni_csv **out, const char *path, bool p2p, bool local_time);
int ni_csv_row(struct ni_csv *c, const struct ni_csv_row *row);
int ni_csv_close(struct ni_csv *c);

/*
 * A cell of text for other tables: quoted where needed (RFC 4180), what could steer a terminal as '?' (safe_text.h), and
 * an apostrophe in front of what a spreadsheet would run. NULL: an empty cell.
 */
void ni_csv_text(FILE *f, const char *text);
/* Shortest form; nothing for NAN. */
void ni_csv_double(FILE *f, double value);

#endif
