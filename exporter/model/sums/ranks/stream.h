/*
 * All operations of one process in order of their starts, put together from its segments.
 *
 * A record that came twice, or out of the order of its numbers, is passed over. Operations that state no time
 * of a kernel are none, unless all_ops of the rank asks for them. Threads: one for each stream; several at
 * once. Ownership: ni_blame_close(). Failure: -ENOMEM, -errno of the spill file.
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
int ni_blame_open(struct ni_blame_stream **s, struct ni_run *r, const struct ni_blame_piece *item, size_t n,
                  struct ni_blame_rank *out);
/* 1: *op (slot, token, sn, times); 0: no more; -errno. */
int ni_blame_next(struct ni_blame_stream *s, struct ni_blame_op *op);
/*
 * A function on a slot of collectives; of all messages Send and Recv are one each, with slot NI_BLAME_NONE.
 */
struct ni_blame_function {
  const char *name;
  uint32_t slot;
};
enum { NI_BLAME_FUNCTIONS = 256 }; /* what goes beyond shares the last one */
enum { NI_BLAME_MANY_SIZES = 24 }; /* of one function on one slot: more of them vary from step to step */

/*
 * of: by token, which function it is, below NI_BLAME_FUNCTIONS. Tokens of one function differ in size alone.
 * Both live until the stream is closed.
 */
uint32_t ni_blame_functions(const struct ni_blame_stream *s, const struct ni_blame_function **function,
                            const uint16_t **of);
/*
 * A function on a communicator of so many ranks, of whatever size: who has more to do has larger operations
 * (uneven.h). The same number on all ranks.
 */
uint64_t ni_blame_hash_function(const char *func, int32_t n_ranks);
void ni_blame_close(struct ni_blame_stream *s);

#endif
