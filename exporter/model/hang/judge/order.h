/*
 * Which knot is told first (docs/hang.md): causes before consequences. Of those that miss the same rank, the
 * one to which its program comes first (program.h). Of others, the one that most ranks wait for. One thread.
 */
#ifndef NI_HANG_ORDER_H
#define NI_HANG_ORDER_H

#include "exporter/model/hang/verdict.h"

/* Sorts the knots of a judged verdict, and says what comes first of each cause. 0 or -ENOMEM. */
int ni_hang_order(struct ni_hang_verdict *v);

#endif
