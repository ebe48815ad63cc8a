/* Which files count, in which order, and what is said about the others; JSON text that is always valid. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "exporter/input/discover.h"
#include "exporter/base/text/json_write.h"

static char dir[] = "/tmp/ni-discover-XXXXXX";

static void make(const char *name) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", dir, name);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs("x", f);
  fclose(f);
}

static int setup(void **state) {
  (void)state;
  if (!mkdtemp(dir) || chdir(dir) != 0)
    return -1;
  static const char *const dirs[] = {"b", "b/deep", ".hidden", "a.log.d"};
  for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
    mkdir(dirs[i], 0755);
  static const char *const files[] = {
      "z.log",      "b/p.jsonl.gz",  "b/p.jsonl.gz.10",   "b/p.jsonl.gz.2", "b/deep/c.jsonl",
      "b/x.log.gz", "notes.txt",     ".hidden/h.log",     "b/.h.log",       "log",
      "x.log.bak",  "a.log.d/y.log", "quote's \"name.log"};
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    make(files[i]);
  return symlink("..", "b/up") || symlink("../z.log", "b/again.log") || symlink("nowhere", "dead.log");
}

static int teardown(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", dir);
  return chdir("/") || system(command);
}

static void test_directory(void **state) {
  (void)state;
  struct ni_files f = {0};
  char *in[] = {(char[]){"."}, (char[]){"./z.log"}, (char[]){"nothing"}};
  assert_int_equal(ni_discover(&f, in, 3), 0);
  static const char *const want[] = {"./a.log.d/y.log", "./b/again.log",       "./b/deep/c.jsonl",
                                     "./b/p.jsonl.gz",  "./b/p.jsonl.gz.2",    "./b/p.jsonl.gz.10",
                                     "./b/x.log.gz",    "./quote's \"name.log"};
  assert_int_equal(f.n, sizeof want / sizeof *want);
  for (size_t i = 0; i < f.n; i++)
    assert_string_equal(f.file[i].path, want[i]);
  assert_int_equal(f.kinds, 15);
  assert_int_equal(f.doubles, 2);
  assert_int_equal(f.n_bad, 2);
  assert_string_equal(f.bad[0].path, "./dead.log");
  assert_int_equal(f.bad[0].error, ENOENT);
  assert_string_equal(f.bad[1].path, "nothing");
  ni_files_free(&f);
}

/* Our own rotation: the number stands before the extension, and the first file has none. */
static void test_order_of_writing(void **state) {
  (void)state;
  static const char *const want[] = {
      "h-pid7-17.jsonl.gz",      "h-pid7-17.1.jsonl.gz", "h-pid7-17.2.jsonl.gz", "h-pid7-17.10.jsonl.gz",
      "h-pid7-17.10.jsonl.gz.2", "h-pid7-17.a.jsonl.gz", "h-pid7-18.jsonl.gz",   "h-pid10-17.jsonl.gz"};
  enum { N = sizeof want / sizeof *want };
  assert_int_equal(mkdir("rotated", 0755), 0);
  char path[64], *in[] = {(char[]){"rotated"}};
  for (int i = 0; i < N; i++) {
    snprintf(path, sizeof path, "rotated/%s", want[i * 3 % N]);
    make(path);
  }
  struct ni_files f = {0};
  assert_int_equal(ni_discover(&f, in, 1), 0);
  assert_int_equal(f.n, N);
  for (size_t i = 0; i < f.n; i++)
    assert_string_equal(f.file[i].path + strlen("rotated/"), want[i]);
  ni_files_free(&f);
}

static void test_named_and_pattern(void **state) {
  (void)state;
  struct ni_files f = {0};
  char *in[] = {(char[]){"notes.txt"}, (char[]){"b/p.*.2"}, (char[]){"?.log"}, (char[]){"[q]*"}};
  assert_int_equal(ni_discover(&f, in, 4), 0);
  assert_int_equal(f.n, 4);
  assert_string_equal(f.file[0].path, "b/p.jsonl.gz.2");
  assert_string_equal(f.file[1].path, "notes.txt");
  assert_int_equal(f.n_bad, 0);
  ni_files_free(&f);
}

/*
 * Who works in the folder of the logs has an earlier result there: none of it is a log, unless it is named.
 */
static void test_earlier_result(void **state) {
  (void)state;
  assert_int_equal(mkdir("with", 0755), 0);
  assert_int_equal(mkdir("with/with-analysis", 0755), 0);
  make("with/a.log");
  make("with/with-analysis/output.log");
  make("with/with-analysis/" NI_RESULT_MARKER);
  struct ni_files f = {0};
  char *found[] = {(char[]){"with"}}, *named[] = {(char[]){"with/with-analysis"}};
  assert_int_equal(ni_discover(&f, found, 1), 0);
  assert_int_equal(f.n, 1);
  assert_string_equal(f.file[0].path, "with/a.log");
  ni_files_free(&f);
  assert_int_equal(ni_discover(&f, named, 1), 0);
  assert_int_equal(f.n, 1);
  ni_files_free(&f);
}

static void test_json(void **state) {
  (void)state;
  char *text = NULL;
  size_t n;
  FILE *f = open_memstream(&text, &n);
  struct ni_json j;
  ni_json_begin(&j, f);
  ni_json_object(&j, NULL);
  ni_json_text(&j, "a\"\\\n", "\x01\xff\xc3\xa9\xed\xa0\x80");
  ni_json_text(&j, "n", NULL);
  ni_json_array(&j, "x");
  ni_json_u64(&j, NULL, UINT64_MAX);
  ni_json_i64(&j, NULL, -1);
  ni_json_f64(&j, NULL, 0.1);
  ni_json_f64(&j, NULL, 0.0 / 0.0);
  ni_json_bool(&j, NULL, true);
  ni_json_object(&j, NULL);
  ni_json_end_object(&j);
  ni_json_end_array(&j);
  ni_json_end_object(&j);
  ni_json_finish(&j);
  fclose(f);
  assert_string_equal(text,
                      "{\"a\\\"\\\\\\u000a\":\"\\u0001\\ufffd\xc3\xa9\\ufffd\\ufffd\\ufffd\",\"n\":null,"
                      "\"x\":[18446744073709551615,-1,0.1,null,true,{}]}\n");
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_directory),
                                     cmocka_unit_test(test_named_and_pattern),
                                     cmocka_unit_test(test_order_of_writing),
                                     cmocka_unit_test(test_earlier_result), cmocka_unit_test(test_json)};
  return cmocka_run_group_tests(tests, setup, teardown);
}
