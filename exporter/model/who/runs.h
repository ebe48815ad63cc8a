/*
 * Which files are of which run: a folder can hold the logs of several, of a job that was started again or of jobs without a
 * folder of their own. All commands see the same runs, name them alike, and read one of them with --run.
 *
 * A run is what was started together. Told by the beginning of each file: processes of another batch job are of another run,
 * and so is a process whose rank, in the job or in a communicator, the run has already. Otherwise a process is of the run that
 * has one of its communicators, or else of the newest. Runs are numbered from 1 in the order in which they began.
 *
 * Threads: one, with helpers of its own while files are read. Ownership: ni_runs_free(). Failure: -ENOMEM; what cannot be read
 * is told by those who read all of it.
 */
#ifndef NI_RUNS_H
#define NI_RUNS_H

#include <stddef.h>
#include <stdint.h>

#include "exporter/input/discover.h"
#include "format/line.h"

struct ni_job_run {
  char *job;           /* of the batch system; NULL: not stated */
  int64_t start_ns;    /* Unix ns: its first process began, or wrote, by NVIDIA's logs; 0: not known */
  uint32_t processes;
};

struct ni_runs {
  struct ni_job_run *run;
  size_t n, cap;
};

/* Sets file[i].run to the number of its run, from 1, for all files, and file[i].head. At least one run where there are files.
 * out NULL: the heads alone, all files are of one run. */
int ni_runs_find(struct ni_runs *out, struct ni_files *files);
/* The number of the run that `which` names: its number, "last", or a job id that one run has. 0: none. */
uint32_t ni_runs_named(const struct ni_runs *r, const char *which);
/* "run 2 (job 4242, 8 processes, from 2026-11-22 18:00:00Z)". out: 256 bytes. Returns out. */
const char *ni_run_text(const struct ni_runs *r, size_t run, char out[256]);
void ni_runs_free(struct ni_runs *r);

/* The batch system's id in a process line; NULL: none. */
const char *ni_job_id(const struct ni_process_line *p);

#endif
