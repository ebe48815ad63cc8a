/*
 * Communicators whose ranks have not all finished what some of them called, and where each rank is. One
 * thread.
 */
#ifndef NI_HANG_KNOTS_H
#define NI_HANG_KNOTS_H

#include "exporter/model/hang/verdict.h"

/* All knots of a model, views filled, nothing judged. 0 or -ENOMEM. */
int ni_hang_find_knots(struct ni_hang_verdict *v);

#endif
