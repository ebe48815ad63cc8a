/*
 * Files on a real file system, with write, ftruncate and open of this program replaced so that they fail as planned.
 * Blocks are framed and numbered; the checker reads all files back and says which blocks are whole.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "plugin/settings/config.h"
#include "plugin/write/out_file.h"

static uint64_t rng = 424242;
static uint64_t next(void) {
  rng ^= rng << 13;
  rng ^= rng >> 7;
  rng ^= rng << 17;
  return rng;
}

/* ---- planned failures ---- */
static int plan_write_errno, plan_write_times, plan_short, plan_trunc_errno, plan_open_errno, only_fd_above = 2;
static bool plan_random;

ssize_t write(int fd, const void *p, size_t n) {
  if (fd > only_fd_above) {
    if (plan_random && next() % 4 == 0) {
      static const int errs[] = {ENOSPC, EIO, EINTR, EDQUOT, ESTALE};
      if (next() & 1 && n > 1) n = 1 + next() % (n - 1);
      else return errno = errs[next() % 5], -1;
    } else if (plan_short && n > 1) {
      plan_short--;
      n /= 2;
    } else if (plan_write_times) {
      plan_write_times--;
      errno = plan_write_errno;
      return -1;
    }
  }
  return syscall(SYS_write, fd, p, n);
}

int ftruncate(int fd, off_t len) {
  if (plan_trunc_errno || (plan_random && next() % 3 == 0)) return errno = EIO, -1;
  return (int)syscall(SYS_ftruncate, fd, len);
}

int open(const char *path, int flags, ...) {
  va_list ap;
  va_start(ap, flags);
  int mode = flags & O_CREAT ? va_arg(ap, int) : 0;
  va_end(ap);
  if (plan_open_errno && (flags & O_EXCL)) return errno = plan_open_errno, -1;
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* ---- a directory for each test ---- */
static char root[64];
static int setup(void **state) {
  (void)state;
  strcpy(root, "/tmp/ni-test-out-XXXXXX");
  plan_write_times = plan_short = plan_trunc_errno = plan_open_errno = 0;
  plan_random = false;
  return mkdtemp(root) ? 0 : -1;
}

static int teardown(void **state) {
  (void)state;
  char cmd[256];
  snprintf(cmd, sizeof cmd, "chmod -R u+w %s; rm -rf %s", root, root);
  return system(cmd);
}

static char *in_root(const char *name) {
  static char path[4][512];
  static int turn;
  turn = (turn + 1) & 3;
  snprintf(path[turn], sizeof path[turn], "%s/%s", root, name);
  return path[turn];
}

static struct ni_out open_out(uint64_t file_max, uint64_t dir_max, uint64_t keep) {
  struct ni_out o;
  struct ni_out_options opt = {in_root("a/b"), "node/1", 42, 1790000000, ".jsonl", file_max, dir_max, keep};
  assert_int_equal(ni_out_init(&o, &opt), 0);
  return o;
}

/* A block "[id:xxxx]\n" of n bytes. */
static const char *block(unsigned id, size_t n) {
  static char b[70000];
  memset(b, 'x', n);
  memcpy(b + snprintf(b, 16, "[%06u:", id), "x", 1);
  b[n - 2] = ']';
  b[n - 1] = '\n';
  return b;
}

/* Whole blocks found in all files below `dir`; count[id] is raised for each. Cut blocks only at the end of a file. */
static int read_back(const char *dir, unsigned char *count, size_t n_ids) {
  struct dirent **e;
  int n = scandir(dir, &e, NULL, alphasort), blocks = 0;
  for (int i = 0; i < n; i++) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", dir, e[i]->d_name);
    free(e[i]);
    FILE *f = fopen(path, "r");
    char *line = NULL;
    size_t cap = 0;
    ssize_t len;
    bool cut = false;
    while (f && (len = getline(&line, &cap, f)) > 0) {
      assert_false(cut); /* nothing behind a cut block */
      unsigned id;
      if (line[0] != '[') continue; /* preamble */
      if (len < 3 || line[len - 1] != '\n' || line[len - 2] != ']') {
        cut = true;
        continue;
      }
      assert_int_equal(sscanf(line, "[%u:", &id), 1);
      assert_true(id < n_ids);
      count[id]++;
      blocks++;
    }
    free(line);
    if (f) fclose(f);
  }
  if (n >= 0) free(e);
  return blocks;
}

static int n_files(const char *dir) {
  struct dirent **e;
  int n = scandir(dir, &e, NULL, NULL), files = 0;
  for (int i = 0; i < n; i++) {
    files += e[i]->d_name[0] != '.';
    free(e[i]);
  }
  if (n >= 0) free(e);
  return n < 0 ? -1 : files;
}

#define DIR_AB in_root("a/b")
#define FIRST in_root("a/b/node_1-pid42-1790000000.jsonl")
#define SECOND_FILE in_root("a/b/node_1-pid42-1790000000.1.jsonl")

static void names_and_modes(void **state) {
  (void)state;
  umask(022);
  struct ni_out o = open_out(0, 0, 0);
  assert_int_equal(n_files(DIR_AB), -1); /* nothing is created before there is something to write */
  assert_int_equal(ni_out_write(&o, "", 0, 0, 1, false), 0);
  assert_int_equal(n_files(DIR_AB), -1);
  assert_int_equal(ni_out_set_preamble(&o, "process\n", 8), 0);
  assert_int_equal(ni_out_write(&o, "", 0, 0, 1, false), 0); /* but a head */
  assert_string_equal(ni_out_path(&o), FIRST);
  assert_int_equal(ni_out_bytes(&o), 8);
  assert_int_equal(ni_out_write(&o, block(0, 100), 100, 1, 1, false), 0);
  assert_string_equal(ni_out_path(&o), FIRST);
  assert_int_equal(ni_out_files(&o), 1);
  assert_int_equal(ni_out_bytes(&o), 108);
  struct stat st;
  assert_int_equal(stat(FIRST, &st), 0);
  assert_int_equal(st.st_mode & 07777, 0644);
  assert_int_equal(st.st_size, 108);
  assert_int_equal(stat(DIR_AB, &st), 0);
  assert_int_equal(st.st_mode & 07777, 0755);
  /* A second one with the same name (pid 1 in two containers) takes the next number and leaves the first alone. */
  struct ni_out p = open_out(0, 0, 0);
  assert_int_equal(ni_out_write(&p, block(1, 50), 50, 1, 1, false), 0);
  assert_string_equal(ni_out_path(&p), SECOND_FILE);
  assert_int_equal(stat(FIRST, &st), 0);
  assert_int_equal(st.st_size, 108);
  assert_int_equal(ni_out_close(&o, NULL), 0);
  assert_int_equal(ni_out_close(&p, NULL), 0);
  assert_int_equal(ni_out_close(&p, NULL), 0);
}

static void descriptors(void **state) {
  (void)state;
  struct ni_out o = open_out(0, 0, 0);
  int keep = dup(0);
  close(0);
  int err = ni_out_write(&o, block(0, 100), 100, 1, 1, false);
  bool free0 = fcntl(0, F_GETFD) < 0;
  dup2(keep, 0);
  close(keep);
  assert_int_equal(err, 0);
  assert_true(free0); /* stdin's number stays free */
  int found = 0;
  for (int fd = 3; fd < 64; fd++) {
    char link[64], to[512];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, to, sizeof to - 1);
    if (n <= 0) continue;
    to[n] = 0;
    if (strcmp(to, FIRST) != 0) continue;
    found++;
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_true(fcntl(fd, F_GETFL) & O_APPEND);
    /* The host closes what it does not know and opens its own file under the number: that file stays as it is. */
    int own = open(in_root("host-file"), O_RDWR | O_CREAT, 0600);
    dup2(own, fd);
    close(own);
    assert_int_equal(ni_out_write(&o, block(1, 100), 100, 1, 2, false), 0);
    struct stat st;
    assert_int_equal(stat(in_root("host-file"), &st), 0);
    assert_int_equal(st.st_size, 0);
    assert_int_equal(fcntl(fd, F_GETFD), 0); /* and still open */
    close(fd);
    break;
  }
  assert_int_equal(found, 1);
  unsigned char count[2] = {0};
  assert_int_equal(read_back(DIR_AB, count, 2), 2);
  assert_int_equal(ni_out_lost(&o).deleted_records, 0);
  ni_out_close(&o, NULL);
}

static void symlinks_are_not_followed(void **state) {
  (void)state;
  assert_int_equal(mkdir(in_root("a"), 0755) | mkdir(DIR_AB, 0755), 0);
  assert_int_equal(symlink(in_root("victim"), FIRST), 0);
  struct ni_out o = open_out(0, 0, 0);
  assert_int_equal(ni_out_write(&o, block(0, 100), 100, 1, 1, false), 0);
  assert_string_equal(ni_out_path(&o), SECOND_FILE);
  assert_int_equal(access(in_root("victim"), F_OK), -1);
  ni_out_close(&o, NULL);
}

static void rotation_by_size(void **state) {
  (void)state;
  struct ni_out o = open_out(1000, 0, 0);
  ni_out_set_preamble(&o, "process\n", 8);
  for (unsigned i = 0; i < 10; i++) assert_int_equal(ni_out_write(&o, block(i, 300), 300, 1, i, false), 0);
  assert_int_equal(ni_out_files(&o), 4);
  unsigned char count[10] = {0};
  assert_int_equal(read_back(DIR_AB, count, 10), 10);
  struct stat st;
  assert_int_equal(stat(SECOND_FILE, &st), 0);
  assert_int_equal(st.st_size, 908);
  /* A block larger than the limit gets a file of its own. */
  assert_int_equal(ni_out_write(&o, block(0, 5000), 5000, 1, 20, false), 0);
  assert_int_equal(ni_out_files(&o), 5);
  assert_int_equal(ni_out_lost(&o).expired_records, 0);
  ni_out_close(&o, NULL);
}

static void directory_limit(void **state) {
  (void)state;
  struct ni_out o = open_out(0, 8000, 0); /* files of 1000 */
  uint64_t disk;
  for (unsigned i = 0; i < 100; i++) {
    assert_int_equal(ni_out_write(&o, block(i, 400), 400, 2, i, false), 0);
    assert_true(ni_out_bytes(&o) <= 8000);
  }
  struct ni_out_lost lost = ni_out_lost(&o);
  unsigned char count[100] = {0};
  int blocks = read_back(DIR_AB, count, 100);
  disk = ni_out_bytes(&o);
  assert_int_equal(disk, 400 * (unsigned)blocks);
  assert_int_equal(lost.expired_records, 2 * (100 - (unsigned)blocks)); /* what is gone is counted to the record */
  assert_int_equal(lost.expired_files, ni_out_files(&o) - (unsigned)n_files(DIR_AB));
  assert_true(blocks >= 15);
  for (int i = 0; i < 100; i++) assert_int_equal(count[i], i >= 100 - blocks); /* the newest stay */
  ni_out_close(&o, NULL);
}

static void keep_seconds(void **state) {
  (void)state;
  struct ni_out o = open_out(0, 0, 16); /* a file lives 2 s */
  const uint64_t s = 1000000000;
  for (unsigned i = 0; i < 60; i++) assert_int_equal(ni_out_write(&o, block(i, 100), 100, 1, 5 * s + i * s, false), 0);
  unsigned char count[60] = {0};
  int blocks = read_back(DIR_AB, count, 60);
  assert_int_equal(ni_out_lost(&o).expired_records, 60 - blocks);
  assert_true(blocks >= 16 && blocks <= 20);
  /* Idle: ticks without data expire the rest apart from the current file. */
  ni_out_expire(&o, 200 * s);
  ni_out_expire(&o, 300 * s);
  assert_int_equal(n_files(DIR_AB), 1);
  assert_int_equal(ni_out_lost(&o).expired_records, 60 - read_back(DIR_AB, count, 60));
  ni_out_close(&o, NULL);
}

/* The old file is closed when the new one is there, and not before. */
static void rotation_without_a_new_file(void **state) {
  (void)state;
  const uint64_t s = 1000000000;
  struct ni_out o = open_out(1000, 0, 0);
  assert_int_equal(ni_out_write(&o, block(0, 900), 900, 1, s, false), 0);
  plan_open_errno = ENOSPC;
  for (unsigned i = 1; i < 5; i++) assert_int_equal(ni_out_write(&o, block(i, 900), 900, 1, s + i, false), 0);
  assert_int_equal(ni_out_rotation_error(&o), -ENOSPC);
  assert_string_equal(ni_out_path(&o), FIRST);
  plan_open_errno = 0;
  assert_int_equal(ni_out_write(&o, block(5, 900), 900, 1, 5 * s, false), 0); /* too early for the next try */
  assert_int_equal(ni_out_files(&o), 1);
  assert_int_equal(ni_out_write(&o, block(6, 900), 900, 1, 7 * s, false), 0);
  assert_int_equal(ni_out_files(&o), 2);
  assert_int_equal(ni_out_rotation_error(&o), 0);
  assert_int_equal(ni_out_bytes(&o), 7 * 900);
  unsigned char count[7] = {0};
  assert_int_equal(read_back(DIR_AB, count, 7), 7);
  /* The new file's head does not fit: it is taken away again. */
  ni_out_set_preamble(&o, "process\n", 8);
  plan_write_errno = ENOSPC, plan_write_times = 1;
  assert_int_equal(ni_out_write(&o, block(0, 900), 900, 1, 8 * s, false), 0);
  assert_int_equal(n_files(DIR_AB), 2);
  ni_out_close(&o, NULL);
}

/* Rotation must not remove a file that somebody put in the place of ours. */
static void replaced_files_are_not_removed(void **state) {
  (void)state;
  struct ni_out o = open_out(1000, 2000, 0);
  assert_int_equal(ni_out_write(&o, block(0, 900), 900, 3, 1, false), 0);
  assert_int_equal(ni_out_write(&o, block(1, 900), 900, 3, 2, false), 0);
  FILE *f = fopen(in_root("new"), "w");
  fputs("mine", f);
  fclose(f);
  assert_int_equal(rename(in_root("new"), FIRST), 0);
  assert_int_equal(ni_out_write(&o, block(2, 900), 900, 3, 3, false), 0);
  assert_int_equal(access(FIRST, F_OK), 0);
  assert_int_equal(ni_out_lost(&o).expired_records, 0);
  assert_int_equal(ni_out_lost(&o).deleted_records, 3);
  ni_out_close(&o, NULL);
}

static void directory_deleted(void **state) {
  (void)state;
  struct ni_out o = open_out(0, 0, 0);
  assert_int_equal(ni_out_write(&o, block(0, 100), 100, 7, 1, false), 0);
  assert_int_equal(unlink(FIRST), 0);
  assert_int_equal(rmdir(DIR_AB), 0);
  assert_int_equal(rmdir(in_root("a")), 0);
  assert_int_equal(ni_out_write(&o, block(1, 100), 100, 5, 2, false), 0);
  struct ni_out_lost lost;
  unsigned char count[2] = {0};
  assert_int_equal(read_back(DIR_AB, count, 2), 1);
  assert_int_equal(count[1], 1);
  lost = ni_out_lost(&o);
  assert_int_equal(lost.deleted_files, 1);
  assert_int_equal(lost.deleted_records, 7);
  assert_int_equal(unlink(ni_out_path(&o)), 0);
  assert_int_equal(ni_out_close(&o, &lost), 0); /* noticed at close, too */
  assert_int_equal(lost.deleted_records, 12);
}

static void short_writes_are_completed(void **state) {
  (void)state;
  struct ni_out o = open_out(0, 0, 0);
  plan_short = 5;
  assert_int_equal(ni_out_write(&o, block(0, 4000), 4000, 1, 1, false), 0);
  plan_write_errno = EINTR;
  plan_write_times = 3;
  assert_int_equal(ni_out_write(&o, block(1, 4000), 4000, 1, 2, false), 0);
  unsigned char count[2] = {0};
  assert_int_equal(read_back(DIR_AB, count, 2), 2);
  ni_out_close(&o, NULL);
}

/* Disk full in the middle of a block: cut back, the caller offers the block again, the file was never invalid. */
static void disk_full(void **state) {
  (void)state;
  struct ni_out o = open_out(0, 0, 0);
  struct stat st;
  assert_int_equal(ni_out_write(&o, block(0, 1000), 1000, 1, 1000, false), 0);
  static const int errs[] = {ENOSPC, EDQUOT, EROFS};
  for (int i = 0; i < 3; i++) {
    plan_short = 1;
    plan_write_errno = errs[i];
    plan_write_times = 1;
    assert_int_equal(ni_out_write(&o, block(1, 1000), 1000, 1, 1000, true), -errs[i]);
    assert_int_equal(stat(FIRST, &st), 0);
    assert_int_equal(st.st_size, 1000);
  }
  /* The pause: no system call before it is over, and it grows. */
  uint64_t due = ni_out_next_try_ns(&o);
  assert_int_equal(due, 1000 + 40000000);
  assert_int_equal(ni_out_write(&o, block(1, 1000), 1000, 1, due - 1, false), -EAGAIN);
  assert_int_equal(ni_out_write(&o, block(1, 1000), 1000, 1, due, false), 0);
  assert_int_equal(ni_out_next_try_ns(&o), 0);
  unsigned char count[2] = {0};
  assert_int_equal(read_back(DIR_AB, count, 2), 2);
  assert_int_equal(ni_out_files(&o), 1);
  ni_out_close(&o, NULL);
}

static void pause_is_bounded(void **state) {
  (void)state;
  struct ni_out o = open_out(0, 0, 0);
  plan_open_errno = EACCES;
  uint64_t t = 1, tries = 0;
  while (t < UINT64_C(60000000000)) {
    assert_int_equal(ni_out_write(&o, block(0, 100), 100, 1, t, false), -EACCES);
    assert_true(ni_out_next_try_ns(&o) > t);
    assert_true(ni_out_next_try_ns(&o) <= t + UINT64_C(5000000000));
    t = ni_out_next_try_ns(&o);
    tries++;
  }
  assert_true(tries > 15 && tries < 30);
  plan_open_errno = 0;
  assert_int_equal(ni_out_write(&o, block(0, 100), 100, 1, t, false), 0);
  ni_out_close(&o, NULL);
}

static void torn_file_is_left(void **state) {
  (void)state;
  struct ni_out o = open_out(0, 0, 0);
  assert_int_equal(ni_out_write(&o, block(0, 1000), 1000, 1, 1, false), 0);
  plan_short = 1;
  plan_write_errno = ENOSPC;
  plan_write_times = 1;
  plan_trunc_errno = EIO;
  assert_int_equal(ni_out_write(&o, block(1, 1000), 1000, 1, 1, true), -ENOSPC);
  plan_trunc_errno = 0;
  assert_int_equal(ni_out_write(&o, block(1, 1000), 1000, 1, 1, true), 0);
  assert_string_equal(ni_out_path(&o), SECOND_FILE);
  unsigned char count[2] = {0};
  assert_int_equal(read_back(DIR_AB, count, 2), 2);
  assert_int_equal(count[1], 1);
  ni_out_close(&o, NULL);
}

/* A limit of the file length gives an error or a new file, never the signal that would kill the job. */
static void file_length_limit(void **state) {
  (void)state;
  struct rlimit old, lim;
  getrlimit(RLIMIT_FSIZE, &old);
  lim = old;
  lim.rlim_cur = 2500;
  signal(SIGXFSZ, SIG_DFL);
  struct ni_out o = open_out(0, 0, 0);
  setrlimit(RLIMIT_FSIZE, &lim);
  int err[6];
  for (unsigned i = 0; i < 5; i++) err[i] = ni_out_write(&o, block(i, 1000), 1000, 1, 1, true);
  err[5] = ni_out_write(&o, block(5, 3000), 3000, 1, 1, true);
  for (int i = 0; i < 20; i++) ni_out_write(&o, block(5, 3000), 3000, 1, 1, true);
  setrlimit(RLIMIT_FSIZE, &old);
  for (int i = 0; i < 5; i++) assert_int_equal(err[i], 0);
  assert_int_equal(err[5], -EFBIG);
  assert_true(n_files(DIR_AB) <= 4); /* retries do not leave a file each */
  assert_int_equal(ni_out_write(&o, block(5, 3000), 3000, 1, 1, true), 0);
  unsigned char count[6] = {0};
  assert_int_equal(read_back(DIR_AB, count, 6), 6);
  ni_out_close(&o, NULL);
}

static void a_failing_preamble_leaves_no_file(void **state) {
  (void)state;
  struct ni_out o = open_out(0, 0, 0);
  ni_out_set_preamble(&o, "process\n", 8);
  plan_write_errno = ENOSPC;
  plan_write_times = 3;
  for (int i = 0; i < 3; i++) assert_int_equal(ni_out_write(&o, block(0, 100), 100, 1, 1, true), -ENOSPC);
  assert_int_equal(n_files(DIR_AB), 0);
  assert_int_equal(ni_out_write(&o, block(0, 100), 100, 1, 1, true), 0);
  assert_string_equal(ni_out_path(&o), FIRST);
  ni_out_close(&o, NULL);
}

static void impossible_directories(void **state) {
  (void)state;
  FILE *f = fopen(in_root("a"), "w");
  fclose(f);
  struct ni_out o = open_out(0, 0, 0);
  assert_int_equal(ni_out_write(&o, block(0, 100), 100, 1, 1, true), -ENOTDIR);
  assert_int_equal(unlink(in_root("a")), 0);
  assert_int_equal(ni_out_write(&o, block(0, 100), 100, 1, 1, true), 0);
  ni_out_close(&o, NULL);
  char longdir[5000];
  memset(longdir, 'd', sizeof longdir - 1);
  longdir[sizeof longdir - 1] = 0;
  struct ni_out_options opt = {longdir, "h", 1, 1, ".jsonl", 0, 0, 0};
  assert_int_equal(ni_out_init(&o, &opt), -ENAMETOOLONG);
  assert_null(o.s);
  assert_int_equal(ni_out_close(&o, NULL), 0);
}

static void relative_directories_survive_chdir(void **state) {
  (void)state;
  char cwd[512];
  assert_non_null(getcwd(cwd, sizeof cwd));
  assert_int_equal(chdir(root), 0);
  struct ni_out o;
  struct ni_out_options opt = {"a/b", "node/1", 42, 1790000000, ".jsonl", 0, 0, 0};
  assert_int_equal(ni_out_init(&o, &opt), 0);
  assert_int_equal(chdir(cwd), 0);
  assert_int_equal(ni_out_write(&o, block(0, 100), 100, 1, 1, true), 0);
  assert_string_equal(ni_out_path(&o), FIRST);
  ni_out_close(&o, NULL);
}

/* 3,000 blocks against a system that fails every fourth call: each accepted block is there once, no other. */
static void storm(void **state) {
  (void)state;
  enum { N = 3000 };
  static unsigned char count[N];
  memset(count, 0, sizeof count);
  struct ni_out o = open_out(20000, 0, 0);
  ni_out_set_preamble(&o, "process\n", 8);
  plan_random = true;
  int failures = 0;
  for (unsigned i = 0; i < N; i++) {
    size_t n = 20 + next() % 3000;
    while (ni_out_write(&o, block(i, n), n, 1, i, true) != 0) failures++;
  }
  plan_random = false;
  struct ni_out_lost lost;
  ni_out_close(&o, &lost);
  assert_true(failures > 100); /* of some 900 planned ones: the others were cured at once */
  int blocks = read_back(DIR_AB, count, N);
  assert_int_equal(blocks, N);
  for (int i = 0; i < N; i++) assert_int_equal(count[i], 1);
  assert_int_equal(lost.deleted_records + lost.expired_records + lost.doubtful_records, 0);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {
      T(names_and_modes), T(descriptors), T(symlinks_are_not_followed), T(rotation_by_size), T(rotation_without_a_new_file), T(directory_limit),
      T(keep_seconds), T(replaced_files_are_not_removed), T(directory_deleted), T(short_writes_are_completed),
      T(disk_full), T(pause_is_bounded), T(torn_file_is_left), T(file_length_limit),
      T(a_failing_preamble_leaves_no_file), T(impossible_directories), T(relative_directories_survive_chdir), T(storm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
