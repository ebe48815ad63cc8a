/*
 * A finding: what a reader should look at first. Who or what it is, since when, what it costs, and the
 * sentence that says so; and what the run's time consists of.
 *
 * Units: times are us where the name says _us. Numbers of processes, hosts and communicators are those of the
 * summary that it is of (model.h). Plain data, filled once; ni_summary_free() frees what is owned.
 */
#ifndef NI_SUMMARY_FINDING_H
#define NI_SUMMARY_FINDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is worth a sentence (findings.h). */
#define NI_FIND_LATE_SHARE 0.10 /* of the operations compared: a rank late in so many is named */
/* of the time in operations, lost by each peer: twice what is lost where a tenth of them are just late */
#define NI_FIND_LATE_LOSS 0.04
#define NI_FIND_COMPARED_MIN 20 /* operations before a rank is judged */
#define NI_FIND_TRANSFER 1.25   /* times the usual transfer time of communicators alike */
#define NI_SENT_MORE 1.1        /* times what NCCL sent: NICs send headers as well, some percent */
/*
 * Of so many operations one is recorded, or fewer: what looks like own time holds operations without a
 * record.
 */
#define NI_SAMPLED_OUT 1.5
#define NI_FIND_BUSBW 0.90 /* of the median of like operations on all hosts */

#define NI_SUM_FINDINGS 32 /* named; all are counted */

enum ni_finding_kind {
  NI_FIND_LATE_RANK = 0, /* its own time in a step is longer than that of its like */
  NI_FIND_SLOW_COMM,
  NI_FIND_SLOW_HOST,   /* so is that of most ranks of the host */
  NI_FIND_PAUSES,      /* it stops now and then */
  NI_FIND_SLOW_NVLINK, /* transfers within a host */
  NI_FIND_SLOW_NIC,    /* transfers across a host's NICs, or one rank's */
  NI_FIND_SLOW_PAIR,   /* between two hosts or ranks */
  NI_FIND_SLOW_STAGE,  /* of the pipeline */
  NI_FIND_CONGESTION,  /* all transfers across hosts, now and then */
  NI_FIND_UNEVEN,      /* it has more to do than its like */
  NI_FIND_PERIODIC,    /* it does something else each so many steps */
  NI_FIND_THROTTLING,  /* its own time is longer in bursts */
  NI_FIND_UNDECIDED,
  /* a link (NVLink, NIC, pair, communicator) that is slow for a while, several times */
  NI_FIND_FLAPPING,
  NI_FIND_KINDS
};
extern const char *const ni_finding_names[NI_FIND_KINDS]; /* "late_rank", ... */
enum ni_finding_level {
  NI_LEVEL_RANK = 0,
  NI_LEVEL_HOST,
  NI_LEVEL_STAGE,
  NI_LEVEL_REPLICA,
  NI_LEVEL_COMM,
  NI_LEVEL_FABRIC,
  NI_LEVEL_JOB
};

/* One of the times at which a flapping link was slow. */
struct ni_moment {
  int64_t from_us, to_us;     /* Unix us, as ni_step.start_us */
  int64_t from_step, to_step; /* first and last one */
};
#define NI_FIND_MOMENTS 64u

/* What a reader should look at first. */
struct ni_finding {
  enum ni_finding_kind kind;
  enum ni_finding_level level;
  enum ni_finding_kind link; /* of links: which SLOW_ kind they are of, also where kind is FLAPPING */
  /* RANK: process; COMM: communicator; HOST: host; STAGE, REPLICA: its first process */
  uint32_t of;
  uint32_t other;    /* the second one of a pair, likewise; UINT32_MAX: none */
  uint32_t *process; /* whose it is, by global rank; owned */
  size_t n_processes;
  /* with so many alike, it among them; by durations: operations (LATE_RANK), 0: judged by bandwidth */
  uint64_t compared;
  /*
   * times the usual own time or transfer time; by durations: share of operations late, or of the usual
   * bandwidth
   */
  double value;
  /* what it costs the run: largest first. By durations: what one of the others lost by it */
  double lost_us;
  double low_us, high_us;     /* of lost_us; NAN by durations */
  double cost_us;             /* by durations: what the run would save; NAN: not known */
  int64_t from_step, to_step; /* first and last one; -1: from the begin, to the end */
  int64_t from_us, to_us;     /* Unix us; 0 as above */
  uint64_t times;             /* pauses, bursts; steps of congestion; drops of a flapping link; 0 */
  uint32_t period_steps;      /* of periodic work; 0 */
  double each_us;             /* how long one pause is; 0 */
  double of_run;              /* share of the steps that bursts are in; 0 */
  bool note;                  /* it accuses nobody, and comes behind those that do */
  struct ni_moment *moment;   /* of a flapping link, the first NI_FIND_MOMENTS; owned */
  size_t n_moments;
  uint32_t run;       /* of several in the folder, from 1 on; 0: one alone */
  double run_us;      /* how long that run took; 0: by durations */
  bool by_waits;      /* told by waits for peers in symmetric kernels alone (waits.h) */
  char text[560];     /* the sentence. Control characters in names are '?' */
  char evidence[320]; /* what counters and clocks say of it; "": nothing */
  /* the command that shows more, below `nccl-inspector`, with LOGS for the input; "": none */
  char next[200];
};

/* What the run's time consists of (exporter/model/sums/blame/replay.h). */
struct ni_cost {
  bool known;
  double run_us, without_us;    /* without the findings */
  double own, pauses, transfer; /* shares of the run, on the way from its begin to its end */
  double model;                 /* replayed / recorded time */
};

/* One bin of the run's steps, mean over its ranks. Times in us of one step. */
struct ni_step {
  int64_t start_us; /* of the first step of the bin, by the earliest rank's clock; 0: not known */
  float compute, exposed, waiting, hidden, outside;
};

#endif
