/*
 * Causes: who is slow, how much and when; before it is known what that costs (replay.h) and why (describe.h).
 *
 * Thresholds are chosen with `make verdicts` on its set for tuning; docs/verdicts.md has the table of what
 * was kept back. Threads: the main one. Ownership: ni_causes_free(). Failure: -ENOMEM.
 */
#ifndef NI_BLAME_CAUSES_H
#define NI_BLAME_CAUSES_H

#include "exporter/model/sums/ranks/blame.h"

/* the part of peers that is below their baseline: up to half of them can be slow */
#define NI_CAUSE_BASELINE 0.25
/* times the median difference of neighbouring bins is their standard deviation: it is 0.954 of these */
#define NI_CAUSE_NOISE 1.0484f
/*
 * How far peers lie apart that are not slow: these parts of them are below two numbers which so many standard
 * deviations lie between.
 */
#define NI_CAUSE_SPREAD_LOW 0.1
#define NI_CAUSE_SPREAD_HIGH 0.4
#define NI_CAUSE_SPREAD 1.03f
/* of the run, and bins: what begins or ends so near to an end of the run lasts from or to that end */
#define NI_CAUSE_NEAR_END 20u
#define NI_CAUSE_NEAR_END_MIN 3u
/* of the own time of a step: a rank that takes so much longer than its like is late */
#define NI_CAUSE_OWN 0.02f
/* where an interval of such steps is looked for: what lies below does not belong to it */
#define NI_CAUSE_OWN_FLOOR 0.012f
#define NI_CAUSE_APART 5.0f /* times as far from its like as these are from each other, */
#define NI_CAUSE_SIGMA 6.0f /* its mean is so many standard errors above the others */
#define NI_CAUSE_BINS 5u    /* and it lasts so many bins */
/* and over the whole run it is so much of the own time: what lasts for a moment only is noise */
#define NI_CAUSE_OF_RUN 0.004f
/* of a rank's idle time, more than elsewhere, lies before what begins as soon as it is launched: */
#define NI_CAUSE_LAUNCHED 0.15f
/* in a pipeline so much more than on other hosts before the same work; */
#define NI_CAUSE_LAUNCHED_LIKE 0.05f
/* its CPU is slow where its own time is so much longer as well */
#define NI_CAUSE_LAUNCH_OWN 0.01f
/* and that is so many standard deviations more than on other hosts */
#define NI_CAUSE_LAUNCH_APART 3.0f
#define NI_CAUSE_OF_HOST 0.75f     /* of its ranks: then it is the host */
#define NI_CAUSE_OF_HOST_MOST 2.0f /* times the mean of these: no rank of it stands out so far */
#define NI_CAUSE_STAGE 1.03f       /* times the own time of the other stages */
#define NI_CAUSE_LINK 1.1f         /* times the transfer time of its like */
#define NI_CAUSE_LINK_FLOOR 1.06f
#define NI_CAUSE_LINK_OF_RUN 0.05f /* so much longer over the whole run */
/* of an operation, longer: twice the resolution of the coarsest timers */
#define NI_CAUSE_LINK_LEAST_US 2.0f
/* beyond usual, as a share: one bin counts for no more when it is asked whether a link is slow */
#define NI_CAUSE_LINK_MOST 4.0f
/* beyond usual, as a share: a link that takes so much longer for some bins has dropped, */
#define NI_CAUSE_DROP 0.4f
#define NI_CAUSE_DROP_QUIET 0.1f /* where it takes less than that longer in the other bins, */
/* of all bins at most: then steps without the cause say how long those with it would be, */
#define NI_CAUSE_NOW_AND_THEN 0.67f
/* and the bins of a drop are so much beyond usual together: a single one at twice its time, or some */
#define NI_CAUSE_DROP_SUM 1.0
#define NI_CAUSE_DROPS 5.0 /* what drops take longer in all, in times of a bin: less is chance */
/* times its own quiet time: in a bin where most links across hosts are so slow, the fabric is */
#define NI_CAUSE_CROWDED 1.25f
/* and so many times what transfers differ from bin to bin: stamps that are off do that */
#define NI_CAUSE_CROWDED_APART 4.0f
#define NI_CAUSE_CROWDED_BINS 0.02f /* of the run, and three of them; */
#define NI_CAUSE_CROWDED_LINKS 3u   /* or so many bins in which as many links or more are */
#define NI_CAUSE_CROWDED_FAR 2u     /* slow by as much as a link that drops */
/* a link whose transfers are less than that of a step is not judged */
#define NI_CAUSE_LINK_OF_STEP 0.002f
/* times what half of its like have in bins that are as long: bursts are no chance */
#define NI_CAUSE_BURSTS 6.0f
/* of the run: what costs less is not named: chance and the pace of a healthy job do as much, */
#define NI_CAUSE_COST 5e-3
#define NI_CAUSE_LINK_COST 1e-3   /* of links less than this, */
#define NI_CAUSE_LINK_SMALL 0.15f /* and where they take less than that longer */
/* less than this; so is a communicator of which nothing says whose link it is: there are many of them, */
#define NI_CAUSE_LINK_SMALL_COST 4e-3
/* of ranks less than this unless they take NI_CAUSE_SMALL longer, */
#define NI_CAUSE_SMALL_COST 6e-3
#define NI_CAUSE_SMALL 0.05f
/*
 * where the replay saw one block of steps alone (a thousand ranks for a few steps): what it says is chance,
 */
#define NI_CAUSE_ONCE_COST 1e-2
/* of ranks that have one communicator alone (FSDP, DDP): operations hide most of their own time */
#define NI_CAUSE_REST_COST 8e-3
/* nor what costs a tenth of the largest and less than NI_CAUSE_OF_LARGEST_COST of the run: where operations */
#define NI_CAUSE_OF_LARGEST 0.1
/* run beside the computing, own time is what is left of it, and one late rank moves that of the others */
#define NI_CAUSE_OF_LARGEST_COST 5e-3
#define NI_CAUSES_MAX 64u

/*
 * Others get ahead of a late rank place by place: it is late by so much (part) of excess_us. apart 0: that is
 * so; 1: it is all of excess_us. rate: by places that tell it, it takes so much longer in all, which is
 * of_sum of what its gaps are longer by together; 0: none tell it.
 */
struct ni_lead {
  float part, apart, rate, of_sum;
};

struct ni_cause {
  enum ni_finding_kind kind;
  enum ni_finding_level level;
  uint32_t of;    /* rank (of blame.rank), host, class or link, by level; of a pair the first */
  uint32_t other; /* of a pair: the second host or rank; NI_BLAME_NONE */
  uint32_t *item; /* ranks or links that are slow by it */
  uint32_t n_items;
  bool links;          /* item: links */
  uint32_t *unmatched; /* links that cross what is slow, too, and have no like to be compared with */
  uint32_t n_unmatched;
  /* of links: what they are, a SLOW_ kind or congestion, also where kind is FLAPPING */
  enum ni_finding_kind link;
  bool *at;         /* bins in which it is at work; NULL: all of from..to. Owned */
  bool rest;        /* own time is seen only as far as the one communicator leaves the rank idle */
  bool can_be_work; /* of a stage: it is slow, or has something more to do: told as a note */
  /* own time: operations are launched late; share is of the idle time before these */
  bool launch;
  uint32_t from, to; /* bins, half open */
  /* congestion: so many of these; pauses, bursts, drops of a flapping link: how many of them */
  uint32_t bins_hit;
  double most_us;  /* ... it costs so much at most; 0: no bound */
  uint32_t period; /* in steps; 0: none */
  bool few;        /* pauses are few, but long */
  bool in_place;   /* of periodic work: each time in the same place of the step */
  bool one_by_one; /* bursts are of one bin, mostly */
  float of_run;    /* bins that are hit, as a share */
  /*
   * own time of a step more than usual, and as a share of it. Links: share is times usual - 1. Pauses: us of
   * one, 0
   */
  float excess_us, share;
  float more_bytes; /* uneven work: than its like exchange, as a share */
  /*
   * own time: excess_us as a share of what is seen between operations (launch: of what is idle before these)
   */
  float of_gaps;
  struct ni_lead lead;             /* of a late rank */
  uint32_t n_peers;                /* compared with so many */
  double cost_us, low_us, high_us; /* of the run */
  bool not_clocked;                /* it comes and goes, but no steps without such causes are there */
};

struct ni_causes {
  struct ni_cause item[NI_CAUSES_MAX];
  uint32_t n, left_out;
  bool *crowded; /* bins in which the fabric was slow */
};

/*
 * Steps in which the whole network is slow: fills out->crowded. Before the others, since what links lose then
 * is nobody's, and a rank that waits for them elsewhere than in other steps looks late.
 */
int ni_find_congestion(const struct ni_blame *b, struct ni_causes *out);
/* What ranks, hosts, replicas and stages do themselves. */
int ni_find_late_ranks(const struct ni_blame *b, struct ni_causes *out);
/* What lies between them. */
int ni_find_slow_links(const struct ni_blame *b, struct ni_causes *out);
void ni_causes_free(struct ni_causes *c);
/* So many bins are near to an end of the run. */
static inline uint32_t ni_cause_near_end(const struct ni_blame *b) {
  const uint32_t near = b->bins / NI_CAUSE_NEAR_END;
  return near > NI_CAUSE_NEAR_END_MIN ? near : NI_CAUSE_NEAR_END_MIN;
}
/* In this bin it is at work. */
static inline bool ni_cause_is_active(const struct ni_cause *c, uint32_t bin) {
  const bool in_interval = bin >= c->from && bin < c->to;
  return in_interval && (!c->at || c->at[bin]);
}
/*
 * What comes and goes: pauses and bursts, and links that are slow in NI_CAUSE_NOW_AND_THEN of the bins or fewer.
 * Such steps stand beside others without the cause, so their cost is counted by the clock.
 */
bool ni_cause_comes_and_goes(const struct ni_blame *b, const struct ni_cause *c);
/*
 * Fills the costs of all causes for which ni_cause_comes_and_goes() holds: what their steps, and those beside them,
 * took longer than the nearest steps without such a cause. A step's length is the median over ranks of the
 * time between starts on one rank, so no clock is compared with another. No replay: its sample need not have
 * these steps. -ENOMEM.
 */
int ni_count_clock_costs(const struct ni_blame *b, struct ni_causes *causes);

/* A new one; NULL: no more are named. */
struct ni_cause *ni_cause_add(struct ni_causes *c, enum ni_finding_kind kind, enum ni_finding_level level,
                              uint32_t of);
int ni_cause_add_item(struct ni_cause *c, uint32_t item);
int ni_cause_add_unmatched(struct ni_cause *c, uint32_t link);

/*
 * The run of numbers x[0..n) with the largest sum of (x - floor); NAN counts as the floor. False: none is
 * above it.
 */
bool ni_find_longest_above(const float *x, uint32_t n, float floor, uint32_t *from, uint32_t *to);

#endif
