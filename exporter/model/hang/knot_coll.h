/* The collective that not all ranks of a communicator have finished, and where each is. One thread. */
#ifndef NI_HANG_KNOT_COLL_H
#define NI_HANG_KNOT_COLL_H

#include "knot.h"

/* Adds a knot where there is one. 0 or -ENOMEM. */
int ni_hang_collectives(struct ni_hang_finding *f, const struct ni_hang_group *c);

#endif
