/*
 * Slices and instants of other profilers' files, by name, on tracks of their rank ("PyTorch CPU: thread 12"). Arrows and
 * arguments are not drawn; what else there is, is counted.
 */
#ifndef NI_TRACE_EMIT_WITH_H
#define NI_TRACE_EMIT_WITH_H

#include "exporter/model/timeline/trace.h"

/* After the second pass. 0 or -errno, told by ni_tr_fail(). */
int ni_tr_emit_with(struct ni_tr *r);

#endif
