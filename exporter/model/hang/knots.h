/* Communicators whose ranks have not all finished what some of them called, and where each rank is. One thread. */
#ifndef NI_HANG_KNOTS_H
#define NI_HANG_KNOTS_H

#include "verdict.h"

/* All knots of a model, views filled, nothing judged. 0 or -ENOMEM. */
int ni_hang_find_knots(struct ni_hang_verdict *v);
/* Two calls of a knot's operation: the same in what ranks disagree on? */
bool ni_hang_alike(const struct ni_hang_knot *k, const struct ni_hang_op *a, const struct ni_hang_op *b);

#endif
