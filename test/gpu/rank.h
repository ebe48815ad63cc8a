/*
 * One rank of the GPU driver: its device, its communicators, and operations issued with a truth of each.
 *
 * A rank is a process with one thread. Operations are kept in memory with the two CUDA events around each and
 * become truth lines at ni_rank_settle(), after the stream was synchronised: nothing is written while
 * something is measured. All ranks issue the same plan; where one has to decide (time is up), rank 0 decides
 * for all (ni_rank_agree).
 *
 * Ownership: everything lives until the process ends. Failure: an error of NCCL or CUDA ends the rank with a
 * message and status NI_DRIVE_FAILED; the parent then ends the others.
 */
#ifndef NI_TEST_GPU_RANK_H
#define NI_TEST_GPU_RANK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>

#include "gpu_api.h"
#include "truth.h"

enum { NI_DRIVE_OK = 0, NI_DRIVE_FAILED = 1, NI_DRIVE_USAGE = 2, NI_DRIVE_TIME = 3, NI_DRIVE_NO_GPU = 77 };
enum { NI_MAX_RANKS = 16, NI_MAX_IDS = 64, NI_MAX_PENDING = 2048, NI_MAX_COMMS = 16 };

/* Shared by all ranks of a run; anonymous shared memory made by the parent. */
struct ni_shared {
  /* barrier: the last to arrive resets and raises turn; acq_rel, pairs with itself */
  _Atomic int arrived, turn;
  _Atomic int decision; /* rank 0's; written before, read after a barrier: relaxed */
  /* rises with everything a rank gets done; the parent only compares it: relaxed */
  _Atomic unsigned progress;
  struct ni_unique_id id[NI_MAX_IDS]; /* written by rank 0 before a barrier */
};

enum ni_layout { NI_LAYOUT_HOSTID, NI_LAYOUT_GPUS, NI_LAYOUT_MULTIRANK, NI_LAYOUT_COUNT };

struct ni_drive_options {
  int ranks, iterations;
  uint64_t max_bytes;
  enum ni_layout layout;
  const char *cuda, *nccl, *dir, *plans, *end;
  int seconds; /* for all plans together; ni_rank_agree says when it is over */
  int stall;   /* seconds without progress of any rank after which the run is ended */
};

struct ni_gcomm {
  char name[NI_TRUTH_NAME];
  ni_nccl_comm nccl;
  int rank, ranks;
  bool nonblocking;
};

struct ni_pending {
  struct ni_gpu_op op;
  int event; /* index of the first of two events, -1: not timed */
};

struct ni_rank {
  struct ni_gpu_api api;
  const struct ni_drive_options *opt;
  struct ni_shared *shared;
  int rank, ranks, nccl, cc, next_id;
  ni_stream stream;
  ni_devptr send, recv;
  size_t cap;
  struct ni_gcomm comm[NI_MAX_COMMS];
  int n_comms;
  struct ni_pending pending[NI_MAX_PENDING];
  int n_pending;
  ni_event events[2 * NI_MAX_PENDING];
  uint64_t groups, open_group; /* open_group: 0 outside */
  bool capturing;              /* operations are kept for their replays */
  bool untimed;                /* no events around operations: plan_cost.c measures the calls themselves */
  int capture_from;
  uint64_t tag;     /* of the collectives issued from here on; 0: none. Only where ni_rank_tags() holds */
  void *windows[2]; /* NCCL's, of send and recv */
  uint64_t t_end_ns;
  FILE *truth;
};

static inline uint64_t ni_gpu_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Device, stream, buffers of max(opt->max_bytes, 4 KiB) each, truth file. */
void ni_rank_open(struct ni_rank *r);
/* The communicator of all ranks. config_flags: bit 0 non-blocking. */
struct ni_gcomm *ni_rank_world(struct ni_rank *r, const char *name, bool nonblocking);
/* NULL when this rank's colour is below 0. share: resources of the parent. */
struct ni_gcomm *ni_rank_split(struct ni_rank *r, struct ni_gcomm *c, int color, const char *name,
                               bool share);

/* One operation. bytes: the size nccl-tests would print (whole buffer for AllGather and ReduceScatter). */
void ni_rank_coll(struct ni_rank *r, struct ni_gcomm *c, const char *func, int dtype, uint64_t bytes,
                  int root);
void ni_rank_p2p(struct ni_rank *r, struct ni_gcomm *c, bool send, int dtype, uint64_t bytes, int peer,
                 uint64_t offset);
/*
 * ncclAlltoAll, which NCCL turns into a group of sends and receives; api.AlltoAll must be there. share: bytes
 * per peer.
 */
void ni_rank_alltoall(struct ni_rank *r, struct ni_gcomm *c, int dtype, uint64_t share);
void ni_rank_group_start(struct ni_rank *r);
void ni_rank_group_end(struct ni_rank *r);

/* Does this NCCL take tags with its calls (2.31)? */
bool ni_rank_tags(const struct ni_rank *r);
/*
 * From here on send and recv are memory of NCCL's, registered as windows of c for symmetric kernels. false:
 * not possible here, the buffers may be used all the same.
 */
bool ni_rank_windows_open(struct ni_rank *r, struct ni_gcomm *c, size_t bytes);
void ni_rank_windows_close(struct ni_rank *r, struct ni_gcomm *c);

/*
 * Between them operations go into a graph; launched `times` times, each a truth line per operation. behind:
 * there an AllReduce of NI_BEHIND_BYTES is issued while the replays still run; NULL: none.
 */
enum { NI_BEHIND_BYTES = 98304 };
void ni_rank_capture_start(struct ni_rank *r);
void ni_rank_capture_end(struct ni_rank *r, int times, struct ni_gcomm *behind);

/* Waits for the stream, writes what is pending. timed: with the events' times. */
void ni_rank_settle(struct ni_rank *r);
/* The operations since the last settle never finish: truth says lost. */
void ni_rank_lost(struct ni_rank *r);
/* destroy, abort: with a truth line. */
void ni_rank_close(struct ni_rank *r, struct ni_gcomm *c, const char *how);

/* What the parent's watch for a hang looks at. */
static inline void ni_rank_progress(struct ni_rank *r) {
  atomic_fetch_add_explicit(&r->shared->progress, 1, memory_order_relaxed);
}

void ni_rank_barrier(struct ni_rank *r);
/* rank 0's answer for all. */
bool ni_rank_agree(struct ni_rank *r, bool mine);
/* Is there time for more? The same answer on all ranks; a no becomes a skip line. */
bool ni_rank_time_for(struct ni_rank *r, const char *plan, const char *what);
/* Checks NCCL's result; in progress is waited for. */
void ni_rank_nccl(struct ni_rank *r, struct ni_gcomm *c, int result, const char *what);
void ni_rank_cuda(struct ni_rank *r, int result, const char *what);
_Noreturn void ni_rank_die(struct ni_rank *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Runs one plan by name; false: no such plan. */
bool ni_plan_run(struct ni_rank *r, const char *name);
void ni_plan_list(FILE *f);
/* plans_v7.c: symmetric kernels; the application's tags. */
void ni_plan_symmetric(struct ni_rank *r);
void ni_plan_tags(struct ni_rank *r);
/* Added time per operation: plan_cost.c. */
void ni_plan_cost(struct ni_rank *r);

#endif
