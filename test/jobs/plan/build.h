/*
 * Writes a rank's instructions one by one (program.h). All append to a program of job->rank[rank]; memory is
 * never given back.
 */
#ifndef NI_JOBS_BUILD_H
#define NI_JOBS_BUILD_H

#include "test/jobs/job.h"

struct nj_build {
  struct nj_job *job;
  struct nj_rank *r;
  struct nj_code *code;
  int rank, events;
};

struct nj_build nj_build_begin(struct nj_job *job, int rank, enum nj_program program);
/* Compute on the main stream; expert: -1 or the layer whose routing scales it. */
void nj_compute(struct nj_build *b, double ns, bool fixed, int expert);
/* comm: the rank's own number, as nj_comm_of() has it. */
void nj_coll(struct nj_build *b, enum nj_stream stream, int comm, enum nj_func func, double bytes);
/*
 * Send (or Receive) with a rank of the communicator. Parts that follow each other without nj_group() are one
 * group.
 */
void nj_group(struct nj_build *b, enum nj_stream stream, int comm, int expert);
void nj_send(struct nj_build *b, int peer, double bytes);
void nj_recv(struct nj_build *b, int peer, double bytes);
/* `waits` goes on only when what `stream` has been given so far is done. */
void nj_join(struct nj_build *b, enum nj_stream waits, enum nj_stream stream);
/* The same in two halves: an event of what `stream` has been given so far, waited for later. */
int nj_event(struct nj_build *b, enum nj_stream stream);
void nj_wait(struct nj_build *b, enum nj_stream waits, int event);
void nj_sync(struct nj_build *b);

#endif
