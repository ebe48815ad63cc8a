/*
 * nccl-inspector doctor: would this environment, as it stands, give complete logs? Findings, each with what to do.
 *
 * Model. Every room looks at one thing and adds findings; doctor.c orders, prints and judges them. What could harm (loading
 * a foreign library) or hang (a dead network file system) happens in a child process with a time limit (child.c).
 * Statuses: ok, note (worth knowing), warning (works, with a limit), problem (as it stands nothing, or not everything, is
 * recorded). Threads: one. Ownership: texts are copied and live until the program ends. Failure: what cannot be found out
 * is a finding itself, never an end of the program.
 */
#ifndef NI_DOCTOR_H
#define NI_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum ni_status { NI_DOC_OK, NI_DOC_NOTE, NI_DOC_WARNING, NI_DOC_PROBLEM, NI_DOC_COUNT };

struct ni_finding {
  const char *check; /* a constant: plugin, settings, directory, ... */
  enum ni_status status;
  char *text, *advice; /* advice NULL: nothing to do */
};

struct ni_doctor {
  /* from the command line; NULL: found */
  const char *plugin, *nccl, *shm_dir;
  bool json, gate, no_sim, find_nccl;
  unsigned sim_seconds;
  /* found by one room, used by another */
  char *plugin_path; /* what NCCL would load, opened once already; NULL: nothing loadable */
  bool plugin_ours;
  unsigned versions; /* bit n: ncclProfiler_vn is there */
  int nccl_version;  /* of the first NCCL found, 0: none */
  char **known;      /* names of settings, from the plugin's own text */
  size_t n_known, cap_known;
  struct ni_finding *finding;
  size_t n, cap;
};

/* advice NULL: none. Both are copied; text is a printf format. */
void ni_doctor_add(struct ni_doctor *d, const char *check, enum ni_status status, const char *advice, const char *text,
                   ...) __attribute__((format(printf, 5, 6)));

/* ---- rooms ------------------------------------------------------------------------------------------------- */
/* NCCL libraries of this machine, in the order in which a job is likely to meet them; each with its release. */
void ni_doctor_nccl(struct ni_doctor *d);
/* What NCCL's rules make of NCCL_PROFILER_PLUGIN, and whether that loads. Before the rooms below. */
void ni_doctor_plugin(struct ni_doctor *d);
/* Names that are nearly settings; settings that contradict each other. */
void ni_doctor_settings(struct ni_doctor *d);
/* The plugin's own start, one operation and end, under these settings: what it says, and whether it writes. */
void ni_doctor_trial(struct ni_doctor *d);
/* Shared memory, clocks, limits, GPUs. */
void ni_doctor_machine(struct ni_doctor *d);
/* A simulated job with this plugin, verified. */
void ni_doctor_simulate(struct ni_doctor *d);

/* ---- child.c ------------------------------------------------------------------------------------------------ */
/*
 * Runs fn(arg, fd) in a child process; what it writes to fd comes back as text (NUL-ended, to be freed, at most 1 MiB).
 * Returns the child's exit status, -SIGNAL when a signal ended it, NI_CHILD_TIME after `seconds`, NI_CHILD_FAILED when
 * there is no process to be had.
 */
enum { NI_CHILD_TIME = -1000, NI_CHILD_FAILED = -1001 };
int ni_child_call(int (*fn)(void *arg, int fd), void *arg, unsigned seconds, char **text);
/* The same for a program; stdout and stderr come back. argv[0] is looked for in PATH. env: NAME=value list to be set, ends
   with NULL, or NULL. */
int ni_child_exec(char *const *argv, char *const *env, unsigned seconds, char **text);
/* "status 3", "signal 11 (Segmentation fault)", "no end after N s" */
const char *ni_child_why(int rc, char *buf, size_t cap);

#endif
