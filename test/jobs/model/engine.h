/*
 * Runs a job: a discrete-event model of CPUs that launch, streams that work in order, and communication for
 * which each rank waits until the last one is there.
 *   compute    from stream free and launched, for its time; not before its last launch
 *   collective starts on each rank when its stream is free and it is launched; all end one transfer after the last start
 *   Send, Recv the same of two; the streams go on when all of the group are done
 *   CPU        launches a round (a step, or a part of an evaluation) as fast as it can, behind the end of the
 *              one before; pauses of garbage collection, data loader
 */
#ifndef NI_JOBS_ENGINE_H
#define NI_JOBS_ENGINE_H

#include "test/jobs/job.h"

struct nj_done { /* an operation of a rank */
  int rank, comm, step;
  int peer; /* rank in the communicator; -1: a collective */
  bool recv;
  enum nj_func func;
  double bytes, start, last, end, enqueue; /* last: when all were there */
};

struct nj_incident {
  int rank, step;
  const char *why; /* pause: of the CPU; planted: such a one that is a cause; delay: planted, of the GPU */
  double begin, ns;
};

struct nj_watch { /* whom to tell; each may be NULL */
  void *context;
  void (*done)(void *context, const struct nj_done *d);
  void (*worked)(void *context, int rank, int step, double from, double to); /* computes */
  void (*incident)(void *context, const struct nj_incident *i);
};

/* Runs it with the faults of `active`. begin: when each step began, on the first rank to do so; room for
 * steps. NULL: not asked. Returns the job's time in ns. Ends the program when ranks wait for each other for
 * ever. */
double nj_run(const struct nj_job *job, unsigned active, double *begin, const struct nj_watch *watch);

#endif
