/*
 * Sources, bandwidths by nccl-tests' formulas, and the GPU clock fit against planted garbage, drift and
 * steps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "format/library.h"
#include "plugin/write/gpu_fit.h"

static uint64_t rng = 12345678987654321u;
static uint64_t next(void) {
  rng ^= rng << 13;
  rng ^= rng >> 7;
  rng ^= rng << 17;
  return rng;
}

static struct ni_record fill(const char *func, uint64_t bytes, int n, struct ni_timing_in in) {
  struct ni_record r = {.func = func, .msg_bytes = bytes};
  ni_timing_fill(&r, ni_func_from_name(func), n, &in);
  return r;
}

static void sources(void **state) {
  (void)state;
  struct ni_timing_in in = {
      .gpu_ok = true, .has_kernel = true, .gpu_ns = 59499, .kernel_cpu_ns = 61000, .bracket_ns = 7};
  struct ni_record r = fill("AllReduce", 1 << 20, 8, in);
  assert_int_equal(r.timing, NI_TIMING_KERNEL_GPU);
  assert_int_equal(r.exec_ns, 59499);
  assert_int_equal(r.exec_us, 59);
  in.gpu_ok = false;
  r = fill("AllReduce", 1 << 20, 8, in);
  assert_int_equal(r.timing, NI_TIMING_KERNEL_CPU);
  assert_int_equal(r.exec_ns, 61000);
  assert_true(r.has & NI_HAS_BUSBW);
  in.has_kernel = false;
  r = fill("AllReduce", 1 << 20, 8, in);
  assert_int_equal(r.timing, NI_TIMING_COLLECTIVE_CPU);
  assert_int_equal(r.exec_ns, 7);
  assert_int_equal(r.exec_us, 1);
  assert_false(r.has & (NI_HAS_ALGOBW | NI_HAS_BUSBW));
  assert_true(r.has & NI_HAS_TESTS_SIZE);
  /* zero span: no bandwidth, no division */
  r = fill("AllReduce", 1 << 20, 8, (struct ni_timing_in){.gpu_ok = true});
  assert_false(r.has & (NI_HAS_ALGOBW | NI_HAS_BUSBW));
  /* Unknown number of ranks: only what does not depend on it. */
  r = fill("AllReduce", 1 << 20, 0, (struct ni_timing_in){.gpu_ok = true, .gpu_ns = 1000});
  assert_int_equal(r.has & (NI_HAS_TESTS_SIZE | NI_HAS_ALGOBW | NI_HAS_BUSBW),
                   NI_HAS_TESTS_SIZE | NI_HAS_ALGOBW);
  r = fill("AllGather", 1 << 20, 0, (struct ni_timing_in){.gpu_ok = true, .gpu_ns = 1000});
  assert_int_equal(r.has & (NI_HAS_TESTS_SIZE | NI_HAS_ALGOBW | NI_HAS_BUSBW), 0);
  r = fill("Send", 1000, 0, (struct ni_timing_in){.gpu_ok = true, .gpu_ns = 1000});
  assert_true((r.has & NI_HAS_BUSBW) && r.busbw_gbs == 1);
  r = fill("PutSignal", 1 << 20, 8, (struct ni_timing_in){.gpu_ok = true, .gpu_ns = 100});
  assert_false(r.has & (NI_HAS_ALGOBW | NI_HAS_BUSBW | NI_HAS_TESTS_SIZE));
  assert_int_equal(r.exec_ns, 100);
}

/* Values worked out by hand from the table of callbacks 2.2. */
static void bandwidths(void **state) {
  (void)state;
  static const struct {
    const char *func;
    uint64_t bytes;
    int n;
    uint64_t ns;
    double algbw, busbw;
    uint64_t size;
  } t[] = {
      {"AllReduce", 1000000, 4, 1000, 1000, 1500, 1000000},
      {"AllGather", 1000000, 4, 1000, 4000, 3000, 4000000},
      {"ReduceScatter", 1000000, 4, 1000, 4000, 3000, 4000000},
      {"Broadcast", 1000000, 4, 1000, 1000, 1000, 1000000},
      {"Reduce", 1000000, 4, 2000, 500, 500, 1000000},
      {"Send", 65536, 2, 4096, 16, 16, 65536},
      {"Recv", 65536, 2, 4096, 16, 16, 65536},
      {"AlltoAll", 1000000, 8, 1000, 8000, 7000, 8000000},
      {"Gather", 1000, 2, 1000, 2, 1, 2000},
      {"Scatter", 1000, 2, 1000, 2, 1, 2000},
      {"AllReduce", 1048576, 8, 59000, 1048576.0 / 59000, 1048576.0 / 59000 * 1.75, 1048576},
      {"AllReduce", 900, 8, 900, 1, 1.75, 900}, /* below a microsecond: not lost, not rounded */
  };
  for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
    struct ni_record r =
        fill(t[i].func, t[i].bytes, t[i].n, (struct ni_timing_in){.gpu_ok = true, .gpu_ns = t[i].ns});
    assert_true(r.has & NI_HAS_ALGOBW);
    assert_true(r.has & NI_HAS_BUSBW);
    assert_true(r.algobw_gbs > t[i].algbw * (1 - 1e-12) && r.algobw_gbs < t[i].algbw * (1 + 1e-12));
    assert_true(r.busbw_gbs > t[i].busbw * (1 - 1e-12) && r.busbw_gbs < t[i].busbw * (1 + 1e-12));
    assert_int_equal(r.tests_bytes, t[i].size);
  }
}

/* A simulated pair of clocks: host = gpu + offset, arrivals late by a random latency. */
struct sim {
  struct ni_gpu_fit fit;
  uint64_t gpu_ns;
  int64_t offset;
};

static struct ni_gpu_stamps op(struct sim *s, uint64_t pause_ns, uint64_t latency_ns) {
  s->gpu_ns += pause_ns;
  struct ni_gpu_stamps st = {.start_ns = s->gpu_ns, .stop_ns = s->gpu_ns + 50000};
  st.first_arrival_ns = (uint64_t)((int64_t)st.start_ns + s->offset) + latency_ns;
  st.done_arrival_ns = (uint64_t)((int64_t)st.stop_ns + s->offset) + latency_ns / 2;
  s->gpu_ns = st.stop_ns;
  return st;
}

static enum ni_gpu_verdict feed(struct sim *s, struct ni_gpu_stamps st) {
  enum ni_gpu_verdict v = ni_gpu_fit_check(&s->fit, &st);
  ni_gpu_fit_observe(&s->fit, &st, v);
  return v;
}

static int64_t fit_error(struct sim *s) {
  int64_t off;
  assert_true(ni_gpu_fit_offset(&s->fit, &off, NULL));
  return off - s->offset;
}

static void plain_verdicts(void **state) {
  (void)state;
  struct ni_gpu_fit f = {0};
  int64_t off;
  assert_false(ni_gpu_fit_offset(&f, &off, NULL));
  assert_int_equal(ni_gpu_fit_check(&f, &(struct ni_gpu_stamps){0, 5, 9, 9}), NI_GPU_ZERO);
  assert_int_equal(ni_gpu_fit_check(&f, &(struct ni_gpu_stamps){5, 0, 9, 9}), NI_GPU_ZERO);
  assert_int_equal(ni_gpu_fit_check(&f, &(struct ni_gpu_stamps){6, 5, 9, 9}), NI_GPU_STOP_BEFORE_START);
  assert_int_equal(ni_gpu_fit_check(&f, &(struct ni_gpu_stamps){1, UINT64_C(3600000000002), 9, 9}),
                   NI_GPU_SPAN_TOO_LONG);
  assert_int_equal(ni_gpu_fit_check(&f, &(struct ni_gpu_stamps){1, UINT64_C(3600000000001), 9, 9}),
                   NI_GPU_OK);
  assert_false(ni_gpu_fit_observe(&f, &(struct ni_gpu_stamps){1, UINT64_MAX, 9, 9}, NI_GPU_SPAN_TOO_LONG));
  assert_false(f.has_min);
}

/*
 * Ten minutes with 20 ppm of drift either way and a busy poller: nothing rejected, offset known to some
 * microseconds.
 */
static void drift_is_followed(void **state) {
  (void)state;
  for (int ppm = -20; ppm <= 20; ppm += 40) {
    struct sim s = {.gpu_ns = 1000000000000, .offset = -123456789012};
    int64_t base = s.offset;
    uint64_t gpu0 = s.gpu_ns;
    for (int i = 0; i < 60000; i++) {
      s.offset = base + (int64_t)((double)(s.gpu_ns - gpu0) * ppm * 1e-6);
      assert_int_equal(feed(&s, op(&s, 10000000, 3000 + next() % 200000)), NI_GPU_OK);
    }
    assert_int_equal(s.fit.n_resets, 0);
    int64_t e = fit_error(&s);
    /* The minimum may be a minute old: 60 s x 20 ppm. */
    assert_true(e >= -1250000 && e <= 1250000);
  }
}

static void quiet_jobs_with_drift(void **state) {
  (void)state;
  struct sim s = {.gpu_ns = 1000000000000, .offset = 5000};
  for (int i = 0; i < 300; i++) { /* one operation every 70 s, the GPU clock 50 ppm fast */
    s.offset -= 70 * 50000;
    assert_int_equal(feed(&s, op(&s, 70000000000u, 20000)), NI_GPU_OK);
  }
  assert_true(llabs(fit_error(&s)) < 100000);
}

/* One in ten stop stamps is garbage of the future: exactly those are refused, the fit stays. */
static void garbage_is_refused(void **state) {
  (void)state;
  struct sim s = {.gpu_ns = UINT64_C(1790000000000000000), .offset = 777};
  int caught = 0, planted = 0;
  for (int i = 0; i < 5000; i++) {
    struct ni_gpu_stamps st = op(&s, 1000000, 2000 + next() % 20000);
    bool bad = i > 20 && next() % 10 == 0;
    if (bad) {
      st.stop_ns += 5000000 + next() % 1000000000000;
      planted++;
    }
    enum ni_gpu_verdict v = feed(&s, st);
    assert_int_equal(v, bad ? NI_GPU_AFTER_ARRIVAL : NI_GPU_OK);
    caught += v != NI_GPU_OK;
  }
  assert_true(planted > 300);
  assert_int_equal(caught, planted);
  assert_int_equal(s.fit.n_resets, 0);
  int64_t e = fit_error(&s);
  assert_true(e >= 0 && e < 5000);
}

/* The GPU clock is set forward by a second: some operations fall back, then the fit is the new one. */
static void a_clock_step_is_learnt(void **state) {
  (void)state;
  struct sim s = {.gpu_ns = 1000000000000, .offset = 0};
  for (int i = 0; i < 100; i++)
    assert_int_equal(feed(&s, op(&s, 1000000, 5000)), NI_GPU_OK);
  s.offset -= 1000000000;
  for (int i = 0; i < NI_GPU_AGREE; i++)
    assert_int_equal(feed(&s, op(&s, 1000000, 5000)), NI_GPU_AFTER_ARRIVAL);
  for (int i = 0; i < 100; i++)
    assert_int_equal(feed(&s, op(&s, 1000000, 5000)), NI_GPU_OK);
  assert_int_equal(s.fit.n_resets, 1);
  assert_true(llabs(fit_error(&s)) < 5000);
}

/* The very first stamp is garbage, far too low or too high: the fit recovers and does not reject for ever. */
static void a_poisoned_minimum_recovers(void **state) {
  (void)state;
  static const uint64_t poison[] = {1, UINT64_C(1) << 62, UINT64_MAX - 100000, 0xaaaaaaaaaaaaaaaa};
  for (size_t k = 0; k < sizeof poison / sizeof *poison; k++)
    for (int n_poison = 1; n_poison <= NI_GPU_WARMUP; n_poison += 7) {
      struct sim s = {.gpu_ns = UINT64_C(1790000000000000000), .offset = 42};
      for (int i = 0; i < n_poison; i++) {
        struct ni_gpu_stamps st = op(&s, 1000000, 5000);
        st.start_ns = poison[k];
        st.stop_ns = poison[k] + 1000;
        feed(&s, st);
      }
      int refused = 0;
      for (int i = 0; i < 1000; i++)
        refused += feed(&s, op(&s, 1000000, 5000)) != NI_GPU_OK;
      assert_true(refused <= NI_GPU_AGREE);
      assert_true(llabs(fit_error(&s)) < 5000);
    }
}

/* Random refused stamps do not agree, so they never become the fit. */
static void disagreeing_garbage_never_wins(void **state) {
  (void)state;
  struct sim s = {.gpu_ns = 1000000000000, .offset = 0};
  for (int i = 0; i < 50; i++)
    feed(&s, op(&s, 1000000, 5000));
  for (int i = 0; i < 2000; i++) {
    struct ni_gpu_stamps st = op(&s, 1000000, 5000);
    st.stop_ns += 5000000 + next() % 3000000000000;
    st.start_ns = st.stop_ns - 1000;
    assert_int_equal(feed(&s, st), NI_GPU_AFTER_ARRIVAL);
  }
  assert_int_equal(s.fit.n_resets, 0);
  assert_true(llabs(fit_error(&s)) < 5000);
}

/* RCCL's stamps are ticks of 10 ns. */
static void ticks_become_ns(void **state) {
  (void)state;
  assert_int_equal(ni_gpu_khz_of(NI_LIBRARY_NCCL, 0), NI_NS_KHZ);
  assert_int_equal(ni_gpu_khz_of(NI_LIBRARY_UNKNOWN, 0), NI_NS_KHZ);
  assert_int_equal(ni_gpu_khz_of(NI_LIBRARY_RCCL, 0), 100000);
  assert_int_equal(ni_gpu_khz_of(NI_LIBRARY_RCCL, 25000), 25000); /* the setting */
  assert_int_equal(ni_gpu_clock_of(NI_LIBRARY_RCCL, 0), NI_GPU_CLOCK_ASSUMED);
  assert_int_equal(ni_gpu_clock_of(NI_LIBRARY_UNKNOWN, 0), NI_GPU_CLOCK_UNPROVEN);
  assert_int_equal(ni_gpu_clock_of(NI_LIBRARY_UNKNOWN, NI_NS_KHZ), NI_GPU_CLOCK_SURE);
  assert_true(ni_gpu_ns(12345, NI_NS_KHZ) == 12345);
  assert_true(ni_gpu_ns(12345, 100000) == 123450);
  assert_true(ni_gpu_ns(0, 100000) == 0 && ni_gpu_ns(UINT64_MAX, 100000) == UINT64_MAX); /* no stamp */
  /* garbage stays no time */
  assert_true(ni_gpu_ns(UINT64_MAX - 1, 100000) == UINT64_MAX - 1);
}

/* Of a clock that makes so many ns in 100 of the host's: the first answer that is not "not measured". */
static int measured_rate(struct ni_gpu_rate *r, uint64_t per_100) {
  struct ni_gpu_stamps st = {1000, 2000, 5000, 6000};
  int agrees = 0;
  for (int i = 0; i < 12000 && !agrees; i++) {
    st.done_arrival_ns += 1000000;
    st.stop_ns += 10000 * per_100;
    agrees = ni_gpu_rate_check(r, &st);
  }
  return agrees;
}

static void a_wrong_rate_shows(void **state) {
  (void)state;
  struct ni_gpu_rate ns = {0}, ticks = {0}, fast = {0}, none = {0};
  struct ni_gpu_stamps first = {1000, 2000, 5000, 6000};
  assert_int_equal(measured_rate(&ns, 100), 1);
  assert_int_equal(measured_rate(&ticks, 10), -1); /* 100 MHz taken for ns */
  assert_int_equal(measured_rate(&fast, 1000), -1);
  assert_int_equal(ni_gpu_rate_check(&none, &first), 0); /* nothing to measure from */
  /* one that is set right: the old answer until it is measured again */
  assert_int_equal(measured_rate(&ticks, 100), -1);
  ticks = (struct ni_gpu_rate){.agrees = -1};
  for (int i = 0; i < 2500; i++) {
    first.done_arrival_ns += 1000000;
    first.stop_ns += 1000000;
    (void)ni_gpu_rate_check(&ticks, &first);
  }
  assert_int_equal(ticks.agrees, 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sources),
      cmocka_unit_test(bandwidths),
      cmocka_unit_test(plain_verdicts),
      cmocka_unit_test(drift_is_followed),
      cmocka_unit_test(quiet_jobs_with_drift),
      cmocka_unit_test(garbage_is_refused),
      cmocka_unit_test(a_clock_step_is_learnt),
      cmocka_unit_test(a_poisoned_minimum_recovers),
      cmocka_unit_test(disagreeing_garbage_never_wins),
      cmocka_unit_test(ticks_become_ns),
      cmocka_unit_test(a_wrong_rate_shows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
