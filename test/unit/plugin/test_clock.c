/* The real clocks of this machine, and made-up ones that jump, slew and stand still. */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plugin/os/clock.h"

static void nap_ms(long ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }

/* Counter readings taken together with the system's clocks, converted afterwards, as the dump thread does. */
static void conversion_follows_the_system_clocks(bool force_gettime) {
  struct ni_clock c;
  ni_clock_init(&c, force_gettime);
  if (force_gettime)
    assert_int_equal(c.source, NI_CLOCK_GETTIME);
  enum { N = 100 };
  struct {
    uint64_t ticks, mono, real, width;
  } at[N];
  for (int i = 0; i < N; i++) {
    at[i].mono = ni_monotonic_ns();
    at[i].ticks = ni_ticks(c.source);
    at[i].real = ni_realtime_ns();
    at[i].width = ni_monotonic_ns() - at[i].mono;
    nap_ms(10);
    if (i % 5 == 4)
      assert_int_equal(ni_clock_sample(&c), 0);
  }
  /* the counter was read after the one clock and before the other, at most width apart */
  for (int i = 0; i < N; i++) {
    int64_t e = (int64_t)(ni_clock_monotonic_ns(&c, at[i].ticks) - at[i].mono), width = (int64_t)at[i].width;
    assert_true(e > -20000 && e < width + 20000);
    e = (int64_t)(ni_clock_unix_ns(&c, at[i].ticks) - at[i].real);
    assert_true(e > -width - 20000 && e < 20000);
  }
  /* A span of the whole second, and with one fit the order is kept to the last tick. */
  int64_t e = (int64_t)(ni_clock_span_ns(&c, at[N - 1].ticks - at[0].ticks) - (at[N - 1].mono - at[0].mono));
  assert_true(e > -20000 - (int64_t)at[0].width && e < 20000 + (int64_t)at[N - 1].width);
  uint64_t last = 0;
  for (uint64_t t = c.newest.ticks - 5000; t < c.newest.ticks + 5000; t++) {
    uint64_t now = ni_clock_unix_ns(&c, t);
    assert_true(now >= last);
    last = now;
  }
}

static void real_counter(void **state) {
  (void)state;
  conversion_follows_the_system_clocks(false);
}

static void gettime_fallback(void **state) {
  (void)state;
  conversion_follows_the_system_clocks(true);
}

static void source_is_named(void **state) {
  (void)state;
  struct ni_clock c;
  ni_clock_init(&c, true);
  assert_string_equal(ni_clock_source_name(c.source), "clock_gettime");
  assert_true(fabs(c.ns_per_tick - 1) < 1e-15);
  assert_string_equal(ni_clock_source_name(NI_CLOCK_TSC), "tsc");
  assert_string_equal(ni_clock_source_name(NI_CLOCK_CNTVCT), "cntvct");
  /* Where the CPU says invariant and the kernel uses it, so do we. */
#if defined(__x86_64__)
  char name[64] = "";
  FILE *f = fopen("/sys/devices/system/clocksource/clocksource0/current_clocksource", "r");
  if (f && fgets(name, sizeof name, f)) {
    ni_clock_init(&c, false);
    if (!strcmp(name, "hpet\n") || !strcmp(name, "acpi_pm\n"))
      assert_int_equal(c.source, NI_CLOCK_GETTIME);
  }
  if (f)
    fclose(f);
#elif defined(__aarch64__)
  ni_clock_init(&c, false);
  assert_int_equal(c.source, NI_CLOCK_CNTVCT);
#endif
}

static struct ni_clock_point at(double s, double hz, double slew_ppm) {
  uint64_t ns = (uint64_t)(s * 1e9);
  return (struct ni_clock_point){(uint64_t)(s * hz * (1 + slew_ppm * 1e-6)), 1000000000000 + ns,
                                 UINT64_C(1790000000000000000) + ns};
}

static void nine_days_of_a_fast_counter(void **state) {
  (void)state;
  struct ni_clock c = {.source = NI_CLOCK_TSC};
  const double hz = 3.7e9;
  double end = 9 * 86400.0;
  struct ni_clock_point p = at(0, hz, 0);
  assert_int_equal(ni_clock_add_sample(&c, &p), 0);
  for (double s = 1; s <= end; s += 97) {
    p = at(s, hz, 0);
    assert_int_equal(ni_clock_add_sample(&c, &p), 0);
  }
  assert_int_equal(c.n_jumps, 0);
  /* Back to the first second: more than 2^51 ticks, no overflow. */
  p = at(1, hz, 0);
  assert_true(llabs((long long)(ni_clock_monotonic_ns(&c, p.ticks) - p.monotonic_ns)) < 1000000);
  assert_true(llabs((long long)(ni_clock_unix_ns(&c, p.ticks) - p.realtime_ns)) < 1000000);
  assert_true(fabs(c.ns_per_tick * hz / 1e9 - 1) < 1e-9);
}

/* The slope follows a slewed CLOCK_MONOTONIC within a minute instead of averaging over hours. */
static void slew_is_followed(void **state) {
  (void)state;
  struct ni_clock c = {.source = NI_CLOCK_TSC};
  const double hz = 2e9;
  double ticks = 0;
  struct ni_clock_point p = {0, 1000000000000, UINT64_C(1790000000000000000)};
  for (int i = 0; i < 1000; i++) {
    ticks += hz * (1 + (i >= 800 ? 400e-6 : 0));
    p.ticks = (uint64_t)ticks;
    p.monotonic_ns += 1000000000;
    p.realtime_ns += 1000000000;
    assert_int_equal(ni_clock_add_sample(&c, &p), 0);
  }
  assert_int_equal(c.n_jumps, 0);
  assert_true(fabs(c.ns_per_tick * hz * (1 + 400e-6) / 1e9 - 1) < 1e-9);
}

static void jumps_start_a_new_line(void **state) {
  (void)state;
  struct ni_clock c = {.source = NI_CLOCK_TSC};
  struct ni_clock_point p;
  for (int i = 0; i < 20; i++) {
    p = at(i, 2e9, 0);
    ni_clock_add_sample(&c, &p);
  }
  double slope = c.ns_per_tick;
  p = at(20, 2e9, 0);
  p.ticks += 1000000000; /* the VM came back with its counter half a second ahead */
  assert_int_equal(ni_clock_add_sample(&c, &p), 1);
  assert_int_equal(c.n_jumps, 1);
  assert_true(fabs(c.ns_per_tick / slope - 1) < 1e-12);
  assert_int_equal(ni_clock_monotonic_ns(&c, p.ticks), p.monotonic_ns);
  p = at(21, 2e9, 0);
  p.ticks = 5; /* and once more, reset */
  assert_int_equal(ni_clock_add_sample(&c, &p), 1);
  for (int i = 1; i < 5; i++) {
    struct ni_clock_point q = {5 + (uint64_t)i * 2000000000, p.monotonic_ns + (uint64_t)i * 1000000000,
                               p.realtime_ns};
    assert_int_equal(ni_clock_add_sample(&c, &q), 0);
  }
  assert_true(fabs(c.ns_per_tick - 0.5) < 1e-9);
}

static void a_wall_clock_step_moves_unix_time_only(void **state) {
  (void)state;
  struct ni_clock c = {.source = NI_CLOCK_TSC};
  struct ni_clock_point p;
  for (int i = 0; i < 10; i++) {
    p = at(i, 2e9, 0);
    ni_clock_add_sample(&c, &p);
  }
  uint64_t mono = ni_clock_monotonic_ns(&c, p.ticks - 1000), wall = ni_clock_unix_ns(&c, p.ticks - 1000),
           t = p.ticks - 1000;
  p = at(10, 2e9, 0);
  p.realtime_ns -= 3600000000000;
  assert_int_equal(ni_clock_add_sample(&c, &p), 0);
  assert_true(llabs((long long)(ni_clock_monotonic_ns(&c, t) - mono)) < 10);
  assert_true(llabs((long long)(wall - ni_clock_unix_ns(&c, t)) - 3600000000000) < 10);
}

static void nonsense_is_refused(void **state) {
  (void)state;
  struct ni_clock c = {.source = NI_CLOCK_TSC};
  struct ni_clock_point p = at(1, 2e9, 0), q = p;
  ni_clock_add_sample(&c, &p);
  q.ticks += 10;
  assert_int_equal(ni_clock_add_sample(&c, &q), -ERANGE); /* time stood still */
  q.monotonic_ns += 1000000000;
  assert_int_equal(ni_clock_add_sample(&c, &q), -ERANGE); /* ten ticks a second */
  assert_int_equal(c.mult, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(real_counter),
      cmocka_unit_test(gettime_fallback),
      cmocka_unit_test(source_is_named),
      cmocka_unit_test(nine_days_of_a_fast_counter),
      cmocka_unit_test(slew_is_followed),
      cmocka_unit_test(jumps_start_a_new_line),
      cmocka_unit_test(a_wall_clock_step_moves_unix_time_only),
      cmocka_unit_test(nonsense_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
