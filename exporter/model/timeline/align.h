/*
 * Clocks of a timeline's hosts. After the scan, before the second pass.
 *
 * The reference and the steps are those of all commands (exporter/model/clocks/hosts.h), by the account of
 * the logs; where the reference is not among the hosts shown, it is the host of the lowest rank that is. The
 * lines are fitted to all that was matched, which is more than the account keeps, with GPU times put right by
 * the clock lines (gpu_clock.h) first.
 */
#ifndef NI_TRACE_ALIGN_H
#define NI_TRACE_ALIGN_H

#include "trace.h"

/* Fills each host's clock, and the reference; frees r->match. 0 or -errno, told by ni_tr_fail(). */
int ni_tr_align(struct ni_tr *r);

#endif
