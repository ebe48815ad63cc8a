/*
 * When a process had a collective in flight: how much of each part of the run's time.
 *
 * Time is cut into bins of a power of two of ns, counted from 1970, so that covers of different processes, files and runs have
 * the same edges and add up in any order. The bins become twice as wide when there would be more than NI_COVER_BINS of them.
 * Operations that overlap count twice, until a bin is full: where two communicators take turns that is right, where they run
 * at once the cover says less than what was in flight.
 *
 * Threads: one per struct. Memory: at most 8 bytes x NI_COVER_BINS, to be freed by ni_cover_free(). Whole numbers, so the
 * order of what is added changes nothing.
 */
#ifndef NI_COVER_H
#define NI_COVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NI_COVER_BINS = 2048 }; /* a power of two */

struct ni_cover {
  uint64_t *busy;       /* ns in flight, of NI_COVER_BINS bins; bin b (its time / width) lies at b % NI_COVER_BINS. NULL: none */
  uint64_t first, last; /* the bins in use */
  unsigned shift;       /* a bin is 1 << shift ns wide */
};

/* An operation from start to end, Unix ns, within the time of a job (ni_time_of_a_job): else it is passed over. 0, -ENOMEM. */
int ni_cover_add(struct ni_cover *c, int64_t start_ns, int64_t end_ns);
/* All that another one has. most: of each bin the larger of both, for processes whose operations are the same. 0, -ENOMEM. */
int ni_cover_merge(struct ni_cover *c, const struct ni_cover *other, bool most);
void ni_cover_free(struct ni_cover *c);

struct ni_cover_share {
  double share; /* of the time between: 0 to 1 */
  bool some, all; /* a part of it was, the whole of it was in flight */
};
struct ni_cover_share ni_cover_between(const struct ni_cover *c, int64_t from_ns, int64_t to_ns);

#endif
