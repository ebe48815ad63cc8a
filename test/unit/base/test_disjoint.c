/* Disjoint sets against a plain array of labels: who is in one set with whom, and its smallest number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "exporter/base/sets/disjoint.h"

enum { N = 200 };

static void relabel(uint32_t *label, uint32_t from, uint32_t to) {
  for (uint32_t i = 0; i < N; i++)
    if (label[i] == from)
      label[i] = to;
}

static void the_same_as_an_array_of_labels(void **state) {
  (void)state;
  unsigned seed = 12345;
  for (int round = 0; round < 20; round++) {
    uint32_t of[N], label[N];
    ni_disjoint_begin(of, N);
    for (uint32_t i = 0; i < N; i++)
      label[i] = i;
    for (int join = 0; join < 10 * (round + 1); join++) {
      seed = seed * 1103515245u + 12345u;
      const uint32_t a = (seed >> 8) % N, b = (seed >> 20) % N;
      ni_disjoint_join(of, a, b);
      const uint32_t x = label[a], y = label[b];
      relabel(label, x > y ? x : y, x > y ? y : x);
    }
    for (uint32_t i = 0; i < N; i++)
      assert_int_equal(ni_disjoint_root(of, i), label[i]);
  }
}

static void a_set_is_joined_with_itself(void **state) {
  (void)state;
  uint32_t of[3];
  ni_disjoint_begin(of, 3);
  ni_disjoint_join(of, 2, 2);
  ni_disjoint_join(of, 2, 1);
  ni_disjoint_join(of, 1, 2);
  assert_int_equal(ni_disjoint_root(of, 0), 0);
  assert_int_equal(ni_disjoint_root(of, 1), 1);
  assert_int_equal(ni_disjoint_root(of, 2), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_as_an_array_of_labels),
                                     cmocka_unit_test(a_set_is_joined_with_itself)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
