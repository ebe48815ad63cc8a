/* A child with another user's rights: its time is root's to choose, whatever that user does to it. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "exporter/base/process/as_user.h"

#define OTHER 64001

static int stops(void *arg) {
  (void)arg;
  return raise(SIGSTOP);
}

static int blocks_nothing(void *arg) {
  (void)arg;
  sigset_t now;
  sigprocmask(SIG_BLOCK, NULL, &now);
  return sigismember(&now, SIGCHLD) || geteuid() != OTHER ? 9 : 7;
}

/* Whoever has the child's uid may stop it, and no signal but SIGKILL ends it then. */
static void a_stopped_child_ends(void **state) {
  (void)state;
  char why[256];
  if (geteuid() != 0)
    skip();
  time_t begun = time(NULL);
  alarm(60);
  assert_true(ni_as_owner(OTHER, 1, -1, stops, NULL, why, sizeof why) < 0);
  alarm(0);
  assert_true(time(NULL) - begun < 20);
  if (!strstr(why, "rights cannot be taken"))
    assert_non_null(strstr(why, "not done within 1 s"));
}

static void a_child_reports(void **state) {
  (void)state;
  char why[256];
  if (geteuid() != 0)
    skip();
  int got = ni_as_owner(OTHER, 10, -1, blocks_nothing, NULL, why, sizeof why);
  if (!strstr(why, "rights cannot be taken"))
    assert_int_equal(got, 7);
  assert_false(ni_as_user_here());
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_stopped_child_ends),
                                     cmocka_unit_test(a_child_reports)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
