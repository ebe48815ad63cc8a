/* The first pass: who is there, what was lost, what tells the clocks apart. One thread. 0 or -errno. */
#ifndef NI_TRACE_SCAN_H
#define NI_TRACE_SCAN_H

#include "trace.h"

int ni_tr_scan(struct ni_tr *r);
/*
 * Once since_ns and until_ns are known: a clock for each host (align.h); with r->log (choose.h) it reads what
 * tells them.
 */
int ni_tr_clocks(struct ni_tr *r);

#endif
