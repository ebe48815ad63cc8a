/*
 * Which knot is told first (docs/hang.md): causes before consequences; of those that miss the same rank the
 * one to which its program comes first (program.h); of others the one that most ranks wait for. One thread.
 */
#ifndef NI_HANG_ORDER_H
#define NI_HANG_ORDER_H

#include "exporter/model/hang/verdict.h"

/* Sorts the knots of a verdict that are judged, and says what of each cause comes first. 0 or -ENOMEM. */
int ni_hang_order(struct ni_hang_verdict *v);

#endif
