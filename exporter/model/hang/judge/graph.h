/*
 * Knots as a graph: which of them hang, and which explain the others.
 *
 * A knot leads to another one where a rank that it waits for waits there instead. Tarjan's algorithm finds
 * the rings in it (deadlocks), each of which counts as one knot. What leads nowhere is an end. The ends whose
 * time is over hang, and whatever leads to them hangs with them; what leads to an end that has time left does
 * not.
 *
 * A file may claim that a rank waits everywhere, so there are bounds: of each rank the oldest waits are
 * followed, ways through the graph as far as the stack has room, and 64 ends are told apart. Knots beyond
 * these are judged by their own time.
 *
 * Threads: one. Ownership: the graph lives during the call, and what it finds is in the knots.
 */
#ifndef NI_HANG_GRAPH_H
#define NI_HANG_GRAPH_H

#include "exporter/model/hang/verdict.h"

/*
 * For knots with views, pending_ns and limit_ns: sets hangs, root, ring, weight, leads_to, needed, behind and
 * went_on_ns, and moves ranks without data to where they are known to wait (NI_HANG_ELSEWHERE). 0 or -ENOMEM:
 * nothing is decided.
 */
int ni_hang_decide(struct ni_hang_verdict *v);

#endif
