/*
 * Everything that is to be formatted into the open block, which is written in between when it is full. Dump
 * role.
 */
#ifndef NI_FILL_H
#define NI_FILL_H

#include "dump.h"

/*
 * Finished operations and events. 0 when nothing is left; -EBUSY: the disk does not take it; else as
 * ni_drain_format.
 */
int ni_fill(struct ni_dump *d);

#endif
