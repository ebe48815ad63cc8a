/*
 * Lines of detail that changes while the job runs, and of roll-ups. Bounds, threads and lifetimes as in line_write.h.
 */
#ifndef NI_CONTROL_WRITE_H
#define NI_CONTROL_WRITE_H

#include "line_write.h"

struct ni_control_line {
  const char *source;        /* "file", "duty" or "budget" */
  const char *file;          /* NULL: not from a file */
  uint64_t line;
  const char *command, *result;
  const char *mark, *why;    /* NULL: none */
  const char *events;
  bool verbose;
  uint64_t sample, ns;       /* one record in so many; Unix ns */
};
size_t ni_format_control(char *buf, size_t cap, const struct ni_line_prefix *p, uint64_t ts_us,
                         const struct ni_control_line *in);

struct ni_rollup_line {
  enum ni_kind kind;
  const char *func;
  enum ni_timing timing;
  uint64_t msg_bytes, msg_to_bytes; /* a class of sizes: first and last; one size: msg_to_bytes 0 */
  uint64_t from_ns, to_ns;          /* Unix ns */
  uint64_t count, sum_bytes, sum_ns, min_ns, max_ns;
  const uint32_t *hist;             /* NI_HIST_BUCKETS counts; NULL: left out */
};
size_t ni_format_rollup(char *buf, size_t cap, const struct ni_line_prefix *p, uint64_t ts_us,
                        const struct ni_rollup_line *in);

#endif
