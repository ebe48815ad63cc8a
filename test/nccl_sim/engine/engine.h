/*
 * The running job: ranks, communicators, kernels on the simulated device, and the work that the progress
 * thread polls.
 *
 * Model. A rank's application thread (app.c) launches a kernel per plan and raises the bracket Group, Coll,
 * P2p; inside it the works are posted to the communicator's progress thread (proxy.c). The device (device.c)
 * is driven by that thread too: kernels of a communicator run in launch order; one begins at max(launch, end
 * of the one before), works once all participating ranks are in it (meet.c), and ends a modelled time later.
 * With compute_us a rank has one order of kernels over all its communicators and computes before each: none
 * of these times is the machine's, as long as the application launches ahead of the device, so that a machine
 * under load has the logs of an idle one. Device times are host monotonic nanoseconds; only what is handed to
 * the plugin is converted to the rank's GPU clock (gpu_clock.h).
 *
 * A work passes: free -> filled by A -> posted -> appended to its chains -> polled -> no references -> truth
 * -> free. From 2.31 on the device and NCCL's host side count works by themselves (bracket.c), and a KernelCh
 * is what lies in the slot of the host's count: where the two counts differ, stamps of another work, or none
 * for long (poller.c).
 *
 * Threads: per rank A, and H for graph replays; per communicator and rank P, and from 2.31 on one more for
 * the network. `lock` of a communicator guards its free lists and its queue of posted kernels, `lock` of a
 * proxy the queue of posted works: that is the happens-before from start(Coll) to the children. Nodes, chains
 * and the device's kernel list are P's alone.
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

/* The device's ring of one channel from 2.31 on, kept only where a count may find another work's stamps. */
struct ni_ring {
  struct ni_slot {
    uint64_t started, stopped;         /* counts of the works whose stamps these are */
    uint64_t start, stop, open, close; /* stamps: the kernel's, and where it begins and ends to compute */
  } slot[64];
};

struct ni_node {        /* one KernelCh polling operation */
  struct ni_node *next; /* in its chain */
  struct ni_work *work;
  void *handle;    /* never cleared between uses: NCCL does not either (callbacks 4.5) */
  uint64_t number; /* of its stamps in its chain */
  /*
   * _Atomic: at a violent end (exit while P calls) the truth takes its snapshot of works in flight meanwhile.
   */
  _Atomic uint64_t start_stamp, stop_stamp; /* as handed to the plugin */
  uint8_t ch;
  /* the device counts further than NCCL on this channel: the stamps are those of earlier work */
  bool anothers;
  _Atomic uint8_t state;
  /* From 2.31 on: set under the communicator's lock before the work is posted. */
  uint64_t count, device_count; /* what NCCL waits for; what the device is at when it does this work */
  struct ni_ring *ring;         /* NULL: the two are equal, and what is read are its own stamps */
  bool ghost;                   /* no KernelCh: the device stamps it and nobody asks */
  /* P's */
  uint8_t device_state;
  bool stuck;     /* waits for stamps that no kernel here will leave */
  uint8_t phases; /* of this KernelCh: 0 none, 1 its own, 2 an earlier work's */
  uint64_t open_stamp, close_stamp;
};

struct ni_kernel {
  struct ni_kernel *next;
  const struct ni_plan *plan;
  uint64_t index; /* the same on all ranks */
  uint64_t launch_ns, start_ns, met_ns;
  uint64_t compute_ns; /* what the rank computes before it; 0: it is not in the rank's order of kernels */
  uint64_t turn;       /* its number in that order; 0: it ends when it is looked at (device.c) */
  uint64_t hash;       /* the kernel's own randomness */
  uint32_t noise;      /* factor on device times, 1024 = 1 */
  int participants;
  /* 0 queued, 1 this rank is in it, 2 all are: times known. P's; the network's thread reads */
  _Atomic int state;
  bool hangs;
  _Atomic int refs; /* works + device; acq_rel against itself */
};

/* THROWN: destroy threw its KernelCh away. */
enum ni_outcome { NI_OUT_DONE, NI_OUT_OPEN, NI_OUT_ABORT, NI_OUT_THROWN, NI_OUT_COUNT };
enum ni_occasion { NI_EAGER, NI_CAPTURE, NI_REPLAY };

struct ni_work {
  struct ni_work *next;     /* free list or posted queue */
  struct ni_work *net_next; /* queue of the network, from 2.31 on */
  struct ni_crank *c;
  struct ni_kernel *kernel;
  const struct ni_task *task;
  void *handle;
  int mask; /* latched */
  int peer;
  int64_t call; /* number of its API call on the communicator, -1: none was raised */
  _Atomic uint64_t sn, rec;
  _Atomic bool called;    /* start(Coll or P2p) reached the plugin */
  _Atomic bool unordered; /* A and H may have raced for `rec` */
  bool by_graph;
  /* of a captured call: replayed, or its bracket came at capture and never again */
  bool captured;
  bool parent; /* the plugin was given the API call's handle, which says whether it was captured */
  /* Of a fused symmetric kernel: who has KernelCh; the others, released with it. */
  struct ni_work *head, *tails, *next_tail;
  uint64_t tag;                        /* as handed over */
  uint64_t replayed_from, replayed_to; /* Unix, around the start of the call's replay before; 0: none */
  enum ni_outcome out;                 /* P's, before the last reference is dropped */
  int stuck_nodes;                     /* P's */
  /* counter 0 is posted: KernelCh at once, with stamps of nothing */
  bool nothing;
  bool stuck;                               /* P's: nothing of it will come; counted in n_stuck */
  bool apart;                               /* a P2P with the own rank came before it */
  _Atomic uint64_t before_ns, after_ns;     /* Unix, around that start */
  _Atomic uint64_t first_ns, last_ns;       /* Unix, before the first KernelCh start and the last stop */
  _Atomic uint64_t first_to_ns, last_to_ns; /* and after them */
  int n_nodes;
  _Atomic int n_done;
  /* bracket, device or nodes, network; the last one emits the truth (acq_rel with itself) */
  _Atomic int refs;
  _Atomic int busy; /* 1 while in flight: release by A, acquire by whoever lists open works */
  struct ni_node nodes[];
};

struct ni_chain {
  struct ni_node *head, *tail;
  struct {
    uint64_t start, stop;
  } stamps[64];       /* the device's ring, by the chain's own count */
  uint64_t n_stamped; /* nodes started */
  bool no_phases;     /* the last KernelCh had none although it might: its slot has an earlier work's */
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
  _Atomic uint64_t
      ahead; /* channels on which the device counts further than NCCL (ni_apart.h). relaxed: set and read
                             before a work is posted, under whose lock the poller gets it */
  _Atomic uint64_t rec[2]; /* relaxed: a counter */
  uint64_t next_index;     /* kernels, counted alike on all ranks; A's */
  int64_t calls[2];        /* API calls raised: collectives, Send and Recv; A's */
  pthread_mutex_t lock;
  pthread_cond_t room;
  struct ni_work *free_works, **works;
  struct ni_kernel *free_kernels, *posted_kernels, *posted_tail;
  int n_works, outstanding; /* under lock */
  int n_stuck;              /* of outstanding: works of which nothing will come any more; under lock */
  _Atomic int drop;         /* 1: P is to throw away what is queued; 2: done. seq_cst, once a life */
  /* Works counted on each channel, by NCCL and by the device: classic ones and symmetric ones. Under lock. */
  uint64_t counted[2][NI_SIM_CHANNELS], device_counted[2][NI_SIM_CHANNELS];
  struct ni_ring *rings[2][NI_SIM_CHANNELS];
  /* P's */
  struct ni_kernel *gpu_head, *gpu_tail;
  uint64_t stream_free_ns;
  /* collectives and sends; receives; symmetric kernels, from 2.31 on */
  struct ni_chain chains[3][NI_SIM_CHANNELS];
  uint64_t active[3][NI_SIM_CHANNELS / 64]; /* bits */
  struct ni_work *shadow;                   /* works without nodes, done when their kernel is */
  bool running;                             /* in the proxy's run list */
  /* truth.c */
  struct ni_truth_buf *truth;
};

struct ni_proxy {
  pthread_mutex_t lock;
  pthread_cond_t cond;
  pthread_cond_t net_cond;
  pthread_t thread, net_thread;
  bool started, stop, net_stop, abort; /* under lock */
  int users;
  void *creator_ctx; /* ProxyCtrl carries it for ever, also after the creator's finalize (callbacks 4.4) */
  struct ni_work *posted, *posted_tail;
  int n_posted;     /* under lock; read without it as a hint */
  _Atomic int wake; /* set by posters (release), taken by P (acquire): kernels or works are posted */
  struct ni_crank **served;
  int n_served;
  struct ni_crank **run;
  int n_run;
  struct ni_work *net_posted, *net_tail; /* from 2.31 on: works for the progress thread; under lock */
  struct ni_netop *netops;               /* the progress thread's, as net_rng is */
  uint64_t rng, net_rng, passes;
  int idle_state;
  struct ni_proxy *made_before;
};

struct ni_called { /* the API event of an operation */
  void *handle;
  int64_t call; /* -1: none was raised */
};

struct ni_graph { /* one captured group of one rank */
  const struct ni_step *step;
  int *masks;            /* latched, by task */
  struct ni_called *api; /* of capture time */
  uint64_t (*before)[2]; /* around the start of the last replay's operation, by task */
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
  /* With compute_us: the order of the rank's kernels over all communicators. */
  bool turns_begun;       /* A's */
  _Atomic uint64_t turns; /* given out; relaxed: a counter */
  /* release by the P whose kernel has ended, acquire by the P whose turn is next */
  _Atomic uint64_t turns_over;
  uint64_t turn_free_ns; /* when that kernel ended; of whose turn it is */
  struct ni_graph graphs[16];
  /* H's queue: one request at a time */
  pthread_mutex_t h_lock;
  pthread_cond_t h_cond;
  const struct ni_step *h_step;
  uint64_t h_todo;
  void (*h_call)(void *); /* instead of a replay: a host function that waits behind one */
  void *h_arg;
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
  int n_ranks;            /* in this process */
  struct ni_meet **meets; /* by communicator, shared between processes */
  struct ni_start *start; /* shared, too */
  struct ni_proxy *pool;  /* with progress_threads */
  pthread_barrier_t barrier;
  int64_t unix_minus_mono;
  pthread_mutex_t clique_lock;
  int *clique;       /* by communicator: ranks of this process that have destroyed it */
  _Atomic bool halt; /* application threads stop at the next operation; relaxed poll */
  _Atomic int halted;
  void *wild;    /* an address nobody may touch */
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
/* ranks that one of its kernels waits for */
int ni_participants(const struct ni_crank *c, const struct ni_plan *plan);

/* ---- bracket.c */
enum { NI_MAX_TASKS = 4096 };        /* of one group */
void ni_work_put(struct ni_work *w); /* drops one reference */
/* Raises Group, Coll, P2p for one plan and posts its works. `masks`, `api` and `before` by task of the plan;
 * `before` only of replays. */
void ni_bracket(struct ni_crank *c, const struct ni_step *st, const struct ni_plan *plan, const int *masks,
                const struct ni_called *api, enum ni_occasion when, uint64_t (*before)[2], uint64_t launch_ns,
                uint64_t index, uint64_t *rng);
/* A plan runs of which NCCL's host side knows nothing: the device counts its works. */
void ni_silent_plan(struct ni_crank *c, const struct ni_plan *plan);
/* The channels that a work's descriptor states. */
int ni_said_channels(const struct ni_work *w);

/* ---- graph.c: capture on A, replay on H */
void ni_graph_capture(struct ni_rank *r, struct ni_crank *c, const struct ni_step *st, const int *masks,
                      const struct ni_called *api);
void ni_graph_replay(struct ni_rank *r, const struct ni_step *st);
/* f(arg) on H, behind what it does; returns when it is done. */
void ni_graph_behind(struct ni_rank *r, void (*f)(void *), void *arg);
void ni_graph_stop(struct ni_rank *r);

/* ---- device.c, called by P */
/* When P looks at its communicators: set before each pass, for the device. */
extern _Thread_local uint64_t ni_looked_ns;
void ni_device_advance(struct ni_crank *c);
bool ni_node_start_at(const struct ni_node *n, uint64_t *at);
bool ni_node_stop_at(const struct ni_node *n, uint64_t *at);
uint64_t ni_kernel_end(const struct ni_kernel *k);
void ni_kernel_put(struct ni_crank *c, struct ni_kernel *k);
/* Where the work between a kernel's two synchronisations begins and ends, of a node that starts and stops at
 * these times. */
void ni_node_phases(const struct ni_node *n, uint64_t start_at, uint64_t stop_at, uint64_t *open_at,
                    uint64_t *close_at);
/* What the plugin is told for a device time, planted faults included. */
uint64_t ni_stamp_start(const struct ni_node *n, uint64_t at);
uint64_t ni_stamp_stop(const struct ni_node *n, uint64_t at);

/* ---- proxy.c */
void ni_proxy_start(struct ni_proxy *p);
/* From 2.31 on: is a work handed to the progress thread, for its network operations? It then holds a
 * reference. */
bool ni_network_asks(const struct ni_work *w);
/* Waits until the progress thread has something to do. */
void ni_proxy_sleep(struct ni_proxy *p);
/* Ends the thread: at once when `abort`, else after everything is done. */
void ni_proxy_join(struct ni_proxy *p, bool abort);
void ni_proxy_post(struct ni_proxy *p, struct ni_work *first, struct ni_work *last, int n);

/* ---- poller.c, called by P: one look at every node of a chain. True: something moved. */
bool ni_poll_chain(struct ni_crank *c, struct ni_chain *ch, uint64_t now, uint64_t *next_ns);
/* Throws away what is queued of a communicator that is being destroyed. */
void ni_poll_drop(struct ni_crank *c);

/* ---- netops.c, called by P */
void ni_netops_append(struct ni_proxy *p, struct ni_work *w);
bool ni_netops_pass(struct ni_proxy *p, uint64_t now);               /* true: something moved */
int ni_netops_of(const struct ni_crank *c, const struct ni_task *t); /* how many a task has */
void ni_proxy_ctrl(struct ni_proxy *p, enum ni_prof_state first, enum ni_prof_state last, int appended);

#endif
