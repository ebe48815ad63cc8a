/*
 * What no source says alone, but all of them together.
 *
 * - The rank of a process that does not state it (several processes in one file, ranks of communicators
 *   alone): its rank in the largest communicator that every process is in, each of them once. That is the
 *   whole job's, where the job has one and all of it is given.
 * - Who is in a communicator whose making was not recorded (a profile that begins in the middle): its id is
 *   the same in all of them, so those that have it are in it. They are counted in order of their ranks, as
 *   PyTorch makes its groups; where nobody's rank is known, in order of hosts and GPUs, so that they can be
 *   compared under a number of ours. Where that is not known either, or nobody else has it, it stays one of
 *   which nothing is known.
 *
 * Both are said to the user. One thread. Failure: -ENOMEM.
 */
#ifndef NI_IMPORT_SETTLE_H
#define NI_IMPORT_SETTLE_H

#include "exporter/input/imported/imported.h"

struct ni_settled {
  size_t ranks; /* processes with a rank by the job's communicator */
  uint64_t job; /* its hash */
  /* communicators whose members were counted by ranks, by GPUs, and that stay unknown */
  size_t seated, by_gpu, alone;
};

/* m: of all processes, without their operations; hash, rank and n_ranks of communicators change, and
 * rank and world. */
int ni_import_settle(struct ni_imported *const *m, size_t n, struct ni_settled *out);

#endif
