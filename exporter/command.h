/*
 * The subcommands of nccl-inspector. Adding one: a file with a run function, its declaration here, a line in main.c.
 *
 * run() gets argc and argv as main does, argv[0] being "nccl-inspector <name>" for messages and help. It returns the
 * process's exit code. Called once, in the main thread.
 */
#ifndef NI_COMMAND_H
#define NI_COMMAND_H

enum ni_exit {
  NI_EXIT_FINE = 0,
  NI_EXIT_COULD_NOT_RUN = 1,
  NI_EXIT_INCOMPLETE = 2, /* the data, not the program */
  NI_EXIT_FINDING = 3,    /* a job that hangs, else only where asked for with --gate */
  NI_EXIT_DEAD = 4,       /* a job whose processes were killed or crashed */
  NI_EXIT_USAGE = 64,
};

struct ni_command {
  const char *name;
  int (*run)(int argc, char **argv);
  const char *help; /* one line */
};

int ni_check_run(int argc, char **argv);
int ni_summary_run(int argc, char **argv);
int ni_pools_run(int argc, char **argv);
int ni_ctl_run(int argc, char **argv);
int ni_recover_run(int argc, char **argv);
int ni_snapshot_run(int argc, char **argv);
int ni_boxes_run(int argc, char **argv);
int ni_hang_run(int argc, char **argv);
int ni_doctor_run(int argc, char **argv);
int ni_trace_run(int argc, char **argv);

#endif
