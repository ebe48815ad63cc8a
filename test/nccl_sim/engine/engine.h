/*
 * The running job: ranks, communicators, kernels on the simulated device, and the work that the progress thread polls.
 *
 * Model. A rank's application thread (app.c) launches a kernel per plan and raises the bracket Group, Coll, P2p; inside
 * it the works are posted to the communicator's progress thread (proxy.c). The device (device.c) is driven by that
 * thread too: kernels of a communicator run in launch order; one begins at max(launch, end of the one before), works
 * once all participating ranks are in it (meet.c), and ends a modelled time later. Device times are host monotonic
 * nanoseconds; only what is handed to the plugin is converted to the rank's GPU clock (gpu_clock.h).
 *
 * A work passes: free -> filled by A -> posted -> appended to its chains -> polled -> no references -> truth -> free.
 *
 * Threads: per rank A, and H for graph replays; per communicator and rank P. `lock` of a communicator guards its free
 * lists and its queue of posted kernels, `lock` of a proxy the queue of posted works: that is the happens-before from
 * start(Coll) to the children. Nodes, chains and the device's kernel list are P's alone.
 * Ownership: ni_run owns everything; freed when the process ends, as several ends are abrupt.
 * Failure: a job that cannot go on ends the program with a message (ni_die).
 */
#ifndef NI_SIM_ENGINE_H
#define NI_SIM_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>

#include "test/nccl_sim/core/core.h"
#include "test/nccl_sim/core/gpu_clock.h"
#include "test/nccl_sim/core/meet.h"
#include "test/nccl_sim/core/scenario.h"

struct ni_crank;
struct ni_proxy;
struct ni_netop;

enum ni_node_state { NI_NODE_POSTED, NI_NODE_STARTED, NI_NODE_DONE };

struct ni_node { /* one KernelCh polling operation */
  struct ni_node *next; /* in its chain */
  struct ni_work *work;
  void *handle; /* never cleared between uses: NCCL does not either (callbacks 4.5) */
  uint64_t number; /* of its stamps in its chain */
  /* _Atomic: at a violent end (exit while P calls) the truth takes its snapshot of works in flight meanwhile. */
  _Atomic uint64_t start_stamp, stop_stamp; /* as handed to the plugin */
  uint8_t ch;
  bool anothers; /* the device counts further than NCCL on this channel: the stamps are those of earlier work */
  _Atomic uint8_t state;
};

struct ni_kernel {
  struct ni_kernel *next;
  const struct ni_plan *plan;
  uint64_t index;  /* the same on all ranks */
  uint64_t launch_ns, start_ns, met_ns;
  uint64_t hash;   /* the kernel's own randomness */
  uint32_t noise;  /* factor on device times, 1024 = 1 */
  int participants;
  int state;       /* 0 queued, 1 this rank is in it, 2 all are: times known */
  bool hangs;
  _Atomic int refs; /* works + device; acq_rel against itself */
};

enum ni_outcome { NI_OUT_DONE, NI_OUT_OPEN, NI_OUT_ABORT, NI_OUT_COUNT };

struct ni_work {
  struct ni_work *next; /* free list or posted queue */
  struct ni_crank *c;
  struct ni_kernel *kernel;
  const struct ni_task *task;
  void *handle;
  int mask;  /* latched */
  int peer;
  int64_t call; /* number of its API call on the communicator, -1: none was raised */
  _Atomic uint64_t sn, rec;
  _Atomic bool called;     /* start(Coll or P2p) reached the plugin */
  _Atomic bool unordered;  /* A and H may have raced for `rec` */
  bool by_graph;
  bool apart; /* a P2P with the own rank came before it */
  _Atomic uint64_t before_ns, after_ns; /* Unix, around that start */
  _Atomic uint64_t first_ns, last_ns;   /* Unix, before the first KernelCh start and the last stop */
  _Atomic uint64_t first_to_ns, last_to_ns; /* and after them */
  int n_nodes;
  _Atomic int n_done;
  _Atomic int refs; /* bracket, device or nodes, network; the last one emits the truth (acq_rel with itself) */
  _Atomic int busy; /* 1 while in flight: release by A, acquire by whoever lists open works */
  struct ni_node nodes[];
};

struct ni_chain {
  struct ni_node *head, *tail;
  struct {
    uint64_t start, stop;
  } stamps[64];      /* the device's ring, by the chain's own count */
  uint64_t n_stamped; /* nodes started */
};

struct ni_crank { /* one communicator on one rank */
  const struct ni_comm_decl *decl;
  int comm; /* index */
  struct ni_rank *owner;
  struct ni_comm_ident id;
  void *ctx;
  _Atomic bool up; /* seq_cst: the clique's other ranks wait for it to fall */
  bool loaded;
  unsigned inits; /* a new life has a new hash, as a new unique id gives it */
  struct ni_proxy *proxy;
  struct ni_meet *meet;
  _Atomic uint64_t sn[NI_FUNC_COUNT]; /* relaxed: a counter; A's and H's */
  _Atomic uint64_t ahead; /* channels on which the device counts further than NCCL (ni_apart.h). relaxed: set and read
                             before a work is posted, under whose lock the poller gets it */
  _Atomic uint64_t rec[2]; /* relaxed: a counter */
  uint64_t next_index;     /* kernels, counted alike on all ranks; A's */
  int64_t calls[2];        /* API calls raised: collectives, Send and Recv; A's */
  pthread_mutex_t lock;
  pthread_cond_t room;
  struct ni_work *free_works, **works;
  struct ni_kernel *free_kernels, *posted_kernels, *posted_tail;
  int n_works, outstanding; /* under lock */
  /* P's */
  struct ni_kernel *gpu_head, *gpu_tail;
  uint64_t stream_free_ns;
  struct ni_chain chains[2][64];
  uint64_t active[2];
  struct ni_work *shadow; /* works without nodes, done when their kernel is */
  bool running; /* in the proxy's run list */
  /* truth.c */
  struct ni_truth_buf *truth;
};

struct ni_proxy {
  pthread_mutex_t lock;
  pthread_cond_t cond;
  pthread_t thread;
  bool started, stop, abort; /* under lock */
  int users;
  void *creator_ctx;  /* ProxyCtrl carries it for ever, also after the creator's finalize (callbacks 4.4) */
  struct ni_work *posted, *posted_tail;
  int n_posted;       /* under lock; read without it as a hint */
  _Atomic int wake;   /* set by posters (release), taken by P (acquire): kernels or works are posted */
  struct ni_crank **served;
  int n_served;
  struct ni_crank **run;
  int n_run;
  struct ni_netop *netops;
  uint64_t rng, passes;
  int idle_state;
  struct ni_proxy *made_before;
};

struct ni_called { /* the API event of an operation */
  void *handle;
  int64_t call; /* -1: none was raised */
};

struct ni_graph { /* one captured group of one rank */
  const struct ni_step *step;
  int *masks;       /* latched, by task */
  struct ni_called *api; /* of capture time */
  bool has_proxy;
};

struct ni_rank {
  struct ni_run *run;
  int rank; /* global */
  pthread_t a, h;
  struct ni_gpu_clock clock;
  struct ni_crank **cranks; /* by communicator; NULL where not a member */
  uint64_t rng;
  void *group_api, *coll_api, *p2p_api; /* kept like NCCL's thread-local state: not cleared (Q7) */
  uint64_t next_due_ns;
  struct ni_graph graphs[16];
  /* H's queue: one request at a time */
  pthread_mutex_t h_lock;
  pthread_cond_t h_cond;
  const struct ni_step *h_step;
  uint64_t h_todo;
  bool h_stop, h_started;
  uint64_t h_rng; /* H's own */
};

/* Where ranks agree on when their clocks of `rate` begin; shared between processes. */
struct ni_start {
  _Atomic int arrived;
  _Atomic uint64_t at_ns; /* 0: not yet. release by the last to arrive, acquire by those who wait */
};

struct ni_run {
  const struct ni_scn *scn;
  const char *scenario;
  int proc; /* of how many the job has; 0 when all ranks are here */
  struct ni_rank *ranks;
  int n_ranks; /* in this process */
  struct ni_meet **meets; /* by communicator, shared between processes */
  struct ni_start *start; /* shared, too */
  struct ni_proxy *pool;  /* with progress_threads */
  pthread_barrier_t barrier;
  int64_t unix_minus_mono;
  pthread_mutex_t clique_lock;
  int *clique; /* by communicator: ranks of this process that have destroyed it */
  _Atomic bool halt; /* application threads stop at the next operation; relaxed poll */
  _Atomic int halted;
  void *wild; /* an address nobody may touch */
  int interface; /* that the last communicator was given: it outlives the library */
};

extern struct ni_run ni_run;

/* ---- life.c: communicators */
void ni_run_prepare(const struct ni_scn *s, const char *scenario);
void ni_crank_init(struct ni_crank *c);
void ni_crank_drain(struct ni_crank *c);
void ni_crank_destroy(struct ni_crank *c);
void ni_crank_abort(struct ni_crank *c);

/* ---- app.c */
void *ni_app_main(void *rank);
bool ni_takes_part(const struct ni_crank *c, const struct ni_step *st);
bool ni_task_mine(const struct ni_crank *c, const struct ni_task *t);
int ni_participants(const struct ni_crank *c, const struct ni_plan *plan); /* ranks that one of its kernels waits for */

/* ---- bracket.c */
enum { NI_MAX_TASKS = 4096 }; /* of one group */
void ni_work_put(struct ni_work *w); /* drops one reference */
/* Raises Group, Coll, P2p for one plan and posts its works. `masks` and `api` by task of the plan. */
void ni_bracket(struct ni_crank *c, const struct ni_step *st, const struct ni_plan *plan, const int *masks,
                const struct ni_called *api, bool by_graph, uint64_t launch_ns, uint64_t index, uint64_t *rng);

/* ---- graph.c: capture on A, replay on H */
void ni_graph_capture(struct ni_rank *r, struct ni_crank *c, const struct ni_step *st, const int *masks,
                      const struct ni_called *api);
void ni_graph_replay(struct ni_rank *r, const struct ni_step *st);
void ni_graph_stop(struct ni_rank *r);

/* ---- device.c, called by P */
void ni_device_advance(struct ni_crank *c);
bool ni_node_start_at(const struct ni_node *n, uint64_t *at);
bool ni_node_stop_at(const struct ni_node *n, uint64_t *at);
uint64_t ni_kernel_end(const struct ni_kernel *k);
void ni_kernel_put(struct ni_crank *c, struct ni_kernel *k);
/* What the plugin is told for a device time, planted faults included. */
uint64_t ni_stamp_start(const struct ni_node *n, uint64_t at);
uint64_t ni_stamp_stop(const struct ni_node *n, uint64_t at);

/* ---- proxy.c */
void ni_proxy_start(struct ni_proxy *p);
/* Ends the thread: at once when `abort`, else after everything is done. */
void ni_proxy_join(struct ni_proxy *p, bool abort);
void ni_proxy_post(struct ni_proxy *p, struct ni_work *first, struct ni_work *last, int n);

/* ---- netops.c, called by P */
void ni_netops_append(struct ni_proxy *p, struct ni_work *w);
bool ni_netops_pass(struct ni_proxy *p, uint64_t now); /* true: something moved */
int ni_netops_of(const struct ni_crank *c, const struct ni_task *t); /* how many a task has */
void ni_proxy_ctrl(struct ni_proxy *p, enum ni_prof_state first, enum ni_prof_state last, int appended);

#endif
