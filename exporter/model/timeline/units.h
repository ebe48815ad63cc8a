/*
 * As which units processes and members are shown: the GPUs of the processes, by the rank of the job (struct
 * ni_tr).
 */
#ifndef NI_TRACE_UNITS_H
#define NI_TRACE_UNITS_H

#include "trace.h"

/* After the first pass: units, their ranks and GPU clocks, what is shown. One thread. 0 or -ENOMEM. */
int ni_tr_settle(struct ni_tr *r);

#endif
