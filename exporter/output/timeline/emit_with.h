/*
 * Events of other profilers' files as they are, on tracks of their rank ("PyTorch CPU: thread 12"). Slices and instants
 * with name, category and arguments; arrows that stand behind the slice that they are bound to, as Kineto writes them. What
 * else there is, is counted.
 */
#ifndef NI_TRACE_EMIT_WITH_H
#define NI_TRACE_EMIT_WITH_H

#include "exporter/model/timeline/trace.h"

/* After the second pass. 0 or -errno, told by ni_tr_fail(). */
int ni_tr_emit_with(struct ni_tr *r);

#endif
