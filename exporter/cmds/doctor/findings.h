/*
 * nccl-inspector doctor: would this environment, as it stands, give complete logs? Findings, each with what
 * to do.
 *
 * Model. Every check looks at one thing and adds findings; doctor.c orders, prints and judges them. What
 * could harm (loading a foreign library) or hang (a dead network file system) happens in a child process with
 * a time limit (child.h). Statuses: ok, note (worth knowing), warning (works, with a limit), problem (as it
 * stands nothing, or not everything, is recorded). Threads: one. Ownership: texts are copied and live until
 * the program ends. Failure: what cannot be found out is a finding itself, never an end of the program.
 */
#ifndef NI_DOCTOR_FINDINGS_H
#define NI_DOCTOR_FINDINGS_H

#include <stdbool.h>
#include <stddef.h>

enum ni_status { NI_DOC_OK, NI_DOC_NOTE, NI_DOC_WARNING, NI_DOC_PROBLEM, NI_DOC_COUNT };

struct ni_doctor_finding {
  const char *check; /* a constant: plugin, settings, directory, ... */
  enum ni_status status;
  char *text, *advice; /* advice NULL: nothing to do */
};

struct ni_doctor {
  /* from the command line; NULL: found */
  const char *plugin, *nccl, *shm_dir;
  bool json, gate, no_sim, find_nccl;
  unsigned sim_seconds;
  /* found by one check, used by another */
  char *plugin_path; /* what NCCL would load, opened once already; NULL: nothing loadable */
  char *plugin_name; /* what its table calls it */
  bool plugin_ours;
  unsigned versions; /* bit n: ncclProfiler_vn is there */
  int nccl_version;  /* of the first NCCL found, 0: none */
  char **known;      /* names of settings, from the plugin's own text */
  size_t n_known, cap_known;
  struct ni_doctor_finding *finding;
  size_t n, cap;
};

/* advice NULL: none. Both are copied; text is a printf format. */
void ni_doctor_add(struct ni_doctor *d, const char *check, enum ni_status status, const char *advice,
                   const char *text, ...) __attribute__((format(printf, 5, 6)));
/* All checks but the simulated run; also for `run`, by the environment that its command had. */
void ni_doctor_look(struct ni_doctor *d);
/* A finding in words, with what to do where it is not `ok`, on standard output. */
void ni_doctor_say(const struct ni_doctor_finding *f);
void ni_doctor_free(struct ni_doctor *d);

#endif
