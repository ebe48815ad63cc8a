/*
 * While lines are read: when each process had operations in flight, and what it sent over the network, to be
 * set beside counters (exporter/model/counters/beside.h). Nothing where the input has no counters.
 *
 * Threads: a range's own, with its reading; the run's lock is taken once a range. 0 or -ENOMEM.
 */
#ifndef NI_SUMMARY_IN_FLIGHT_H
#define NI_SUMMARY_IN_FLIGHT_H

#include "reading.h"

/* start_ns: Unix ns, or NI_NO_START. */
int ni_in_flight_add_operation(struct ni_sum_range *x, uint32_t process, int64_t start_ns, uint64_t exec_ns);
int ni_in_flight_add_proxy(struct ni_sum_range *x, uint32_t process, const struct ni_proxy_line *p);
/* The range is over. */
int ni_in_flight_hand_over(struct ni_sum_range *x);

#endif
