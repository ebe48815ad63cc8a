#include "clocks.h"

#include <math.h>

#include "test/jobs/draw.h"

static double draw(const struct nj_job *job, int what, int who) {
  return nj_unit(nj_draw(job->noise, NJ_DRAW_CLOCK, (uint64_t)what, (uint64_t)who, 0));
}

/* Of hosts: jobs in one folder share them. */
static double draw_host(const struct nj_job *job, int what, int host) {
  return nj_unit(nj_draw(job->clocks, NJ_DRAW_CLOCK, (uint64_t)what, (uint64_t)(host + job->place.host), 0));
}

int64_t nj_epoch(const struct nj_job *job) {
  return INT64_C(1790000000000000000) + (int64_t)(job->epoch % 100000) * 60000000000 +
      (int64_t)job->place.begin_ns;
}
double nj_host_offset_ns(const struct nj_job *job, int host) {
  return (2 * draw_host(job, 0, host) - 1) * job->weather.offset_s * 1e9;
}
double nj_host_drift_ppm(const struct nj_job *job, int host) {
  return (2 * draw_host(job, 1, host) - 1) * job->weather.drift_ppm;
}

int64_t nj_steady_ns(const struct nj_job *job, int host, double at) {
  return nj_epoch(job) +
      (int64_t)(at + nj_host_offset_ns(job, host) +
                (at + job->place.begin_ns) * nj_host_drift_ppm(job, host) * 1e-6);
}

int64_t nj_stepped_ns(const struct nj_job *job, int host, double at) {
  const struct nj_weather *w = &job->weather;
  return w->step_s != 0 && host == w->step_host && at >= w->step_ns ? (int64_t)(w->step_s * 1e9) : 0;
}

int64_t nj_host_ns(const struct nj_job *job, int host, double at) {
  return nj_steady_ns(job, host, at) + nj_stepped_ns(job, host, at);
}

int64_t nj_delivery_ns(const struct nj_job *job, int rank) {
  return 2000 + (int64_t)(draw(job, 2, rank) * 5000);
}

int64_t nj_gpu_offset_ns(const struct nj_job *job, int rank) {
  return (int64_t)((2 * draw(job, 3, rank) - 1) * 5e8) + nj_delivery_ns(job, rank);
}

#define TICK_NS 32 /* of the timer, in which durations are counted */
#define MOVED_MOST_NS 300e3
#define MOVED_PART 0.4 /* of the kernel, at most: it begins before it ends */

/* Most stamps are near the truth, some are far from it. */
static double moved_ns(const struct nj_job *job, int rank, uint64_t which, double length) {
  uint64_t x = nj_draw(job->noise, NJ_DRAW_STAMP, (uint64_t)rank, which, 0), y = ni_mix(x);
  double far = nj_unit(x) < 0.3 ? 1 : 0.1, by = job->weather.overlap_ns * far * exp(0.8 * nj_normal(y));
  by = fmin(by, fmin(MOVED_MOST_NS, MOVED_PART * length));
  return ni_mix(y) % 2 ? by : -by;
}

void nj_stamps(const struct nj_job *job, int rank, uint64_t which, double at, double end, int64_t *start,
               int64_t *stop) {
  int host = job->rank[rank].host;
  int64_t tick = job->weather.timer_ns, late = nj_delivery_ns(job, rank);
  if (job->weather.overlap_ns > 0) {
    double length = end - at;
    at += moved_ns(job, rank, 2 * which, length);
    end += moved_ns(job, rank, 2 * which + 1, length);
  }
  *start = nj_steady_ns(job, host, at) + late;
  *stop = nj_steady_ns(job, host, end) + late;
  if (tick > 0) { /* the timer counts from a moment of its own */
    int64_t zero = (int64_t)(nj_draw(job->noise, NJ_DRAW_STAMP, (uint64_t)rank, ~0ull, 1) % (uint64_t)tick);
    *start -= (*start - zero) % tick;
    *stop -= (*stop - zero) % tick;
    if (*stop <= *start)
      *stop = *start + tick;
  } else
    *stop -= (*stop - *start) % TICK_NS;
}
