/*
 * Network operations and their steps to lines in the open block. Dump role. Beneath event_drain.c, which has the lists.
 */
#ifndef NI_PROXY_DRAIN_H
#define NI_PROXY_DRAIN_H

#include "drain.h"

/* A closed proxy operation of todo into the block. 1: its slot can go; negative errno: the block takes no more. */
int ni_proxy_finish(struct ni_drain *d, struct ni_comm_writer *s, uint32_t slot);
/* The same for a step. 0: its operation's line will have it, and ni_step_keep is to be given the slot. */
int ni_step_finish(struct ni_drain *d, struct ni_comm_writer *s, uint32_t slot);
void ni_step_keep(struct ni_drain *d, struct ni_comm_writer *s, uint32_t slot);
/* Steps that have waited long enough for their operation's line, or all, into the block as segments. s NULL: those of no
 * communicator. As ni_drain_format. */
int ni_steps_release(struct ni_drain *d, struct ni_comm_writer *s, int all);
/* At exit, out of time: steps that wait count as dropped. */
void ni_steps_give_up(struct ni_drain *d, struct ni_event_writer *ev);

#endif
