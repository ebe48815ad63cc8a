/*
 * What each rank does in a step, as instructions for its streams in the order in which its CPU launches them.
 * A step begins behind the synchronisation of the one before: optimizer, forward, backward, gradients, and
 * NJ_SYNC, which the CPU waits for. By then all streams must have been waited for.
 */
#ifndef NI_JOBS_PROGRAM_H
#define NI_JOBS_PROGRAM_H

#include "test/jobs/job.h"

/* Writes the instructions of all ranks of a laid out job. */
void nj_program(struct nj_job *job);

#endif
