/*
 * The order of two operations in a rank's program, as its peers show it: all ranks of one place in the job
 * run the same program.
 *
 * A rank that is missing from several operations would have come to one of them first. Who waits in one of
 * them beside it, say in its tensor group, has done or called before what the missing rank owes in the other,
 * or has not: it has a communicator of that name and size, too, with operations of the same numbers. One
 * thread. Pure.
 */
#ifndef NI_HANG_PROGRAM_H
#define NI_HANG_PROGRAM_H

#include "exporter/model/hang/verdict.h"

struct ni_hang_program {
  const struct ni_hang_verdict *v;
  const struct ni_hang_member **by_process; /* all of the model, those of one process beside each other */
  size_t n;
};

/* 0 or -ENOMEM. Freed with free(p->by_process). */
int ni_hang_program_of(struct ni_hang_program *p, const struct ni_hang_verdict *v);
/* Both miss the same rank. Above 0: a comes before b in its program; below 0: after b; 0: nobody shows it. */
int ni_hang_comes_before(const struct ni_hang_program *p, const struct ni_hang_knot *a,
                         const struct ni_hang_knot *b);

#endif
