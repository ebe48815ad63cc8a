/*
 * Completion times that several hosts have in common: what a log keeps of its collectives so that its host's
 * clock can be laid beside others (exporter/model/clocks/hosts.h).
 *
 * All ranks of an AllReduce, AllGather or ReduceScatter end within a transfer of each other, and none ends
 * before the last has started. So a few of them tell how far two hosts' clocks are apart. A rank of a
 * communicator keeps NI_ANCHORS_MOST at most: those whose number and size, mixed, lie below a bound, and the
 * bound is halved whenever there are too many. So all ranks keep the same operations without knowing of each
 * other, and the sample is spread over the whole run. What is kept depends on the set of operations alone,
 * not on their order: parts of a log, logs and shards are merged in any order.
 *
 * GPU times among them are as the log has them, with the offset of the GPU's clock that they were written
 * with, and beside them is what the clock lines say of it (gpu_points.h): hosts.h puts them right. Of records
 * at the beginning of a part of a log that offset stands in the part before: merging tells them.
 *
 * Only of communicators that may span hosts, and only of records that say when their kernel ended. Of one
 * host's logs that state nnodes nothing is gathered.
 *
 * Threads: one for each. Ownership: ni_anchors_free(). Failure: -ENOMEM.
 */
#ifndef NI_LEDGER_ANCHORS_H
#define NI_LEDGER_ANCHORS_H

#include "exporter/base/bytes/wire.h"
#include "exporter/base/mix.h"
#include "format/line.h"
#include "gpu_points.h"

enum { NI_ANCHORS_MOST = 64 };

struct ni_anchor {
  uint64_t pick; /* the operation's place in the order of the sample: ni_anchor_pick() */
  uint64_t sn, bytes;
  int64_t start_ns, end_ns; /* Unix ns, by the clock of the host that wrote them */
  int64_t stated_ns; /* the offset of the GPU's clock they were written with; 0: none, or not yet known */
  uint32_t func;     /* enum ni_func */
};

struct ni_anchors {       /* all 0: empty */
  struct ni_anchor *item; /* in no order */
  uint32_t n, halved;     /* those whose pick is below 2^64 >> halved */
  size_t cap;
  struct ni_gpu_points gpu; /* by the clock lines */
  int64_t stated_ns;        /* by the last of them; 0: there was none */
};

static inline uint64_t ni_anchor_pick(uint64_t sn, uint64_t bytes) {
  return ni_mix(ni_spread(sn + 1) ^ bytes);
}

/* Is an operation of that number and size one of the sample as it is now? */
static inline bool ni_anchors_want(const struct ni_anchors *a, uint64_t sn, uint64_t bytes) {
  return ni_anchor_pick(sn, bytes) <= UINT64_MAX >> a->halved;
}
/* A clock line with the communicator. 0 or -ENOMEM. */
int ni_anchors_add_clock(struct ni_anchors *a, const struct ni_clock_line *k);
/* A record of a collective that is wanted: takes it if it tells clocks. 0 or -ENOMEM. */
int ni_anchors_add_line(struct ni_anchors *a, const struct ni_line *l);
/*
 * The same where the times are at hand. What is kept twice of one operation, by function and number: the
 * earlier counts.
 */
int ni_anchors_add(struct ni_anchors *a, const struct ni_anchor *x);
/* Adds those of b, which comes behind it in the log and stays as it is. 0 or -ENOMEM. */
int ni_anchors_merge(struct ni_anchors *a, const struct ni_anchors *b);
/* Stores, or loads into an empty one; the wire is bad where the bytes cannot be such a sample. */
void ni_anchors_wire(struct ni_wire *w, struct ni_anchors *a);
/* What clock lines say, behind that: the same anchors, as they lie. */
void ni_anchors_wire_clock(struct ni_wire *w, struct ni_anchors *a);
void ni_anchors_free(struct ni_anchors *a);

#endif
