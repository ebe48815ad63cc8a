/*
 * Lines of events (docs/format.md, 4b). Bounds, threads and lifetimes as in line_write.h.
 */
#ifndef NI_FORMAT_EVENT_H
#define NI_FORMAT_EVENT_H

#include "line_write.h"

#define NI_NOT_SAID UINT64_MAX /* a number that is written as null */

/* One event; each kind reads what it has. Times in Unix ns and ns. */
struct ni_event_line {
  enum ni_event kind;
  uint64_t ev_sn, start_ns;
  int64_t dur_ns; /* < 0: it never stopped */
  const char *func, *datatype, *text;
  const char *seen;      /* API calls */
  uint64_t number;       /* call_sn, plan_sn, ce_sn, group_sn, proxy_op_sn; NI_NOT_SAID */
  uint64_t group;        /* group_sn; of a CE its call_sn; NI_NOT_SAID */
  uint64_t count, stream;
  int64_t n;
  int64_t start_end_ns, end_begin_ns; /* < 0: not seen */
  int32_t root, depth;
  bool graph, flag;
  uint32_t ctrl_state;   /* NI_ST_PROXY_CTRL_* */
  struct ni_net_event net;
};
size_t ni_format_event(char *buf, size_t cap, const struct ni_line_prefix *p, uint64_t ts_us, const struct ni_event_line *in);

/* One step of a proxy operation. */
struct ni_step_text {
  uint64_t record_sn, bytes, start_ns;
  int64_t total_ns;                   /* < 0: it never stopped */
  uint64_t phase_ns[NI_PH_COUNT - 1]; /* 0: it had none */
  int32_t step;
  uint32_t step_sn;
};

#define NI_STEPS_A_LINE 64u /* at most so many are nested in one line */

/* A proxy operation; one of its steps; some of its steps before its own line. The latter two know less of it. */
enum ni_proxy_what { NI_PROXY_OP = 0, NI_PROXY_SEGMENT, NI_PROXY_STEP };
struct ni_proxy_line {
  enum ni_proxy_what what;
  bool has_parent, send, foreign;
  uint64_t record_sn, op_sn, parent_sn, parent_rec_sn;
  enum ni_kind parent_kind;
  const char *parent_func;
  int32_t rank, channel, peer, n_steps, chunk;
  uint32_t n_started, n_completed, n_dropped;
  int64_t pid;
  uint64_t bytes, start_ns;
  int64_t total_ns, progress_ns, max_step_ns; /* < 0: none */
  uint64_t phase_ns[NI_PH_COUNT - 1];         /* 0: no step had it */
  const char *state;                          /* of an open one; NULL: it stopped */
  const struct ni_step_text *steps;           /* NULL: none are nested. A step's line: itself */
  uint32_t n_listed;                          /* at most NI_STEPS_A_LINE */
};
size_t ni_format_proxy(char *buf, size_t cap, const struct ni_line_prefix *p, uint64_t ts_us, const struct ni_proxy_line *in);

#endif
