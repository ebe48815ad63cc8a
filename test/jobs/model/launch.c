#include "launch.h"

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
  if (step == 0 || nj_unit(x) >= job->model.pauses) return -1;
  cpu->pause = 4e6 + 16e6 * nj_unit(y) * nj_unit(ni_mix(y));
  return nj_unit(ni_mix(y + 1)) < LOADER_SHARE ? 0 : (int)(ni_mix(y + 2) % (uint64_t)job->rank[rank].n);
}

void nj_cpu_step(const struct nj_job *job, unsigned active, int rank, int step, double from, struct nj_cpu *cpu) {
  const struct nj_rank *r = &job->rank[rank];
  double noise = nj_normal(nj_draw(job->noise, NJ_DRAW_LAUNCH, (uint64_t)step, (uint64_t)rank, 0));
  double by = (1 + NOISE * noise) * nj_launch_factor(job, active, rank, step), at = from + WAKE_NS;
  int paused = pause(job, rank, step, cpu);
  cpu->step = step;
  for (int i = 0; i < r->n; i++) {
    const struct nj_instr *x = &r->instr[i];
    if (i == paused) {
      cpu->paused_at = at;
      at += cpu->pause;
    }
    cpu->issue[i] = at;
    at += by * (x->what == NJ_COMPUTE                     ? x->ns * job->model.launch
                : x->what == NJ_COLL || x->what == NJ_P2P ? CALL_NS
                                                          : EVENT_NS);
  }
  cpu->issue[r->n] = at;
}
