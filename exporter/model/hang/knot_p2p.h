/* The sends and receives of a communicator that are in flight, and who waits for whom. One thread. */
#ifndef NI_HANG_KNOT_P2P_H
#define NI_HANG_KNOT_P2P_H

#include "knot.h"

/* Adds a knot where there is one. 0 or -ENOMEM. */
int ni_hang_transfers(struct ni_hang_finding *f, const struct ni_hang_group *c);

#endif
