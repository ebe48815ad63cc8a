#include "launch.h"

#include <math.h>

#include "test/jobs/draw.h"
#include "test/jobs/plan/fault.h"

#define WAKE_NS 15e3 /* from the GPU's end to the CPU's first launch */
#define CALL_NS 7e3  /* a communication call */
#define EVENT_NS 1e3
#define NOISE 0.05
#define LOADER_SHARE 0.3 /* of the pauses are the data loader's, at the begin of a step */

/* Where the step's pause is, and how long: 5 ms and more, long ones are rare. */
static int pause(const struct nj_job *job, int rank, int step, struct nj_cpu *cpu) {
  uint64_t x = nj_draw(job->noise, NJ_DRAW_PAUSE, (uint64_t)step, (uint64_t)rank, 0), y = ni_mix(x);
  cpu->pause = 0;
  if (step == 0 || nj_unit(x) >= job->model.pauses)
    return -1;
  cpu->pause = 4e6 + 16e6 * nj_unit(y) * nj_unit(ni_mix(y));
  return nj_unit(ni_mix(y + 1)) < LOADER_SHARE
      ? 0
      : (int)(ni_mix(y + 2) % (uint64_t)job->rank[rank].code[NJ_TRAIN].n);
}

/* Requests that are waited for: all ranks of a replica, all the same. */
static double idle(const struct nj_job *job, int rank, int step) {
  uint64_t x = nj_draw(job->noise, NJ_DRAW_BATCH, (uint64_t)job->rank[rank].dp, (uint64_t)step, 2);
  return job->kind == NJ_INFERENCE && nj_unit(x) < 0.04 ? 60e6 * nj_unit(ni_mix(x)) * nj_unit(ni_mix(x + 1))
                                                        : 0;
}

void nj_cpu_step(const struct nj_job *job, unsigned active, int rank, const struct nj_round *round,
                 double from, struct nj_cpu *cpu) {
  const struct nj_code *code = &job->rank[rank].code[round->program];
  int step = round->step, planted = -1, paused = -1;
  double noise = nj_normal(nj_draw(job->noise, NJ_DRAW_LAUNCH, round->name, (uint64_t)rank, 0));
  double by = (1 + NOISE * noise) * nj_launch_factor(job, active, rank, step), at = from + WAKE_NS;
  double batch = fmin(1, job->kind == NJ_INFERENCE ? nj_batch(job, active, rank, step) : 1);
  cpu->pause = cpu->planted = 0;
  if (round->program == NJ_TRAIN) {
    paused = pause(job, rank, step, cpu);
    cpu->planted = nj_planted_pause(job, active, rank, step, code->n, &planted);
    at += idle(job, rank, step);
  }
  for (int i = 0; i < code->n; i++) {
    const struct nj_instr *x = &code->instr[i];
    if (i == paused) {
      cpu->paused_at = at;
      at += cpu->pause;
    }
    if (i == planted) {
      cpu->planted_at = at;
      at += cpu->planted;
    }
    cpu->issue[i] = at;
    at += by *
        (x->what == NJ_COMPUTE                         ? x->ns * job->model.launch * batch
             : x->what == NJ_COLL || x->what == NJ_P2P ? CALL_NS
                                                       : EVENT_NS);
  }
  cpu->issue[code->n] = at;
}
