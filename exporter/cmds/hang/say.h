/*
 * A verdict in words: whom it names, and the one sentence that an on-call engineer reads.
 *
 * Ranks are global where the launcher gave them (and the process has one rank of the communicator), else "rank 3 of dp0".
 * Long lists become ranges, hosts beyond a few a number. Text goes to a FILE; one thread.
 */
#ifndef NI_HANG_SAY_H
#define NI_HANG_SAY_H

#include "exporter/base/text/safe_text.h"

#include "exporter/model/hang/verdict.h"

/* "HANG (likely): AllReduce 1204 of communicator dp0: rank 3 (node-a) never called it; ..." Without line feed. */
void ni_hang_say(FILE *f, const struct ni_hang_verdict *v);
/* One knot: what and who, the part behind the colon. */
void ni_hang_say_knot(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_knot *k);
/* say_fate.c: "8 ranks, 3 communicators; gone: rank 3 (node-a)". */
void ni_hang_say_job(FILE *f, const struct ni_hang_verdict *v);
/* Of a job that is over: "all 8 processes are gone (killed or crashed), last sign of life ... (95 s ago)". */
void ni_hang_say_end(FILE *f, const struct ni_hang_verdict *v);
/* With cannot_tell: "no black box of the 4 processes could be read (they belong to uid 0): run as that user, or on the nodes" */
void ni_hang_say_cannot_tell(FILE *f, const struct ni_hang_verdict *v);
/* Of processes that ended before this run began. Only where there are any. */
void ni_hang_say_earlier(FILE *f, const struct ni_hang_verdict *v);
/* "2026-11-21T22:41:07Z (95 s ago)" */
void ni_hang_say_when(FILE *f, const struct ni_hang_verdict *v, uint64_t ns);
/* "312 s", "14 min", "3 h", "2 days" */
void ni_hang_say_span(FILE *f, uint64_t ns);
/* What keeps the verdict from being certain, one per call from i = 0 on; false: no more. */
bool ni_hang_say_missing(FILE *f, const struct ni_hang_verdict *v, size_t i);

/* "dp0" or "0x5d1c..." */
void ni_hang_say_comm(FILE *f, const struct ni_hang_member *x);
/* "AllReduce 1204", "Recv from rank 3" */
void ni_hang_say_op(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_op *op);
/* The ranks of a knot that are somewhere: "rank 3 (node-a) and rank 17 (node-c)"; with hosts or without. */
void ni_hang_say_ranks(FILE *f, const struct ni_hang_verdict *v, const struct ni_hang_knot *k, enum ni_hang_where where);
/* Global rank of a view, or -1. */
int32_t ni_hang_global(const struct ni_hang_verdict *v, const struct ni_hang_view *w);
const char *ni_hang_where_name(enum ni_hang_where where); /* as in JSON */
const char *ni_hang_state_name(uint8_t state);

#endif
