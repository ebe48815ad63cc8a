/*
 * Operations of one cell, put together from the segments of its ranks, in order of (sn, communicator).
 *
 * Model: the segments of one rank are a stream in order of sn (several are open at once only where their
 * numbers overlap); the streams of one communicator go forward in step, since its ranks share their numbers;
 * a heap holds the communicators. Nothing is stored but one record per stream. A record that came twice (same
 * communicator, rank, sn; P2P: also peer) is handed out once, from the file that comes first, and counted.
 *
 * Threads: one per join; several joins at once of different cells. Ownership: ni_join_end() frees all.
 * Failure: -ENOMEM, -errno of the spill file.
 */
#ifndef NI_SUMMARY_JOIN_H
#define NI_SUMMARY_JOIN_H

#include "exporter/model/sums/state.h"

struct ni_op_part { /* one rank's record */
  struct ni_entry e;
  uint32_t process, seat; /* indices in the result */
  int32_t rank, nnodes;
};

struct ni_operation {
  uint64_t sn;
  uint32_t comm; /* ours */
  uint32_t n;
  struct ni_op_part *part; /* by rank; until the next call */
};

struct ni_join;

int ni_join_begin(struct ni_join **out, struct ni_run *r, struct ni_sum_cell *cell);
/* 1: *op; 0: no more; -errno. P2P: every part is an operation of its own. */
int ni_join_next(struct ni_join *j, struct ni_operation *op);
uint64_t ni_join_duplicates(const struct ni_join *j);
void ni_join_end(struct ni_join *j);

#endif
