/*
 * Many logs, read by several threads: each takes the next part of a file, and what it made of it is put
 * together in order.
 *
 * A part is a file or a range of it (line_reader.h); ranges do not depend on the number of threads, so
 * neither do results. A thread keeps to the file it is in while that has parts that nobody began, so few
 * files are open ahead of their turn.
 *
 * Threads: part() runs in any of them, several at once; merge() and file_done() one at a time, merge() in the
 * order of the parts of each file, file_done() in the order of the files, behind all its merges. stop() any.
 * Failure: the first negative result of a callback ends all threads and is the result; what was not merged
 * then is given back by drop().
 */
#ifndef NI_SCAN_FILES_H
#define NI_SCAN_FILES_H

#include "exporter/base/progress.h"
#include "discover.h"
#include "scan.h"

struct ni_scan_part {
  const struct ni_file *file;
  size_t file_no;
  int part; /* 0: the beginning of the file */
  struct ni_range at;
};

struct ni_scan_plan {
  const struct ni_files *files;
  struct ni_scan_parts {
    struct ni_range *at;
    int n;
  } *of_file; /* as many as files */
  uint64_t bytes, parts;
};

/* cut: large files into ranges. jobs: threads. 0, -ENOMEM. A file that cannot be opened is one part;
 * one that is elsewhere has none. */
int ni_scan_plan(struct ni_scan_plan *p, const struct ni_files *files, bool cut, unsigned jobs);
/* The same, but for files whose parts the caller knows: known() fills them in, with malloc(), and returns 1;
 * 0: they are not known; or -errno. Any thread, each file once. NULL: none is. */
int ni_scan_plan_known(struct ni_scan_plan *p, const struct ni_files *files, bool cut, unsigned jobs,
                       int (*known)(void *arg, size_t file_no, struct ni_scan_parts *out), void *arg);
void ni_scan_plan_free(struct ni_scan_plan *p);

struct ni_scan_team {
  const struct ni_scan_plan *plan;
  unsigned jobs;                /* 0 is 1 */
  struct ni_progress *progress; /* NULL: none */
  const char *phase;            /* for it; NULL: "read" */
  void *arg;
  int (*open)(void *arg, void **worker); /* what a thread has for itself; NULL: worker is arg */
  int (*close)(void *arg, void *worker);
  /* Reads the part with ni_scan_file(scan, ...); to: with stop and read filled in. */
  int (*part)(void *worker, struct ni_scan *scan, struct ni_scan_to *to, const struct ni_scan_part *p,
              void **result);
  int (*merge)(void *arg, const struct ni_scan_part *p, void *result);
  int (*file_done)(void *arg, size_t file_no);
  void (*drop)(void *arg, void *result);
  bool (*stop)(void *arg);
};

/* 0, what a callback returned, or -ENOMEM. */
int ni_scan_files(const struct ni_scan_team *t);

/* One thread for each CPU that this process may use; at least 1. */
unsigned ni_scan_jobs(void);

#endif
