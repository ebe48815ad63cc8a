/*
 * gpu_check: what the GPU driver issued (truth.h) against what the plugin's logs say.
 *
 * Truth and records are joined by process id, communicator name and kind; both sides are in the order of
 * issue (records by rec_sn), the operations of one group in any order. One thread; everything lives until the
 * program ends. A result is a row on stdout: verdict, what, figures, with tabs between. Verdicts: ok, FAIL,
 * info (a figure that is not judged).
 */
#ifndef NI_TEST_GPU_CHECK_H
#define NI_TEST_GPU_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "format/record.h"

#include "truth.h"

struct ni_gpu_process { /* one truth file */
  int pid, rank, ranks, nccl;
  char layout[16], device[64], algo[16], proto[16];
  bool broadcast_on;          /* NCCL_ALLGATHERV_ENABLE=0 */
  bool done, aborted, exited; /* exited: without destroying its communicators */
  bool final;                 /* the log has a final line of it */
};

struct ni_gpu_true_op {
  struct ni_gpu_op op;
  int process;
  uint64_t order;
  const struct ni_gpu_rec *rec; /* set by the match */
};

struct ni_gpu_cost {
  char what[32];
  uint64_t ns;
};

struct ni_gpu_truth {
  struct ni_gpu_process *processes;
  struct ni_gpu_true_op *ops;
  struct ni_gpu_cost *costs;
  uint64_t *gaps;
  size_t n_processes, n_ops, n_costs, n_gaps, skipped_time, skipped_other;
};

struct ni_gpu_rec {
  int pid, n_ranks;
  char comm[NI_TRUTH_NAME], func[20], dtype[20], algo[20], proto[12];
  struct ni_record r; /* its strings are not used */
};

struct ni_gpu_check {
  struct ni_gpu_truth truth;
  struct ni_gpu_rec *recs;
  size_t n_recs, failures;
  struct ni_gpu_rec
      /* records that were made from an API call, as no kernel of theirs is shown: Broadcast since 2.29 */
      *calls;
  size_t n_calls;
  /* from the final lines */
  uint64_t started, written, filtered, dropped, incomplete, in_flight, finals, bad_lines;
  bool tags;                            /* the logs are of an interface that has them */
  bool any_timing, shared_gpu, unnamed; /* unnamed: before v4 a plugin is told no communicator's name */
  double busbw_percent;
};

void *ni_gpu_grow(void *p, size_t n, size_t size);
/* Reads truth-*.txt of a folder. Ends the program with a message when there is none. */
void ni_gpu_truth_read(struct ni_gpu_truth *t, const char *dir);
/* No event is raised for these (callbacks 6). */
bool ni_gpu_invisible(const struct ni_gpu_truth *t, const struct ni_gpu_true_op *o);
void ni_gpu_row(struct ni_gpu_check *c, const char *verdict, const char *what, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* The same by process: Broadcast, 2.29 or later, without the setting that brings its events back. */
bool ni_gpu_no_broadcast(const struct ni_gpu_process *p);
/* Execution times against events, bandwidths; needs the match. */
void ni_gpu_check_times(struct ni_gpu_check *c);

#endif
