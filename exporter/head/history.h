/*
 * The last minutes in figures, a point a second, so that a page that is opened now has charts at once (docs/cluster.md, "HTTP"). Sums and
 * means are over clients that are `ok`; what nobody knows is null. Points are kept as texts: 0.4 KB each, 6 KB with 32 jobs. The loop's
 * thread.
 */
#ifndef NI_HISTORY_H
#define NI_HISTORY_H

#include <stdio.h>

#include "core.h"

enum { NI_HISTORY_POINTS = 300, NI_HISTORY_JOBS = 32 /* of a point; more are left out */ };

struct ni_history_job {           /* over its nodes */
  char job[64], attempt[16];
  uint32_t uid, nodes;
  double bytes, seconds;
  double bandwidth;               /* of what finished at the last news, for 3 s: logs are written once a second; else NaN */
  int64_t news_ns;
};
struct ni_history {
  char *point[NI_HISTORY_POINTS]; /* a ring, NULL: none yet */
  uint64_t n;
  struct ni_history_job before[NI_HISTORY_JOBS]; /* of the newest point */
  size_t n_before;
};

void ni_history_take(struct ni_history *h, const struct ni_core *c);
/* The newest so many points, the oldest first, with commas between them. */
void ni_history_put(const struct ni_history *h, size_t points, FILE *f);
void ni_history_free(struct ni_history *h);

#endif
