/*
 * Where the bytes of a Parquet file go: a new file.
 *
 * open → write* → commit, or discard. Threads: its writer's only. Ownership: owns the descriptor it opened; after commit
 * or discard it holds nothing. Errors: what the system call gave, as negative errno.
 */
#ifndef NI_PARQUET_OUT_SINK_H
#define NI_PARQUET_OUT_SINK_H

#include <stdint.h>
#include <sys/uio.h>

struct ni_pq_sink {
  int fd;
  char *path;      /* NULL: nothing is held */
  uint64_t offset; /* bytes written so far = position in the Parquet file */
};

/* Creates `path`: -EEXIST when anything is there. */
int ni_sink_open(struct ni_pq_sink *s, const char *path);
/* Writes all of it or fails; the entries of iov are changed. */
int ni_sink_writev(struct ni_pq_sink *s, struct iovec *iov, int n);
/* Closes (its error counts: a network file system reports lost writes there). */
int ni_sink_commit(struct ni_pq_sink *s);
/* Closes and removes what was created. */
void ni_sink_discard(struct ni_pq_sink *s);

#endif
