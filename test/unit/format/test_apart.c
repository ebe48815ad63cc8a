/* format/apart.h: on which channels NCCL and its kernels count apart, and when stamps contradict the host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "format/apart.h"

static void channels_of_self(void **unused) {
  (void)unused;
  assert_int_equal(ni_apart_of_self(22809, 1), 1);
  assert_int_equal(ni_apart_of_self(22809, 4), 0xf);
  assert_true(ni_apart_of_self(23007, 64) == NI_APART_ALL);
  assert_true(ni_apart_of_self(23007, 0) == NI_APART_ALL); /* not told */
  assert_true(ni_apart_of_self(23007, 65) == NI_APART_ALL);
  assert_int_equal(ni_apart_of_self(22707, 1), 1);
  /* Before 2.28 part 1 lies in the middle of as many channels as there are, which may be 2 to 64. */
  assert_true(ni_apart_of_self(22707, 2) ==
              (1 | UINT64_C(1) << 1 | 1 << 2 | 1 << 4 | 1 << 8 | 1 << 16 | UINT64_C(1) << 32));
  /* Of 4 channels of 8: 0, 4, 2, 6. */
  assert_true((ni_apart_of_self(22707, 4) & 0x55) == 0x55);
  assert_true(ni_apart_of_self(0, 2) == ni_apart_of_self(22707, 2)); /* an unknown release */
}

static void what_counts(void **unused) {
  (void)unused;
  assert_false(ni_apart_only(0, UINT64_MAX));
  assert_true(ni_apart_only(1u << NI_APART_REASON, UINT64_MAX));
  assert_false(ni_apart_only(1u << NI_APART_REASON, 5)); /* a channel that is not apart has stamped */
}

static void contradictions(void **unused) {
  (void)unused;
  uint64_t launch = UINT64_C(5000000000);
  assert_false(ni_apart_evidence(launch - 100, 0, 0, 0)); /* no plan before it is known */
  assert_false(ni_apart_evidence(launch, 0, 0, launch));
  assert_false(ni_apart_evidence(launch - NI_APART_SLACK_NS, 0, 0, launch));
  assert_true(ni_apart_evidence(launch - NI_APART_SLACK_NS - 1, 0, 0, launch));
  /* the clocks may have run apart */
  assert_false(ni_apart_evidence(launch - NI_APART_SLACK_NS - 1, 0, 1, launch));
  assert_false(ni_apart_evidence(launch - 7000000, 7000000, 0, launch));
  /* a GPU clock that is ahead of the host's */
  assert_true(ni_apart_evidence(launch + 7000000, -9000000, 0, launch));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(channels_of_self), cmocka_unit_test(what_counts),
                                     cmocka_unit_test(contradictions)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
