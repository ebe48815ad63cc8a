/*
 * The program of --on-hang: what it gets, how often it runs, how many at once, and that nobody waits for it.
 */
#include "exporter/agent/hooks.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)

static char folder[64];
static struct ni_live_job job[8];
static struct ni_live live = {.job = job};

static void hang(unsigned i, const char *sentence) {
  job[i] = (struct ni_live_job){.uid = 1000, .hang_ns = 7, .hang.certain = true};
  snprintf(job[i].job, sizeof job[i].job, "job%u", i);
  memcpy(job[i].hang.job, job[i].job, sizeof job[i].job);
  snprintf(job[i].hang.sentence, sizeof job[i].hang.sentence, "%s", sentence);
  snprintf(job[i].hang.path, sizeof job[i].hang.path, "/logs/verdict.json");
  if (live.n_jobs <= i)
    live.n_jobs = i + 1;
}

/* A program that keeps what it got in a file of its own, then does more. */
static char *const *program(const char *more) {
  static char script[512], *argv[] = {"/bin/sh", "-c", script, NULL};
  snprintf(script, sizeof script, "cat >%s/got.$$; ls /proc/self/fd | wc -l >%s/fds.$$; %s", folder, folder,
           more);
  return argv;
}

static int count(const char *what) {
  char command[128], text[16] = "";
  snprintf(command, sizeof command, "ls %s/%s.* 2>/dev/null | wc -l", folder, what);
  FILE *f = popen(command, "r");
  assert_non_null(f);
  assert_non_null(fgets(text, sizeof text, f));
  pclose(f);
  return atoi(text);
}

static void turns(struct ni_hooks *h, char *const *argv, int n, uint64_t *now) {
  for (; n > 0; n--, *now += SECOND) {
    ni_hooks_turn(h, argv, &live, "n1", *now);
    usleep(50000);
  }
}

static int running(const struct ni_hooks *h) {
  int n = 0;
  for (int i = 0; i < NI_HOOKS_MAX; i++)
    n += h->task[i].pid != 0;
  return n;
}

static void test_once_a_verdict(void **state) {
  static struct ni_hooks h;
  uint64_t now = SECOND;
  char text[2048] = "", command[192];
  (void)state;
  live.n_jobs = 0;
  hang(0, "rank 3 has not come to \"AllReduce\" \x1b[31m");
  turns(&h, program("exit 3"), 8, &now);
  assert_int_equal(count("got"), 1);
  assert_int_equal(running(&h), 0);
  snprintf(command, sizeof command, "cat %s/got.* && cat %s/fds.*", folder, folder);
  FILE *f = popen(command, "r");
  assert_true(fread(text, 1, sizeof text - 1, f) > 0);
  pclose(f);
  assert_non_null(strstr(text, "\"schema\":\"nccl-inspector-on-hang-1\""));
  assert_non_null(strstr(text, "\"job_id\":\"job0\""));
  assert_non_null(strstr(text, "\"node\":\"n1\",\"certain\":true"));
  assert_non_null(strstr(text, "rank 3 has not come to \\\"AllReduce\\\" \\u001b[31m"));
  assert_non_null(strstr(text, "\"path\":\"/logs/verdict.json\""));
  assert_non_null(strstr(text, "\"at_ns\":7"));
  assert_non_null(strstr(text, "}\n4\n")); /* 0, 1, 2 and that of ls itself */
  hang(0, "rank 4 has not come");
  turns(&h, program("exit 0"), 6, &now);
  assert_int_equal(count("got"), 2);
}

static void test_told_before(void **state) {
  static struct ni_hooks h;
  uint64_t now = SECOND;
  (void)state;
  live.n_jobs = 0;
  hang(0, "as before");
  ni_hooks_turn(&h, NULL, &live, "n1", now);
  turns(&h, program("exit 0"), 4, &now);
  assert_int_equal(count("got"), 0);
  hang(1, "no such program");
  turns(&h, (char *const[]){"/no/such/program", NULL}, 4, &now);
  assert_int_equal(running(&h), 0);
}

/* Four at once; the others wait; what does not end is ended with all that it began. */
static void test_bounds(void **state) {
  static struct ni_hooks h;
  uint64_t now = SECOND;
  (void)state;
  live.n_jobs = 0;
  for (unsigned i = 0; i < 6; i++)
    hang(i, "stuck");
  turns(&h, program("sleep 1000 & wait"), 10, &now);
  assert_int_equal(running(&h), 4);
  assert_int_equal(count("got"), 4);
  now += 61 * SECOND;
  turns(&h, program("exit 0"), 12, &now);
  assert_int_equal(running(&h), 0);
  assert_int_equal(count("got"), 6);
}

static int setup(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/test_hooks.XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state) {
  char command[128];
  (void)state;
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command) == 0 ? 0 : -1;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_once_a_verdict, setup, teardown),
      cmocka_unit_test_setup_teardown(test_told_before, setup, teardown),
      cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
