/*
 * One pass of the dump role.
 */
#ifndef NI_TICK_H
#define NI_TICK_H

#include "dump.h"

/* ask: someone waits, so everything goes out now. Returns 1 when nothing is pending any more: no operation
 * drained but unwritten, no communicator closing. */
int ni_tick(struct ni_dump *d, int ask, enum ni_end end);

#endif
