/*
 * Means of series that hang together: the error they state is theirs, also where values drift or pause;
 * Student and Holm.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdint.h>

#include "exporter/base/mix.h"
#include "exporter/model/diff/stat.h"

enum { N = 256 };

static double normal(uint64_t *state) { /* 12 even numbers */
  double sum = -6;
  for (int i = 0; i < 12; i++)
    sum += (double)(ni_mix((*state)++) >> 11) * 0x1p-53;
  return sum;
}

/*
 * In which share of pairs without a difference one of 5 % is found. rho: what a value has of the one before.
 */
static double false_alarms(double rho, double trim) {
  uint64_t state = 7;
  unsigned alarms = 0;
  for (unsigned pair = 0; pair < 1000; pair++) {
    struct ni_diff_mean m[2];
    for (int k = 0; k < 2; k++) {
      float x[N], scratch[N];
      double at = normal(&state);
      for (int i = 0; i < N; i++) {
        at = rho * at + sqrt(1 - rho * rho) * normal(&state);
        x[i] = (float)(100 + at);
      }
      m[k] = ni_diff_mean(x, N, trim, scratch);
    }
    double se = hypot(m[0].se, m[1].se);
    alarms += ni_diff_p((m[1].mean - m[0].mean) / se, fmin(m[0].df, m[1].df)) < 0.05;
  }
  return alarms / 1000.0;
}

static void states_its_error(void **state) {
  (void)state;
  double apart = false_alarms(0, 0.1), together = false_alarms(0.8, 0.1);
  assert_true(apart > 0.005 && apart < 0.06);
  assert_true(together < 0.08); /* with the error of values that do not hang together it would be 0.5 */
  assert_true(false_alarms(0.8, 0) < 0.08);
}

static void leaves_pauses_out(void **state) {
  (void)state;
  uint64_t seed = 3;
  float x[N], scratch[N];
  for (int i = 0; i < N; i++)
    x[i] = (float)(100 + normal(&seed));
  for (int i = 5; i < N; i += 40)
    x[i] = 5000;
  x[3] = x[90] = NAN;
  struct ni_diff_mean trimmed = ni_diff_mean(x, N, 0.1, scratch), all = ni_diff_mean(x, N, 0, scratch);
  assert_true(fabs(trimmed.mean - 100) < 0.5 && trimmed.se < 0.3);
  assert_true(all.mean > 200 && all.se > 30);
  assert_true(isnan(ni_diff_mean(x, 7, 0.1, scratch).mean) && isnan(ni_diff_mean(x, 0, 0.1, scratch).se));
}

/* Each value of the table: t, df and the two-sided chance. */
static void student(void **state) {
  (void)state;
  static const double table[][3] = {
      {2.306, 8, 0.05}, {2.042, 30, 0.05}, {3.355, 8, 0.01}, {3.646, 30, 0.001}, {1.984, 100, 0.05}};
  for (unsigned i = 0; i < sizeof table / sizeof *table; i++) {
    assert_true(fabs(ni_diff_p(table[i][0], table[i][1]) / table[i][2] - 1) < 0.03);
    assert_true(table[i][2] != 0.05 || fabs(ni_diff_t95(table[i][1]) / table[i][0] - 1) < 0.01);
  }
  assert_true(ni_diff_p(0, 9) == 1 && ni_diff_p(-2.306, 8) == ni_diff_p(2.306, 8));
}

static void holm(void **state) {
  (void)state;
  double p[] = {0.001, 0.002, 0.02, 0.5, 0.9};
  const double want[] = {0.005, 0.008, 0.06, 1, 1};
  ni_diff_holm(p, 5);
  for (int i = 0; i < 5; i++)
    assert_true(fabs(p[i] - want[i]) < 1e-12);
  ni_diff_holm(p, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(states_its_error), cmocka_unit_test(leaves_pauses_out),
                                     cmocka_unit_test(student), cmocka_unit_test(holm)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
