#include "clocks.h"

#include "test/jobs/draw.h"

static double draw(const struct nj_job *job, int what, int who) {
  return nj_unit(nj_draw(job->noise, NJ_DRAW_CLOCK, (uint64_t)what, (uint64_t)who, 0));
}

int64_t nj_epoch(const struct nj_job *job) {
  return INT64_C(1790000000000000000) + (int64_t)(job->seed % 100000) * 60000000000;
}
double nj_host_offset_ns(const struct nj_job *job, int host) { return (2 * draw(job, 0, host) - 1) * 2e6; }
double nj_host_drift_ppm(const struct nj_job *job, int host) { return (2 * draw(job, 1, host) - 1) * 20; }

int64_t nj_host_ns(const struct nj_job *job, int host, double at) {
  return nj_epoch(job) + (int64_t)(at + nj_host_offset_ns(job, host) + at * nj_host_drift_ppm(job, host) * 1e-6);
}

int64_t nj_delivery_ns(const struct nj_job *job, int rank) { return 2000 + (int64_t)(draw(job, 2, rank) * 5000); }

int64_t nj_gpu_offset_ns(const struct nj_job *job, int rank) {
  return (int64_t)((2 * draw(job, 3, rank) - 1) * 5e8) + nj_delivery_ns(job, rank);
}
