/*
 * A truth file in memory. One thread; everything belongs to the struct until ni_truth_free. Failure: a file
 * that cannot be read or holds no process ends the program with a message.
 */
#ifndef NI_SIM_TRUTH_READ_H
#define NI_SIM_TRUTH_READ_H

#include "test/nccl_sim/core/scenario.h"

struct ni_true_op {
  int pid, rank;
  uint64_t hash;
  bool p2p, called, null_handle, unordered, missing;
  char func[24], dtype[20], algo[20], proto[12], timing[20], stamps[12], out[8];
  uint64_t sn, rec, bytes, exec_ns, enq_from, enq_to, first_ns, first_to, last_ns, last_to, end_ns;
  int64_t call;      /* -1: no API event */
  int64_t offset_ns; /* ni_gpu_observed_offset of the true stamps */
  int root, peer, nch, desc_nch, done_ch, mask;
  unsigned late_ms;
  bool symmetric, captured, parent, shared, shifted, phases; /* see struct ni_truth_op */
  char kernel[40];
  uint64_t tag, initial_ns, compute_ns, final_ns, replayed_from, replayed_to;
  int proc; /* index */
  int matches;
  uint64_t true_rec; /* verify: `rec` before it was looked for in the logs */
  bool replay;
  bool in_gap; /* verify: covered by a `gap` line */
};

struct ni_true_call { /* a collective without a Coll event */
  int pid, rank, root, proc;
  uint64_t tag, hash, bytes, enq_from, enq_to;
  int64_t call;
  char func[24], dtype[20], src[8];
  bool found;
};

struct ni_true_comm {
  int pid, rank, n_ranks, nnodes, interface;
  uint64_t hash;
  bool named;
  char name[256];
};

struct ni_true_proc {
  int pid, nccl;
  int most_channels; /* that a descriptor may say and be believed */
  int mask_steps;
  char host[128];
  enum ni_end how;
  bool ended;
  uint64_t end_ns;
  long long interval_us, min_bytes; /* of the plugin's environment */
  bool p2p_on, need_gpu, grow;
  bool every_event; /* NCCL_INSPECTOR_EVENTS is deep or trace */
  bool every_step;  /* trace */
  bool has_events;
  int interface;
  uint64_t event[16], steps, step_bytes; /* start callbacks by NCCL's bit; network transfers */
};

struct ni_true {
  struct ni_true_op *ops;
  struct ni_true_comm *comms;
  struct ni_true_proc *procs;
  struct ni_true_call *calls;
  size_t n_ops, n_comms, n_procs, n_calls;
};

void ni_truth_load(struct ni_true *t, const char *path);
void ni_truth_free(struct ni_true *t);
const struct ni_true_comm *ni_true_comm(const struct ni_true *t, int pid, uint64_t hash, int rank);
/* A symmetric kernel of which the plugin knows that it was replayed: NCCL times none of those. */
bool ni_true_untimed(const struct ni_true *t, const struct ni_true_op *op);
/* The plugin cannot know how many channels this operation has. */
bool ni_true_want_unknown(const struct ni_true *t, const struct ni_true_op *op);
/* NULL when the operation should be written, else why it should not: "filtered", "open" ... */
const char *ni_true_unwritten(const struct ni_true *t, const struct ni_true_op *op);

#endif
