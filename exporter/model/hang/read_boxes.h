/*
 * Black boxes -> looks: what one process was doing at one moment, complete.
 *
 * A box shows everything that is in flight, so it also proves what is not: unlike a log. Slots that were
 * given back still hold what they held last, which is how the newest finished operations are known without
 * any log.
 */
#ifndef NI_HANG_READ_BOXES_H
#define NI_HANG_READ_BOXES_H

#include "exporter/input/discover.h"
#include "exporter/input/inputs.h"
#include "exporter/input/box/box_decode.h"
#include "exporter/input/box/sources.h"
#include "model.h"

struct ni_hang_look {
  struct ni_hang_model m; /* of one process */
  uint64_t ns;            /* Unix ns: when the box was looked at, or copied */
};

struct ni_hang_looks {
  struct ni_hang_look *look;
  size_t n, cap;
  struct ni_box_passed passed; /* of the newest ni_hang_read_boxes() */
};

/*
 * Adds one look per box, with up to `threads` threads. If `only` is not NULL and has paths, only boxes whose
 * log lies there count; others are passed over, and so are boxes of other users. *bad counts these and the
 * ones that cannot be read. 0 or -ENOMEM.
 */
int ni_hang_read_boxes(struct ni_hang_looks *l, const struct ni_file *file, size_t n, int threads,
                       const struct ni_inputs *only, struct ni_hang_model *bad);
void ni_hang_looks_free(struct ni_hang_looks *l);

/* Is the slot an operation of its communicator? `started`: how many operations of its kind were started. */
bool ni_hang_is_box_op(const struct ni_box_op *op, uint64_t started);
/*
 * What an operation in flight does. *open: the channels that are inside. *net: its transfer; the peer is -1
 * without one.
 */
enum ni_hang_state ni_hang_box_state(const struct ni_box *b, size_t comm, const struct ni_box_op *op,
                                     uint64_t *open, struct ni_box_net *net);

/*
 * Merges into an empty model: base, and the newest look of each process that is not after `until`. 0 or
 * -ENOMEM.
 */
int ni_hang_model_at(struct ni_hang_model *out, const struct ni_hang_model *base,
                     const struct ni_hang_looks *l, uint64_t until);

#endif
