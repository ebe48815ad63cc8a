/* The part of a verdict that is about processes (say.h). One thread. */
#ifndef NI_HANG_SAY_FATE_H
#define NI_HANG_SAY_FATE_H

#include <stdio.h>

#include "exporter/model/hang/verdict.h"

/* "8 ranks, 3 communicators; gone: rank 3 (node-a)". */
void ni_hang_say_job(FILE *f, const struct ni_hang_verdict *v);
/* Of a job that is over: "all 8 processes are gone (killed or crashed), last sign of life ... (95 s ago)". */
void ni_hang_say_end(FILE *f, const struct ni_hang_verdict *v);
/*
 * With cannot_tell: "no black box of the 4 processes could be read (they belong to uid 0): run as that user,
 * or on the nodes"
 */
void ni_hang_say_cannot_tell(FILE *f, const struct ni_hang_verdict *v);
/* Of processes that ended before this run began. Only where there are any. */
void ni_hang_say_earlier(FILE *f, const struct ni_hang_verdict *v);

#endif
