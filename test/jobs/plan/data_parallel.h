/*
 * Steps of jobs without tensor and pipeline parallelism (program.h): parameters sharded, gradients reduced,
 * experts.
 */
#ifndef NI_JOBS_DATA_PARALLEL_H
#define NI_JOBS_DATA_PARALLEL_H

#include "test/jobs/job.h"

void nj_fsdp(struct nj_job *job, int rank, enum nj_program program);
void nj_ddp(struct nj_job *job, int rank, enum nj_program program);
void nj_moe(struct nj_job *job, int rank, enum nj_program program);

#endif
