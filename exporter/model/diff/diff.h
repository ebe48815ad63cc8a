/*
 * Two runs beside each other: what each took, and what changed.
 *
 *   tables of a run (gather.c), summary.json (read_json.cc) ─▶ struct ni_diff_run ─▶ judge.c ─▶ pair.c
 *       ─▶ struct ni_diff
 *
 * A run is a list of quantities, each with a key that is the same in both. Two kinds of noise lie between two
 * runs. Steps vary: the error of a mean over them is stat.h's. And ranks and links are others (another GPU,
 * another place): how far the changes of those that are alike lie apart is an error of each, and, divided by
 * the root of their number, of their mean. A row is called changed where Holm's correction over all rows
 * leaves a chance below NI_DIFF_LEVEL, the change is NI_DIFF_LEAST or more, and large enough in a step to
 * matter. Without steps only NI_DIFF_LEAST_BLIND counts.
 *
 * Threads: one. Ownership: ni_diff_free(). Times are us.
 */
#ifndef NI_DIFF_H
#define NI_DIFF_H

#include "exporter/model/pattern/changes.h"
#include "exporter/model/sums/model.h"

#define NI_DIFF_LEVEL 0.01 /* all rows together */
#define NI_DIFF_LEAST 0.01
#define NI_DIFF_LEAST_BLIND 0.05
#define NI_DIFF_STEPS 8       /* bins of steps that a run has at least */
#define NI_DIFF_OF_STEP 0.001 /* of a step's time: smaller changes are not called any */

struct ni_blame_place;
/* Hosts are groups of ranks, roles of links: judge.c makes them. */
enum ni_diff_kind {
  NI_DIFF_STEP,
  NI_DIFF_HOST,
  NI_DIFF_RANK,
  NI_DIFF_ROLE,
  NI_DIFF_LINK,
  NI_DIFF_FUNC,
  NI_DIFF_KINDS
};
extern const char *const ni_diff_kind_names[NI_DIFF_KINDS]; /* "step", "host", ... */

/* Keys of NI_DIFF_STEP. */
enum {
  NI_DIFF_TYPICAL,
  NI_DIFF_MEAN,
  NI_DIFF_COMPUTE,
  NI_DIFF_EXPOSED,
  NI_DIFF_WAITING,
  NI_DIFF_HIDDEN,
  NI_DIFF_OUTSIDE,
  NI_DIFF_PARTS
};

/* What is said where it differs; "": not known. */
enum { NI_DIFF_NCCL, NI_DIFF_N_STEPS, NI_DIFF_HOSTS, NI_DIFF_ALGOS, NI_DIFF_FACTS };

#define NI_DIFF_ALL_RANKS 0 /* `like` of the host that is all of them */

struct ni_diff_item {
  enum ni_diff_kind kind;
  char name[96], group[96]; /* group: of ranks the host, of links the role. Control characters are '?' */
  uint64_t key, like;       /* like: the same for ranks of a host and for links of a role */
  float *x;                 /* run->bins of them, NAN: none; owned. NULL: figures alone */
  /* of ranks: own time by place, by name; owned. Places that both runs have are compared */
  struct ni_blame_place *place;
  uint32_t n_places, members; /* members: a mean over so many ranks or links */
  double value, se, df;       /* se of value: that of steps */
  /* so often in a step of a rank: value * per_step is its time there; 0: not known. Of an operation */
  double per_step, bytes;
};

struct ni_diff_run {
  const char *path, *from; /* from: "logs", "summary.json", "roll-ups", "counters" */
  char layout[160], why_no_steps[96], fact[NI_DIFF_FACTS][160];
  char trouble[300]; /* the first one; "": complete */
  char clocks[400];  /* what has to be known of its hosts' clocks; "": nothing */
  int32_t world_size;
  uint32_t ranks, steps, bins, bin_steps;
  double per_step;  /* operations of a rank in a step; 0: no steps */
  unsigned timings; /* a bit each, of enum ni_timing */
  struct ni_diff_item *item;
  size_t n, cap;
};

enum ni_diff_verdict { NI_DIFF_SAME, NI_DIFF_UNCLEAR, NI_DIFF_SLOWER, NI_DIFF_FASTER };
extern const char *const ni_diff_verdict_names[]; /* "same", "unclear", "slower", "faster" */

struct ni_diff_row {
  struct ni_diff_item *item[2]; /* A, B */
  double change, low, high;     /* B / A - 1; interval of 95 % */
  double se, p;                 /* p: corrected */
  double step_us;               /* what that makes in a step of a rank; NAN: not known */
  enum ni_diff_verdict verdict;
};

struct ni_diff {
  struct ni_diff_run run[2];
  struct ni_diff_row *row;    /* changed ones first, those that make most of a step before others */
  size_t n, changed, only[2]; /* only: quantities that one run alone has */
  struct ni_diff_item *group; /* hosts and roles, of A and B in turn; owned */
  size_t n_groups;
  /* of A and B; empty where they are not from logs. The caller fills them; owned */
  struct ni_digest steps[2];
  struct ni_step_changes changes; /* between them; the caller fills it */
  bool blind;                     /* one of them has no steps */
  char note[8][240];
  size_t n_notes;
  char verdict[400];
};

/* "All ranks", among the hosts. */
static inline bool ni_diff_is_all(const struct ni_diff_item *i) {
  return i->kind == NI_DIFF_HOST && i->like == NI_DIFF_ALL_RANKS;
}

/*
 * Compares d->run[0] with d->run[1]. 0, -ENOMEM, or -EINVAL: they cannot be compared, and why says what would
 * do.
 */
int ni_diff_pair(struct ni_diff *d, char *why, size_t cap);
void ni_diff_free(struct ni_diff *d);

#endif
