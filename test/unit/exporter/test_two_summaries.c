/*
 * Two summaries in one process at once say what each says alone: nothing is shared between runs. (An agent
 * makes them again and again.) Under ThreadSanitizer it finds what two runs touch in common.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "exporter/cmds/summarize.h"
#include "exporter/input/discover.h"
#include "exporter/output/tables/output.h"

enum { OPS = 4000, RANKS = 2 };
static char root[] = "/tmp/ni-two-XXXXXX";

/* NVIDIA's lines: a rank a file, sizes and times that differ between jobs. */
static void write_log(int job, int rank) {
  char path[128];
  snprintf(path, sizeof path, "%s/job%d/rank%d.log", root, job, rank);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  for (int i = 0; i < OPS; i++)
    fprintf(f,
            "{\"header\":{\"id\":\"0x%x\",\"rank\":%d,\"n_ranks\":%d,\"nnodes\":1},\"metadata\":{"
            "\"inspector_output_format_version\":\"v4.0\",\"git_rev\":\"\",\"rec_mechanism\":\"m\",\"dump_"
            "timestamp_us\":%lld,"
            "\"hostname\":\"node-%d\",\"pid\":%d},\"coll_perf\":{\"coll\":\"%s\",\"coll_sn\":%d,\"coll_msg_"
            "size_bytes\":%d,"
            "\"coll_exec_time_us\":%d,\"coll_algobw_gbs\":1.5,\"coll_busbw_gbs\":%d.25}}\n",
            0xabc + job, rank, RANKS, 1790000000000000LL + i * 1000LL, job, 100 + rank,
            job ? "AllGather" : "AllReduce", i, 4096 << (i % (3 + job)), 20 + (i * (7 + job) + rank) % 50,
            1 + i % 9);
  assert_int_equal(fclose(f), 0);
}

struct task {
  int job;
  char out[64], *json;
  int result;
};

static char *slurp(const char *path) {
  FILE *f = fopen(path, "r");
  char *text = NULL;
  size_t n = 0, cap = 0;
  if (!f)
    return NULL;
  do {
    text = realloc(text, cap += 65536);
    n += fread(text + n, 1, cap - n - 1, f);
  } while (n == cap - 1);
  text[n] = 0;
  fclose(f);
  return text;
}

static void *summarize(void *arg) {
  struct task *t = arg;
  struct ni_run r;
  struct ni_summary s = {0};
  char logs[96], path[256], *paths[] = {logs};
  snprintf(logs, sizeof logs, "%s/job%d", root, t->job);
  t->result = ni_summarize_init(&r);
  r.opt.jobs = 2;
  r.opt.no_plots = r.opt.quiet = r.opt.force = true;
  r.opt.memory_bytes = 16u << 20;
  r.opt.output_dir = t->out;
  r.opt.plot_format = 0;
  ni_inputs_add(&r.opt.inputs, logs);
  if (t->result == 0)
    t->result = ni_discover(&r.files, paths, 1);
  if (t->result == 0)
    t->result = ni_summarize(&r, &s);
  if (t->result < 0)
    ni_result_abort(&r);
  ni_summary_free(&s);
  ni_summarize_free(&r);
  snprintf(path, sizeof path, "%s/summary/summary.json", t->out);
  t->json = slurp(path);
  return NULL;
}

static void both_at_once_as_each_alone(void **state) {
  (void)state;
  struct task alone[2], both[2];
  pthread_t thread[2];
  for (int i = 0; i < 2; i++) {
    alone[i] = both[i] = (struct task){.job = i};
    snprintf(alone[i].out, sizeof alone[i].out, "%s/alone%d", root, i);
    snprintf(both[i].out, sizeof both[i].out, "%s/both%d", root, i);
    summarize(&alone[i]);
    assert_int_equal(alone[i].result, 0);
    assert_non_null(alone[i].json);
  }
  assert_string_not_equal(alone[0].json, alone[1].json);
  for (int round = 0; round < 3; round++) {
    for (int i = 0; i < 2; i++)
      assert_int_equal(pthread_create(&thread[i], NULL, summarize, &both[i]), 0);
    for (int i = 0; i < 2; i++) {
      assert_int_equal(pthread_join(thread[i], NULL), 0);
      assert_int_equal(both[i].result, 0);
      assert_string_equal(both[i].json, alone[i].json);
      free(both[i].json);
    }
  }
  for (int i = 0; i < 2; i++)
    free(alone[i].json);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(both_at_once_as_each_alone)};
  char command[96];
  if (!mkdtemp(root))
    return 1;
  for (int job = 0; job < 2; job++) {
    snprintf(command, sizeof command, "%s/job%d", root, job);
    if (mkdir(command, 0777) < 0)
      return 1;
    for (int rank = 0; rank < RANKS; rank++)
      write_log(job, rank);
  }
  int failed = cmocka_run_group_tests(tests, NULL, NULL);
  snprintf(command, sizeof command, "rm -rf %s", root);
  return system(command) == 0 ? failed : 1;
}
