/*
 * A training job as a plan: ranks on hosts, communicators, and for each rank what it does in a step. Made once from
 * layout, kind and seed, then only read: the model (engine.h) runs it with and without its faults.
 * Times are ns of true time as doubles, from the job's begin; sizes are bytes, bandwidths bytes/ns.
 */
#ifndef NI_JOBS_JOB_H
#define NI_JOBS_JOB_H

#include <stdbool.h>
#include <stdint.h>

#define NJ_COMMS 6    /* communicators of one rank, at most */
#define NJ_EVENTS 256 /* events of a rank's step, at most */
#define NJ_HOST_GPUS 8

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

struct nj_rank {
  int host, local, tp, dp, pp;
  int n_comms, comm[NJ_COMMS], member[NJ_COMMS];
  struct nj_instr *instr;
  int n, cap;
  struct nj_part *part;
  int n_parts, cap_parts;
  double speed; /* its compute time over the mean GPU's */
  int events;
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
  NJ_KINDS
};

#define NJ_SPANS 4

struct nj_fault {
  enum nj_kind kind;     /* of one cause: never moving or two */
  int rank, host, stage; /* -1: does not apply */
  int rank_b, host_b;    /* the other end of a pair */
  double x;              /* strength: what is added to 1, or seconds of an intermittent delay */
  int n_spans;           /* in which steps; none: in all */
  double from[NJ_SPANS], to[NJ_SPANS];
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

struct nj_job {
  char layout;
  enum nj_kind kind;
  double size; /* as the user gave it */
  uint64_t seed; /* of what the job is: sizes, constants, names, culprits */
  uint64_t noise; /* of what differs from run to run of it */
  double slower; /* times all compute; 1 */
  int world, hosts, steps, tp, dp, pp, ep;
  int micro, layers, buckets;
  bool norm; /* the norm of all gradients, a small AllReduce of all ranks */
  bool sequence, sharded, named, megatron_names, call_sn, grouped_all_to_all;
  struct nj_model model;
  struct nj_rank *rank;
  struct nj_comm *comm;
  int n_comms;
  struct nj_fault fault[2];
  int n_faults;
};

#endif
