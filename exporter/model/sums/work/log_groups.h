/*
 * Named parts of the logs: --groups FILE, lines `NAME: GLOB...`. A log is of the first group with a glob that
 * matches its path or its file name (`*` also matches /); of a process its first log counts. A line that
 * begins with # is a remark. The main thread.
 */
#ifndef NI_LOG_GROUPS_H
#define NI_LOG_GROUPS_H

#include <stddef.h>

#define NI_LOG_GROUPS_MAX 1024u
struct ni_log_groups { /* text, the file's, which names point into, and name are freed with the run */
  char *text;
  const char **name;
  size_t n, cap;
};
struct ni_run;
/*
 * Reads opt.groups, if any, after ni_plan_reading(), and says of each of r->file which one it is of. 0, or
 * what ni_run_fail() was told: -errno, -ENOMEM; -EINVAL, -EFBIG of what stands in it; -ENOENT: no log is of a
 * group.
 */
int ni_log_groups_read(struct ni_run *r);

#endif
