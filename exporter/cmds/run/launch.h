/*
 * What `run` sets for its command, and where the logs and the report of it will be.
 *
 * Who we are comes first, by the launcher's variables (those that the plugin knows, plugin/settings/job.c):
 *
 *   alone    nobody started us on each rank: `nccl-inspector run -- srun train`. We speak.
 *   first    rank 0 of those that a launcher started: `srun nccl-inspector run -- train`. We speak, and wait
 *            for the others' logs.
 *   silent   one of the other ranks: variables and nothing else.
 *
 * Folders: OUT is the run's own, OUT/logs where the plugin writes, OUT/report what is made of it. Where the
 * user has set NCCL_INSPECTOR_DUMP_DIR the logs are there, and those that were there before are none of ours.
 * Ranks that are to find the same OUT without being told have a name in common that the launcher gives them.
 *
 * One thread. ni_launch_free() frees. Failure: after a message, false.
 */
#ifndef NI_RUN_LAUNCH_H
#define NI_RUN_LAUNCH_H

#include "exporter/input/discover.h"
#include "exporter/input/inputs.h"

enum ni_launch_part { NI_LAUNCH_ALONE, NI_LAUNCH_FIRST, NI_LAUNCH_SILENT };

struct ni_launch {
  const char *who; /* for messages */
  enum ni_launch_part part;
  bool first_of_node;     /* of the ranks on this host, by the launcher: whoever records counters here */
  char *out;              /* OUT, as the user gave it, or as it is in the working directory */
  char *own_logs;         /* OUT/logs */
  bool logs_elsewhere;    /* the user has set another folder */
  char *counters;         /* the folder for files of counters, one of the logs; NULL: none are wanted */
  struct ni_inputs logs;  /* folders and patterns of the logs, for commands */
  struct ni_files before; /* logs that were there */
  char *box_dir;          /* where black boxes lie; NULL: where they lie by default */
  bool made_out, made_logs;
  char *kept; /* variables that the user has set, and that stay: "A=1, B=2"; NULL: none */
};

struct ni_launch_wants {
  const char *out; /* --out; NULL: a new folder */
  bool counters;
};

/* Finds out who we are and sets what the user has not set. Before there are threads. false: nothing can be
 * recorded as asked for, which is said, but by a silent rank. */
bool ni_launch_begin(struct ni_launch *l, const char *who, const struct ni_launch_wants *want);
/* The logs that are there now, without those of before: for ni_files_free(). 0 or -ENOMEM. */
int ni_launch_logs(const struct ni_launch *l, struct ni_files *files);
/* Is one of them a rank's, and no file of counters? */
bool ni_launch_has_ranks(const struct ni_files *files);
/* The folders that were made and hold nothing go. */
void ni_launch_undo(const struct ni_launch *l);
void ni_launch_free(struct ni_launch *l);

#endif
