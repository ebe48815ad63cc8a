/*
 * What a rank's CPU does in a step: it launches all instructions one after the other, and sometimes pauses.
 * ns of true time.
 */
#ifndef NI_JOBS_LAUNCH_H
#define NI_JOBS_LAUNCH_H

#include "test/jobs/job.h"

#define NJ_LATENCY_NS 4e3 /* from a launch to the kernel's start */
#define NJ_KERNEL_NS 20e3 /* the last kernel of a compute, which its last launch begins */
#define NJ_INCIDENT_NS 5e6

struct nj_round { /* a step of the job, or a part of what comes before it */
  enum nj_program program;
  int step;
  uint64_t name; /* of its draws */
};

struct nj_cpu {
  int round;               /* number in the run */
  double *issue;           /* of each instruction, and the end of the last one: room for n + 1 */
  double pause, paused_at; /* of this step; 0: none */
  double planted, planted_at;
};

/* Fills issue for the round, which the CPU begins at `from`. */
void nj_cpu_step(const struct nj_job *job, unsigned active, int rank, const struct nj_round *round,
                 double from, struct nj_cpu *cpu);

#endif
