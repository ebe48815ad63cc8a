#include "program.h"

#include "data_parallel.h"
#include "megatron.h"

void nj_program(struct nj_job *job) {
  int programs = job->kind == NJ_EVALUATION ? NJ_PROGRAMS : NJ_EVAL;
  for (int r = 0; r < job->world; r++)
    for (int i = 0; i < programs; i++) {
      enum nj_program p = (enum nj_program)i;
      if (job->layout == 'F')
        nj_fsdp(job, r, p);
      else if (job->layout == 'D')
        nj_ddp(job, r, p);
      else if (job->layout == 'M')
        nj_moe(job, r, p);
      else
        nj_megatron(job, r, p);
    }
}
