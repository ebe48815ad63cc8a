/*
 * The step of tensor, pipeline and data parallel jobs (program.h): 1F1B over micro-batches, gradients in
 * buckets.
 */
#ifndef NI_JOBS_MEGATRON_H
#define NI_JOBS_MEGATRON_H

#include "test/jobs/job.h"

void nj_megatron(struct nj_job *job, int rank, enum nj_program program);

#endif
