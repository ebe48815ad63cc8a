/*
 * Which files are logs: directories (searched through), files and glob patterns, into one sorted list without
 * doubles.
 *
 * In directories the names that count end in .log, .log.gz, .jsonl, .jsonl.gz; a file that is named outright
 * counts whatever its name. Symbolic links are followed, loops and second ways to the same file are
 * recognised by device and inode. A folder is entered by links once, and root enters none by a link that
 * leads away from what its maker owns. What cannot be read is listed with its reason and does not stop the
 * search. Names that begin with a dot, NI_HANG_FOLDER, and folders that hold an earlier result of ours
 * (NI_RESULT_MARKER) are passed over. Called by one thread; the list belongs to the caller (ni_files_free).
 */
#ifndef NI_DISCOVER_H
#define NI_DISCOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

/* What the beginning of a log says; ni_runs_find() (exporter/model/who/who.h) fills it in. */
struct ni_log_head {
  uint64_t start_ns;                                          /* of the process; 0: not stated */
  bool has_record, has_name, has_timing, has_algo, has_trace; /* keys of its first record */
  int32_t job_rank; /* the process's: its launcher's, else that in its largest communicator; -1: not known */
  int32_t job_size; /* 0; else it is several ranks, and those of a communicator of so many are the job's */
};

struct ni_file {
  char *path;
  uint64_t bytes;
  int64_t mtime_ns; /* Unix: when it was written last */
  dev_t dev;
  ino_t ino;
  uid_t owner;
  int64_t ctime_ns; /* the same of its inode */
  /* which of the runs in the input, from 1; 0: nobody asked, or no line tells (exporter/model/who/who.h) */
  uint32_t run;
  bool elsewhere; /* another shard of the input has it: it is in the list, and nobody reads it here */
  struct ni_log_head head;
};

struct ni_unreadable {
  char *path;
  int error;  /* errno; EINVAL: no plain file */
  bool named; /* by the caller; else found */
};

struct ni_files {
  struct ni_file *file;
  size_t n, cap;
  struct ni_unreadable *bad;
  size_t n_bad, cap_bad;
  unsigned kinds;                   /* bit per extension seen; more than one is worth a warning */
  void *by_link;                    /* folders that a link has led into: a tree, while it is searched */
  size_t doubles;                   /* further names of files that are in the list already */
  bool (*wanted)(const char *name); /* other names than those of logs; NULL: logs. Set before ni_discover() */
  /* folders are left once there is one file: is there any? Set before ni_discover() */
  bool first_only;
};

/*
 * Copies of black boxes that agents made while a job hung, beside its logs: older than the boxes, they count
 * only where named.
 */
#define NI_HANG_FOLDER "nccl-inspector-hang"

/*
 * A file in each folder that `summary` wrote. Its output.log is no log of a job, though its name ends like
 * one, and by default the folder lies among the logs where one works in their folder.
 */
#define NI_RESULT_MARKER ".nccl-inspector-output"

/* To whom files are shut. */
#define NI_UNREADABLE_ADVICE ". Run as the user of the job, or as root"

/* Directories deeper than this are listed as unreadable (ELOOP). */
#define NI_DISCOVER_DEPTH 64

/* The rank in the job of whoever is this rank of a communicator of so many ranks. -1: not known. */
static inline int64_t ni_job_rank(const struct ni_log_head *h, int32_t rank, int32_t n_ranks) {
  return !h->job_size ? h->job_rank : n_ranks == h->job_size ? rank : -1;
}

/* What is behind the last slash. */
static inline const char *ni_path_name(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/*
 * The number behind "rank" in the name of another program's file, else its last one: "trace_rank3.json",
 * "dump_3.pkl"; -1: none. *is_guess: the name does not say that the number is a rank; NULL: not asked for.
 */
int32_t ni_rank_in_name(const char *path, bool *is_guess);
/*
 * Length of what the paths of all files of one process share: without extension and rotation number
 * (x.jsonl.gz, x.1.jsonl.gz, x.2.jsonl.gz; what others rotated, x.jsonl.gz.1, has the stem of x.jsonl.gz). A
 * path that is none of a log's is its own stem, but for a number at its end. *number: our rotation number, 0
 * for the first file; NULL: not asked for.
 */
size_t ni_log_stem(const char *path, uint64_t *number);
bool ni_same_stem(const char *a, const char *b);

/*
 * Adds what the n paths name, sorted by stem and in the order in which a process wrote them. 0 or -ENOMEM; a
 * path that is not there becomes an entry of bad.
 */
int ni_discover(struct ni_files *out, char *const *path, size_t n);
const char *ni_unreadable_why(const struct ni_unreadable *u);
/* Takes the files off the list for which drop says so. */
void ni_files_drop(struct ni_files *files, bool (*drop)(const struct ni_file *file, void *arg), void *arg);
void ni_files_free(struct ni_files *files);

#endif
