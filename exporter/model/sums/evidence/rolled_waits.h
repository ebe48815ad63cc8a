/*
 * Who pauses, in sampled logs with roll-ups: these have the times of all operations, also of those without
 * a record.
 *
 * Model. When a rank pauses all others wait for it, sooner or later, each in one operation or a few, and
 * it does not. So its peers in a communicator were long in so many more operations than the rank, at
 * whatever length tells it best. That alone says who came last there: it may have waited itself,
 * elsewhere, for whoever paused. Then it has as many long operations in its other communicators, messages
 * among them. One is named that has hardly any, in all that its log counts. Of a host, ranks that pause
 * together are compared with those of other hosts: who of them comes last need not be the same one each
 * time.
 *
 * Operations that roll-ups of a rank do not count, as of a killed process, could all have been long.
 *
 * Threads: the main one, once seats and long_waits.h are there. Ownership: ni_rolled_pauses_free().
 * Failure: -ENOMEM.
 */
#ifndef NI_SUMMARY_ROLLED_WAITS_H
#define NI_SUMMARY_ROLLED_WAITS_H

#include "exporter/model/sums/model.h"

#define NI_ROLLED_MIN 3u       /* pauses: fewer are chance, */
#define NI_ROLLED_LONG_MIN 2u  /* but for long ones, */
#define NI_ROLLED_LONG_US 8e4  /* of such a length, as where own time is known (spells.h) */
#define NI_ROLLED_SHARE 0.2    /* of its operations at most: in more of them it is late */
#define NI_ROLLED_OWN 0.5      /* of these pauses: it was in fewer long operations itself */
#define NI_ROLLED_APART 0.5    /* of these pauses: others differ by less from each other */
#define NI_ROLLED_OF_RUN 0.01  /* of the run: what costs less is chance */
#define NI_ROLLED_OF_HOST 0.75 /* of a host's ranks: it is the host */

struct ni_rolled_pause {
  bool host;
  uint32_t of, comm;          /* process or host; a communicator that shows it */
  uint64_t times, operations; /* of that communicator: long ones of the others; all */
  double least_us;            /* they were at least so long */
  double cost_us, run_us;     /* what all others waited, of a run as long as that */
};

struct ni_rolled_pauses {
  bool known;                   /* roll-ups say who paused, or that nobody did */
  struct ni_rolled_pause *item; /* what costs most comes first */
  size_t n;
};

int ni_find_rolled_pauses(const struct ni_summary *s, struct ni_rolled_pauses *out);
void ni_rolled_pauses_free(struct ni_rolled_pauses *x);

#endif
