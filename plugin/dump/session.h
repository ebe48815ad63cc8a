/*
 * A session: one log file, from the first communicator to the last. Dump role.
 */
#ifndef NI_SESSION_H
#define NI_SESSION_H

#include "dump.h"

/* Tells the black box where the log will be, before there is one: a process killed in its first moments is
 * found by it. By the first init, after ni_keep_begin. */
void ni_session_plan(struct ni_dump *d);

/* Is there a communicator that has still something to say? One whose retired slots merely rest has not. */
int ni_session_wanted(const struct ni_dump *d);
int ni_session_open(struct ni_dump *d); /* 0, or a negative errno: said, and to be tried again */
/*
 * Writes the open block if there is one, and settles what was in it. As ni_block_write; at once when somebody
 * waits.
 */
int ni_session_flush(struct ni_dump *d);
void ni_session_close(struct ni_dump *d);

#endif
