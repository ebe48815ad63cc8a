/*
 * Moments: pauses of ranks by step, before anybody is named for them. What nearly all ranks do at once is of
 * none of them, and what a rank waited for is none of its pauses.
 *
 * Usage: for each judged rank ni_moments_gather() and ni_moments_drop_waits(), then
 * ni_moments_split_off_common(); periodic.c finds periods in what is left, and pauses.c who pauses more often
 * or longer than others.
 *
 * Threads: the main one. Ownership: `at` and `in` are the judge's. Failure: -ENOMEM.
 */
#ifndef NI_SPELLS_MOMENTS_H
#define NI_SPELLS_MOMENTS_H

#include "spells.h"

/*
 * Ranks pause together if the shorter pause has this part of the longer one. Below that the shorter one waits
 * for it in another way.
 */
#define NI_MOMENTS_SAME_LENGTH 0.4f
#define NI_MOMENTS_SAME_STEPS 2u /* and if they do so within so many steps */
#define NI_MOMENTS_OF_ALL 0.75f  /* of the ranks pause together: it is the job; of a host's: it is the host */
enum {
  /* Two ranks pause for one reason if each has so many of four moments in common with the other. */
  NI_MOMENTS_TOGETHER_OF_FOUR = 3,
  NI_MOMENTS_LENGTHS = 4 /* thresholds of length, by which pauses are counted */
};

struct ni_rank_moments { /* one rank */
  struct ni_spell_moment *at;
  bool *in; /* of its period */
  uint32_t n;
  double job_us; /* what it paused when nearly all did, in `job` moments: of no rank */
  uint32_t job;
  struct ni_period period;
  uint32_t longer[NI_MOMENTS_LENGTHS]; /* moments without a period that are longer than lengths_us */
  bool told;                           /* its period belongs to a cause */
  bool of_host;                        /* its period is that of its host */
  bool often;                          /* it pauses in most steps */
  bool many, few;                      /* it pauses more often than others; few: it has a few long pauses */
  bool may; /* it may have, if most ranks of its host have: chance does not do that to all */
};

struct ni_pause_judge {
  const struct ni_blame *b;
  struct ni_rank_moments *of; /* by rank */
  struct ni_rank_moments all; /* moments in which nearly all ranks pause */
  uint32_t judged;
  uint32_t *pausing; /* ranks that pause in a step, at most: few steps are worth a look at all ranks */
  float *scratch;
};

/* Of two moments: by step, then by length. */
int ni_moments_by_step(const void *a, const void *b);
/* Pauses of a rank, one moment a step. 0 or -ENOMEM. */
int ni_moments_gather(struct ni_rank_moments *p, const struct ni_blame_rank *o);
/* Leaves out what its team waited for. */
void ni_moments_drop_waits(const struct ni_blame *b, struct ni_rank_moments *p, uint32_t rank);
/* Moves what nearly all ranks do at once to w->all, with its period. 0 or -ENOMEM. */
int ni_moments_split_off_common(struct ni_pause_judge *w);
/* The moment of this step; NULL: there is none. */
const struct ni_spell_moment *ni_moments_find(const struct ni_rank_moments *p, uint32_t step);
/* Moments of x that y has as well, `near` steps apart at most: those of their periods, or those of none. */
uint32_t ni_moments_count_common(const struct ni_rank_moments *x, const struct ni_rank_moments *y,
                                 bool periodic, uint32_t near);
/* Marks the bins of a rank's moments in c->at; most: by bin, the longest so far, us. */
void ni_moments_mark(const struct ni_pause_judge *w, const struct ni_rank_moments *p, bool periodic,
                     struct ni_cause *c, float *most);
/* Adds ranks (member, by rank) to a cause, when they pause, and what it can cost at most. 0 or -ENOMEM. */
int ni_moments_fill_cause(const struct ni_pause_judge *w, struct ni_cause *c, const bool *member,
                          bool periodic);
/*
 * All but one in ten of its moments come before the same operation of the step, or the next one to it:
 * streams change places. scratch: room for all moments.
 */
bool ni_moments_have_fixed_place(const struct ni_rank_moments *p, const struct ni_blame_rank *o,
                                 bool periodic, float *scratch);

/* periodic.c: periods of whole hosts, which none of their ranks may have alone. 0 or -ENOMEM. */
int ni_periodic_find_of_hosts(struct ni_pause_judge *w);
/* periodic.c: names what comes each so many steps, and steps in which all have more to do. 0 or -ENOMEM. */
int ni_periodic_name(struct ni_pause_judge *w, bool *member, struct ni_causes *out);

#endif
