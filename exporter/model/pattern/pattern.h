/*
 * The step of a job as a program: which operations a rank does in it, in which order, on which communicators.
 *
 *   segments of a rank (ranks/stream.h), cut by the mark of its steps (steps/steps.h)
 *     ─▶ lanes (lanes.h) ─▶ programs, each with the ranks that have it (gather.c)
 *     ─▶ one order of all operations (listing.h), folded where it repeats
 *
 * A *lane* is what a rank does in a step on one communicator: its collectives, or its messages to or from one
 * peer. The order within a lane is NCCL's and the same in each step; the order between lanes is not, since
 * kernels of several communicators overlap. So a program is its lanes: what most steps have on each. Two
 * ranks have the same program where their lanes are equal, from wherever the step is counted: lanes are
 * rings. Communicators have a label in place of their hash (their role, else their name without digits at its
 * end, else "N ranks"), peers the distance in the communicator, so ranks of a job are alike that do the same
 * work.
 *
 * What is told of a *place*, an operation of the program, is summed in whole numbers over ranks with the same
 * program, in the order of ranks: nothing depends on threads.
 *
 * Bounds: NI_PATTERN_STEP operations of a step, NI_PATTERN_PLACES places of all programs, NI_PATTERN_SAMPLES
 * steps of a rank for figures, NI_PATTERN_HISTOGRAM rows. A rank with a longer step has no program, and says
 * why.
 *
 * Threads: ni_pattern_find() starts them; what it made is read-only. Ownership: ni_pattern_free(). Texts live
 * as long as the run whose logs these are (its table of names), labels as long as the pattern. Failure:
 * -ENOMEM, -errno of the spill file.
 */
#ifndef NI_PATTERN_H
#define NI_PATTERN_H

#include "exporter/model/sums/ranks/blame.h"

#define NI_PATTERN_STEP (1u << 16)
#define NI_PATTERN_PLACES (1u << 22)
#define NI_PATTERN_SAMPLES 64u
#define NI_PATTERN_HISTOGRAM 4096u
#define NI_PATTERN_STEPS_MIN 3u
#define NI_PATTERN_ALL_PEERS INT32_MAX

struct ni_pattern_place {
  const char *func;
  uint64_t bytes, bytes_most; /* bytes_most: where sizes vary from step to step, the largest; else bytes */
  const char *datatype;       /* NULL: not stated, or not one */
  uint8_t mix;                /* algorithm and protocol: code of the run (struct ni_run) */
  bool mixes;                 /* several, from step to step or from rank to rank */
  bool by_call;               /* the duration is that of the call on the CPU, not of a kernel */
  uint32_t lane;
  /* Sums over ranks: median duration; share of its time beside other communicators, in 1/1000 */
  uint64_t median_ns, beside_permille, ranks;
  /*
   * Over samples: start since the main lane's first operation; operations of that lane before it, and squares
   */
  int64_t start_ns;
  uint64_t samples, before, before2;
};

struct ni_pattern_lane {
  const char *label; /* of the communicator */
  int32_t n_ranks;
  /* Of messages: how many ranks on, -1 is the one before; NI_PATTERN_ALL_PEERS: many. 0: collectives. */
  int32_t peer;
  uint32_t peers;       /* of messages: to or from so many */
  uint8_t kind;         /* enum ni_blame_kind */
  uint32_t ordinal;     /* 0; 1 and more: a further communicator of that label */
  uint32_t first, n;    /* its places */
  uint64_t ring;        /* hash of its places from whichever it begins; 0: it has no order */
  bool sizes_vary;      /* from step to step: functions are the same, sizes are not */
  bool irregular;       /* each step has other operations: no places */
  uint64_t least, most; /* of irregular: operations of a step */
};

struct ni_program {
  uint32_t run; /* of several in the folder, from 1 on; 0: one alone */
  uint64_t hash;
  struct ni_pattern_lane *lane; /* by what they are called */
  uint32_t n_lanes;
  struct ni_pattern_place *place;
  uint32_t n_places;
  uint32_t main_lane;  /* the one with most places */
  uint32_t first_rank; /* in ni_pattern.rank */
  uint32_t ranks;
  uint32_t ordered;    /* of these: whose lanes lie between one another as those of the first one */
  int64_t minus_ranks; /* to sort by */
  uint64_t steps_least, steps_most, steps,
      exact_steps; /* of a rank; sums over ranks; exactly this program, all lanes */
};

struct ni_pattern_rank {
  uint32_t process; /* in the result */
  uint32_t run;
  uint32_t program; /* index; NI_BLAME_NONE: none, and why_not says why */
  const char *why_not;
  bool no_operations;     /* that is why */
  uint64_t ops, left_out; /* left_out: on further communicators than there is room for */
};

#define NI_PATTERN_SIZES 8
/*
 * Operations of one kind, of all ranks of a run. More than NI_PATTERN_SIZES sizes of a function are one kind.
 */
struct ni_pattern_count {
  uint32_t run;
  const char *label, *func, *datatype;
  uint64_t bytes, bytes_most, records;
  uint32_t sizes;
  int32_t n_ranks;
};

struct ni_pattern {
  struct ni_program *program; /* by run, then those with most ranks first, then by rank */
  uint32_t n_programs;
  struct ni_pattern_rank *rank; /* by process in the result */
  uint32_t n_ranks;
  struct ni_pattern_count *count; /* by run, then the most frequent first */
  uint32_t n_counts, counts_left_out;
  char **label; /* of all communicators, each text once */
  size_t n_labels;
};

struct ni_datatypes;
/*
 * All of it, from the segments of r: after ni_build_begin(), before ni_figures_sum(), which gives them back.
 * b: the tables of ni_judge_all() with their marks; NULL or without ranks: they are made here, of all
 * operations, also of those timed by the CPU. types: NULL: none are told.
 */
int ni_pattern_find(struct ni_run *r, struct ni_summary *s, const struct ni_blame *b,
                    const struct ni_datatypes *types, struct ni_pattern *out);
void ni_pattern_free(struct ni_pattern *p);

/* Is that label the number of ranks, since nothing else is known of the communicator? */
bool ni_pattern_is_size(const char *label);
/* What a lane's communicator is called: "tp", "dp 2". Returns out. */
const char *ni_pattern_lane_text(const struct ni_pattern_lane *l, char out[96]);
/* An operation of the lane: "AllReduce", "Send to next", "Recv from -4", "Send to 7 others". Returns out. */
const char *ni_pattern_func_text(const struct ni_pattern_lane *l, const char *func, char out[96]);

#endif
