/*
 * The fit keeps two half windows, so that the minimum forgets what is older than a minute without keeping
 * samples.
 *
 * Observations of one operation are two: its stop (done_arrival - stop) and its start (first_arrival -
 * start). Both are bounded below by the true offset: the channel that stopped last was seen after its stamp,
 * and the stamp that started first is not later than that of the channel seen first. The judgement looks at
 * both.
 */
#include "gpu_fit.h"

static int64_t current_min(const struct ni_gpu_fit *f) {
  return f->has_prev && f->prev_min_ns < f->min_ns ? f->prev_min_ns : f->min_ns;
}

enum ni_gpu_verdict ni_gpu_fit_check(const struct ni_gpu_fit *f, const struct ni_gpu_stamps *s) {
  struct ni_gpu_relation r = {f->n_samples, current_min(f), f->confirmed_at_ns};
  return ni_gpu_judge(&r, s);
}

/* From the streak on. */
static void restart(struct ni_gpu_fit *f, uint64_t now_ns) {
  *f = (struct ni_gpu_fit){.n_samples = NI_GPU_WARMUP,
                           .n_resets = f->n_resets + 1,
                           .min_ns = f->streak_min_ns,
                           .min_at_ns = f->streak_at_ns,
                           .window_start_ns = now_ns,
                           .confirmed_at_ns = now_ns,
                           .has_min = true};
}

/* One more of a streak of outliers. Outliers that do not agree with each other begin a new streak: several
 * garbage stamps in a row are no new clock relation. A streak that is long enough is believed: true, and the
 * fit starts anew. */
static bool extend_streak(struct ni_gpu_fit *f, uint32_t *n, uint32_t *other, int64_t offset, uint64_t now_ns,
                          int64_t width) {
  *other = 0;
  if (*n &&
      ni_sub_sat(f->streak_max_ns > offset ? f->streak_max_ns : offset,
                 f->streak_min_ns < offset ? f->streak_min_ns : offset) > width)
    *n = 0;
  if (*n == 0 || offset < f->streak_min_ns) {
    f->streak_min_ns = offset;
    f->streak_at_ns = now_ns;
  }
  if (*n == 0 || offset > f->streak_max_ns)
    f->streak_max_ns = offset;
  if (++*n < NI_GPU_AGREE)
    return false;
  restart(f, now_ns);
  return true;
}

bool ni_gpu_fit_observe(struct ni_gpu_fit *f, const struct ni_gpu_stamps *s, enum ni_gpu_verdict v) {
  if (v != NI_GPU_OK && v != NI_GPU_AFTER_ARRIVAL)
    return false;
  int64_t offset = ni_gpu_observed_offset(s);
  uint64_t now_ns = s->done_arrival_ns;
  if (v == NI_GPU_AFTER_ARRIVAL)
    return extend_streak(f, &f->n_rejected, &f->n_far, offset, now_ns,
                         ni_gpu_tolerance(f->confirmed_at_ns, now_ns));
  f->n_samples++;
  f->n_rejected = 0;
  if (!f->has_min) {
    f->has_min = true;
    f->min_ns = offset;
    f->min_at_ns = f->window_start_ns = f->confirmed_at_ns = now_ns;
    return false;
  }
  int64_t above = ni_sub_sat(offset, current_min(f));
  /*
   * A poller that is seconds late every time, and equally late, is less likely than a minimum that was
   * garbage.
   */
  if (above > NI_GPU_FAR_NS)
    return extend_streak(f, &f->n_far, &f->n_rejected, offset, now_ns, NI_GPU_FAR_NS);
  f->n_far = 0;
  if (above < NI_GPU_TOLERANCE_NS)
    f->confirmed_at_ns = now_ns;
  if (now_ns - f->window_start_ns > NI_GPU_WINDOW_NS && now_ns > f->window_start_ns) {
    f->prev_min_ns = f->min_ns;
    f->prev_min_at_ns = f->min_at_ns;
    /* after a long silence nothing old counts */
    f->has_prev = now_ns - f->window_start_ns < 2 * NI_GPU_WINDOW_NS;
    f->min_ns = offset;
    f->min_at_ns = now_ns;
    f->window_start_ns = now_ns;
  } else if (offset < f->min_ns) {
    f->min_ns = offset;
    f->min_at_ns = now_ns;
  }
  return false;
}

int ni_gpu_rate_check(struct ni_gpu_rate *r, const struct ni_gpu_stamps *s) {
  bool measurable = r->stop_ns && s->done_arrival_ns > r->arrival_ns && s->stop_ns > r->stop_ns;
  uint64_t host = measurable ? s->done_arrival_ns - r->arrival_ns : 0,
           gpu = measurable ? s->stop_ns - r->stop_ns : 0;
  if (measurable && host < NI_GPU_RATE_NS)
    return r->agrees;
  bool agrees = host / NI_GPU_RATE_FACTOR < gpu && gpu / NI_GPU_RATE_FACTOR < host;
  /* perhaps it was the thread that came late */
  if (measurable && !agrees && host < NI_GPU_RATE_DOUBT_NS)
    return r->agrees;
  if (measurable)
    r->agrees = agrees ? 1 : -1;
  *r = (struct ni_gpu_rate){s->stop_ns, s->done_arrival_ns, r->agrees};
  return r->agrees;
}

bool ni_gpu_fit_offset(const struct ni_gpu_fit *f, int64_t *offset_ns, uint64_t *at_ns) {
  if (!f->has_min)
    return false;
  bool prev = f->has_prev && f->prev_min_ns < f->min_ns;
  *offset_ns = prev ? f->prev_min_ns : f->min_ns;
  if (at_ns)
    *at_ns = prev ? f->prev_min_at_ns : f->min_at_ns;
  return true;
}
