/*
 * The agent's ring of samples on disk (exporter/agent/ring.h): files rotate by size and age, the oldest go,
 * those of others stay, and what a disk does not take is counted, once, and written again when there is room.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/agent/ring.h"
#include "exporter/base/now.h"
#include "exporter/model/counters/series.h"

#define SECOND UINT64_C(1000000000)
/* their names and numbers are above the 2 MiB of text that are written at once, as two samples are */
enum { COUNTERS = 60000 };

static char base[] = "/tmp/ni-ring.XXXXXX", dir[64], host[256];
static struct ni_set set;
static struct ni_reading at[COUNTERS];
static uint64_t now = 100 * SECOND, put_samples, state = 88172645463325252u;

static uint64_t rnd(void) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

static void put(struct ni_ring *r) {
  const struct ni_series_sweep when = {
      .real_ns = (int64_t)(now + 1790000000 * SECOND), .mono_ns = (int64_t)now, .ns = 1000};
  for (size_t i = 0; i < COUNTERS; i++)
    at[i] = (struct ni_reading){.value = rnd() >> 2, .mono_ns = (int64_t)now, .real_ns = when.real_ns};
  ni_ring_put(r, &set, at, &when);
  put_samples++;
  now += SECOND;
  ni_ring_turn(r, now);
}

/* Until a member more is on disk, or was refused. */
static void put_member(struct ni_ring *r) {
  uint64_t bytes = ni_ring_totals(r)->bytes, errors = ni_ring_totals(r)->errors;
  for (int i = 0; i < 4 && bytes == ni_ring_totals(r)->bytes && errors == ni_ring_totals(r)->errors; i++)
    put(r);
  assert_true(bytes != ni_ring_totals(r)->bytes || errors != ni_ring_totals(r)->errors);
}

struct files {
  unsigned n, samples, gaps;
  uint64_t bytes;
  char name[64][300];
};
static int count(void *arg, const struct ni_series_sample *s) {
  (void)s;
  ((struct files *)arg)->samples++;
  return 0;
}
/* Samples that were lost are told; nothing else is wrong. */
static int fault(void *arg, uint64_t line_no, const char *what) {
  if (strncmp(what, "samples before it are not there", 31) != 0)
    fail_msg("line %llu: %s", (unsigned long long)line_no, what);
  ((struct files *)arg)->gaps++;
  return 0;
}
/* The series of that folder, and that each can be read as a whole. */
static struct files look(void) {
  struct files f = {0};
  struct dirent **names;
  int n = scandir(dir, &names, NULL, versionsort);
  for (int i = 0; i < n; i++) {
    char path[400];
    struct stat st;
    snprintf(path, sizeof path, "%s/%s", dir, names[i]->d_name);
    if (strncmp(names[i]->d_name, host, strlen(host)) == 0 && lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
        strstr(path, ".jsonl.gz")) {
      struct ni_series_end end;
      assert_int_equal(
          ni_series_read(path, &(struct ni_series_to){.arg = &f, .sample = count, .fault = fault}, &end), 0);
      assert_int_equal(end.scan.error, 0);
      snprintf(f.name[f.n++], 300, "%s", names[i]->d_name);
      f.bytes += (uint64_t)st.st_size;
    }
    free(names[i]);
  }
  free(names);
  return f;
}

static void touch(const char *name, size_t bytes) {
  char path[400];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  for (size_t i = 0; i < bytes; i++)
    putc('x', f);
  fclose(f);
}
static bool there(const char *name) {
  char path[400];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  struct stat st;
  return lstat(path, &st) == 0;
}

static int begin(void **unused) {
  (void)unused;
  static unsigned n;
  char name[32];
  if (!n)
    assert_non_null(mkdtemp(base));
  snprintf(dir, sizeof dir, "%s/%u", base, n++);
  gethostname(host, sizeof host - 1);
  ni_set_free(&set);
  ni_set_entity(&set, NI_METRIC_CXI, "cxi0");
  for (unsigned i = 0; i < COUNTERS; i++) {
    snprintf(name, sizeof name, "c%u", i);
    assert_true(ni_set_counter(&set, name));
  }
  return 0;
}

static int end(void **unused) {
  (void)unused;
  char command[128];
  ni_set_free(&set);
  snprintf(command, sizeof command, "chmod -R u+w %s; rm -rf %s", base, base);
  return system(command);
}

static void rotates_and_stays_below_its_size(void **unused) {
  (void)unused;
  const uint64_t most = 4 << 20;
  struct ni_ring *r;
  unsigned members = 12;
  assert_int_equal(ni_ring_open(&r, dir, most, SECOND, now), 0);
  assert_false(ni_ring_totals(r)->degraded);
  put_member(r);
  struct files f = look();
  assert_int_equal(f.n, 2); /* a member is above the 16th: the next file was begun, in the same second */
  assert_int_equal(f.samples, 1);
  for (unsigned i = 1; i < members; i++) {
    put_member(r);
    f = look();
    assert_true(f.bytes <= most);
    assert_int_equal(f.bytes, ni_ring_totals(r)->bytes);
  }
  assert_true(f.n > 3 && f.n < members); /* some went */
  assert_int_equal(f.samples, f.n - 1);  /* those that are there are whole */
  assert_true(f.bytes > most / 2);
  assert_int_equal(f.gaps, 0);
  assert_int_equal(ni_ring_totals(r)->lost, 0);
  assert_int_equal(ni_ring_totals(r)->errors, 0);
  ni_ring_close(r);
}

static void a_new_file_after_an_hour(void **unused) {
  (void)unused;
  struct ni_ring *r;
  assert_int_equal(ni_ring_open(&r, dir, UINT64_C(1) << 40, SECOND, now), 0);
  put_member(r);
  put_member(r);
  put(r);
  assert_int_equal(look().n, 1);
  now += 3600 * SECOND;
  put_member(r);
  assert_int_equal(look().n, 2);
  put(r); /* not due yet: the end writes it */
  put_samples = look().samples;
  ni_ring_close(r);
  assert_true(look().samples >= put_samples);
}

static void only_its_own_go(void **unused) {
  (void)unused;
  char mine[300], mine_too[300], empty[300], likely[300], link[300], path[400], to[400];
  const char *others[] = {"another-host-counters-1.jsonl.gz", "notes.txt", likely, link};
  snprintf(mine, sizeof mine, "%s-counters-1000.jsonl.gz", host);
  snprintf(mine_too, sizeof mine_too, "%s-counters-1001.1.jsonl.gz", host);
  snprintf(empty, sizeof empty, "%s-counters-1002.jsonl.gz", host);
  snprintf(likely, sizeof likely, "%s-counters-1x.jsonl.gz", host);
  snprintf(link, sizeof link, "%s-counters-5.jsonl.gz", host);
  mkdir(dir, 0755);
  touch(mine, 5000);
  touch(mine_too, 5000);
  touch(empty, 0);
  for (size_t i = 0; i < 3; i++)
    touch(others[i], 5000);
  snprintf(path, sizeof path, "%s/%s", dir, link);
  snprintf(to, sizeof to, "%s/notes.txt", dir);
  assert_int_equal(symlink(to, path), 0);
  struct ni_ring *r;
  /* what an earlier agent left is above the size */
  assert_int_equal(ni_ring_open(&r, dir, 8000, SECOND, now), 0);
  assert_false(there(mine));
  assert_true(there(mine_too));
  assert_false(there(empty));
  assert_int_equal(ni_ring_totals(r)->bytes, 5000);
  put_member(r);
  assert_false(there(mine_too));
  for (size_t i = 0; i < 4; i++)
    assert_true(there(others[i]));
  ni_ring_close(r);
}

/* RLIMIT_FSIZE is a disk that is full, for a process of any rights. */
static void a_full_disk(void **unused) {
  (void)unused;
  struct ni_ring *r;
  struct rlimit before, full;
  getrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(ni_ring_open(&r, dir, UINT64_C(1) << 30, SECOND, now), 0);
  put_samples = 0;
  put_member(r);
  full = (struct rlimit){1000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &full);
  put_member(r);
  assert_true(ni_ring_totals(r)->degraded);
  assert_int_equal(ni_ring_totals(r)->errors, 1);
  assert_non_null(strstr(ni_ring_totals(r)->why, strerror(EFBIG)));
  assert_int_equal(ni_ring_totals(r)->lost, 0); /* memory holds them */
  put(r);
  assert_int_equal(ni_ring_totals(r)->errors, 1); /* not asked again within 10 s */
  now += 10 * SECOND;
  for (int i = 0; i < 3; i++)
    put(r);
  assert_true(ni_ring_totals(r)->errors >= 2);
  uint64_t lost = ni_ring_totals(r)->lost;
  assert_true(lost >= 2); /* above 4 MiB */
  setrlimit(RLIMIT_FSIZE, &before);
  now += 10 * SECOND;
  put_member(r);
  put_member(r);
  assert_false(ni_ring_totals(r)->degraded);
  assert_int_equal(ni_ring_totals(r)->lost, lost);
  ni_ring_close(r);
  struct files f = look();
  assert_int_equal(f.samples, put_samples - lost); /* each is there or counted */
  assert_int_equal(f.gaps, 1);
}

static void a_folder_that_is_gone_or_no_folder(void **unused) {
  (void)unused;
  struct ni_ring *r;
  char command[128];
  assert_int_equal(ni_ring_open(&r, dir, UINT64_C(1) << 30, SECOND, now), 0);
  put_member(r);
  snprintf(command, sizeof command, "rm -rf %s", dir);
  assert_int_equal(system(command), 0);
  snprintf(command, sizeof command, "touch %s", dir); /* a file of the folder's name */
  assert_int_equal(system(command), 0);
  put_samples = 0;
  put_member(r);
  assert_true(ni_ring_totals(r)->degraded);
  assert_non_null(strstr(ni_ring_totals(r)->why, dir));
  assert_int_equal(ni_ring_totals(r)->lost, put_samples);
  put(r); /* there is no file for it */
  assert_int_equal(ni_ring_totals(r)->lost, put_samples);
  assert_int_equal(unlink(dir), 0);
  now += 10 * SECOND;
  put(r); /* after it the file is there again */
  uint64_t lost = ni_ring_totals(r)->lost;
  assert_int_equal(lost, put_samples);
  put_member(r);
  assert_false(ni_ring_totals(r)->degraded);
  assert_int_equal(ni_ring_totals(r)->lost, lost);
  ni_ring_close(r);
  assert_int_equal(look().samples, put_samples - lost);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test_setup(rotates_and_stays_below_its_size, begin),
                                     cmocka_unit_test_setup(a_new_file_after_an_hour, begin),
                                     cmocka_unit_test_setup(only_its_own_go, begin),
                                     cmocka_unit_test_setup(a_full_disk, begin),
                                     cmocka_unit_test_setup(a_folder_that_is_gone_or_no_folder, begin)};
  return cmocka_run_group_tests(tests, NULL, end);
}
