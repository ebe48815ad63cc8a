#include "program.h"

#include "data_parallel.h"
#include "megatron.h"

void nj_program(struct nj_job *job) {
  for (int r = 0; r < job->world; r++) {
    if (job->layout == 'F') nj_fsdp(job, r);
    else if (job->layout == 'D') nj_ddp(job, r);
    else if (job->layout == 'M') nj_moe(job, r);
    else nj_megatron(job, r);
  }
}
