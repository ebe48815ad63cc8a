/*
 * From which operation on a clock had been set: of one stream, which is what one rank of a communicator, or
 * one host, did of one function.
 *
 * A step lies between two operations that are known from other hosts, and times near it leave open on which
 * side they are: set back by 25 ms, a clock shows the same 25 ms twice. The order of the operations decides.
 * One of them is the first behind the step, and the time since the one before it is then longer by the step
 * than the clock says. Of all that can be the first it is the one where the gap between both, as the clock
 * says it, is least like the other gaps of the stream, and most like them with the step taken off. So a time
 * need not run back: operations that come once each 40 ms come once after 15.
 *
 * Pure; any thread. Failure: -ENOMEM.
 */
#ifndef NI_CLOCKS_TURN_H
#define NI_CLOCKS_TURN_H

#include <stddef.h>

#include "host_clock.h"

/*
 * t_ns[0..n): the stream's times by the clock of its host, in the order of the operations. Sets turn[k] for
 * each step k of the clock: so many operations are before it. 0 or -ENOMEM.
 */
int ni_clock_find_turns(const struct ni_host_clock *c, const int64_t *t_ns, size_t n,
                        size_t turn[static NI_CLOCK_STEPS]);

/*
 * How far x is from the nearest of the usual times between operations, usual[0..n) in ascending order, ns.
 * own: so many of them are x itself. INFINITY: there are no others.
 */
double ni_clock_measure_oddness(const int64_t *usual, size_t n, int64_t x, size_t own);

#endif
