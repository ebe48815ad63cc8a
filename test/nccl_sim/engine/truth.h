/*
 * The truth file: what really happened, from outside the plugin, one flat JSON object per line
 * (docs/simulator.md).
 *
 * Lines are collected per communicator and appended to the file in whole lines, so several processes may
 * share it. Threads: any. Failure: a truth that cannot be written ends the run, as nothing could be verified
 * after it.
 */
#ifndef NI_SIM_TRUTH_H
#define NI_SIM_TRUTH_H

#include "engine.h"

struct ni_truth_channel {
  int ch;
  uint64_t start, stop; /* stamps */
};

struct ni_truth_op { /* one line; strings are not NULL */
  uint64_t hash, sn, rec, bytes, exec_ns, enq_from, enq_to, first_ns, first_to, last_ns, last_to;
  int64_t call; /* -1: none */
  int rank, root, peer, nch, desc_nch, done_ch, mask, n_channels;
  bool coll, called, null_handle, unordered, missing;
  bool symmetric; /* as far as the plugin can know */
  bool captured;  /* of a captured call: replayed, or at capture, once */
  /* the plugin was given its API call, which says whether it was captured */
  bool parent;
  /* of several calls in one symmetric kernel: channels and times are the kernel's */
  bool shared;
  /* NCCL and the device count apart: stamps are another work's */
  bool shifted;
  /* a KernelCh of it had phases; all had, and they are its own */
  bool phased, phases_known;
  uint64_t tag, initial_ns, compute_ns, final_ns; /* the tag as handed over */
  /* around the start of the replay before of the same call; 0: none */
  uint64_t replayed_from, replayed_to;
  const char *kernel; /* NCCL's name as handed over; "": none */
  const char *func, *dtype, *algo, *proto, *timing, *stamps;
  enum ni_outcome out;
  unsigned late_ms;
  struct ni_truth_channel channels[NI_SIM_CHANNELS];
};

/* a collective of which the plugin is shown the API call ("api") or copies ("ce"), never a Coll */
struct ni_truth_called {
  uint64_t tag, hash, bytes, enq_from, enq_to;
  int64_t call;
  int rank, root;
  const char *func, *dtype, *src;
};

/* Without a scenario's structures (replay): one line, written at once. */
void ni_truth_line(const struct ni_truth_op *o);
void ni_truth_called_line(const struct ni_truth_called *o);
void ni_truth_comm_line(const struct ni_comm_ident *id);

/* NULL: no truth is kept and every other call does nothing. Call before fork; truncates the file. */
void ni_truth_open(const char *path);
/* Once per process, after its environment is set. */
void ni_truth_process(const char *host, uint64_t seed, int mask_steps);
void ni_truth_comm(struct ni_crank *c);
/*
 * Around each change of a work that is told: a process that exits tells those in flight while their progress
 * thread goes on.
 */
void ni_truth_lock(struct ni_crank *c);
void ni_truth_unlock(struct ni_crank *c);
/* One operation; emitted once, DONE by whoever drops the last reference, others by ni_truth_close_comm. */
void ni_truth_work(struct ni_work *w, enum ni_outcome out);
/*
 * A collective of which the plugin is shown the API call (src "api") or a copy-engine collective ("ce"),
 * never a Coll.
 */
void ni_truth_call(struct ni_crank *c, const struct ni_task *t, int64_t call, const char *src,
                   uint64_t from_ns, uint64_t to_ns);
/* Works still in flight are emitted with `out`. Nothing of this communicator is accepted afterwards. */
void ni_truth_close_comm(struct ni_crank *c, enum ni_outcome out);
/* What the plugin was shown of each kind of event; after all threads have ended. */
void ni_truth_events(void);
/* The process ends this way now. */
void ni_truth_end(enum ni_end how);

#endif
