/*
 * Roll-ups as lines, in the log or, where files expire, in a file of their own. Dump role.
 */
#ifndef NI_ROLLUP_LINES_H
#define NI_ROLLUP_LINES_H

#include "writer.h"

int ni_roll_counted(void); /* are there roll-ups at all? */
/* with a session. 0 or negative errno */
int ni_roll_open(struct ni_writer *w, const struct ni_out_options *log);
void ni_roll_close(struct ni_writer *w);
/* Says what a communicator has counted, when its period is over or now. 0: nothing is left; else as
 * ni_gz_append, and the rest is said by the next call. */
int ni_roll_say(struct ni_writer *w, struct ni_comm_writer *s, int now);
/*
 * Writes what was said into the file of their own, if there is one. force: as ni_block_write. 0 or negative
 * errno.
 */
int ni_roll_flush(struct ni_writer *w, int force);

#endif
