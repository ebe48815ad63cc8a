/*
 * Who pauses, in sampled logs: of few operations in which all others waited long for one rank.
 *
 * Where own time is not known a pause shows in the first operation behind it, if that one was kept. Its
 * last rank paused, or waited for somebody who did. Which of both can be told only in the communicator in
 * which the rank has the most operations (tensor parallelism, or the one of all): any other comes later,
 * when whoever is in the former has waited, too. A rank that waited as long in an operation shortly before
 * did not pause. Of those that are left one is named whose waits come now and then, not in most
 * operations, and are several times those of any other rank: a wrong name is worse than none.
 *
 * Threads: the main one; s->outlier has all that were kept. Failure: -ENOMEM.
 */
#ifndef NI_SUMMARY_RARE_WAITS_H
#define NI_SUMMARY_RARE_WAITS_H

#include "exporter/model/sums/model.h"

#define NI_RARE_WAIT_US 5e3 /* a wait of the others: less is jitter */
#define NI_RARE_MIN 3u      /* waits for one rank: fewer are chance */
#define NI_RARE_SHARE 0.2   /* of its operations in a communicator at most: in more of them it is late */
#define NI_RARE_TIMES 3.0   /* times what is waited for any other rank */
#define NI_RARE_OF_RUN 0.01 /* of the run, with what is not recorded: less is chance */

struct ni_pausing {
  uint32_t process, comm; /* UINT32_MAX: there is none */
  uint32_t times;         /* that are recorded */
  double us;              /* that the others waited in these */
};

int ni_find_rare_waits(const struct ni_summary *s, struct ni_pausing *out);

#endif
