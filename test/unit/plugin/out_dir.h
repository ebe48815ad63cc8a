/*
 * Log files on a real file system, with write, ftruncate and open of the program replaced so that they fail
 * as planned. Blocks are framed and numbered; read_back reads all files and says which blocks are whole. For
 * test programs of one file.
 */
#ifndef NI_TEST_OUT_DIR_H
#define NI_TEST_OUT_DIR_H

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
static inline uint64_t next(void) {
  rng ^= rng << 13;
  rng ^= rng >> 7;
  rng ^= rng << 17;
  return rng;
}

/* ---- planned failures ---- */
static int plan_write_errno, plan_write_times, plan_short, plan_trunc_errno, plan_open_errno,
    only_fd_above = 2;
static bool plan_random;

ssize_t write(int fd, const void *p, size_t n) {
  if (fd > only_fd_above) {
    if (plan_random && next() % 4 == 0) {
      static const int errs[] = {ENOSPC, EIO, EINTR, EDQUOT, ESTALE};
      if (next() & 1 && n > 1)
        n = 1 + next() % (n - 1);
      else {
        errno = errs[next() % 5];
        return -1;
      }
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
  if (plan_trunc_errno || (plan_random && next() % 3 == 0)) {
    errno = EIO;
    return -1;
  }
  return (int)syscall(SYS_ftruncate, fd, len);
}

int open(const char *path, int flags, ...) {
  va_list ap;
  va_start(ap, flags);
  int mode = flags & O_CREAT ? va_arg(ap, int) : 0;
  va_end(ap);
  if (plan_open_errno && (flags & O_EXCL)) {
    errno = plan_open_errno;
    return -1;
  }
  return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* ---- a directory for each test ---- */
static char root[64];
static inline int setup(void **state) {
  (void)state;
  strcpy(root, "/tmp/ni-test-out-XXXXXX");
  plan_write_times = plan_short = plan_trunc_errno = plan_open_errno = 0;
  plan_random = false;
  return mkdtemp(root) ? 0 : -1;
}

static inline int teardown(void **state) {
  (void)state;
  char cmd[256];
  snprintf(cmd, sizeof cmd, "chmod -R u+w %s; rm -rf %s", root, root);
  return system(cmd);
}

static inline char *in_root(const char *name) {
  static char path[4][512];
  static int turn;
  turn = (turn + 1) & 3;
  snprintf(path[turn], sizeof path[turn], "%s/%s", root, name);
  return path[turn];
}

static inline struct ni_out open_out(uint64_t file_max, uint64_t dir_max, uint64_t keep) {
  struct ni_out o;
  struct ni_out_options opt = {in_root("a/b"), "node/1", 42, 1790000000, ".jsonl", file_max, dir_max, keep};
  assert_int_equal(ni_out_init(&o, &opt), 0);
  return o;
}

/* A block "[id:xxxx]\n" of n bytes. */
static inline const char *block(unsigned id, size_t n) {
  static char b[70000];
  memset(b, 'x', n);
  memcpy(b + snprintf(b, 16, "[%06u:", id), "x", 1);
  b[n - 2] = ']';
  b[n - 1] = '\n';
  return b;
}

/*
 * Whole blocks found in all files below `dir`; count[id] is raised for each. Cut blocks only at the end of a
 * file.
 */
static inline int read_back(const char *dir, unsigned char *count, size_t n_ids) {
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
      if (line[0] != '[')
        continue; /* preamble */
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
    if (f)
      fclose(f);
  }
  if (n >= 0)
    free(e);
  return blocks;
}

static inline int n_files(const char *dir) {
  struct dirent **e;
  int n = scandir(dir, &e, NULL, NULL), files = 0;
  for (int i = 0; i < n; i++) {
    files += e[i]->d_name[0] != '.';
    free(e[i]);
  }
  if (n >= 0)
    free(e);
  return n < 0 ? -1 : files;
}

#define DIR_AB in_root("a/b")
#define FIRST in_root("a/b/node_1-pid42-1790000000.jsonl")
#define SECOND_FILE in_root("a/b/node_1-pid42-1790000000.1.jsonl")

#endif
