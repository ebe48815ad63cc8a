/*
 * How much of the time collectives were in flight: exact sums, whatever the order and the width of the bins.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>

#include "exporter/model/counters/beside.h"

#define S INT64_C(1000000000)
static const int64_t t0 = INT64_C(1767225600) * S;

static void shares(void **state) {
  (void)state;
  struct ni_cover c = {0};
  assert_false(ni_cover_between(&c, t0, t0 + S).some);
  assert_int_equal(ni_cover_add(&c, t0, t0 + S), 0);
  assert_int_equal(ni_cover_add(&c, t0 + 2 * S, t0 + 2 * S + S / 2), 0);
  struct ni_cover_share s = ni_cover_between(&c, t0 - S, t0 + 3 * S);
  assert_true(fabs(s.share - 1.5 / 4) < 0.01);
  assert_true(s.some && !s.all);
  s = ni_cover_between(&c, t0 + S / 4, t0 + S / 2);
  assert_true(s.all && s.some && fabs(s.share - 1) < 1e-9);
  s = ni_cover_between(&c, t0 + 5 * S, t0 + 6 * S);
  assert_true(!s.all && !s.some && s.share == 0);
  s = ni_cover_between(&c, t0 - 6 * S, t0 - 5 * S);
  assert_true(!s.all && !s.some && s.share == 0);
  /* What is no time of a job, and what ends before it begins. */
  assert_int_equal(ni_cover_add(&c, 5, INT64_MAX), 0);
  assert_int_equal(ni_cover_add(&c, t0 + S, t0), 0);
  assert_int_equal(ni_cover_add(&c, INT64_MIN, INT64_MAX), 0);
  assert_true(fabs(ni_cover_between(&c, t0 - S, t0 + 3 * S).share - 1.5 / 4) < 0.01);
  ni_cover_free(&c);
}

static uint64_t sum(const struct ni_cover *c) {
  uint64_t n = 0;
  for (int i = 0; c->busy && i < NI_COVER_BINS; i++)
    n += c->busy[i];
  return n;
}

/* Parts in any order, merged in any order: the same bins, and not a ns is lost. */
static void any_order(void **state) {
  (void)state;
  enum { N = 400 };
  int64_t at[N], len[N];
  uint64_t all = 0;
  srand(7);
  for (int i = 0; i < N; i++) {
    at[i] = t0 + (int64_t)(rand() % 100000) * 37 * (S / 1000) * (i % 7 ? 1 : 40);
    len[i] = 1 + rand() % (3 * S);
    all += (uint64_t)len[i];
  }
  struct ni_cover a = {0}, b = {0}, part[2] = {{0}, {0}};
  for (int i = 0; i < N; i++) {
    ni_cover_add(&a, at[i], at[i] + len[i]);
    ni_cover_add(&part[i % 2], at[N - 1 - i], at[N - 1 - i] + len[N - 1 - i]);
  }
  ni_cover_merge(&b, &part[1], false);
  ni_cover_merge(&b, &part[0], false);
  assert_true(sum(&a) == all && sum(&b) == all);
  assert_true(a.shift == b.shift && a.first == b.first && a.last == b.last);
  for (uint64_t i = a.first; i <= a.last; i++)
    assert_true(a.busy[i % NI_COVER_BINS] == b.busy[i % NI_COVER_BINS]);
  ni_cover_merge(&b, &a, true);
  assert_true(sum(&b) == all);
  /* A day, from its last second to its first. */
  struct ni_cover day = {0};
  for (int64_t i = 86400; i-- > 0;)
    ni_cover_add(&day, t0 + i * S, t0 + i * S + S / 4);
  assert_true(sum(&day) == 86400 * (uint64_t)S / 4);
  assert_true(fabs(ni_cover_between(&day, t0, t0 + 86400 * S).share - 0.25) < 0.001);
  ni_cover_free(&a);
  ni_cover_free(&b);
  ni_cover_free(&part[0]);
  ni_cover_free(&part[1]);
  ni_cover_free(&day);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(shares), cmocka_unit_test(any_order)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
