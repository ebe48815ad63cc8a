/* The agent's state in a file: what is loaded is what was saved, or nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "exporter/model/live/checkpoint.h"
#include "exporter/model/live/live_tick.h"
#include "exporter/model/live/tables.h"
#include "live_made.h"

static int dir;
static char path[] = "/tmp/test_checkpoint.XXXXXX";

static int folder(void **state) {
  (void)state;
  return !mkdtemp(path) || (dir = open(path, O_RDONLY | O_DIRECTORY)) < 0;
}
static int no_folder(void **state) {
  (void)state;
  unlinkat(dir, "agent.state", 0);
  close(dir);
  return rmdir(path);
}

static void fill(struct ni_live *l) {
  struct ni_live_counts c[2] = {counts(who("77", "dp0", 0), "AllReduce", 3),
                                counts(who("78", "dp0", 1), "SendRecv", 4)};
  struct ni_live_account a = {.who = who("77", "dp0", 0), .hash = 5, .started = 10, .written = 9};
  struct ni_live_nvidia n = {.who = who("77", "dp0", 0),
                             .func = "AllReduce",
                             .algo_proto = "Ring_ll",
                             .size_log2 = 20,
                             .n = 2,
                             .us = 5};
  struct ni_live_batch b = logs(1, 0, 500, "77");
  b.counts = c;
  b.n_counts = 2;
  b.accounts = &a;
  b.n_accounts = 1;
  b.nvidia = &n;
  b.n_nvidia = 1;
  assert_int_equal(ni_live_apply(l, &b, T(0), S), 0);
}

static size_t bytes_of(char **bytes) {
  struct stat st;
  int fd = openat(dir, "agent.state", O_RDONLY);
  assert_true(fd >= 0 && fstat(fd, &st) == 0);
  *bytes = malloc((size_t)st.st_size);
  assert_int_equal(read(fd, *bytes, (size_t)st.st_size), st.st_size);
  close(fd);
  return (size_t)st.st_size;
}
static void put(const char *bytes, size_t n) {
  int fd = openat(dir, "agent.state", O_WRONLY | O_CREAT | O_TRUNC, 0600);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, bytes, n), n);
  close(fd);
}
static void refused(const char *says) {
  struct ni_live l = {0}, none = {0};
  char why[128] = "";
  assert_int_equal(ni_live_load(&l, dir, "agent.state", S, why, sizeof why), -EBADMSG);
  assert_memory_equal(&l, &none, sizeof l);
  if (says)
    assert_string_equal(why, says);
  assert_true(*why);
}

static void round_trip(void **state) {
  (void)state;
  struct ni_live l = {0}, back = {0};
  char why[128];
  assert_int_equal(ni_live_load(&back, dir, "agent.state", S, why, sizeof why), -ENOENT);
  assert_int_equal(ni_live_save(&l, dir, "agent.state", S), 0);
  assert_int_equal(ni_live_load(&back, dir, "agent.state", S, why, sizeof why), 0); /* an empty one */
  assert_int_equal(back.n_jobs, 0);
  fill(&l);
  assert_int_equal(ni_live_save(&l, dir, "agent.state", S), 0);
  assert_int_equal(ni_live_load(&back, dir, "agent.state", S, why, sizeof why), 0);
  assert_int_equal(back.n_jobs, 2);
  assert_int_equal(back.n_nvidia, 1);
  assert_memory_equal(back.class, l.class, l.n_classes * sizeof *l.class);
  assert_memory_equal(back.member, l.member, l.n_members * sizeof *l.member);
  assert_memory_equal(back.func, l.func, l.n_funcs * sizeof *l.func);
  assert_memory_equal(back.life, l.life, l.n_lives * sizeof *l.life);
  assert_memory_equal(back.file, l.file, l.n_files * sizeof *l.file);
  assert_memory_equal(&back.totals, &l.totals, sizeof l.totals);
  assert_int_equal(back.began_ns, T(0));
  /* It goes on where it was: nothing counts twice, nothing is new. */
  struct ni_live_counts c = counts(who("77", "dp0", 0), "AllReduce", 1);
  struct ni_live_account a = {.who = who("77", "dp0", 0), .hash = 5, .started = 12, .written = 9};
  struct ni_live_batch b = logs(1, 500, 600, "77");
  b.counts = &c;
  b.n_counts = 1;
  b.accounts = &a;
  b.n_accounts = 1;
  assert_int_equal(ni_live_apply(&back, &b, T(5000), 5000 * S), 0);
  assert_int_equal(ni_live_apply(&back, &b, T(5000), 5000 * S), -ESTALE);
  assert_int_equal(back.n_funcs, 2);
  assert_int_equal(back.func[0].n, 4);
  assert_int_equal(back.member[0].started, 12);
  /* A job that lived when the agent was killed has a minute to be looked at. */
  assert_false(ni_live_tick(&back, 5000 * S, 600 * S));
  assert_int_equal(back.job[1].ended_ns, 0);
  ni_live_tick(&back, 5060 * S, 600 * S);
  assert_int_equal(back.job[1].ended_ns, 5000 * S);
  /*
   * A machine that was begun anew: what ended a minute before the state was saved goes nine minutes from now.
   */
  assert_int_equal(ni_live_save(&back, dir, "agent.state", 5060 * S), 0);
  ni_live_free(&back);
  assert_int_equal(ni_live_load(&back, dir, "agent.state", 7 * S, why, sizeof why), 0);
  assert_false(ni_live_tick(&back, (7 + 539) * S, 600 * S));
  assert_true(ni_live_tick(&back, (7 + 540) * S, 600 * S));
  assert_int_equal(back.n_jobs, 0);
  ni_live_free(&l);
  ni_live_free(&back);
}

/* Without memory for the index of one of its tables it is not loaded: what is not found would count again. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern void *__libc_calloc(size_t n, size_t size);
static int refused_in; /* so many indexes from now on; 0: none */
void *calloc(size_t n, size_t size) {
  bool index = refused_in && n == 64 && size == sizeof(struct ni_index_place);
  return index && --refused_in == 0 ? NULL : __libc_calloc(n, size);
}
static void no_memory(void **state) {
  (void)state;
  struct ni_live l = {0}, back = {0}, none = {0};
  char why[128];
  fill(&l);
  assert_int_equal(ni_live_save(&l, dir, "agent.state", S), 0);
  for (int i = 1; i <= NI_LIVE_TABLES; i++) {
    refused_in = i;
    *why = 0;
    assert_int_equal(ni_live_load(&back, dir, "agent.state", S, why, sizeof why), -ENOMEM);
    assert_memory_equal(&back, &none, sizeof back);
    assert_true(*why);
  }
  ni_live_free(&l);
}
#else
static void no_memory(void **state) { (void)state; }
#endif

static void torn(void **state) {
  (void)state;
  struct ni_live l = {0};
  char *bytes;
  fill(&l);
  assert_int_equal(ni_live_save(&l, dir, "agent.state", S), 0);
  ni_live_free(&l);
  size_t n = bytes_of(&bytes);
  for (size_t cut = 0; cut < n; cut++) {
    put(bytes, cut);
    refused(NULL);
  }
  put(bytes, n / 2);
  refused("it is cut");
  char *more = malloc(n + 1);
  memcpy(more, bytes, n);
  more[n] = 0;
  put(more, n + 1);
  refused("it is cut");
  free(more);
  for (size_t i = 0; i < n; i++) {
    bytes[i] ^= (char)(1 << i % 8);
    put(bytes, n);
    refused(NULL);
    bytes[i] ^= (char)(1 << i % 8);
  }
  bytes[8]++; /* the version */
  put(bytes, n);
  refused("it is of another version");
  free(bytes);
}

/*
 * With a checksum that fits: numbers of jobs that are not there, texts without an end, truth that is neither.
 */
static void sums(char *bytes, size_t n) {
  memset(bytes + 12, 0, 4);
  uint32_t crc = (uint32_t)crc32_z(0, (const Bytef *)bytes, n);
  memcpy(bytes + 12, &crc, 4);
  put(bytes, n);
}
static void misfits(void **state) {
  (void)state;
  struct ni_live l = {0}, back = {0};
  char *good, why[64];
  fill(&l);
  assert_int_equal(ni_live_save(&l, dir, "agent.state", S), 0);
  size_t n = bytes_of(&good);
  char *bytes = malloc(n);
  size_t jobs = n - l.n_jobs * sizeof *l.job - l.n_classes * sizeof *l.class -
      l.n_members * sizeof *l.member - l.n_funcs * sizeof *l.func - l.n_nvidia * sizeof *l.nvidia -
      l.n_lives * sizeof *l.life - l.n_files * sizeof *l.file;
  size_t classes = jobs + l.n_jobs * sizeof *l.job, members = classes + l.n_classes * sizeof *l.class;
  size_t funcs = members + l.n_members * sizeof *l.member, nvidias = funcs + l.n_funcs * sizeof *l.func;
  size_t lives = nvidias + l.n_nvidia * sizeof *l.nvidia, files = lives + l.n_lives * sizeof *l.life;
  const struct {
    size_t at;
    char value;
    unsigned times;
  } wrong[] = {{classes, 2, 1},
               {classes + offsetof(struct ni_live_class, size_class), NI_LIVE_SIZES, 1},
               {members + offsetof(struct ni_live_member, job), 2, 1},
               {funcs, 2, 1},
               {funcs + 3, 'x', 1},
               {lives + offsetof(struct ni_live_life, job), 2, 1},
               {jobs, 'x', 64},
               {classes + 4, 'x', 24},
               {jobs + offsetof(struct ni_live_job, stuck), 2, 1},
               {nvidias + offsetof(struct ni_live_nvidia, p2p), 2, 1},
               {files + offsetof(struct ni_live_file, ended), 2, 1},
               {members + offsetof(struct ni_live_who, gpu_pci), 'x', 16}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    memcpy(bytes, good, n);
    memset(bytes + wrong[i].at, wrong[i].value, wrong[i].times);
    sums(bytes, n);
    refused("its numbers do not fit together");
  }
  memcpy(bytes, good, n);
  sums(bytes, n);
  assert_int_equal(ni_live_load(&back, dir, "agent.state", S, why, sizeof why), 0);
  ni_live_free(&back);
  ni_live_free(&l);
  free(good);
  free(bytes);
}

static void stays(void **state) {
  (void)state;
  struct ni_live l = {0}, back = {0};
  char why[64];
  fill(&l);
  assert_int_equal(ni_live_save(&l, dir, "agent.state", S), 0);
  assert_int_not_equal(ni_live_save(&l, dir, "no/agent.state", S), 0);
  assert_int_not_equal(ni_live_save(&l, -1, "agent.state", S), 0);
  assert_int_equal(ni_live_load(&back, dir, "agent.state", S, why, sizeof why), 0);
  ni_live_free(&back);
  assert_int_equal(symlinkat("agent.state", dir, "link"), 0); /* nobody puts another's file here */
  assert_int_equal(ni_live_load(&back, dir, "link", S, why, sizeof why), -ELOOP);
  unlinkat(dir, "link", 0);
  assert_int_equal(mkdirat(dir, "folder", 0700), 0);
  assert_int_equal(ni_live_load(&back, dir, "folder", S, why, sizeof why), -EBADMSG);
  unlinkat(dir, "folder", AT_REMOVEDIR);
  ni_live_free(&l);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(round_trip), cmocka_unit_test(torn),
                                     cmocka_unit_test(misfits), cmocka_unit_test(stays),
                                     cmocka_unit_test(no_memory)};
  return cmocka_run_group_tests(tests, folder, no_folder);
}
