/*
 * A scenario: what every rank of a simulated job does, read from a small text file (grammar:
 * docs/simulator.md).
 *
 * One directive per line, `verb [name] key=value ...`, `#` starts a comment, `$name` stands for the value of
 * a setting. Settings given on the command line win over `set` lines. The result is immutable while ranks run
 * and is freed with ni_scn_free. Threads: parsed by one thread, then read by all. Failure: a scenario that
 * cannot be read ends the program with status 2; the message names file, line, value and what is accepted.
 */
#ifndef NI_SIM_SCENARIO_H
#define NI_SIM_SCENARIO_H

#include "format/names.h"

#include "sim.h"

enum ni_end {
  NI_END_FINALIZE,
  NI_END_EXIT,
  NI_END_QUICK_EXIT,
  NI_END_UNDERSCORE_EXIT,
  NI_END_SIGKILL,
  NI_END_COUNT
};
extern const char *const ni_end_names[NI_END_COUNT];

/* What the device's stamps of one channel look like. */
enum ni_stamps {
  NI_STAMPS_GOOD,
  NI_STAMPS_ZERO,     /* the start stamp is 0 */
  NI_STAMPS_BACKWARD, /* the stop stamp is before the start stamp */
  NI_STAMPS_STALE,    /* both are of work done long before */
  NI_STAMPS_FUTURE,   /* the stop stamp is 10 s ahead of the device */
  NI_STAMPS_LONG,     /* the start stamp is 2 h old */
  NI_STAMPS_COUNT
};
extern const char *const ni_stamps_names[NI_STAMPS_COUNT];

enum ni_held { NI_HELD_NOT, NI_HELD_QUEUED, NI_HELD_STARTED, NI_HELD_COUNT };
extern const char *const ni_held_names[NI_HELD_COUNT];

enum { NI_TASK_COLL = 0, NI_TASK_SEND = 1, NI_TASK_RECV = 2 };

/* One collective or one direction of a P2P, as every participating rank issues it. */
struct ni_task {
  int kind; /* NI_TASK_* */
  enum ni_func func;
  const char *func_name, *dtype, *algo, *proto;
  uint64_t count; /* elements, as the user gave them */
  uint32_t elem;  /* bytes of one */
  int root;
  /* P2P: peer = rank + shift (Send), rank - shift (Recv), modulo the communicator's size */
  int shift;
  int peer;           /* P2P: this peer instead, when >= 0 */
  int only_rank;      /* P2P with fixed ends: the rank that issues it; -1: all */
  uint16_t ch0, n_ch; /* 256 channels at most */
  uint8_t warps;
  bool collnet; /* the descriptor says 0 channels */
  bool paired;  /* shares the device work, and so the stamps, of the task before it */
  /* planted; -1 and 0 mean none */
  int late_ch;
  uint32_t late_ms; /* channel late_ch starts so long after the first channel has stopped */
  int missing_ch;   /* no events of this channel */
  int hang_rank;    /* this rank's kernel never ends; -2: every rank's */
  int lost_rank;    /* what others send to this rank never arrives, so nobody's kernel ends */
  enum ni_stamps stamps;
  /* this process also serves a proxy operation of another one: 1; 2: whose pid is this one's */
  int pxn;
  bool symmetric;      /* a symmetric-memory kernel: up to 2.30 it raises its API call and nothing else */
  const char *variant; /* its name; algo then points into it. NULL: classic */
  bool fused_tail;     /* one of the other calls in the symmetric kernel of the head before it */
  /* the profiled kernel of its type is missing: KernelCh is waited for and never comes */
  bool unprofiled;
  bool behind_replay; /* the host function waits behind a replay, as KernelCh's counters do not */
  /* destroy comes before the profiler thread does, to the start or the stop of KernelCh */
  enum ni_held held;
  bool config;      /* Broadcast with more than a tag in its config: not taken for an AllGatherV */
  bool second_part; /* one call that makes two operations: this is the second */
  uint64_t tag;     /* userProfilerTag; 0: none */
  int announced;    /* what the descriptor says of its channels; -1: what is so */
  /* device time relative to the moment all ranks are in the kernel, before noise; set by ni_model_times */
  uint64_t rel_start_ns, rel_stop_ns, late_ns;
};

struct ni_plan { /* one kernel */
  struct ni_task *tasks;
  int n_tasks;
  uint64_t total_ns;  /* last rel_stop */
  uint32_t jitter_ns; /* power of two: spread of the channels' stamps */
};

enum ni_verb {
  NI_DO_WORK,  /* plans, as one user group */
  NI_DO_GRAPH, /* capture plans */
  NI_DO_REPLAY,
  NI_DO_CE,
  NI_DO_INIT,
  NI_DO_DESTROY,
  NI_DO_ABORT,
  NI_DO_SYNC, /* wait until the device has finished everything of this communicator */
  NI_DO_SLEEP,
  NI_DO_MASK,    /* write the shared activation mask */
  NI_DO_RAS,     /* the same by RAS: again after every later init */
  NI_DO_PUT,     /* put, signal or wait: nothing is raised */
  NI_DO_BARRIER, /* all rank threads of this process */
  NI_DO_LOOP,
  NI_DO_END_LOOP,
  NI_DO_END /* the process ends here */
};

struct ni_step {
  enum ni_verb verb;
  int line;
  int comm;            /* index, -1 none */
  int *comms, n_comms; /* INIT, DESTROY: several; with `concurrent`, one thread each */
  bool concurrent;
  struct ni_plan *plans;
  int n_plans, n_tasks;
  bool user_group;        /* depth 2 in GroupApi */
  uint64_t times;         /* repeat of WORK, CE; LOOP; REPLAY */
  uint32_t queue_ms;      /* the kernel waits so long in its stream */
  int skip_rank;          /* this rank never calls it; -1 none */
  int only_rank;          /* no other rank calls it, and this one waits for them; -1 none */
  int pair_from, pair_to; /* only these two ranks take part; -1: all */
  uint32_t every_ms;      /* REPLAY: pause before each */
  int graph;              /* GRAPH, REPLAY: index of the graph */
  int match;              /* LOOP <-> END_LOOP */
  uint64_t value;         /* SLEEP ns, MASK bits */
  int who;                /* global rank that does it (MASK, RAS, SLEEP, END); -1 all */
  enum ni_end how;
  int ce_batches, ce_syncs;
  bool captured; /* CE: into a graph; its replays raise nothing */
  /* another communicator that takes part in the same user group with the same operations; -1 none */
  int with;
  /* > 0: the group's stop comes first, its kernels so much later, from a helper thread */
  uint32_t nonblocking_ms;
};

struct ni_comm_decl {
  char name[64];     /* in the scenario */
  const char *label; /* ncclConfig_t.commName; NULL none */
  int *ranks;        /* global ranks by communicator rank */
  int n_ranks, n_nodes;
  int live;           /* how many of them are simulated: the first `live`; the others always keep up */
  int share;          /* communicator whose progress thread it shares; -1 own */
  bool two_threads;   /* A and H call for it at the same time */
  bool explicit_init; /* an `init` step exists */
};

struct ni_settings {
  int release, interface;
  uint64_t seed;
  int ranks, nodes, gpus_per_node;
  bool procs;
  double rate;            /* operations per second and rank; 0: as fast as possible */
  double time_scale;      /* factor on modelled device durations */
  int inflight;           /* operations a communicator may have on the device */
  uint32_t launch_us;     /* from launch to the kernel's start */
  uint32_t stop_delay_us; /* most that the bracket's closing is delayed, at random */
  uint32_t poll_delay_us; /* most that the progress thread is delayed, at random */
  uint32_t gap_us;        /* host time between operations */
  /* device time of a rank before each of its kernels (device.c); 0: communicators run beside each other */
  uint32_t compute_us;
  int progress_threads; /* > 0: all communicators share so many; 0: one each, as NCCL */
  int poison;           /* enum ni_poison */
  int net_steps;        /* network transfers per proxy operation */
  int repeats;          /* most extra recv starts and send-wait states per step (Q1, Q3) */
  /* stamps are those of the work so many before on the channel (Q5, Q6); 0: counts agree */
  int behind;
  /* a channel with more than 64 works pending shows stamps of later ones (Q4) */
  bool overrun;
  double gpu_offset_us, gpu_drift_ppm;     /* NAN: by seed */
  int straggler_rank, slow_rank, slow_gpu; /* global; -1 none */
  double straggler_ms, slow_factor;        /* host delay per operation; factor on device time */
  double slow_gpu_percent;                 /* how much longer slow_gpu computes */
  enum ni_end end;
  bool allgatherv;  /* 2.29 and later: Broadcast raises no Coll */
  int vary_percent; /* size of the noise on device times */
  bool rearch;      /* NCCL's new way of queueing work, off by default */
  bool one_pass, destroy_open;
  /* What is inferred of 2.31 and not seen: the default is our reading (docs/simulator.md). */
  bool classic_phases, collnet_phases, barrier_phases, old_phases, mask_shifts, shift_stamps, replay_tag,
      counter0, empty_proto, lasting_texts;
};

struct ni_scn {
  char path[256];
  struct ni_settings set;
  struct ni_comm_decl *comms;
  int n_comms;
  struct ni_step *steps;
  int n_steps;
  int n_graphs;
  int max_ch;    /* most channels any task uses */
  int max_tasks; /* most tasks of one step */
};

/* `sets`: "key=value" from the command line, n of them. */
struct ni_scn *ni_scn_read(const char *path, const char *const *sets, int n);
/* The same from memory; `path` is used in messages. */
struct ni_scn *ni_scn_parse(const char *text, const char *path, const char *const *sets, int n);
void ni_scn_free(struct ni_scn *s);
/* Fills time and channel fields that the file left open (model.c). */
void ni_model_defaults(const struct ni_scn *s, const struct ni_comm_decl *c, struct ni_task *t);
void ni_model_times(const struct ni_scn *s, const struct ni_comm_decl *c, struct ni_plan *p);
/* Every setting with its default and meaning, for help and man page. */
struct ni_help_page;
void ni_settings_words(struct ni_help_page *p);

/* What a text of a mask means to RAS; -1: no such. */
int ni_ras_mask(const char *text);

static inline uint64_t ni_task_bytes(const struct ni_task *t) { return t->count * t->elem; }
static inline int ni_task_peer(const struct ni_task *t, int rank, int n) {
  if (t->peer >= 0)
    return t->peer;
  return ((t->kind == NI_TASK_SEND ? rank + t->shift : rank - t->shift) % n + n) % n;
}

#endif
