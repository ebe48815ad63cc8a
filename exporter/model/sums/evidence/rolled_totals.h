/*
 * Who is slow, in sampled logs: whoever spends far less time in operations than ranks with the same work.
 *
 * Model. A run is as long for all of its ranks. What a rank does not spend in operations is its own time,
 * and waiting lies in operations, wherever it waits and for whom. So who is late spends less time in them
 * than its peers, by about what it is late by, and who waits for it elsewhere does not. Roll-ups count all
 * operations; without them the records are taken so many times, which are the same ones on all ranks of a
 * communicator. Where these overlap the computing the difference is larger than what it costs: it tells who,
 * not how much.
 *
 * Peers have about as many operations. In a pipeline stages can have as many as each other and not as much
 * to do, so there peers also share a communicator of tensor or data parallelism. Times are for as many
 * operations as the rank has. What stands out is as far from its peers as these are not from each other;
 * of a host, whose ranks are late together, the peers are on other hosts. Nobody is named where operations
 * are left out of the logs by settings, which roll-ups do not count either.
 *
 * Threads: the main one, once seats and long_waits.h are there. Ownership: ni_rolled_totals_free().
 * Failure: -ENOMEM.
 */
#ifndef NI_SUMMARY_ROLLED_TOTALS_H
#define NI_SUMMARY_ROLLED_TOTALS_H

#include "exporter/model/sums/model.h"

#define NI_TOTALS_OPERATIONS 64u /* of a rank, at least */
#define NI_TOTALS_JOIN 8u        /* recorded operations that join ranks: a barrier at the end does not */
#define NI_TOTALS_ALIKE 0.05     /* numbers of operations of peers differ by no more */
#define NI_TOTALS_PEERS 3u       /* of fewer nobody knows how far they lie apart */
#define NI_TOTALS_OF_RUN 0.01    /* of the run: what is less is chance */
#define NI_TOTALS_APART 8.0      /* times how far the peers lie apart from each other; */
#define NI_TOTALS_APART_HOST 4.0 /* of a host, less: that all of its ranks are late is no chance */
#define NI_TOTALS_ALONE 0.5      /* of that: no peer is nearer to the rank */
#define NI_TOTALS_STANDS_OUT \
  2.0 /* all of a host are late: it is the host, unless one is by so many times their mean */
#define NI_TOTALS_OF_MOST 0.25 /* of the largest: less can be others' waits, where operations overlap */

struct ni_rolled_late {
  bool host;
  uint32_t of, peers;   /* process or host; compared with so many */
  uint32_t late, there; /* of a host: its ranks */
  double us, peers_us;  /* in operations; of a host the mean over its ranks */
  double run_us;
};

struct ni_rolled_totals {
  bool known;      /* it can be told */
  double *less_us; /* of a process: so much less than its peers, below 0: more; NAN: it has none */
  struct ni_rolled_late *item; /* the largest difference first */
  size_t n;
};

int ni_find_rolled_totals(const struct ni_summary *s, struct ni_rolled_totals *out);
void ni_rolled_totals_free(struct ni_rolled_totals *x);

#endif
