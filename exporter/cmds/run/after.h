/*
 * What `run` says when its command has ended: five lines, or why there is nothing to say.
 *
 * In a child of ours, so that its memory is gone again, and whatever is in the logs costs the command its
 * exit code:
 *
 *   wait for logs (bounded) ──▶ none of a rank ──▶ why, as `doctor` says it
 *            │
 *            └──▶ OUT/report, as `summary` makes it ──▶ five lines
 *
 * Without five lines a sentence says why. Ctrl-C ends it.
 */
#ifndef NI_RUN_AFTER_H
#define NI_RUN_AFTER_H

#include "launch.h"

struct ni_after {
  const struct ni_launch *l;
  const char *command; /* its name */
  int code;            /* its exit code */
  const char *hang;    /* what `hang` said of it while it ran; "": nothing */
  unsigned wait_s;     /* the most that it waits for logs of ranks that have not ended */
};

/* Standard output goes to standard error from here on. To be called in the child: its exit code. */
int ni_after_tell(const struct ni_after *a);

#endif
