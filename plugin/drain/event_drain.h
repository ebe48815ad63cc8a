/*
 * Events that are not operations, from the stores' done lists to lines in the open block. Dump role.
 */
#ifndef NI_EVENT_DRAIN_H
#define NI_EVENT_DRAIN_H

#include "drain.h"

/* Takes what callbacks have closed. 1 if anything moved. */
int ni_events_collect(struct ni_drain *d);
/* As ni_drain_format. */
int ni_events_format(struct ni_drain *d);
/* At exit, out of time: what is left counts as dropped. */
void ni_events_give_up(struct ni_drain *d);
/* Looks at API calls that wait for their operation. */
void ni_events_judge(struct ni_drain *d, struct ni_comm_writer *s, enum ni_end end);
/* The communicator is over: what never stopped is closed and goes to todo. 1: there was such. */
int ni_events_close(struct ni_event_store *st, struct ni_event_writer *ev);
/* Is a network operation between start and stop, or not yet in the block? A hint. */
int ni_events_in_flight(const struct ni_event_store *st, const struct ni_event_writer *ev);

#endif
