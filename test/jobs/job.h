/*
 * A training job as a plan: ranks on hosts, communicators, and for each rank what it does in a step. Made
 * once from layout, kind and seed, then only read: the model (engine.h) runs it with and without its faults.
 * Times are ns of true time as doubles, from the job's begin; sizes are bytes, bandwidths bytes/ns.
 */
#ifndef NI_JOBS_JOB_H
#define NI_JOBS_JOB_H

#include <stdbool.h>
#include <stdint.h>

#define NJ_COMMS 6    /* communicators of one rank, at most */
#define NJ_EVENTS 256 /* events of a rank's step, at most */
#define NJ_HOST_GPUS 8
#define NJ_EVAL_COMPUTE 2.0 /* a batch of an evaluation over one of training */

enum nj_stream { NJ_MAIN, NJ_SIDE, NJ_PIPE, NJ_STREAMS }; /* compute; gradients; Send and Receive */

enum nj_func { NJ_ALL_REDUCE, NJ_ALL_GATHER, NJ_REDUCE_SCATTER, NJ_ALL_TO_ALL, NJ_FUNCS };

enum nj_what { NJ_COMPUTE, NJ_COLL, NJ_P2P, NJ_RECORD, NJ_WAIT, NJ_SYNC };

struct nj_part { /* one Send or Receive of a group */
  int peer;      /* rank in the communicator */
  bool recv;
  double bytes;
};

struct nj_instr {
  uint8_t what, stream, func;
  uint8_t fixed;   /* compute that faults of the model's work do not touch: optimizer, loss */
  uint16_t event;  /* of RECORD and WAIT */
  int16_t expert;  /* number of the expert layer whose routing scales this compute or these sizes; -1: none */
  int comm;        /* the rank's own number of the communicator */
  double ns;       /* of COMPUTE */
  double bytes;    /* of COLL, as NCCL counts */
  int part, parts; /* of P2P: where in the rank's parts */
};

struct nj_code { /* instructions of a round */
  struct nj_instr *instr;
  int n, cap;
};

/* a step of the job; a forward pass alone, of an evaluation */
enum nj_program { NJ_TRAIN, NJ_EVAL, NJ_PROGRAMS };

struct nj_rank {
  int host, local, tp, dp, pp;
  int n_comms, comm[NJ_COMMS], member[NJ_COMMS];
  struct nj_code code[NJ_PROGRAMS];
  struct nj_part *part;
  int n_parts, cap_parts;
  double speed; /* its compute time over the mean GPU's */
};

struct nj_comm {
  uint64_t hash;
  char name[56]; /* "": none */
  char role;     /* t, d, p, w, e */
  int n, *rank;
  int n_hosts, *host; /* in the ring's order */
};

enum nj_kind {
  NJ_HEALTHY,
  NJ_NOISY,
  NJ_LATE,
  NJ_INTERMITTENT,
  NJ_ONSET,
  NJ_EPISODE,
  NJ_MOVING,
  NJ_NIC,
  NJ_RAIL,
  NJ_NVLINK,
  NJ_CPU,
  NJ_GPU,
  NJ_STAGE,
  NJ_PAIR,
  NJ_CONGESTION,
  NJ_UNEVEN,
  NJ_TWO,
  NJ_GC,
  NJ_CHECKPOINT,
  NJ_EVALUATION,
  NJ_PAUSES,
  NJ_FLAP,
  NJ_THROTTLE,
  NJ_REPLICA,
  NJ_STAGES_DIFFER,
  NJ_INFERENCE,
  NJ_TWO_JOBS,
  NJ_TWO_ATTEMPTS,
  NJ_KINDS
};

#define NJ_SPANS 64
#define NJ_STAGES 8

/* Whom a cause concerns that is not of one rank or host alone. */
enum nj_who { NJ_RANK, NJ_HOST, NJ_HOSTS_FIRST, NJ_REPLICAS_FIRST, NJ_REPLICA_RANKS, NJ_ALL };

struct nj_fault {
  enum nj_kind kind;     /* of one cause: never moving or two */
  enum nj_kind thing;    /* what it slows: of a flap nic, rail, nvlink or pair; else the kind */
  enum nj_who who;       /* of gc, checkpoint, evaluation, pauses, throttle, replica */
  int rank, host, stage; /* -1: does not apply */
  int rank_b, host_b;    /* the other end of a pair */
  int replica;
  double x; /* strength: what is added to 1, or ns of a delay or pause */
  /* gc, checkpoint, evaluation: at steps of which step % period == phase, not at the first */
  int period, phase;
  bool together; /* an evaluation that is a pause of all ranks, not other work */
  int n_spans;   /* when; none: always */
  bool timed;    /* spans are ns of true time; else steps */
  double from[NJ_SPANS], to[NJ_SPANS];
};

/* a moment of a run: the part of it that is over, in steps with decimals, and ns of true time */
struct nj_when {
  double step, at;
};

struct nj_model {             /* constants of one job; ns, bytes, bytes/ns */
  double jitter;              /* deviation of a compute, as a share */
  double compute;             /* of a rank and step */
  double fixed;               /* optimizer and the like, of a rank and step */
  double tp_ns, dp_ns, pp_ns; /* what transfers of a step are to take: sizes follow */
  double nvlink, nic;         /* bus bandwidths */
  double launch;              /* CPU time of a launch as a share of the compute's time */
  double pauses;              /* of the CPU, a rank and step */
};

#define NJ_DRIFT_PPM 20 /* where nothing else is asked for */
#define NJ_OFFSET_S 0.002

/* What else lies in the folder. */
enum nj_beside { NJ_ALONE, NJ_OTHER_JOB, NJ_EARLIER_ATTEMPT };

/* What logs of one and the same job differ by (out/weather.h draws it). All 0 but drift and offset: none. */
struct nj_weather {
  /* typical: how far each stamp of a GPU's kernel is moved, to either side; 300 us at most */
  double overlap_ns;
  int timer_ns;           /* GPU stamps are whole multiples; 0: durations alone, of 32 ns */
  double drift_ppm;       /* hosts' clocks go wrong by so much at most */
  double offset_s;        /* hosts' clocks are off by so much at most */
  double step_s, step_at; /* one host's CLOCK_REALTIME jumps by so much, at this part of the run */
  int step_host;
  double step_ns; /* the same moment in true time, once the job's length is known */
  int missing;    /* ranks whose logs are not there; whole_host: of one host alone, as far as they go */
  bool whole_host;
  int sample;       /* one operation in so many is written; 0, 1: all */
  double min_bytes; /* smaller operations are left out; 0: none */
  bool no_p2p;      /* Send and Receive are left out */
  char alone;       /* communicators of this role alone are recorded; 0: all */
  bool alone_one;   /* ... and of them one */
  bool symmetric;   /* tensor parallelism runs in symmetric kernels, with phases */
  double tokens;    /* deviation of a replica's tokens from step to step, as a share */
  /* deviation of what experts get in all steps, as a share; grouped Send and Receive alone */
  double experts;
  bool stages; /* stages of unequal work */
  enum nj_beside beside;
};

/* Where and when a job runs, of those in one folder. */
struct nj_place {
  int pid, host;       /* numbers of its first process and host */
  double begin_ns;     /* after the first job of the folder began */
  int attempt;         /* SLURM_RESTART_COUNT; -1: not said */
  bool no_job_id, cut; /* cut: no last lines */
};

struct nj_job {
  char layout;
  enum nj_kind kind;
  double size;    /* as the user gave it */
  uint64_t seed;  /* of what the job is: sizes, constants, names, culprits */
  uint64_t noise; /* of what differs from run to run of it */
  uint64_t kept;  /* of weather and names: noise, or what stays where the same job is played again */
  double slower;  /* times all compute; 1 */
  int world, hosts, steps, tp, dp, pp, ep;
  int micro, layers, buckets;
  /* of the pipeline's stages: layers in all of them `layers` where they are alike */
  int stage_layers[NJ_STAGES];
  double stage_more[NJ_STAGES]; /* times the compute of its layers, with embedding or loss; 1 */
  bool norm;                    /* the norm of all gradients, a small AllReduce of all ranks */
  bool sequence, sharded, named, megatron_names, call_sn, grouped_all_to_all;
  struct nj_model model;
  struct nj_weather weather;
  struct nj_place place;
  uint64_t clocks, epoch;     /* seeds of the hosts' clocks, and of when the folder's first job began */
  bool *missing, *unrecorded; /* of ranks; of communicators */
  struct nj_rank *rank;
  struct nj_comm *comm;
  int n_comms;
  struct nj_fault fault[2];
  int n_faults;
};

#endif
