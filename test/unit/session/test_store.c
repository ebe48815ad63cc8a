/*
 * Sessions on disk (exporter/session/store.h): names, overlaps, stop and resume, what comes late, a disk that
 * is full, another head's lock, and what is read again without a head. Kills:
 * test/cases/session/session_kill.sh.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exporter/session/recover.h"
#include "exporter/session/store.h"
#include "exporter/session/writer.h"

#define PERIOD INT64_C(500000000)
#define T(ticks) (INT64_C(1790000000000000000) + (int64_t)((ticks) * (double)PERIOD))
#define DATA ".nccl-inspector-sessions"

static char base[64], why[256], degraded[256];
static struct ni_store *s;
static struct ni_session out;
static struct ni_client client[3];
static struct ni_sample *sample[3];

static struct ni_sample *made(unsigned i, int64_t tick) {
  struct ni_sample *m = ni_sample_new(2, 1, 1, 0);
  assert_non_null(m);
  m->seq = (uint64_t)((tick - T(0)) / PERIOD);
  m->time_ns = tick;
  m->memory = 0.25;
  m->disk = 0.5;
  for (int32_t k = 0; k < 2; k++) {
    m->gpu[k].index = k;
    snprintf(m->gpu[k].name, sizeof m->gpu[k].name, "H\"100");
    m->gpu[k].util = (double)(10 * i + (unsigned)k) / 100 + (double)m->seq / 1e4;
    m->gpu[k].pcie_rx = 3e9;
    m->gpu[k].pcie_tx = 1024e6;
  }
  m->gpu[1].nvlink_rx = 1e9;
  m->gpu[1].nvlink_tx = 2e9;
  snprintf(m->nic[0].name, sizeof m->nic[0].name, "cxi0");
  m->nic[0].rx = 1.5e9;
  snprintf(m->job[0].job, sizeof m->job[0].job, "77");
  m->job[0].operations = 100 * m->seq;
  return m;
}

static void open_store(bool gsprof) {
  struct ni_store_options o = {.gsprof = gsprof, .period_ns = PERIOD};
  assert_int_equal(ni_store_open(&s, &o, why, sizeof why), 0);
}

/* Clients of which a bit is 0 say nothing. */
static void frame(double at, unsigned who) {
  struct ni_frame_client of[3];
  static struct ni_rates rates[3];
  struct ni_frame f = {.tick_ns = T(at), .of = of};
  for (unsigned i = 0; i < 3; i++) {
    bool there = who >> i & 1;
    if (!there && !sample[i])
      continue; /* never seen */
    if (there) {
      free(sample[i]);
      client[i].last = sample[i] = made(i, T(at));
      ni_rates_take(&rates[i], sample[i]);
    }
    of[f.n++] = (struct ni_frame_client){.client = &client[i],
                                         .sample = there ? sample[i] : NULL,
                                         .state = there ? NI_CLIENT_OK : NI_CLIENT_STALE,
                                         .seq = sample[i]->seq};
  }
  ni_store_frame(s, &f);
}

static void start(const char *name, double at) {
  assert_int_equal(ni_store_start(s, name, T(at), &out, why, sizeof why), 0);
}
static void until_flushed(const char *name) {
  for (int i = 0; i < 2000 && !ni_store_flushed(s, name); i++)
    usleep(1000);
}
static void stop(const char *name, double at) {
  until_flushed(name);
  if (ni_store_stop(s, name, T(at), &out, why, sizeof why))
    fail_msg("%s: %s", name ? name : "-", why);
}

static void resume(const char *name, double at) {
  int e = -EAGAIN;
  for (int i = 0; i < 2000 && e == -EAGAIN; i++, usleep(1000)) {
    ni_store_safe(s, degraded);
    e = ni_store_resume(s, name, T(at), &out, why, sizeof why);
  }
  if (e)
    fail_msg("%s: %s", name, why);
}

static void until_finished(void) {
  for (int i = 0; i < 2000; i++) {
    struct ni_session *l;
    bool busy = false;
    ni_store_safe(s, degraded);
    int n = ni_store_list(s, &l);
    for (int k = 0; k < n; k++)
      busy |= l[k].finishing;
    free(l);
    if (!busy)
      return;
    usleep(5000);
  }
  fail_msg("it is never finished");
}

/* Nothing of it is being read, and its file is as it will be. */
static void until_built(void) {
  for (int i = 0; i < 2000; i++) {
    struct ni_session *l;
    bool busy = false;
    ni_store_safe(s, degraded);
    int n = ni_store_list(s, &l);
    for (int k = 0; k < n; k++)
      busy |= l[k].resuming;
    free(l);
    if (!busy)
      return;
    usleep(5000);
  }
  fail_msg("it is never built");
}

static char *whole(const char *path) {
  FILE *f = fopen(path, "r");
  static char text[1 << 20];
  if (!f)
    fail_msg("no %s", path);
  text[fread(text, 1, sizeof text - 1, f)] = 0;
  fclose(f);
  return text;
}
static void has(const char *path, const char *what) {
  if (!strstr(whole(path), what))
    fail_msg("%s has no %s: %.3000s", path, what, whole(path));
}
static unsigned count(const char *path, const char *what) {
  unsigned n = 0;
  for (const char *p = whole(path); (p = strstr(p, what)); p++)
    n++;
  return n;
}
static void export_to(const char *name, const char *path) {
  FILE *f = fopen(path, "w");
  assert_int_equal(ni_store_export(DATA, name, f, why, sizeof why), 0);
  fclose(f);
}

static int begin(void **state) {
  (void)state;
  snprintf(base, sizeof base, "/tmp/ni-store.XXXXXX");
  if (!mkdtemp(base) || chdir(base))
    return 1;
  memset(client, 0, sizeof client);
  for (uint32_t i = 0; i < 3; i++) {
    client[i].number = i;
    snprintf(client[i].host, sizeof client[i].host, "n%u", i);
    snprintf(client[i].uuid, sizeof client[i].uuid, "%08x-1", i);
    snprintf(client[i].id, sizeof client[i].id, "n%u_%08x", i, i);
  }
  open_store(false);
  return 0;
}
static int end(void **state) {
  char command[128];
  (void)state;
  ni_store_close(s);
  for (int i = 0; i < 3; i++) {
    free(sample[i]);
    sample[i] = NULL;
  }
  snprintf(command, sizeof command, "rm -rf %s", base);
  return chdir("/") || system(command);
}

static void names(void **state) {
  static char many[65537];
  static const char *const bad[] = {"../x", "/etc/x", ".x", " x", "a/b", "a\nb", "\xc3\xa4", many};
  (void)state;
  memset(many, 'x', sizeof many - 1);
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    assert_int_equal(ni_store_start(s, bad[i], T(0), &out, why, sizeof why), -EINVAL);
    assert_non_null(strstr(why, "a name has"));
  }
  start("a b", 0);
  assert_int_equal(ni_store_start(s, "a b", T(0), &out, why, sizeof why), -EEXIST);
  assert_int_equal(ni_store_stop(s, "c", T(1), &out, why, sizeof why), -ENOENT);
  start(NULL, 0);
  assert_non_null(strstr(out.name, "session_20"));
  assert_int_equal(ni_store_stop(s, NULL, T(1), &out, why, sizeof why), -EINVAL);
  stop(out.name, 1);
  /* What is there stays as it is, also a link that leads elsewhere. */
  assert_int_equal(symlink("/tmp/ni-store-nowhere", "l.json"), 0);
  start("l", 0);
  assert_string_equal(out.file, "l-2.json");
  assert_int_equal(symlink("/tmp/ni-store-nowhere", "l-2.json"), 0); /* meanwhile */
  stop("l", 1);
  assert_true(!strcmp(out.file, "l-3.json") && access("l-3.json", F_OK) == 0 &&
              access("/tmp/ni-store-nowhere", F_OK) != 0);
}

static void overlaps(void **state) {
  struct ni_session *l = NULL;
  (void)state;
  start("a", 0);
  frame(1, 3);
  frame(2, 3);
  start("b", 2.5);
  frame(3, 3);
  frame(4, 1);
  frame(5, 7);
  stop("a", 5.2);
  assert_true(out.frames == 5 && !out.active && !out.finishing && ni_store_running(s) == 1);
  frame(6, 7);
  stop(NULL, 6.2);
  assert_true(out.frames == 4 && ni_store_list(s, &l) == 2 && !strcmp(l[0].name, "b"));
  free(l);
  for (int i = 1; i <= 5; i++) {
    char want[32];
    snprintf(want, sizeof want, "{\"frame_id\":%d,", i);
    has("a.json", want);
    if (i < 5)
      has("b.json", want);
  }
  /* The same at shared times: only the numbers differ. */
  char text[1 << 16];
  snprintf(text, sizeof text, "%s", strstr(whole("a.json"), "{\"frame_id\":4,") + 14);
  *strchr(text, '\n') = 0;
  has("b.json", text);
  assert_true(strstr(text, "\"gpu_util\":[\"0.04\",\"1.04\",\"nan\",\"nan\"]") &&
              strstr(text, "\"client_state\":[\"ok\",\"stale\"]"));
  assert_true(strstr(text, "\"gpu_power_w\":[null,null,null,null]") &&
              strstr(text, "\"dram_bandwidth\":[\"0.00\",\"0.00\",\"0.00\",\"0.00\"]"));
  assert_true(strstr(text, "\"nic_id\":[\"n0:cxi0\",\"n1:cxi0\"],") &&
              strstr(text, "\"nic_rx\":[1.500,null]") && strstr(text, "\"operations_s\":200.000"));
  has("a.json", "\"n2:1:H\\\"100\"]"); /* who joins stands behind */
  /* of the frames in which it has a number: 1, 2, 3, 5 */
  has("a.json", "\"n1:0:H\\\"100\":{\"avg_gpu_util\":\"10.03\",\"avg_gpu_memory\":\"nan\"}");
  has("a.json", "\"n2\":{\"avg_dram_util\":\"25.00\",\"avg_disk_util\":\"50.00\"}");
  export_to("a", "x.json"); /* once more, from the folder: the same, but that all frames have all columns */
  assert_true(count("x.json", "\"frame_id\"") == 5);
  has("x.json", "\"n1:0:H\\\"100\":{\"avg_gpu_util\":\"10.03\",");
  export_to("b", "y.json");
  assert_true(count("y.json", "\"frame_id\"") == 4);
}

static void export_is_the_file(void **state) {
  (void)state;
  start("a", 0);
  ni_store_flags(s, true, true);
  for (int i = 1; i < 20; i++)
    frame(i, 7);
  stop("a", 20);
  has("a.json",
      "{\"id1\":\"n0:1:H\\\"100\",\"id2\":\"NVLink\",\"utilization\":3.000,\"rx\":1.000,\"tx\":2.000}");
  has("a.json", "\"dram_bandwidth_rx\":[\"3.00\",");
  export_to("a", "x.json");
  assert_int_equal(system("cmp a.json x.json"), 0);
  assert_int_equal(ni_store_export(DATA, "none", stdout, why, sizeof why), -ENOENT);
}

static void late_ones_find_their_frame(void **state) {
  (void)state;
  start("a", 0);
  frame(1, 3);
  frame(2, 1);
  frame(3, 3);
  struct ni_sample *m = made(1, T(2)), *k = made(2, T(2)); /* client 2 has no column yet */
  ni_store_late(s, &client[1], m, T(2));
  ni_store_late(s, &client[2], k, T(2));
  ni_store_late(s, &client[1], m, T(-2)); /* of no session */
  frame(4, 3);
  stop("a", 5);
  assert_true(out.late == 2 && out.finishing && !out.active);
  has("a.json", "\"frame_id\":4"); /* it is there at once */
  until_finished();
  has("a.json", "\"late_samples\":2");
  has("a.json", "\"gpu_util\":[\"0.02\",\"1.02\",\"10.02\",\"11.02\",\"20.02\",\"21.02\"]");
  /* afterwards columns stay */
  has("a.json", "\"gpu_util\":[\"0.03\",\"1.03\",\"10.03\",\"11.03\",\"nan\",\"nan\"]");
  has("a.json", "\"client_state\":[\"ok\",\"ok\",\"gone\"]");
  has("a.json", "\"n1:0:H\\\"100\":{\"avg_gpu_util\":\"10.03\"");
  export_to("a", "x.json");
  assert_int_equal(system("cmp a.json x.json"), 0);
  ni_store_late(s, &client[2], k, T(3)); /* after its end: its file is made once more */
  struct ni_session *l;
  assert_true(ni_store_list(s, &l) == 1 && l[0].late == 3 && l[0].finishing);
  free(l);
  until_finished();
  has("a.json", "\"late_samples\":3");
  has("a.json", "\"gpu_util\":[\"0.03\",\"1.03\",\"10.03\",\"11.03\",\"20.02\",\"21.02\"]");
  ni_store_late(s, &client[1], m, T(4)); /* and by the next head, where this one ends first */
  ni_store_close(s);
  open_store(false);
  until_finished();
  has("a.json", "\"late_samples\":4");
  export_to("a", "x.json");
  assert_int_equal(system("cmp a.json x.json"), 0);
  free(m);
  free(k);
}

/*
 * Two clients of one host, whose GPUs have one text: each one's late samples stand in its own columns, also
 * before any frame has them.
 */
static void late_twins(void **state) {
  (void)state;
  memcpy(client[1].host, client[0].host, sizeof client[0].host);
  start("a", 0);
  struct ni_sample *early = made(1, T(1)), *m = made(1, T(3));
  frame(1, 1);
  ni_store_late(s, &client[1], early, T(1));
  frame(2, 3);
  frame(3, 1);
  frame(4, 3);
  ni_store_late(s, &client[1], m, T(3));
  stop("a", 5);
  until_finished();
  has("a.json", "\"gpu_util\":[\"0.01\",\"1.01\",\"10.01\",\"11.01\"]");
  has("a.json", "\"gpu_util\":[\"0.03\",\"1.03\",\"10.03\",\"11.03\"]");
  has("a.json", "\"nic_rx\":[1.500,1.500]");
  free(early);
  free(m);
}

static void resumed(void **state) {
  struct ni_session *l;
  (void)state;
  start("a", 0);
  frame(1, 3);
  frame(2, 3);
  stop("a", 3);
  start("b", 3);
  for (int i = 0; i < 2; i++) {
    free(sample[i]);
    sample[i] = NULL;
  }
  frame(4, 4); /* another order of columns */
  resume("a", 5);
  frame(6, 7);
  stop("a", 7);
  assert_true(out.frames == 3 && out.finishing);
  until_finished();
  assert_true(access("a-2.json", F_OK) != 0);
  has("a.json", "\"gpu_util\":[\"0.06\",\"1.06\",\"10.06\",\"11.06\",\"20.06\",\"21.06\"]");
  assert_int_equal(ni_store_resume(s, "b", T(8), &out, why, sizeof why), -ENOENT);
  /* As after a kill, with a torn line. */
  ni_store_close(s);
  assert_int_equal(system("printf '{\"session_id\":\"torn' | tee -a " DATA "/*/frames.jsonl >>" DATA "/lock"),
                   0);
  assert_true(ni_store_read(DATA, &l, why, sizeof why) == 2 && l[0].active && l[0].frames == 2 &&
              !l[1].active);
  free(l);
  for (int i = 0; i < 3; i++)
    client[i].number = 2 - i; /* they come in another order */
  open_store(false);
  assert_true(ni_store_running(s) == 1 && ni_store_resumed(s) == T(6));
  assert_true(ni_store_resumed_seq(s, "00000002-1") == 6 && ni_store_resumed_seq(s, "00000009-1") == 0);
  frame(6, 7); /* it has that one */
  frame(7, 7);
  until_built();
  stop("b", 8);
  assert_true(out.frames == 3);
  /* in the order of before */
  has("b.json", "\"gpu_util\":[\"20.07\",\"21.07\",\"0.07\",\"1.07\",\"10.07\",\"11.07\"]");
}

static void gsprofs_form(void **state) {
  (void)state;
  ni_store_close(s);
  open_store(true);
  ni_store_flags(s, true, false);
  start(NULL, 0);
  assert_non_null(strstr(out.name, "gswarm_profiler_20"));
  frame(1, 3);
  stop(NULL, 2);
  has(out.file, "\"gpu_util\":[\"0.00\",\"0.01\",\"0.10\",\"0.11\"]");
  has(out.file, "\"dram_bandwidth_rx\":[\"2929687.50\",");
  has(out.file, "\"dram_bandwidth\":[\"3929687.50\",");
  assert_true(!strstr(whole(out.file), "gpu_power_w") && !strstr(whole(out.file), "jobs") &&
              access(".gswarm_profiler_data", F_OK) == 0);
}

static void full_disk(void **state) {
  struct rlimit was, small = {0};
  struct ni_session *l;
  (void)state;
  signal(SIGXFSZ, SIG_IGN);
  getrlimit(RLIMIT_FSIZE, &was);
  start("a", 0);
  frame(1, 7);
  for (int i = 0; i < 1000 && ni_store_safe(s, degraded) < T(1); i++)
    usleep(5000);
  small = (struct rlimit){5000, was.rlim_max}; /* half a frame more */
  setrlimit(RLIMIT_FSIZE, &small);
  unsigned n = 2;
  for (; n < 30; n++)
    frame(n, 7);
  for (int i = 0; i < 1000 && !*degraded; i++) {
    usleep(5000);
    ni_store_safe(s, degraded);
  }
  assert_true(strstr(degraded, "File too large") && ni_store_safe(s, degraded) < T(29));
  assert_true(ni_store_list(s, &l) == 1 && strstr(l[0].error, "File too large"));
  free(l);
  assert_true(ni_store_stop(s, "a", T(n), &out, why, sizeof why) < 0 && strstr(why, "goes on"));
  while (ni_store_list(s, &l) == 1 && !l[0].frames_lost && n < 100000) {
    free(l);
    frame(n++, 7);
  } /* 64 MB hold them; then they are lost */
  free(l);
  assert_true(n < 100000);
  frame(n++, 7);
  setrlimit(RLIMIT_FSIZE, &was);
  for (int i = 0; i < 1000 && *degraded; i++) {
    usleep(20000);
    ni_store_safe(s, degraded);
  }
  frame(n, 7);
  stop("a", n + 1);
  assert_true(out.frames_lost == 2 && out.frames == n - 2 && !*out.error);
  assert_int_equal(
      system(
          "tail -c 2000 a.json >tail; python3 -c 'import json; d = json.load(open(\"a.json\")); f = "
          "d[\"frames\"]; "
          "assert [x[\"frame_id\"] for x in f] == list(range(1, len(f) + 1)) and d[\"frames_lost\"] == 2'"),
      0);
}

/*
 * Of two sessions one's disk is full: the other is written, and what the first one refuses is let go at half
 * of the queue, and counted.
 */
static void one_that_refuses(void **state) {
  enum { EACH = 1 << 20, ALL = NI_STORE_HELD_MAX / EACH + 8 };
  struct ni_writer *w;
  struct ni_written good = {.fd = {-1, -1, -1}}, bad = good, *both[] = {&good, &bad};
  int64_t safe = 0;
  (void)state;
  good.fd[NI_FRAMES] = open("good", O_RDWR | O_CREAT, 0600);
  bad.fd[NI_FRAMES] = open("/dev/full", O_RDWR);
  snprintf(good.name, sizeof good.name, "good");
  snprintf(bad.name, sizeof bad.name, "bad");
  assert_int_equal(ni_writer_new(&w), 0);
  unsigned refused = 0, first = 0;
  for (unsigned n = 1; n <= ALL; n++) {
    struct ni_buffer text = {.text = malloc(EACH), .n = EACH, .cap = EACH};
    memset(text.text, 'x', EACH);
    uint64_t id[] = {n, n};
    refused += ni_writer_put(w, both, id, 2, n, false, &text) != 0;
    /* the other one is never behind */
    for (int i = 0; i < 2000 && ni_writer_flushed(w, &good) != 0; i++)
      usleep(1000);
    safe = ni_writer_safe(w, degraded);
    if (safe && !first)
      first = n;
  }
  assert_string_equal(degraded, "session bad is not written: No space left on device");
  /* nothing is acknowledged before */
  assert_true(refused == 0 && first >= NI_STORE_HELD_MAX / 2 / EACH && first < NI_STORE_HELD_MAX / EACH);
  for (int i = 0; i < 2000 && ni_writer_safe(w, degraded) < ALL; i++)
    usleep(1000);
  assert_true(ni_writer_safe(w, degraded) == ALL && atomic_load(&bad.gone) == ALL &&
              atomic_load(&good.gone) == 0);
  for (int k = 1; k <= 100000; k++) { /* ticks that nobody wants are one item */
    struct ni_buffer none = {0};
    assert_int_equal(ni_writer_put(w, both, NULL, 0, ALL + k, false, &none), 0);
  }
  ni_writer_free(w);
  struct stat st;
  assert_true(fstat(good.fd[NI_FRAMES], &st) == 0 && st.st_size > (off_t)ALL * EACH);
  close(good.fd[NI_FRAMES]);
  close(bad.fd[NI_FRAMES]);
  unlink("good");
}

static void one_head(void **state) {
  (void)state;
  pid_t child = fork();
  if (child == 0) {
    struct ni_store *other;
    struct ni_store_options o = {.period_ns = PERIOD};
    char want[64];
    snprintf(want, sizeof want, "the head with pid %d has it", (int)getppid());
    _exit(ni_store_open(&other, &o, why, sizeof why) == -EBUSY && !other && strstr(why, want) ? 0 : 1);
  }
  int status;
  assert_true(waitpid(child, &status, 0) == child && status == 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(names, begin, end),
      cmocka_unit_test_setup_teardown(overlaps, begin, end),
      cmocka_unit_test_setup_teardown(export_is_the_file, begin, end),
      cmocka_unit_test_setup_teardown(late_ones_find_their_frame, begin, end),
      cmocka_unit_test_setup_teardown(late_twins, begin, end),
      cmocka_unit_test_setup_teardown(resumed, begin, end),
      cmocka_unit_test_setup_teardown(gsprofs_form, begin, end),
      cmocka_unit_test_setup_teardown(full_disk, begin, end),
      cmocka_unit_test_setup_teardown(one_that_refuses, begin, end),
      cmocka_unit_test_setup_teardown(one_head, begin, end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
