/*
 * Causes: who is slow, how much and when; before it is known what that costs (replay.h) and why (describe.h).
 *
 * Thresholds are chosen with `make verdicts` on its set for tuning; docs/verdicts.md has the table of what
 * was kept back. Threads: the main one. Ownership: ni_causes_free(). Failure: -ENOMEM.
 */
#ifndef NI_BLAME_CAUSES_H
#define NI_BLAME_CAUSES_H

#include "exporter/model/sums/ranks/blame.h"

/* ---- what all comparisons have in common ---- */

/* The baseline is the lower quartile of the peers, because up to half of them can be slow. */
#define NI_CAUSE_BASELINE 0.25
/* A standard deviation from bin to bin: so many times the median difference of neighbouring bins. */
#define NI_CAUSE_NOISE 1.0484f
/*
 * How far those peers lie apart that are not slow: these two quantiles are both of such peers, and lie so
 * many standard deviations from each other.
 */
#define NI_CAUSE_SPREAD_LOW 0.1
#define NI_CAUSE_SPREAD_HIGH 0.4
#define NI_CAUSE_SPREAD 1.03f
/*
 * An interval that begins or ends within a twentieth of the run, or 3 bins, of its begin or end reaches to
 * that.
 */
#define NI_CAUSE_NEAR_END 20u
#define NI_CAUSE_NEAR_END_MIN 3u
/* A mean has to be so many standard errors above the others, or chance can do as much. */
#define NI_CAUSE_SIGMA 6.0f
/* A cause lasts so many bins. */
#define NI_CAUSE_BINS 5u

/* ---- late ranks: shares are of the own time of a step ---- */

/* A rank is late if it takes so much longer than its peers. */
#define NI_CAUSE_OWN 0.02f
/* Bins in which it takes less than that longer do not belong to the interval in which it is late. */
#define NI_CAUSE_OWN_FLOOR 0.012f
/* It is so many times as far from its peers as these are from each other. */
#define NI_CAUSE_APART 5.0f
/* Over the whole run it takes so much longer: what lasts for a moment only is noise. */
#define NI_CAUSE_OF_RUN 0.004f
/* Bursts: so many times what half of the peers have in bins that are as long. Less is chance. */
#define NI_CAUSE_BURSTS 6.0f
/*
 * Its CPU is slow if so much more of its idle time over the run than elsewhere (in a pipeline: than on other
 * hosts before the same work) lies before what begins as soon as launched; if its own time is longer as well,
 * by so much,
 */
#define NI_CAUSE_LAUNCH 0.01f
/* and by so many standard deviations of other hosts. */
#define NI_CAUSE_LAUNCH_APART 3.0f
/* The host is named where so many of its ranks are late, */
#define NI_CAUSE_OF_HOST 0.75f
/* and none of them by more than so many times their mean: else it is that rank. */
#define NI_CAUSE_OF_HOST_MOST 2.0f
/* A stage is slow if it computes so many times as long as the others. */
#define NI_CAUSE_STAGE 1.03f

/* ---- slow links: shares are of the transfer time, beyond the baseline ---- */

/* A link is slow if its transfers take so many times as long as those of its peers. */
#define NI_CAUSE_LINK 1.1f
/*
 * Of so many peers it is known how far they lie apart. Then it is slow if its transfers take so many times as
 * long, and are as far from the peers as those of ranks have to be (NI_CAUSE_APART).
 */
#define NI_CAUSE_LIKE_MIN 8u
#define NI_CAUSE_LINK_OF_MANY 1.05f
/* Bins in which they take less than that do not belong to the interval in which it is slow. */
#define NI_CAUSE_LINK_FLOOR 1.06f
#define NI_CAUSE_LINK_FLOOR_OF_MANY 1.03f
/* Over the whole run they take so much longer. */
#define NI_CAUSE_LINK_OF_RUN 0.05f
/* An operation takes so much longer: twice the resolution of the coarsest timers. */
#define NI_CAUSE_LINK_LEAST_US 2.0f
/* One bin counts for no more than that when it is asked whether a link is slow. */
#define NI_CAUSE_LINK_MOST 4.0f
/* A link is not judged if its transfers are less than that of a step. */
#define NI_CAUSE_LINK_OF_STEP 0.002f
/* A link drops if it takes so much longer in some bins, */
#define NI_CAUSE_DROP 0.4f
/* and less than that longer in the others. */
#define NI_CAUSE_DROP_QUIET 0.1f
/*
 * Drops lie in so many of all bins at most: then steps without the cause say how long those with it would be.
 */
#define NI_CAUSE_NOW_AND_THEN 0.67f
/* The bins of one drop take so much longer together: a single one twice as long, or several ones less. */
#define NI_CAUSE_DROP_SUM 1.0
/* All drops take so many times a bin longer together: less is chance. */
#define NI_CAUSE_DROPS 5.0
/* The fabric is slow in a bin in which most links across hosts take so many times their own quiet time, */
#define NI_CAUSE_CROWDED 1.25f
/*
 * or so many times where NI_CAUSE_LIKE_MIN links or more say so: chance makes no three quarters of these slow
 * at once,
 */
#define NI_CAUSE_CROWDED_OF_MANY 1.1f
/* and are slow by so many times what they differ by from bin to bin: stamps that are off do that. */
#define NI_CAUSE_CROWDED_APART 4.0f
/* There are so many of these bins, as a share of the run, and three at least, */
#define NI_CAUSE_CROWDED_BINS 0.02f
/* or so many in which so many links are as slow as a link that drops, */
#define NI_CAUSE_CROWDED_FAR 2u
#define NI_CAUSE_CROWDED_LINKS 3u
/*
 * or so many operations of fewer links. What stops for a moment slows one of them. They are more than links,
 * since operations of one link follow each other.
 */
#define NI_CAUSE_CROWDED_OPS 8u

/* ---- which causes are named: shares are of the run ---- */

/* A cause that costs less is not named: chance, and the pace of a healthy job, cost as much. */
#define NI_CAUSE_COST 5e-3
/* Ranks that take less than NI_CAUSE_SMALL longer have to cost so much. */
#define NI_CAUSE_SMALL_COST 6e-3
#define NI_CAUSE_SMALL 0.05f
/* Links have to cost so much, */
#define NI_CAUSE_LINK_COST 1e-3
/*
 * and more where they take less than NI_CAUSE_LINK_SMALL longer. So has a communicator of which nothing says
 * whose link is slow: there are many of them; and a network of which one link alone says that it is slow.
 */
#define NI_CAUSE_LINK_SMALL 0.15f
#define NI_CAUSE_LINK_SMALL_COST 4e-3
/*
 * Where the replay saw one block of steps only (a thousand ranks, for a few steps) its word is chance below
 * that. Not of links that take so much longer, which is no chance, whatever the block says.
 */
#define NI_CAUSE_ONCE_COST 1e-2
#define NI_CAUSE_LINK_FAR 1.0f
/*
 * Ranks that have one communicator only (FSDP, DDP) have to cost so much: operations hide most of their own
 * time.
 */
#define NI_CAUSE_REST_COST 8e-3
/*
 * Ranks that cost less than a tenth of the largest cause have to cost so much. Where operations overlap the
 * computing, own time is what is left of it, and one late rank moves that of the others.
 */
#define NI_CAUSE_OF_LARGEST 0.1
#define NI_CAUSE_OF_LARGEST_COST 5e-3
/*
 * So have links that drop. Ranks that wait for somebody else then come late to messages, and these look slow.
 */
#define NI_CAUSE_DROP_SMALL 1e-2
#define NI_CAUSES_MAX 64u

/*
 * Others may get ahead of a late rank from place to place: then it is late by `part` of excess_us, not by all
 * of it. apart: from 0 (they do) to 1 (they do not). rate: how much longer it takes in all, by those places
 * that tell it; 0: none do. of_sum: that, as a part of what its gaps are longer by together.
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
  uint32_t *unmatched; /* links that cross what is slow as well, and have no peers to be compared with */
  uint32_t n_unmatched;
  uint32_t *beside; /* of a NIC or a pair of ranks: ranks beside `of` and `other` (shared_nic.h). Owned */
  uint32_t n_beside;
  /* of links: what they are, a SLOW_ kind or congestion, also where kind is FLAPPING */
  enum ni_finding_kind link;
  bool stops;       /* of a flapping link: single operations of it stop */
  bool *at;         /* bins in which it is at work; NULL: all of from..to. Owned */
  bool rest;        /* the rank has one communicator: its own time is seen only where that leaves it idle */
  bool can_be_work; /* of a stage: it is slow, or has something more to do: told as a note */
  /* of such a stage: it is the first or the last one; it is so for as many layers as its gradients state */
  bool at_end, by_layers;
  /* of a host: its ranks are compared with other stages; all of them are one stage */
  bool of_stages, of_one_stage;
  /* own time: operations are launched late; share is of the idle time before these */
  bool launch;
  /*
   * of a CPU: it takes so many times as long from call to call as others (at: as otherwise); 0: that is not
   * known
   */
  float calls;
  bool hidden; /* of a slow CPU: it costs too little to accuse anybody, and is told as a note */
  /*
   * of a host whose CPU is slow: bins in which its ranks pause and others do not, as where it loads and
   * compiles; NULL: none. Owned
   */
  bool *pauses_at;
  uint32_t from, to; /* bins, half open */
  /* congestion: so many of these; pauses, bursts, drops of a flapping link: how many of them */
  uint32_t bins_hit;
  double most_us;  /* it costs so much at most; 0: no bound */
  uint32_t period; /* in steps; 0: none */
  bool few;        /* of pauses: they are few, but long */
  float
      crowded; /* of pauses: transfers across hosts take that much longer in the same bins; 0: they do not */
  bool in_place; /* of periodic work: each time in the same place of the step */
  /* of periodic work: no other host does it, and nothing that programs do is of this one */
  bool of_host_alone;
  bool of_rank_alone; /* the same of a rank */
  bool one_by_one;    /* bursts are of one bin, mostly */
  float of_run;       /* bins that are hit, as a share */
  /*
   * By how much own time of a step is longer than its baseline, and that as a share of the baseline. Links:
   * share alone, of transfers. Pauses: excess_us alone, of one pause.
   */
  float excess_us, share;
  float more_bytes; /* of uneven work: bytes more than its peers exchange, as a share */
  /*
   * Own time: excess_us as a share of what is seen between operations (launch: of what is idle before late
   * ones)
   */
  float of_gaps;
  float seen_us;       /* own time of a step that is seen between operations, of its peers; 0: not known */
  struct ni_lead lead; /* of a late rank */
  uint32_t n_peers;    /* compared with so many */
  double cost_us, low_us, high_us; /* of the run */
  bool not_clocked;                /* it comes and goes, but no steps without such causes are there */
};

struct ni_causes {
  struct ni_cause item[NI_CAUSES_MAX];
  uint32_t n, left_out;
  bool *crowded; /* bins in which the fabric was slow */
};

/*
 * Steps in which the whole network is slow: fills out->crowded. Call it before the others: what links lose in
 * these steps is nobody's, and a rank that waits elsewhere than in other steps looks late.
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
 * What comes and goes: pauses and bursts, and links that are slow in NI_CAUSE_NOW_AND_THEN of the bins or
 * fewer. There are steps without the cause near to such steps, so the cost is counted by the clock.
 */
bool ni_cause_comes_and_goes(const struct ni_blame *b, const struct ni_cause *c);
/* It is no chance, where the replay saw one block of steps only, in which it costs so much of the run. */
static inline bool ni_cause_is_sure_once(const struct ni_cause *c, double cost) {
  return (c->links && c->share >= NI_CAUSE_LINK_FAR) || cost >= NI_CAUSE_ONCE_COST;
}
/*
 * us[k]: how long bin k took; NAN: not known. The first and the last ones are not whole. Of islands: the
 * slowest one, without what it waits for others where they meet. 0 or -ENOMEM.
 */
int ni_causes_bin_lengths(const struct ni_blame *b, float *us);
/*
 * Fills the costs of all causes for which ni_cause_comes_and_goes() holds: what their steps, and those next
 * to them, took longer than the nearest steps without such a cause. A step's length is the median over ranks
 * of the time between starts on one rank, so no clock is compared with another. No replay: its sample need
 * not have these steps. Of ranks that are late from some step on, or up to one, fills most_us: steps became
 * no longer than that. -ENOMEM.
 */
int ni_count_clock_costs(const struct ni_blame *b, struct ni_causes *causes);

/* A new one; NULL: no more are named. */
struct ni_cause *ni_cause_add(struct ni_causes *c, enum ni_finding_kind kind, enum ni_finding_level level,
                              uint32_t of);
/* When c is late and by how much: as `from` has it. */
void ni_cause_take_delay(struct ni_cause *c, const struct ni_cause *from);
/* Those behind it move up. */
void ni_cause_remove(struct ni_causes *causes, struct ni_cause *c);
int ni_cause_add_item(struct ni_cause *c, uint32_t item);
int ni_cause_add_unmatched(struct ni_cause *c, uint32_t link);
bool ni_cause_has_unmatched(const struct ni_cause *c, uint32_t link);
int ni_cause_add_beside(struct ni_cause *c, uint32_t rank);

/*
 * The run of numbers x[0..n) with the largest sum of (x - floor); NAN counts as the floor. False: none is
 * above it.
 */
bool ni_find_longest_above(const float *x, uint32_t n, float floor, uint32_t *from, uint32_t *to);

#endif
