/*
 * All operations of one process in order of their starts, put together from its segments.
 *
 * A record that came twice, or out of the order of its numbers, is passed over. Operations that state no time of a kernel
 * are none. Threads: one for each stream; several at once. Ownership: ni_blame_close(). Failure: -ENOMEM, -errno of the
 * spill file.
 */
#ifndef NI_BLAME_STREAM_H
#define NI_BLAME_STREAM_H

#include "blame.h"

struct ni_blame_stream;

/* Pieces of all cells by process, sorted once. NULL: no memory. Caller frees both. */
struct ni_blame_piece {
  uint32_t process, cell, comm, member; /* numbers of the result; member: of the run */
  struct ni_piece *piece;
};
struct ni_blame_pieces {
  struct ni_blame_piece *item;
  size_t n;
};
int ni_blame_pieces(const struct ni_run *r, const struct ni_summary *s, struct ni_blame_pieces *out);

/* item: those of one process. Fills slots and tokens of `out`. */
int ni_blame_open(struct ni_blame_stream **s, struct ni_run *r, const struct ni_blame_piece *item, size_t n, struct ni_blame_rank *out);
/* 1: *op (slot, token, sn, times); 0: no more; -errno. */
int ni_blame_next(struct ni_blame_stream *s, struct ni_blame_op *op);
void ni_blame_close(struct ni_blame_stream *s);

#endif
