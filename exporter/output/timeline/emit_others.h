/*
 * Time series of counters as tracks: a process for each host, "node-a: NICs and GPUs", with a track for each
 * counter that moved.
 *
 * A track shows a rate from the sample before to the one that follows: bytes as GB/s, cycles and us as % of
 * the time, others a second; of gauges the level. Where there is no number (a reset, an unreadable file) the
 * track stands at 0, and a mark of the process says why.
 *
 * Slices and instants of other profilers' files, by name, on tracks of their rank ("PyTorch CPU: thread 12").
 * Arrows and arguments are not drawn; what else there is, is counted.
 */
#ifndef NI_TRACE_EMIT_OTHERS_H
#define NI_TRACE_EMIT_OTHERS_H

#include "exporter/model/timeline/trace.h"

/* After the second pass. 0 or -errno, told by ni_tr_fail(). */
int ni_tr_emit_counters(struct ni_tr *r);
int ni_tr_emit_with(struct ni_tr *r);

#endif
