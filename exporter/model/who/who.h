/*
 * Who is who: the processes, communicators and members that lines and black boxes are about, each known by
 * one number.
 *
 * A process is (host, pid, start). Logs that do not say when a process began (NVIDIA's, a file whose first
 * line was lost, a range of a file) name it by host and pid in the files of one name. A communicator is (run,
 * hash, number of ranks). A member is one rank of one communicator in one process. A hash can come back in a
 * process after destroy and init; then it is another member, and the comm line with its init_ns tells. What
 * nobody knows the beginning of is taken for the first one that is asked for with a beginning.
 *
 * Numbers begin at 0 and come in the order of asking, so the caller keeps what it knows of process 7 at place
 * 7 of an array of its own. Items are read-only for callers.
 *
 * Threads: one for each table, or a lock around it. Ownership: ni_who_free(); texts live as long as the
 * table. Failure: -ENOMEM.
 */
#ifndef NI_WHO_H
#define NI_WHO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/base/map.h"
#include "exporter/input/discover.h"
#include "format/line.h"

struct ni_who_process {
  char *host, *origin; /* origin: what the paths of its files share */
  int64_t pid;
  uint64_t start_ns; /* Unix ns; 0: not stated */
};

struct ni_who_comm {
  uint64_t hash;
  uint32_t run;
  int32_t n_ranks, nnodes; /* nnodes: the largest that was stated */
  const char *name;        /* the smallest of its members'; NULL: none */
};

struct ni_who_member {
  uint32_t process, comm;
  uint64_t hash, init_ns; /* init_ns: Unix ns of its communicator's init; 0: not stated */
  int32_t rank, n_ranks, nnodes;
  /* as its own lines call the communicator, the smallest text of those; NULL: none */
  char *name;
};

struct ni_who { /* all 0: empty */
  struct ni_who_process *process;
  struct ni_who_comm *comm;
  struct ni_who_member *member;
  size_t n_processes, cap_processes, n_comms, cap_comms, n_members, cap_members;
  struct ni_map process_names, comm_names, member_names;
};

/* The number of the process, added when it is new, or -ENOMEM. start_ns 0: the newest one of that host, pid
 * and origin. origin: "" where files do not matter. */
int64_t ni_who_process(struct ni_who *w, const char *host, int64_t pid, uint64_t start_ns,
                       const char *origin);
/* The same for the file that says it: the origin is the path up to its extension and rotation number. */
int64_t ni_who_process_in(struct ni_who *w, const char *host, int64_t pid, uint64_t start_ns,
                          const char *path);
/*
 * The number of the member, added when it is new, or -ENOMEM. init_ns 0: the newest instance. run: of its
 * file, or 0.
 */
int64_t ni_who_member(struct ni_who *w, uint32_t process, uint32_t run, const struct ni_ident *id,
                      uint64_t init_ns);
/* Is a line with that header about this member, the newest one of that name? */
static inline bool ni_who_is(const struct ni_who_member *m, const struct ni_ident *id) {
  return m->hash == id->comm_hash && m->rank == id->rank && m->n_ranks == id->n_ranks;
}
/* What lines called the member: for the table that takes it over. */
static inline struct ni_ident ni_who_ident(const struct ni_who_member *m) {
  return (struct ni_ident){m->hash, m->name, m->rank, m->n_ranks, m->nnodes};
}
/*
 * For reading the same lines once more: they choose the same numbers then; what is new gets new ones, which
 * disturb no other.
 */
void ni_who_rewind(struct ni_who *w);
void ni_who_free(struct ni_who *w);

/*
 * Which files are of which run: a folder can hold the logs of several, of a job that was started again or of
 * jobs without a folder of their own. All commands see the same runs, name them alike, and read one of them
 * with --run.
 *
 * A run is what was started together, told by the beginning of each log:
 *
 *   1. Processes with a communicator in common (hash, number of ranks) are of one run. A communicator of
 *      which two processes are the same rank is there several times and joins nobody. Neither does it where
 *      their batch jobs or attempts differ.
 *   2. Groups that this leaves are of one run where they have the same batch job; or are ranks of one
 *      launcher's job that began within ten minutes; or, without such numbers, are not whole jobs by
 *      themselves. No rank, in the job or in a communicator, and no GPU is in a run twice. Engines of one
 *      batch job that begin together on GPUs of their own are one run, whatever their ranks.
 *   3. Where there are several runs for a group, it is of the one in which its rank began as the how manyth
 *      on its host, else of the nearest in time, by one host's clock where they share one. Where moments are
 *      too close, numbers of processes tell. Where they do not, either, or nothing holds a run together but
 *      the time, both are read again up to line 4096, and what is still open is said by ni_run_text():
 *      nothing is mixed without a word.
 *
 * Runs are numbered from 1 in the order in which they began. Work and memory grow with processes and their
 * communicators.
 *
 * One thread, with helpers of its own while files are read. What cannot be read is told by those who read all
 * of it.
 */
struct ni_job_run {
  char *job;        /* of the batch system; NULL: not stated */
  int64_t start_ns; /* Unix ns: its first process began, or wrote, by NVIDIA's logs; 0: not known */
  uint32_t processes;
  uint32_t parts;      /* groups of them that nothing but the time holds together; 1: none */
  uint32_t mixed_with; /* the run that its processes may be of as well; 0: none */
};

struct ni_runs {
  struct ni_job_run *run;
  size_t n, cap;
};

/* Sets file[i].run to the number of its run, from 1, and file[i].head, for all files. Of a file without a
 * line no run is known: its run stays as it is, 0. At least one run where there are files. out NULL: the
 * heads alone; then all files are taken for one run. */
int ni_runs_find(struct ni_runs *out, struct ni_files *files);
/* The number of the run that `which` names: its number, "last", or a job id that one run has. 0: none. */
uint32_t ni_runs_named(const struct ni_runs *r, const char *which);
/* "run 2 (job 4242, 8 processes, from 2026-11-22 18:00:00Z)". out: 256 bytes. Returns out. */
const char *ni_run_text(const struct ni_runs *r, size_t run, char out[256]);
/* Is there one of which that text says that it is not sure? */
bool ni_runs_are_doubtful(const struct ni_runs *r);
void ni_runs_free(struct ni_runs *r);

/* The batch system's id in a process line; NULL: none. */
const char *ni_job_id(const struct ni_process_line *p);

#endif
