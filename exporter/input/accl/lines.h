/*
 * The lines of one file of ACCL. See accl.h.
 */
#ifndef NI_ACCL_LINES_H
#define NI_ACCL_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "exporter/base/progress.h"

struct ni_accl_op {
  char func[32], algo[16], proto[16]; /* "": not stated */
  int32_t rank, n_ranks;              /* -1: not stated */
  uint64_t sn, bytes, dur_ns;
  bool sized, by_gpu;        /* by_gpu: the length is of the GPU's ticks; else the CPU's */
  int32_t channels, kernels; /* stated, 0: not; kernel events */
};

struct ni_accl_summary { /* ended: there was one */
  bool ended;
  uint64_t dropped,
      leaked;     /* collectives without a line: no room for them; begun and never told to have ended */
  uint64_t proxy; /* of the proxy: operations and steps that were not timed */
};

/* take: each collective. *bad: lines that are no JSON, or no collective. -EBADMSG: none is one of ACCL's. */
int ni_accl_lines(const char *path, int (*take)(void *arg, const struct ni_accl_op *op), void *arg,
                  struct ni_accl_summary *summary, uint64_t *bad, struct ni_progress *progress);

#endif
