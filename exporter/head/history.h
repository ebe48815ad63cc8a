/*
 * The last minutes in figures, a point a second, so that a page that is opened now has charts at once
 * (docs/cluster.md, "HTTP"). Sums and means are over clients that are `ok`; what nobody knows is null. Points
 * are kept as texts: 0.4 KB each, 6 KB with 32 jobs. The loop's thread.
 */
#ifndef NI_HISTORY_H
#define NI_HISTORY_H

#include <stdio.h>

#include "core.h"

enum { NI_HISTORY_POINTS = 300 };

struct ni_history {
  char *point[NI_HISTORY_POINTS]; /* a ring, NULL: none yet */
  uint64_t n;
};

void ni_history_take(struct ni_history *h, const struct ni_core *c);
/* The newest so many points, the oldest first, with commas between them. */
void ni_history_put(const struct ni_history *h, size_t points, FILE *f);
void ni_history_free(struct ni_history *h);

#endif
