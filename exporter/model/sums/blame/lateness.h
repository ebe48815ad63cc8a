/*
 * How late each rank is: own time beside that of its peers, bin by bin, in an interval or in bursts, and idle
 * time before late launches. Nobody is named here (late_ranks.c).
 *
 * Ranks of a class are compared with each other. Where what ranks wait for may not be in the logs, those of a
 * team are. Who is judged by bursts or by late launches is not judged by an interval.
 *
 * Threads: the main one. Ownership: ni_lateness_end() frees all. Failure: -ENOMEM.
 */
#ifndef NI_BLAME_LATENESS_H
#define NI_BLAME_LATENESS_H

#include "causes.h"
#include "exporter/model/sums/compare/compare.h"
#include "exporter/model/sums/compare/stages.h"
#include "exporter/model/sums/cpus/launches.h"
#include "exporter/model/sums/spells/spells.h"

struct ni_rank_lateness { /* what one rank shows */
  bool late, launch;
  /* not late enough by itself, but all of its host is (ni_lateness_judge_hosts()); filled as of a late one */
  bool together;
  bool of_team;  /* of late: beside its team, where what all of a team wait for may not be in the logs */
  bool no_peers; /* of launch: it was compared with ranks that do other work */
  uint32_t from, to;
  uint32_t bursts; /* its own time is longer in so many of them: in bins of hit, owned */
  float area;      /* of bursts: ni_bursts */
  enum ni_burst_shape shape;
  bool *hit;
  float excess_us, share, of_gaps, seen_us;
  float of_us; /* what `share` is a part of; 0: it was not compared */
  struct ni_lead lead;
  uint32_t n_peers;
  float calls; /* of launch: its CPU takes so many times as long from call to call; 0: as long as others */
};

struct ni_lateness {
  const struct ni_blame *b;
  struct ni_launches launches;
  struct ni_compared c;          /* the class at hand */
  struct ni_rank_lateness *late; /* by rank */
  /* [member][bin]: own time beyond that of its peers, as a part of `of_us`; NAN: nothing */
  float *x;
  /* [rank][bin]: the same of all teams, while ranks are compared with their team; else NULL */
  float *of_teams;
  float *burst_areas; /* [shape][rank]: of its bursts, or what chance makes look like them; NAN: not asked */
  float *scratch, *means;
  float *calls_us, *calls_times; /* by rank, of ni_calls_compare() */
  const bool *crowded;           /* bins in which the network was slow */
};

/* crowded: bins in which the network was slow. w is set in any case, for ni_lateness_end(). 0 or -ENOMEM. */
int ni_lateness_begin(struct ni_lateness *w, const struct ni_blame *b, const bool *crowded);
/* Fills late of all ranks, and b->beyond_us for the heat map (evidence/lateness_map.h). 0 or -ENOMEM. */
int ni_lateness_judge(struct ni_lateness *w);
/*
 * Hosts whose ranks are late together, though most of them are not by themselves, as where all GPUs of a host
 * are a few percent slower: fills `together` of these ranks. named: hosts and replicas that are; nothing more
 * is said of theirs. 0 or -ENOMEM.
 */
int ni_lateness_judge_hosts(struct ni_lateness *w, const struct ni_causes *named);
void ni_lateness_end(struct ni_lateness *w);

#endif
