/* Sets of sequence numbers against a plain array, and their bounded memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exporter/base/seq_set.h"

static void test_against_array(void **state) {
  (void)state;
  enum { N = 3000 };
  unsigned seed = 12345;
  for (int round = 0; round < 30; round++) {
    struct ni_seq_set s = {0};
    static bool have[N];
    uint64_t distinct = 0, doubles = 0, highest = 0, lowest = N;
    memset(have, 0, sizeof have);
    for (int i = 0; i < 2000; i++) {
      seed = seed * 1103515245u + 12345u;
      unsigned sn = round % 2 ? (seed >> 8) % N : ((unsigned)i + (seed >> 8) % 20u) % N;
      assert_int_equal(ni_seq_set_add(&s, sn), 0);
      if (have[sn])
        doubles++;
      else
        distinct++;
      have[sn] = true;
      if (sn > highest)
        highest = sn;
      if (sn < lowest)
        lowest = sn;
    }
    uint64_t missing = 0, hole = N, hole_end = 0;
    for (uint64_t i = 0; i <= highest; i++) {
      if (have[i])
        continue;
      missing++;
      if (hole == N)
        hole = i;
    }
    for (hole_end = hole; hole_end < highest && !have[hole_end + 1]; hole_end++) {}
    assert_int_equal(s.distinct, distinct);
    assert_int_equal(s.doubles, doubles);
    assert_int_equal(s.lowest, lowest);
    assert_int_equal(s.highest, highest);
    assert_int_equal(ni_seq_set_missing(&s, 0), missing);
    struct ni_seq_range r;
    assert_int_equal(ni_seq_set_first_hole(&s, 0, &r), missing > 0);
    if (missing) {
      assert_int_equal(r.from, hole);
      assert_int_equal(r.to, hole_end);
    }
    for (uint64_t end = 0, below = 0; end <= N; end++) {
      assert_int_equal(ni_seq_set_below(&s, end), below);
      below += end < N && have[end];
    }
    for (size_t i = 1; i < s.n; i++)
      assert_true(s.range[i].from > s.range[i - 1].to + 1);
    ni_seq_set_free(&s);
  }
}

static void test_in_order_is_one_range(void **state) {
  (void)state;
  struct ni_seq_set s = {0};
  for (uint64_t i = 0; i < 1000000; i++)
    ni_seq_set_add(&s, i ^ 1);
  assert_int_equal(s.n, 1);
  assert_true(s.cap <= 8);
  assert_int_equal(s.distinct, 1000000);
  ni_seq_set_free(&s);
}

static void test_ends(void **state) {
  (void)state;
  struct ni_seq_set s = {0};
  struct ni_seq_range r;
  assert_int_equal(ni_seq_set_missing(&s, 0), 0);
  assert_int_equal(ni_seq_set_first_hole(&s, 0, &r), 0);
  assert_int_equal(ni_seq_set_add(&s, INT64_MAX), 0);
  assert_int_equal(ni_seq_set_add(&s, 0), 0);
  assert_true(ni_seq_set_missing(&s, 0) == (uint64_t)INT64_MAX - 1);
  assert_int_equal(ni_seq_set_add(&s, INT64_MAX), 0);
  assert_int_equal(s.doubles, 1);
  ni_seq_set_free(&s);
}

/* Holes without end: counts stay exact, memory does not grow, what can no longer be told is said. */
static void test_bounded(void **state) {
  (void)state;
  struct ni_seq_set s = {0};
  for (uint64_t i = 0; i < 300000; i++)
    ni_seq_set_add(&s, 2 * i);
  assert_true(s.n <= NI_SEQ_SET_MAX);
  assert_true(s.cap <= 2 * NI_SEQ_SET_MAX);
  assert_int_equal(s.distinct, 300000);
  assert_int_equal(ni_seq_set_missing(&s, 0), 299999);
  ni_seq_set_add(&s, 1);
  assert_int_equal(s.unsure, 1);
  assert_int_equal(s.doubles, 0);
  ni_seq_set_add(&s, 599998);
  assert_int_equal(s.doubles, 1);
  ni_seq_set_free(&s);
}

static void add_range(struct ni_seq_set *s, uint64_t from, uint64_t to) {
  for (uint64_t i = from; i <= to; i++)
    assert_int_equal(ni_seq_set_add(s, i), 0);
}

/* Merged intervals are what adding every number gives. */
static void test_merge(void **state) {
  (void)state;
  static const uint64_t parts[][4] = {{0, 9, 10, 19}, {10, 19, 0, 9}, {0, 9, 5, 14},
                                      {0, 9, 20, 29}, {3, 3, 0, 9},   {0, 99, 50, 60}};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    struct ni_seq_set a = {0}, b = {0}, both = {0};
    add_range(&a, parts[i][0], parts[i][1]);
    add_range(&a, 200, 210);
    add_range(&b, parts[i][2], parts[i][3]);
    add_range(&b, 211, 215);
    add_range(&both, parts[i][0], parts[i][1]);
    add_range(&both, 200, 215);
    add_range(&both, parts[i][2], parts[i][3]);
    assert_int_equal(ni_seq_set_merge(&a, &b), 0);
    assert_int_equal(a.n, both.n);
    assert_memory_equal(a.range, both.range, a.n * sizeof *a.range);
    assert_true(a.distinct == both.distinct && a.doubles == both.doubles);
    assert_true(a.lowest == both.lowest && a.highest == both.highest);
    for (uint64_t k = 0; k < 230; k++)
      assert_int_equal(ni_seq_set_has(&a, k), ni_seq_set_has(&both, k));
    struct ni_seq_set empty = {0};
    assert_int_equal(ni_seq_set_merge(&empty, &a), 0);
    assert_int_equal(empty.distinct, a.distinct);
    ni_seq_set_free(&a);
    ni_seq_set_free(&b);
    ni_seq_set_free(&both);
    ni_seq_set_free(&empty);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_merge), cmocka_unit_test(test_against_array),
                                     cmocka_unit_test(test_in_order_is_one_range),
                                     cmocka_unit_test(test_ends), cmocka_unit_test(test_bounded)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
