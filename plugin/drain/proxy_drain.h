/*
 * Network operations and their steps to lines in the open block. Dump role. Beneath event_drain.c, which has
 * the lists.
 */
#ifndef NI_PROXY_DRAIN_H
#define NI_PROXY_DRAIN_H

#include "drain.h"

/*
 * A closed proxy operation of todo into the block. 1: its slot can go; negative errno: the block takes no
 * more.
 */
int ni_proxy_finish(struct ni_drain *d, struct ni_comm_writer *s, uint32_t slot);
/* The same for a step. */
int ni_step_finish(struct ni_drain *d, struct ni_comm_writer *s, uint32_t slot);

#endif
