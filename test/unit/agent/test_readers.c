/*
 * The agent's readers: what they tell arrives once, also when they are killed; each has the rights of its
 * user and no others.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "exporter/agent/reader/readers.h"
#include "exporter/base/now.h"
#include "exporter/model/live/checkpoint.h"
#include "ni_box.h"

enum {
  OTHER = 54321,
  LINES = 20000,
  LISTERS = 2 /* as root: of boxes, of logs */,
  FIRST = 70000,
  PLACES = 256
};

static char top[] = "/tmp/ni-readers.XXXXXX", dir[64], boxes[64];
static struct ni_agent_options options;

/* A log of ours in plain text: n records from number `from` on. */
static void put_log(const char *name, uid_t owner, int from, int n, const char *mode) {
  static const char head[] =
      "\"metadata\":{\"inspector_output_format_version\":\"v4.0\",\"git_rev\":\"g\",\"rec_mechanism\":\"m\","
      "\"dump_timestamp_us\":1,"
      "\"hostname\":\"n1\",\"pid\":77,\"producer\":\"nccl-inspector-c 0\"}";
  char path[256];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  FILE *f = fopen(path, mode);
  assert_non_null(f);
  if (from == 0) {
    fprintf(f,
            "{\"header\":{\"id\":\"0x0\",\"rank\":3,\"n_ranks\":8,\"nnodes\":0},%s,\"process\":{\"start_ns\":"
            "1790000000000000000,\"rank\":3,"
            "\"env\":{\"SLURM_JOB_ID\":\"9\"},\"interface\":\"v4\",\"settings\":{}}}\n",
            head);
    fprintf(f,
            "{\"header\":{\"id\":\"0xabc\",\"comm_name\":\"tp\",\"rank\":3,\"n_ranks\":8,\"nnodes\":1},%s,"
            "\"comm\":{\"name\":\"tp\",\"hash\":\"0xabc\","
            "\"rank\":3,\"n_ranks\":8,\"nnodes\":1,\"gpu_index\":5,\"gpu_uuid\":null,\"gpu_pci\":\"0000:1B:"
            "00.0\",\"init_ns\":1790000000000000000}}\n",
            head);
  }
  for (int i = from; i < from + n; i++)
    fprintf(f,
            "{\"header\":{\"id\":\"0xabc\",\"comm_name\":\"tp\",\"rank\":3,\"n_ranks\":8,\"nnodes\":1},%s,"
            "\"coll_perf\":{\"coll\":\"AllReduce\","
            "\"coll_sn\":%d,\"coll_msg_size_bytes\":1048576,\"coll_exec_time_us\":59,\"coll_timing_source\":"
            "\"kernel_gpu\",\"coll_busbw_gbs\":31.5,"
            "\"rec_sn\":%d}}\n",
            head, i, i);
  fclose(f);
  assert_int_equal(chown(path, owner, (gid_t)-1), 0);
}

static uint64_t applied(const struct ni_live *l) {
  uint64_t n = 0;
  for (size_t i = 0; i < l->n_funcs; i++)
    n += l->func[i].n;
  return n;
}

/* For so long, or until so many operations are known and all have looked. */
static void turn(struct ni_readers *r, int epoll, uint64_t ms, const struct ni_live *l, uint64_t want) {
  uint64_t until = ni_now_ns(CLOCK_MONOTONIC) + ms * 1000000, tick = 0, now;
  while ((now = ni_now_ns(CLOCK_MONOTONIC)) < until && (applied(l) < want || !ni_readers_settled(r))) {
    struct epoll_event ev[8];
    if (now - tick > 200000000)
      ni_readers_tick(r, tick = now);
    int n = epoll_wait(epoll, ev, 8, 50);
    for (int i = 0; i < n; i++)
      (void)ni_readers_ready(r, ev[i].data.ptr, ni_now_ns(CLOCK_REALTIME), now);
  }
}

/* Our children of that uid. */
static size_t children(uid_t uid, pid_t *out) {
  size_t n = 0;
  DIR *d = opendir("/proc");
  for (struct dirent *x; (x = readdir(d));) {
    char path[300], text[2048] = "", *at;
    snprintf(path, sizeof path, "/proc/%s/status", x->d_name);
    FILE *f = atoi(x->d_name) > 0 ? fopen(path, "r") : NULL;
    if (!f)
      continue;
    (void)!fread(text, 1, sizeof text - 1, f);
    fclose(f);
    if (!(at = strstr(text, "\nPPid:")) || atoi(at + 6) != getpid() || strstr(text, "\nState:\tZ"))
      continue;
    if (!(at = strstr(text, "\nUid:")) || (uid_t)atoi(at + 5) != uid)
      continue;
    assert_non_null(strstr(text, "\nNoNewPrivs:\t1"));
    if (uid && getuid() == 0)
      assert_non_null(strstr(text, "\nCapPrm:\t0000000000000000"));
    out[n++] = atoi(x->d_name);
  }
  closedir(d);
  return n;
}

static void each_line_once(void **ctx) {
  (void)ctx;
  struct ni_live l = {0};
  struct ni_readers *r;
  pid_t pid[16];
  int epoll = epoll_create1(EPOLL_CLOEXEC);
  put_log("n1-pid77-1.jsonl", getuid(), 0, LINES, "w");
  assert_int_equal(ni_readers_open(&r, &options, "n1", &l, epoll), 0);
  turn(r, epoll, 8000, &l, LINES);
  assert_int_equal(applied(&l), LINES);
  assert_int_equal(l.member[0].who.rank, 3);
  assert_int_equal(l.member[0].who.gpu, 5);
  assert_string_equal(l.member[0].who.gpu_pci, "0000:1b:00.0");
  assert_string_equal(l.member[0].who.job, "9");
  size_t n = children(getuid(), pid);
  assert_int_equal(n, getuid() == 0 ? 1 + LISTERS : 1);
  while (n--)
    kill(pid[n], SIGKILL);
  put_log("n1-pid77-1.jsonl", getuid(), LINES, LINES, "a");
  turn(r, epoll, 8000, &l, 2 * LINES);
  turn(r, epoll, 300, &l, UINT64_MAX);
  assert_int_equal(applied(&l), 2 * LINES);
  assert_int_equal(l.n_members, 1); /* the one that began in the middle knows the GPU */
  struct ni_agent_self self;
  ni_readers_figures(r, &self);
  assert_true(self.reader_restarts >= 1);
  assert_in_range(self.resident_bytes, 1 << 20, 1 << 30);
  assert_true(self.cpu_ns > 0);
  ni_readers_close(r);
  assert_int_equal(children(getuid(), pid), 0);
  /* From a checkpoint. */
  int d = open(top, O_RDONLY | O_DIRECTORY);
  char why[256];
  struct ni_live again = {0};
  assert_int_equal(ni_live_save(&l, d, "state", 1), 0);
  assert_int_equal(ni_live_load(&again, d, "state", 1, why, sizeof why), 0);
  put_log("n1-pid77-1.jsonl", getuid(), 2 * LINES, 10, "a");
  assert_int_equal(ni_readers_open(&r, &options, "n1", &again, epoll), 0);
  turn(r, epoll, 8000, &again, 2 * LINES + 10);
  turn(r, epoll, 300, &again, UINT64_MAX);
  assert_int_equal(applied(&again), 2 * LINES + 10);
  assert_int_equal(again.n_members, 1);
  ni_readers_close(r);
  ni_live_free(&l);
  ni_live_free(&again);
  close(d);
  close(epoll);
}

/* Of another user: his rights alone. What he may not read stays unread. */
static void rights_of_the_owner(void **ctx) {
  (void)ctx;
  struct ni_live l = {0};
  struct ni_readers *r;
  pid_t pid[16];
  char path[256];
  if (getuid() != 0)
    skip();
  int epoll = epoll_create1(EPOLL_CLOEXEC);
  put_log("n1-pid5-1.jsonl", OTHER, 0, 100, "w");
  put_log("n1-pid6-1.jsonl", OTHER, 0, 100, "w");
  snprintf(path, sizeof path, "%s/n1-pid6-1.jsonl", dir);
  assert_int_equal(chmod(path, 0), 0);
  snprintf(path, sizeof path, "%s/n1-pid77-1.jsonl", dir);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(ni_readers_open(&r, &options, "n1", &l, epoll), 0);
  turn(r, epoll, 8000, &l, 100);
  assert_int_equal(applied(&l), 100);
  assert_int_equal(children(OTHER, pid), 1);
  assert_int_equal(children(0, pid), LISTERS);
  assert_int_equal(l.file[0].uid, OTHER);
  assert_int_equal(l.look[0].unread, 1);
  ni_readers_close(r);
  ni_live_free(&l);
  close(epoll);
}

/* So many users with a log and a box each; what is in both. */
static void put_users(unsigned n, const char *text) {
  for (unsigned i = 0; i < 2 * n; i++) {
    char path[256];
    snprintf(path, sizeof path,
             i % 2 ? "%s/n1-pid%u-2.jsonl" : "%s/nccl-inspector-n1-pid%u-0123456789abcdef.box",
             i % 2 ? dir : boxes, i / 2);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    assert_int_equal(chown(path, FIRST + i / 2, (gid_t)-1), 0);
  }
}

/* Empty files of many users take no places of others; who finds none is counted. */
static void places_of_users(void **ctx) {
  (void)ctx;
  struct ni_live l = {0};
  struct ni_readers *r;
  struct ni_agent_self self;
  if (getuid() != 0)
    skip();
  int epoll = epoll_create1(EPOLL_CLOEXEC);
  pid_t pid[16];
  put_users(PLACES + 4, "");
  put_log("n1-pid5-1.jsonl", OTHER, 0, 100, "w");
  assert_int_equal(ni_readers_open(&r, &options, "n1", &l, epoll), 0);
  turn(r, epoll, 8000, &l, 100);
  assert_int_equal(applied(&l), 100);
  assert_int_equal(children(FIRST, pid), 0);
  ni_readers_figures(r, &self);
  assert_int_equal(self.users_left_out, 0);
  ni_readers_close(r);
  put_users(PLACES + 4, NI_BOX_MAGIC);
  assert_int_equal(ni_readers_open(&r, &options, "n1", &l, epoll), 0);
  for (int i = 0; i < 100 && !self.users_left_out; i++) {
    turn(r, epoll, 200, &l, UINT64_MAX);
    ni_readers_figures(r, &self);
  }
  assert_in_range(self.users_left_out, 4, 5); /* and the other one, perhaps */
  ni_readers_close(r);
  ni_live_free(&l);
  close(epoll);
}

static int setup(void **ctx) {
  (void)ctx;
  assert_non_null(mkdtemp(top));
  snprintf(dir, sizeof dir, "%s/logs", top);
  snprintf(boxes, sizeof boxes, "%s/boxes", top);
  assert_int_equal(mkdir(dir, 0755) | mkdir(boxes, 0755) | chmod(top, 0755), 0);
  static char *paths[] = {dir};
  options = (struct ni_agent_options){
      .box_dir = boxes, .stuck_ns = UINT64_C(300000000000), .log_dirs = {.path = paths, .n = 1}};
  return 0;
}

static int teardown(void **ctx) {
  (void)ctx;
  char line[128];
  snprintf(line, sizeof line, "rm -rf %s", top);
  return system(line);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_line_once), cmocka_unit_test(rights_of_the_owner),
                                     cmocka_unit_test(places_of_users)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
