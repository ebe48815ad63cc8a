/*
 * What the callbacks cost: one in about 64 is timed, while somebody wants to know (NCCL_INSPECTOR_MAX_OVERHEAD_PERCENT).
 *
 *   callback: in ─▶ work ─▶ out         off: one load and a branch; on: a countdown of its own for each thread
 *
 * The gap to the next timed callback is drawn anew each time (33 to 96), because callbacks come in patterns: a fixed one
 * would meet the same kind again and again. A sample counts for as many callbacks as its gap had, less what reading the
 * counter twice costs, and at most NI_METER_MAX_NS: beyond that it is a thread that was preempted, not a callback.
 *
 * Threads: any. The sums are relaxed counters: two of 64 callbacks meet on them at most. They are read by detail.c of the dump role.
 */
#ifndef NI_METER_H
#define NI_METER_H

#include "plugin/slots/extra.h"

#define NI_METER_MAX_NS 20000u

/* Measures what two readings of the counter cost, then switches on. Dump role, or init with the registry lock held. */
void ni_meter_start(struct ni_meter *m, double ns_per_tick);

uint64_t ni_meter_begin(void); /* 0: this one is not timed */
void ni_meter_end(uint64_t began);

#endif
