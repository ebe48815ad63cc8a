/* All lines of all files, with whom each is about. One thread. 0 or -errno. */
#ifndef NI_TRACE_PASS_H
#define NI_TRACE_PASS_H

#include "trace.h"

/* All lines of all files in order. take() gets lines with a member (NI_TR_NONE: about a process). */
struct ni_tr_where {
  uint32_t process, member;
  int64_t dump_us;
};
int ni_tr_pass(struct ni_tr *r, enum ni_tr_pass pass,
               int (*take)(struct ni_tr *, const struct ni_tr_where *, const struct ni_line *));

#endif
