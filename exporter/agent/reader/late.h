/*
 * Which rank of this node comes last to collectives, and how long the others had waited by then.
 *
 *   records of several logs, flushed up to a second apart ─▶ ring of operations by function and number ─▶ all are here: the last one
 *
 * "All" are the ranks that the communicator has on this node, as far as anything has named them. What is pushed out of the ring
 * before that counts when half of them came. Bounded: 64 communicators, 2048 operations and 16 ranks each. One thread.
 */
#ifndef NI_LATE_H
#define NI_LATE_H

#include "exporter/model/live/batch.h"

struct ni_late;
struct ni_late_one {
  struct ni_live_who who; /* the last one */
  enum ni_func func;
  uint32_t size_class;
  uint64_t ns;            /* from the middle one's arrival (of an even number the earlier one) to its own */
};

int ni_late_open(struct ni_late **out);
/* There is such a rank here. func 0: no more than that. Else it came to `sn` at `ns`, Unix ns; true: *one is known now. */
bool ni_late_arrive(struct ni_late *l, uint64_t hash, int32_t rank, const struct ni_live_who *who, enum ni_func func, uint64_t sn,
                    uint32_t size_class, uint64_t ns, struct ni_late_one *one);
void ni_late_close(struct ni_late *l);

#endif
