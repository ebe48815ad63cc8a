/*
 * The subcommands of nccl-inspector. Adding one: a file with a table of its words (words.h) and a run
 * function, and a line here.
 *
 * run() gets argc and argv as main does, argv[0] being "nccl-inspector <name>" for messages and help. It
 * returns the process's exit code. Called once, in the main thread.
 */
#ifndef NI_COMMAND_H
#define NI_COMMAND_H

#include "words.h"

enum ni_exit {
  NI_EXIT_FINE = 0,
  NI_EXIT_COULD_NOT_RUN = 1,
  NI_EXIT_INCOMPLETE = 2, /* the data, not the program */
  NI_EXIT_FINDING = 3,    /* a job that hangs, else only where asked for with --gate */
  NI_EXIT_DEAD = 4,       /* a job whose processes were killed or crashed */
  NI_EXIT_USAGE = 64,
};

/* In the order of the lists of them. */
/* clang-format off */
#define NI_COMMANDS(X) \
  X(run) \
  X(doctor) \
  X(hang) \
  X(top) \
  X(agent) \
  X(head) \
  X(session_start) \
  X(session_stop) \
  X(session_resume) \
  X(session_status) \
  X(session_list) \
  X(session_recover) \
  X(session_export) \
  X(session_stat) \
  X(boxes) \
  X(snapshot) \
  X(ctl) \
  X(check) \
  X(summary) \
  X(merge) \
  X(show) \
  X(index) \
  X(diff) \
  X(trace) \
  X(convert) \
  X(import) \
  X(pools) \
  X(recover) \
  X(counters_list) \
  X(counters_collect) \
  X(counters_summarize) \
  X(counters_diff) \
  X(counters_run) \
  X(counters_watch) \
  X(counters_record) \
  X(help) \
  X(completion)
/* clang-format on */

#define NI_COMMAND_WORDS(name) \
  extern const struct ni_command ni_##name##_command; \
  int ni_##name##_run(int argc, char **argv);
NI_COMMANDS(NI_COMMAND_WORDS)

#endif
