/*
 * The fit keeps two half windows, so that the minimum forgets what is older than a minute without keeping samples.
 *
 * Observations of one operation are two: its stop (done_arrival - stop) and its start (first_arrival - start). Both are
 * bounded below by the true offset: the channel that stopped last was seen after its stamp, and the stamp that
 * started first is not later than that of the channel seen first. The judgement looks at both.
 */
#include "timing.h"

#include <string.h>

/* Host arrival - stamp, of the tighter of the two observations. Unsigned first: stamps are hostile numbers. */
static int64_t observed_offset(const struct ni_gpu_stamps *s) {
  int64_t stop = (int64_t)(s->done_arrival_ns - s->stop_ns), start = (int64_t)(s->first_arrival_ns - s->start_ns);
  return stop < start ? stop : start;
}

static int64_t current_min(const struct ni_gpu_fit *f) {
  return f->has_prev && f->prev_min_ns < f->min_ns ? f->prev_min_ns : f->min_ns;
}

/* a - b clamped: offsets of garbage stamps may lie anywhere in 64 bits. */
static int64_t sub_sat(int64_t a, int64_t b) {
  int64_t d;
  if (__builtin_sub_overflow(a, b, &d)) return a < b ? INT64_MIN : INT64_MAX;
  return d;
}

/* 100 ppm of the time since the minimum was confirmed: two free-running clocks are never further apart than that. */
static int64_t tolerance(const struct ni_gpu_fit *f, uint64_t now_ns) {
  uint64_t age = now_ns > f->confirmed_at_ns ? now_ns - f->confirmed_at_ns : 0;
  return NI_GPU_TOLERANCE_NS + (int64_t)(age / 10000);
}

enum ni_gpu_verdict ni_gpu_fit_check(const struct ni_gpu_fit *f, const struct ni_gpu_stamps *s) {
  if (s->start_ns == 0 || s->stop_ns == 0) return NI_GPU_ZERO;
  if (s->stop_ns < s->start_ns) return NI_GPU_STOP_BEFORE_START;
  if (s->stop_ns - s->start_ns > (uint64_t)NI_GPU_SPAN_MAX_NS) return NI_GPU_SPAN_TOO_LONG;
  if (f->n_samples >= NI_GPU_WARMUP &&
      sub_sat(current_min(f), observed_offset(s)) > tolerance(f, s->done_arrival_ns))
    return NI_GPU_AFTER_ARRIVAL;
  return NI_GPU_OK;
}

static void restart(struct ni_gpu_fit *f, int64_t offset, uint64_t at_ns, uint64_t now_ns, uint32_t n) {
  uint64_t resets = f->n_resets + 1;
  memset(f, 0, sizeof *f);
  f->n_resets = resets;
  f->n_samples = n;
  f->has_min = true;
  f->min_ns = offset;
  f->min_at_ns = at_ns;
  f->window_start_ns = f->confirmed_at_ns = now_ns;
}

/* One more of a streak of outliers. Outliers that do not agree with each other begin a new streak: several garbage
 * stamps in a row are no new clock relation. Returns true when the streak is long enough to be believed. */
static bool extend_streak(struct ni_gpu_fit *f, uint32_t *n, uint32_t *other, int64_t offset, uint64_t now_ns,
                          int64_t width) {
  *other = 0;
  if (*n && sub_sat(f->streak_max_ns > offset ? f->streak_max_ns : offset,
                    f->streak_min_ns < offset ? f->streak_min_ns : offset) > width)
    *n = 0;
  if (*n == 0 || offset < f->streak_min_ns) {
    f->streak_min_ns = offset;
    f->streak_at_ns = now_ns;
  }
  if (*n == 0 || offset > f->streak_max_ns) f->streak_max_ns = offset;
  return ++*n >= NI_GPU_AGREE;
}

bool ni_gpu_fit_observe(struct ni_gpu_fit *f, const struct ni_gpu_stamps *s, enum ni_gpu_verdict v) {
  if (v != NI_GPU_OK && v != NI_GPU_AFTER_ARRIVAL) return false;
  int64_t offset = observed_offset(s);
  uint64_t now_ns = s->done_arrival_ns;
  if (v == NI_GPU_AFTER_ARRIVAL) {
    if (!extend_streak(f, &f->n_rejected, &f->n_far, offset, now_ns, tolerance(f, now_ns))) return false;
    restart(f, f->streak_min_ns, f->streak_at_ns, now_ns, NI_GPU_WARMUP);
    return true;
  }
  f->n_samples++;
  f->n_rejected = 0;
  if (!f->has_min) {
    f->has_min = true;
    f->min_ns = offset;
    f->min_at_ns = f->window_start_ns = f->confirmed_at_ns = now_ns;
    return false;
  }
  int64_t above = sub_sat(offset, current_min(f));
  if (above > NI_GPU_FAR_NS) {
    /* A poller that is seconds late every time, and equally late, is less likely than a minimum that was garbage. */
    if (!extend_streak(f, &f->n_far, &f->n_rejected, offset, now_ns, NI_GPU_FAR_NS)) return false;
    restart(f, f->streak_min_ns, f->streak_at_ns, now_ns, NI_GPU_WARMUP);
    return true;
  }
  f->n_far = 0;
  if (above < NI_GPU_TOLERANCE_NS) f->confirmed_at_ns = now_ns;
  if (now_ns - f->window_start_ns > NI_GPU_WINDOW_NS && now_ns > f->window_start_ns) {
    f->prev_min_ns = f->min_ns;
    f->prev_min_at_ns = f->min_at_ns;
    f->has_prev = now_ns - f->window_start_ns < 2 * NI_GPU_WINDOW_NS; /* after a long silence nothing old counts */
    f->min_ns = offset;
    f->min_at_ns = now_ns;
    f->window_start_ns = now_ns;
  } else if (offset < f->min_ns) {
    f->min_ns = offset;
    f->min_at_ns = now_ns;
  }
  return false;
}

bool ni_gpu_fit_offset(const struct ni_gpu_fit *f, int64_t *offset_ns, uint64_t *at_ns) {
  if (!f->has_min) return false;
  bool prev = f->has_prev && f->prev_min_ns < f->min_ns;
  *offset_ns = prev ? f->prev_min_ns : f->min_ns;
  if (at_ns) *at_ns = prev ? f->prev_min_at_ns : f->min_at_ns;
  return true;
}

double ni_algobw_gbs(enum ni_func func, uint64_t msg_bytes, int32_t n_ranks, uint64_t ns) {
  if (ns == 0) return 0;
  double bytes = (double)msg_bytes;
  if (ni_func_table[func].times_ranks && n_ranks > 1) bytes *= n_ranks;
  return bytes / (double)ns;
}

void ni_timing_fill(struct ni_record *r, enum ni_func func, int32_t n_ranks, const struct ni_timing_in *in) {
  if (in->gpu_ok) {
    r->timing = NI_TIMING_KERNEL_GPU;
    r->exec_ns = in->gpu_ns;
  } else if (in->has_kernel) {
    r->timing = NI_TIMING_KERNEL_CPU;
    r->exec_ns = in->kernel_cpu_ns;
  } else {
    r->timing = NI_TIMING_COLLECTIVE_CPU;
    r->exec_ns = in->bracket_ns;
  }
  r->exec_us = ni_exec_us(r->exec_ns);
  r->has |= NI_HAS_EXEC_NS;
  r->has &= ~(uint32_t)(NI_HAS_ALGOBW | NI_HAS_BUSBW | NI_HAS_TESTS_SIZE);
  r->algobw_gbs = r->busbw_gbs = 0;
  if (ni_func_table[func].factor == 0) return; /* the size that users mean is not known either */
  r->tests_bytes = ni_nccl_tests_bytes(func, r->msg_bytes, n_ranks);
  r->has |= NI_HAS_TESTS_SIZE;
  if (r->timing == NI_TIMING_COLLECTIVE_CPU || r->exec_ns == 0) return;
  r->algobw_gbs = ni_algobw_gbs(func, r->msg_bytes, n_ranks, r->exec_ns);
  r->busbw_gbs = r->algobw_gbs * ni_bus_factor(func, n_ranks);
  r->has |= NI_HAS_ALGOBW | NI_HAS_BUSBW;
}
