/* The clocks of the hosts, and which host is the reference. After the scan, before the second pass. */
#ifndef NI_TRACE_ALIGN_H
#define NI_TRACE_ALIGN_H

#include "trace.h"

/* Fills what struct ni_tr_host says of its clock, reference and epoch_ns; frees r->match. 0 or -errno, told by ni_tr_fail(). */
int ni_tr_align(struct ni_tr *r);

#endif
