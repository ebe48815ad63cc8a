/*
 * What the tests of page and plots share: a folder for each test, whole files, a small summary. For test
 * programs of one file.
 */
#ifndef NI_TEST_RENDER_DIR_H
#define NI_TEST_RENDER_DIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/output/plot/plot.h"
#include "exporter/output/report/report.h"
#include "synthetic_summary.h"

struct said {
  int lines;
  char last[800];
};
static inline void hear(void *context, const char *line) {
  struct said *s = context;
  s->lines++;
  snprintf(s->last, sizeof s->last, "%s", line);
}

static inline char *read_all(const char *path, size_t *n) {
  FILE *f = fopen(path, "re");
  assert_non_null(f);
  assert_int_equal(fseek(f, 0, SEEK_END), 0);
  *n = (size_t)ftell(f);
  rewind(f);
  char *text = zeroed(*n + 1, 1);
  assert_int_equal(fread(text, 1, *n, f), *n);
  fclose(f);
  return text;
}

static inline int unlink_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
  (void)st;
  (void)type;
  (void)ftw;
  return remove(path);
}
static char dir[64];
static inline int setup(void **state) {
  (void)state;
  snprintf(dir, sizeof dir, "/tmp/test \"render\" `x`$(x)\\.XXXXXX");
  return mkdtemp(dir) ? 0 : -1;
}
static inline int teardown(void **state) {
  (void)state;
  synthetic_free();
  return nftw(dir, unlink_one, 16, FTW_DEPTH | FTW_PHYS);
}
static inline const char *in_dir(const char *name) {
  static char path[2][600];
  static int at;
  at = !at;
  snprintf(path[at], sizeof path[at], "%s/%s", dir, name);
  return path[at];
}

#endif
