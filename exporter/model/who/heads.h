/*
 * What the beginning of each log says of its process: by that runs are told apart (runs.c).
 *
 * One thread, with helpers of its own. Ownership: heads are the caller's array, one a file, ni_head_free().
 * What cannot be read is told by those who read all of it. Failure: -ENOMEM.
 */
#ifndef NI_HEADS_H
#define NI_HEADS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/input/discover.h"

#define NI_HEAD_COMMS 16

/* A rank of a communicator that the process is. */
struct ni_head_seat {
  uint64_t hash;
  int32_t n_ranks, rank;
};

struct ni_process_head {
  char *host, *job; /* NULL: no line; no batch job */
  int64_t pid;
  struct ni_log_head log;
  int64_t at_ns;       /* when the process began, or the time of the first line; Unix ns */
  int32_t rank, world; /* by the launcher; -1: not stated */
  int32_t attempt;     /* how often the job was begun again; -1: not stated */
  uint64_t gpu;        /* a hash of its name; 0: not stated */
  struct ni_head_seat seat[NI_HEAD_COMMS];
  unsigned n_seats;
  size_t file;
  bool deep; /* read further than the first lines */
};

/*
 * head[i]: of file i. wanted: bit by file, which are read; NULL: all, their first lines. With wanted more
 * lines are read.
 */
int ni_heads_read(struct ni_process_head *head, const struct ni_files *files, const bool *wanted);
void ni_head_free(struct ni_process_head *h);

#endif
