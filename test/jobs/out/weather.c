#include "weather.h"

#include "test/jobs/draw.h"

static double draw(const struct nj_job *job, int what) {
  return nj_unit(nj_draw(job->noise, NJ_DRAW_WEATHER, (uint64_t)what, 0, 0));
}

void nj_weather_place(struct nj_job *job) {
  struct nj_weather *w = &job->weather;
  w->step_host = (int)(draw(job, 0) * job->hosts);
  w->step_at = 0.25 + 0.5 * draw(job, 1);
}
