/* What reaches NCCL's logger, how often, and that nothing does without one. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plugin/os/log.h"

static _Atomic int n_calls;
static _Atomic unsigned long long said_left_out;
static char last[4096];
static int last_level;
static unsigned long last_flags;

__attribute__((format(printf, 5, 6))) static void capture(enum ni_log_level level, unsigned long flags,
                                                          const char *where, int line, const char *fmt, ...) {
  (void)where;
  (void)line;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(last, sizeof last, fmt, ap);
  va_end(ap);
  const char *left_out = strchr(last, '(');
  if (left_out)
    said_left_out += strtoull(left_out + 1, NULL, 10);
  last_level = (int)level;
  last_flags = flags;
  n_calls++;
  errno = EBADF;
}

static void levels_and_text(void **state) {
  (void)state;
  struct ni_log l = {.once = 0};
  n_calls = 0;
  ni_log_warn(&l, "nobody hears %d", 1); /* NULL logger */
  assert_int_equal(n_calls, 0);
  ni_log_set(&l, capture);
  errno = ENOSPC;
  ni_log_warn(&l, "file %s: %d%%", "a\nb\x1b[31m%n%s", 7);
  assert_int_equal(errno, ENOSPC);
  assert_int_equal(n_calls, 1);
  assert_int_equal(last_level, 2);
  assert_int_equal(last_flags, 0x4001);
  assert_string_equal(last, "NCCL Inspector: file a?b?[31m%n%s: 7%");
  ni_log_info(&l, "x");
  assert_int_equal(last_level, 3);
  char big[5000];
  memset(big, 'y', sizeof big - 1);
  big[sizeof big - 1] = 0;
  ni_log_info(&l, "%s", big);
  assert_int_equal(strlen(last), NI_LOG_TEXT_BYTES - 1);
  ni_log_set(&l, NULL);
  ni_log_info(&l, "gone");
  assert_int_equal(n_calls, 3);
}

static void once_per_cause(void **state) {
  (void)state;
  struct ni_log l = {.once = 0};
  n_calls = 0;
  ni_log_warn_once(&l, NI_LOG_CAUSE_POOL, "too early"); /* no logger yet: not used up */
  ni_log_set(&l, capture);
  for (int i = 0; i < 5; i++)
    ni_log_warn_once(&l, NI_LOG_CAUSE_POOL, "pool %d", i);
  assert_int_equal(n_calls, 1);
  assert_string_equal(last, "NCCL Inspector: pool 0");
  ni_log_info_once(&l, NI_LOG_CAUSE_FILES, "other");
  assert_int_equal(n_calls, 2);
}

static void limited_per_cause(void **state) {
  (void)state;
  struct ni_log l = {.once = 0};
  ni_log_set(&l, capture);
  n_calls = 0;
  uint64_t t = 5000;
  for (int i = 0; i < 100; i++)
    ni_log_warn_limited(&l, NI_LOG_CAUSE_WRITE, t + (uint64_t)i, "write failed");
  assert_int_equal(n_calls, 1);
  ni_log_warn_limited(&l, NI_LOG_CAUSE_ROTATE, t, "another cause");
  assert_int_equal(n_calls, 2);
  ni_log_warn_limited(&l, NI_LOG_CAUSE_WRITE, t + NI_LOG_PAUSE_NS - 1, "write failed");
  assert_int_equal(n_calls, 2);
  ni_log_warn_limited(&l, NI_LOG_CAUSE_WRITE, t + NI_LOG_PAUSE_NS, "write failed");
  assert_int_equal(n_calls, 3);
  assert_string_equal(last, "NCCL Inspector: write failed (100 more like this left out)");
  ni_log_warn_limited(&l, NI_LOG_CAUSE_WRITE, t + 2 * NI_LOG_PAUSE_NS, "again");
  assert_string_equal(last, "NCCL Inspector: again");
}

static struct ni_log shared;
static void *hammer(void *arg) {
  (void)arg;
  for (int i = 0; i < 10000; i++) {
    ni_log_warn_once(&shared, NI_LOG_CAUSE_EARLY, "once");
    ni_log_warn_limited(&shared, NI_LOG_CAUSE_WRITE, 7, "limited");
  }
  return NULL;
}

static void threads_speak_once(void **state) {
  (void)state;
  pthread_t t[4];
  ni_log_set(&shared, capture);
  n_calls = 0;
  said_left_out = 0;
  for (int i = 0; i < 4; i++)
    assert_int_equal(pthread_create(&t[i], NULL, hammer, NULL), 0);
  for (int i = 0; i < 4; i++)
    pthread_join(t[i], NULL);
  assert_int_equal(n_calls, 2);
  /* Those left out before the winner spoke are in its line already. */
  assert_int_equal(shared.suppressed[NI_LOG_CAUSE_WRITE] + said_left_out, 4 * 10000 - 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(levels_and_text), cmocka_unit_test(once_per_cause),
                                     cmocka_unit_test(limited_per_cause),
                                     cmocka_unit_test(threads_speak_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
