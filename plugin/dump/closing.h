/*
 * The last lines of communicators that are over; at exit, of all. Dump role.
 */
#ifndef NI_CLOSING_H
#define NI_CLOSING_H

#include "dump.h"

/* a communicator's last line waits so long for callbacks that are on their way or to come */
#define NI_SETTLE_MS 100u

/* Says the last lines of those that finalize has left, and with NI_END_EXIT of all. Returns how many are
 * still to be closed: the disk takes nothing, or a callback is on its way. */
uint32_t ni_closing(struct ni_dump *d, enum ni_end end);
/* Has every communicator said its last? */
int ni_closing_all_said(const struct ni_dump *d);

#endif
