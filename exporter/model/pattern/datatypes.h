/*
 * Which datatype the operations of a communicator, function and size have: what segments do not keep.
 *
 * A sink for reading (record_row.h); tables of ranges are put together under a lock. What has two datatypes
 * has none. Beyond NI_DATATYPES_MAX combinations nothing is told of any. Threads: the sink any; the rest the
 * main one, after reading. Ownership: ni_datatypes_free(). Failure: -ENOMEM.
 */
#ifndef NI_PATTERN_DATATYPES_H
#define NI_PATTERN_DATATYPES_H

#include "exporter/base/sink.h"
#include "exporter/model/sums/state.h"

#define NI_DATATYPES_MAX (1u << 20)

struct ni_datatypes {
  pthread_mutex_t lock;
  struct ni_datatype {
    uint64_t bytes;
    uint32_t of, func, datatype; /* of: context while reading, then the communicator of the result */
    bool several;
  } *item;
  size_t n, cap;
  struct ni_index at_hash;
};

int ni_datatypes_init(struct ni_datatypes *t);
struct ni_sink ni_datatypes_sink(struct ni_datatypes *t);
/* After ni_build_begin(): by communicator, for ni_datatype_of(). */
void ni_datatypes_sort(struct ni_datatypes *t, const struct ni_run *r);
/* func: a text of r's names. NULL: none, or several. */
const char *ni_datatype_of(const struct ni_datatypes *t, const struct ni_run *r, uint32_t comm,
                           const char *func, uint64_t bytes);
void ni_datatypes_free(struct ni_datatypes *t);

#endif
