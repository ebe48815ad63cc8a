/*
 * What a head has not acknowledged: kept in order, in bounds, over kills at every byte, full disks and
 * restarts; numbers go on.
 */
#include "exporter/agent/spool.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[64];
static int dir = -1;

static int setup(void **ctx) {
  (void)ctx;
  strcpy(folder, "/tmp/test_spool.XXXXXX");
  dir = mkdtemp(folder) ? open(folder, O_RDONLY | O_DIRECTORY) : -1;
  return dir < 0;
}
static int teardown(void **ctx) {
  (void)ctx;
  (void)unlinkat(dir, "head.spool", 0);
  close(dir);
  return rmdir(folder); /* nothing else is left there */
}

static struct ni_spool *opened(void) {
  struct ni_spool *s;
  assert_int_equal(ni_spool_open(&s, dir), 0);
  return s;
}
static void put(struct ni_spool *s, unsigned n) {
  char text[64];
  for (; n; n--) {
    int len = snprintf(text, sizeof text, "sample %lu", (unsigned long)ni_spool_next(s));
    assert_int_equal(ni_spool_put(s, text, (size_t)len), 0);
  }
}
static void has(struct ni_spool *s, uint64_t from, uint64_t to, uint64_t were_lost) {
  uint64_t first, next, lost;
  size_t len;
  char text[64];
  ni_spool_range(s, &first, &next, &lost);
  assert_int_equal(first, from);
  assert_int_equal(next, to);
  assert_int_equal(lost, were_lost);
  assert_null(ni_spool_get(s, from - 1, &len));
  assert_null(ni_spool_get(s, to, &len));
  for (uint64_t i = from; i < to; i++) {
    const void *p = ni_spool_get(s, i, &len);
    assert_int_equal(len, snprintf(text, sizeof text, "sample %lu", (unsigned long)i));
    assert_memory_equal(p, text, len);
  }
}
static off_t size_of_file(void) {
  struct stat st;
  assert_int_equal(fstatat(dir, "head.spool", &st, 0), 0);
  return st.st_size;
}

static void goes_on(void **ctx) {
  (void)ctx;
  struct ni_spool *s = opened();
  has(s, 1, 1, 0);
  put(s, 5);
  ni_spool_drop(s, 2);
  has(s, 3, 6, 0);
  ni_spool_close(s);
  s = opened(); /* what was acknowledged may come again: the head says what it has */
  has(s, 1, 6, 0);
  ni_spool_drop(s, 5);
  put(s, 1);
  has(s, 6, 7, 0);
  ni_spool_drop(s, 40); /* the head knows more: this node's power went */
  has(s, 41, 41, 0);
  put(s, 2);
  has(s, 41, 43, 0);
  ni_spool_close(s);
  ni_spool_close(s = opened());
  s = opened();
  size_t len;
  assert_null(ni_spool_get(s, 20, &len)); /* numbers in between are no samples */
  ni_spool_drop(s, 40);
  has(s, 41, 43, 0);
  uint64_t epoch = ni_spool_epoch(s);
  ni_spool_close(s);
  s = opened();
  assert_true(epoch && ni_spool_epoch(s) == epoch);
  ni_spool_close(s);
  assert_int_equal(unlinkat(dir, "head.spool", 0), 0);
  s = opened(); /* numbers begin anew, and it shows */
  has(s, 1, 1, 0);
  assert_true(ni_spool_epoch(s) && ni_spool_epoch(s) != epoch);
  put(s, 1);
  ni_spool_close(s);
}

/* The file is begun anew again and again, and numbers go on also where nothing is kept. */
static void stays_small(void **ctx) {
  (void)ctx;
  struct ni_spool *s = opened();
  for (int i = 0; i < 40000; i++) {
    put(s, 1);
    if (i % 3 == 2)
      ni_spool_drop(s, ni_spool_next(s) - 2);
    assert_true(size_of_file() < 300 << 10);
  }
  has(s, 39999, 40001, 0);
  ni_spool_drop(s, 40000);
  ni_spool_close(s);
  s = opened();
  assert_int_equal(ni_spool_next(s), 40001);
  ni_spool_drop(s, 40000);
  has(s, 40001, 40001, 0);
  ni_spool_close(s);
}

static void overflows(void **ctx) {
  (void)ctx;
  struct ni_spool *s = opened();
  put(s, NI_SPOOL_SAMPLES + 7);
  has(s, 8, NI_SPOOL_SAMPLES + 8, 7);
  ni_spool_close(s);
  s = opened();
  has(s, 8, NI_SPOOL_SAMPLES + 8, 0);
  ni_spool_drop(s, NI_SPOOL_SAMPLES + 7);
  char *large = calloc(1, NI_SPOOL_BYTES);
  for (int i = 0; i < 40; i++) { /* of bytes: half of them are for what was acknowledged */
    assert_int_equal(ni_spool_put(s, large, 3 << 20), 0);
    assert_true(size_of_file() <= NI_SPOOL_BYTES);
  }
  uint64_t first, next, lost;
  size_t len;
  ni_spool_range(s, &first, &next, &lost);
  assert_int_equal(next - first, 10);
  assert_int_equal(lost, 30);
  for (; first < next; first++)
    assert_non_null(ni_spool_get(s, first, &len));
  assert_true(ni_spool_put(s, large, NI_SPOOL_BYTES) < 0);
  ni_spool_range(s, &first, &next, &lost);
  assert_int_equal(lost, 31);
  free(large);
  ni_spool_close(s);
}

/* Killed at each byte, and spoilt at each byte: what was whole before it is there. */
static void torn(void **ctx) {
  (void)ctx;
  char bytes[256], spoilt[256];
  struct ni_spool *s = opened();
  put(s, 3);
  ni_spool_close(s);
  int fd = openat(dir, "head.spool", O_RDWR);
  size_t n = (size_t)pread(fd, bytes, sizeof bytes, 0), record = 24 + strlen("sample 1"), marker = 24;
  assert_int_equal(n, marker + 3 * record);
  for (size_t at = 0; at <= 2 * n; at++) {
    size_t cut = at <= n ? at : n, whole = at <= n ? at : at - n - 1;
    memcpy(spoilt, bytes, n);
    if (at > n)
      spoilt[whole] ^= 0x10;
    assert_int_equal(pwrite(fd, spoilt, n, 0), n);
    assert_int_equal(ftruncate(fd, (off_t)cut), 0);
    uint64_t there = whole < marker ? 0 : (whole - marker) / record;
    s = opened();
    has(s, 1, there + 1, 0);
    put(s, 2);
    ni_spool_close(s);
    s = opened();
    has(s, 1, there + 3, 0);
    ni_spool_close(s);
  }
  close(fd);
}

/* What lies there and is no file of ours, and a file that does not grow: samples stay in memory. */
static void full(void **ctx) {
  (void)ctx;
  struct rlimit was, none;
  struct ni_spool *s = opened();
  put(s, 2);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
  none = was;
  none.rlim_cur = (rlim_t)size_of_file() + 20; /* in the middle of a record */
  signal(SIGXFSZ, SIG_IGN);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
  put(s, 100);
  has(s, 1, 103, 0);
  assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
  put(s, 2);
  has(s, 1, 105, 0);
  ni_spool_close(s);
  s = opened();
  uint64_t first, next, lost;
  size_t len;
  ni_spool_range(s, &first, &next, &lost);
  assert_int_equal(next, 105);
  assert_null(ni_spool_get(s, 50, &len)); /* this was lost with the process: a gap */
  assert_non_null(ni_spool_get(s, 104, &len));
  ni_spool_close(s);
  assert_int_equal(unlinkat(dir, "head.spool", 0), 0);
  assert_int_equal(symlinkat("/etc/passwd", dir, "head.spool"), 0);
  s = opened();
  put(s, 2);
  has(s, 1, 3, 0);
  ni_spool_close(s);
  s = opened();
  has(s, 1, 3, 0);
  ni_spool_close(s);
}

int main(void) {
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
  const struct CMUnitTest tests[] = {TEST(goes_on), TEST(stays_small), TEST(overflows), TEST(torn),
                                     TEST(full)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
