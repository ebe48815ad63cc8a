/*
 * What operations add up to: everything of the result that is summed over records, kept as whole numbers
 * until the end, so that the order of adding, and with it --jobs, changes nothing.
 *
 * Threads: a struct ni_sums belongs to a thread and is added to the run's at its end; struct ni_cell_sums is
 * made and used up by the one thread that has the cell. Failure: -ENOMEM.
 */
#ifndef NI_SUMMARY_CELL_FIGURES_H
#define NI_SUMMARY_CELL_FIGURES_H

#include "exporter/base/counts.h"
#include "exporter/model/sums/packed/dist.h"
#include "exporter/model/sums/join/join.h"

struct ni_process_sums {
  /* relative_ppm: sum over compared of 1e6 * duration / peers' median. */
  /* timed_waits: operations whose waits for peers all ranks state; behind_ns: sum of how much later it came
   * than the peers in the middle (two's complement), behind_us2: of its squares. */
  NI_COUNTS(all, records, exec_ns, compared, shortest, late, late_ns, relative_ppm, timed_waits, behind_ns,
            behind_us2);
};

struct ni_seat_sums { /* of struct ni_seat; behind_us in two's complement */
  NI_COUNTS(all, met, last, behind_us, behind_us2, alone_ns, host_alone_ns);
};

struct ni_comm_sums {
  /* transfer_ns, kernel_ns: of collectives the sum of minima and of all durations; timed, timed_bytes:
   * operations in these two, those without a kernel's time left out, and their sizes. */
  NI_COUNTS(added, records, operations, partial, transfer_ns, kernel_ns, timed, timed_bytes);
  uint64_t max_ranks;
  int64_t first_ns, last_ns; /* starts and stops; first > last: none */
  int64_t first_us, last_us;
  bool no_start, any;
};

struct ni_sums {
  struct ni_process_sums *process;
  struct ni_comm_sums *comm;
  struct ni_seat_sums *seat;
  /* NI_SUM_LATE; a heap, the least loss first; .group: cell * NI_TIMING_COUNT + timing */
  struct ni_outlier *late;
  size_t n_late;
  struct ni_crossings crossings; /* of sampled logs */
  NI_COUNTS(all, duplicates, operations, records, clocks_disagree, skipped);
  struct ni_bucket_table buckets;
  struct ni_tag_sums tags;
};

struct ni_value_sums { /* of a slice, or of a bin of time */
  struct ni_dist us, busbw;
  /* of a communicator: operations whose ranks are compared, the sum of their least durations */
  /* of a process, in sampled logs: such operations, and what the others waited for it alone in these */
  NI_COUNTS(added, met, transfer_ns, alone_ns);
};

struct ni_group_sums {
  uint64_t records, operations, no_bandwidth;
  uint64_t tails, tail_ns; /* records whose time another one counts, and that time */
  struct ni_dist us, busbw, transfer, job;
  uint64_t mix[NI_MIX_MAX + 1];
  struct ni_value_sums *bin;              /* n_bins; NULL without series */
  struct ni_value_sums **comm, **process; /* NULL without slices; each NULL where there is nothing */
  struct ni_outlier slow[NI_SUM_OUTLIERS];
  uint32_t n_slow;
};

struct ni_cell_sums {
  struct ni_run *r;
  const struct ni_summary *s;
  uint32_t cell;       /* in the result */
  bool series, slices; /* whether points and time bins, and slices, are kept of it */
  struct ni_group_sums *group[NI_TIMING_COUNT];
  struct ni_dist busbw; /* of the operations' means, in bytes/s, rounded: for histogram and box */
  uint64_t records, operations;
  struct ni_point *point;
  uint32_t n_points;
  uint64_t stride;
  uint64_t *order; /* scratch: durations of one operation, and room to sort them */
  size_t cap_order;
};

/* One operation (P2P: one part). mean_bytes_per_s: as in the CSV, NAN without. */
int ni_cell_add(struct ni_cell_sums *c, struct ni_sums *t, const struct ni_operation *op,
                double mean_bytes_per_s, struct ni_heat *heat, int64_t *heat_ppm);
/* Ranks of these do not do the same: a root ends as soon as it has sent, or as all have come. */
bool ni_func_has_root(const char *func);
/* Keeps it if it is among the NI_SUM_LATE worst. In whatever order they come, the same ones stay. */
void ni_sums_keep_late(struct ni_sums *t, const struct ni_outlier *o);
/* For those who add sums of other processes (team/team.h). The group and the slice are made where there are
 * none; NULL: no memory. points: n of them from a cell of such a stride, as bytes. */
struct ni_group_sums *ni_group_of(struct ni_cell_sums *c, unsigned timing);
struct ni_value_sums *ni_slice_of(struct ni_value_sums **at);
void ni_keep_worst(struct ni_outlier *list, uint32_t *n, const struct ni_outlier *o);
int ni_points_add(struct ni_cell_sums *c, const void *points, uint32_t n, uint64_t stride);
void ni_comm_sums_add(struct ni_comm_sums *to, const struct ni_comm_sums *from);
void ni_cell_free(struct ni_cell_sums *c);

#endif
