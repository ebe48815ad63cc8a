/*
 * The open block: what lines go into, and what is written at once. Dump role.
 */
#ifndef NI_BLOCK_H
#define NI_BLOCK_H

#include "writer.h"

#define NI_ROOM_BYTES (128u << 10) /* all control lines that one communicator says at once */

/*
 * A formatted line of n bytes (0: nothing to do) goes into the open block. 0 or negative errno as
 * ni_gz_append.
 */
static inline int ni_block_put(struct ni_writer *w, const char *line, size_t n) {
  return n ? ni_gz_append(w->gz, line, n) : 0;
}
/* 0: all that one communicator says at once will fit into the open block. Errors as ni_gz_append; no_room is
 * set. What is said only once asks before it forgets. */
static inline int ni_block_room(struct ni_writer *w) {
  int rc = ni_gz_reserve(w->gz, NI_ROOM_BYTES);
  if (rc)
    w->no_room = 1;
  return rc;
}

/* Writes the open block if there is one. 0: nothing is pending any more, and the caller settles what was in
 * the block; negative errno: kept for the next try. force: also during the pause after a failure. */
int ni_block_write(struct ni_writer *w, int force);

#endif
