/*
 * The subcommands of nccl-inspector. Adding one: a file with a run function, and a line here.
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

/* Name, and help in one line. */
#define NI_COMMANDS(X) \
  X(doctor, "would this environment give complete logs? what to do where not") \
  X(check, "are these logs complete and sound? losses by cause, a verdict") \
  X(summary, "figures, tables, Parquet files, plots and one page from logs") \
  X(trace, "a timeline for Perfetto and chrome://tracing, all clocks aligned") \
  X(pools, "what the event pools reached, and the settings that follow") \
  X(hang, "does the job hang, in what, and which ranks are missing from it?") \
  X(recover, "what a killed process had not written yet, into its log") \
  X(snapshot, "copies of black boxes, of running processes too") \
  X(boxes, "whose black boxes lie here, what is in them, how old and how large") \
  X(ctl, "change what a running job records")

#define NI_COMMAND_RUN(name, help) int ni_##name##_run(int argc, char **argv);
NI_COMMANDS(NI_COMMAND_RUN)

#endif
