/*
 * Everything that is to be formatted into the open block, which is written in between when it is full. Dump role.
 */
#ifndef NI_FILL_H
#define NI_FILL_H

#include "dump.h"

/* Finished operations and events. 0 when nothing is left; -EBUSY: the disk does not take it; else as ni_drain_format. */
int ni_fill(struct ni_dump *d);
/* Steps that wait for an operation whose communicator ends, or (s NULL) the process: its line may never come. As ni_fill. */
int ni_fill_steps(struct ni_dump *d, struct ni_comm_writer *s);

#endif
