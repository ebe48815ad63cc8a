/*
 * A verdict in words: whom it names, and the one sentence that an on-call engineer reads.
 *
 * Its parts: of one knot (say_knot.h), of the processes (say_fate.h), names, times and lists of ranks
 * (words.h). Ranks are global where the launcher gave them (and the process has one rank of the
 * communicator), else "rank 3 of dp0". Long lists become ranges, hosts beyond a few a number. Text goes to a
 * FILE; one thread.
 */
#ifndef NI_HANG_SAY_H
#define NI_HANG_SAY_H

#include <stdio.h>

#include "exporter/model/hang/verdict.h"

/*
 * "HANG (likely): AllReduce 1204 of communicator dp0: rank 3 (node-a) never called it; ..." Without line
 * feed.
 */
void ni_hang_say(FILE *f, const struct ni_hang_verdict *v);
/* What is waited for, by whom, and since when: the part behind the colon. Nothing where nobody waits. */
void ni_hang_say_cause(FILE *f, const struct ni_hang_verdict *v);
/*
 * "nothing has moved for 312 s", and where that is not known of now "nothing has moved for 21 s as of
 * 2026-11-21T08:00:21Z (95 s ago)".
 */
void ni_hang_say_still(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_knot *k);
/* What a call says that writes to `f`; malloc'ed, NULL without memory. */
#define NI_HANG_SAID(text, call) \
  do { \
    size_t n_ = 0; \
    char *said_ = NULL; \
    FILE *f = open_memstream(&said_, &n_); \
    if (f) \
      call, (void)fclose(f); \
    (text) = said_; \
  } while (0)
/* What keeps the verdict from being certain, one per call from i = 0 on; false: no more. */
bool ni_hang_say_missing(FILE *f, const struct ni_hang_verdict *v, size_t i);

#endif
