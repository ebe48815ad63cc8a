/*
 * Who is missing, while the command runs: `nccl-inspector hang` beside it, a process of its own whose memory
 * and time are not ours.
 *
 * Two looks. One is asked for by Ctrl-C: once, ended after 10 s. The other goes on, with --hang-limit:
 *
 *   off ──▶ watching ──── hang --watch says that it hangs: told ───▶ standing
 *              ▲                                                        │
 *              └──── a look, each limit, says that it does not: told ───┘
 *
 * One thread; the caller calls ni_run_watch_turn() when a child has ended or ni_run_watch_due() has come.
 * Failure: what cannot be started is not told.
 */
#ifndef NI_RUN_WATCH_H
#define NI_RUN_WATCH_H

#include "exporter/base/process/task.h"
#include "launch.h"

enum ni_run_watch_state { NI_RUN_WATCH_OFF, NI_RUN_WATCH_WATCHING, NI_RUN_WATCH_STANDING };

/* One run of `hang`, and where it writes. */
struct ni_look {
  struct ni_task task;
  int said; /* -1: not begun yet */
};

struct ni_run_watch {
  const struct ni_launch *l;
  unsigned limit_s;     /* 0: none */
  int earlier;          /* a list of what was there before the command (passed_over.h); -1: none, no look */
  struct ni_look asked; /* that Ctrl-C has asked for */
  struct ni_look going; /* that goes on */
  enum ni_run_watch_state state;
  uint64_t next_ns;    /* when that one is to be started anew, where it does not run */
  char sentence[1024]; /* the newest that has told of somebody who is waited for; "": none has */
};

void ni_run_watch_begin(struct ni_run_watch *w, const struct ni_launch *l, unsigned limit_s);
/* Says on standard error who is missing, without waiting. false: it could not be started. */
bool ni_run_watch_ask(struct ni_run_watch *w);
/* Is it still being looked? */
static inline bool ni_run_watch_asked(const struct ni_run_watch *w) { return w->asked.task.pid != 0; }
/* Says what there is to say. true: it has just been told that the job hangs. */
bool ni_run_watch_turn(struct ni_run_watch *w);
/* By CLOCK_MONOTONIC; UINT64_MAX: a child's end tells. */
uint64_t ni_run_watch_due(const struct ni_run_watch *w);
/* Ends the look that Ctrl-C has asked for. */
void ni_run_watch_enough(struct ni_run_watch *w);
/* Ends all of it; the sentence stays. */
void ni_run_watch_end(struct ni_run_watch *w);

#endif
