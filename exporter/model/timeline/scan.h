/* The first pass: who is there, what was lost, what tells the clocks apart; and when a record ran. One thread. 0 or -errno. */
#ifndef NI_TRACE_SCAN_H
#define NI_TRACE_SCAN_H

#include "trace.h"

int ni_tr_scan(struct ni_tr *r);

/* When a record ran, in its host's clock: start and duration in ns. */
enum ni_tr_placed { NI_TR_BY_GPU, NI_TR_BY_CPU, NI_TR_BY_ENQUEUE, NI_TR_NOWHERE };
enum ni_tr_placed ni_tr_place(const struct ni_line *l, int64_t *start_ns, int64_t *dur_ns);

#endif
