/* What the environment says of the job: its id, rank and size; the tokens of the log folder's name. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plugin/settings/config.h"
#include "plugin/settings/job.h"

static int clean_environment(void **state) {
  (void)state;
  return clearenv();
}

static void job_ids(void **state) {
  (void)state;
  struct ni_job j;
  ni_job_read(&j);
  assert_string_equal(j.job_id, "unknown-jobid");
  assert_int_equal(j.rank, -1);
  assert_int_equal(j.n_env, 0);
  setenv("JOB_NAME", "jenkins", 1);
  ni_job_read(&j);
  assert_string_equal(j.job_id, "unknown-jobid"); /* not in a pod */
  setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1", 1);
  ni_job_read(&j);
  assert_string_equal(j.job_id, "jenkins");
  unsetenv("JOB_NAME");
  setenv("POD_NAME", "train-0", 1);
  ni_job_read(&j);
  assert_string_equal(j.job_id, "train-0");
  static const char *const order[] = {"FLUX_JOB_ID", "LSB_JOBID", "PBS_JOBID", "SLURM_JOBID", "SLURM_JOB_ID"};
  for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
    setenv(order[i], order[i], 1);
    ni_job_read(&j);
    assert_string_equal(j.job_id, order[i]);
  }
  static const char *const hostile[][2] = {{"../../etc", "_._.._etc"},
                                           {"1234[5].srv", "1234_5_.srv"},
                                           {"a/b c\n", "a_b_c_"},
                                           {".", "_"},
                                           {"..", "_."},
                                           {"\xff\xfe", "__"}};
  for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
    setenv("SLURM_JOB_ID", hostile[i][0], 1);
    ni_job_read(&j);
    assert_null(strchr(j.job_id, '/'));
    assert_true(j.job_id[0] != '.');
    assert_string_equal(j.job_id, hostile[i][1]);
  }
}

static void ranks(void **state) {
  (void)state;
  struct ni_job j;
  setenv("SLURM_PROCID", "0", 1);
  setenv("SLURM_NTASKS", "2", 1);
  ni_job_read(&j);
  assert_int_equal(j.rank, 0);
  assert_int_equal(j.world_size, 2);
  assert_int_equal(j.local_rank, -1);
  setenv("OMPI_COMM_WORLD_RANK", "5", 1); /* mpirun inside a batch script: Slurm's 0 is the script's */
  setenv("OMPI_COMM_WORLD_SIZE", "16", 1);
  ni_job_read(&j);
  assert_int_equal(j.rank, 5);
  assert_int_equal(j.world_size, 16);
  setenv("RANK", "7", 1);
  setenv("LOCAL_RANK", "3", 1);
  setenv("WORLD_SIZE", "64", 1);
  ni_job_read(&j);
  assert_int_equal(j.rank, 7);
  assert_int_equal(j.local_rank, 3);
  assert_int_equal(j.world_size, 64);
  assert_int_equal(j.n_env, 5);
  assert_string_equal(j.env[0].name, "RANK");
  assert_string_equal(j.env[0].value, "7");
  static const char *const bad[] = {"-1", "x", "7x", "99999999999", " 7", ""};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    setenv("RANK", bad[i], 1);
    ni_job_read(&j);
    assert_int_equal(j.rank, 5);
    assert_int_equal(j.world_size, 16);
  }
}

static void tokens(void **state) {
  (void)state;
  struct ni_config c = {.dump_dir = "nccl-inspector-%j"};
  struct ni_job j;
  char out[NI_DIR_MAX_BYTES];
  setenv("SLURM_JOB_ID", "77", 1);
  ni_job_read(&j);
  assert_int_equal(ni_job_dump_dir(&j, c.dump_dir, "node-a", 42, out, sizeof out), 17);
  assert_string_equal(out, "nccl-inspector-77");
  strcpy(c.dump_dir, "/d/%h/%p/%j/%r/%%/%x%");
  assert_true(ni_job_dump_dir(&j, c.dump_dir, "no/de", 42, out, sizeof out) > 0);
  assert_string_equal(out, "/d/no_de/42/77/unknown-rank/%/%x%");
  j.rank = 12;
  strcpy(c.dump_dir, "%r%r");
  assert_int_equal(ni_job_dump_dir(&j, c.dump_dir, NULL, 42, out, sizeof out), 4);
  assert_string_equal(out, "1212");
  strcpy(c.dump_dir, "%h");
  ni_job_dump_dir(&j, c.dump_dir, NULL, 42, out, sizeof out);
  assert_string_equal(out, "unknown-host");
  memset(c.dump_dir, 0, sizeof c.dump_dir);
  for (int i = 0; i < 500; i++)
    strcat(c.dump_dir, "%h");
  assert_int_equal(ni_job_dump_dir(&j, c.dump_dir, "long-host-name", 42, out, sizeof out), -ENAMETOOLONG);
  assert_string_equal(out, "");
  for (size_t cap = 0; cap < 8; cap++) {
    char small[8];
    memset(small, 0x5a, sizeof small);
    strcpy(c.dump_dir, "ab%p");
    int n = ni_job_dump_dir(&j, c.dump_dir, "h", 4242, small, cap);
    assert_int_equal(n, cap > 6 ? 6 : -ENAMETOOLONG);
    assert_int_equal(small[7], 0x5a);
  }
}

int main(void) {
#define T(f) cmocka_unit_test_setup(f, clean_environment)
  const struct CMUnitTest tests[] = {T(job_ids), T(ranks), T(tokens)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
