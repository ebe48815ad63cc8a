/*
 * exporter/base/out_file.h: a file is whole under its name or not there, and nothing that lies in the folder
 * is followed.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "exporter/base/out_file.h"

static char root[64], why[400];

static int set_up(void **state) {
  (void)state;
  strcpy(root, "/tmp/ni-test-out.XXXXXX");
  return mkdtemp(root) && chdir(root) == 0 ? 0 : -1;
}

static int tear_down(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf '%s'", root);
  return chdir("/") == 0 && system(command) == 0 ? 0 : -1;
}

static void write_as(int dir, const char *name, const char *text, bool replace, int want) {
  struct ni_out_file o;
  assert_int_equal(ni_out_begin(&o, dir, 0640), 0);
  assert_int_equal(write(o.fd, text, strlen(text)), strlen(text));
  assert_int_equal(ni_out_commit(&o, name, replace), want);
  ni_out_drop(&o); /* nothing is under way */
}

static void holds(const char *path, const char *text) {
  char got[64] = "";
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  assert_non_null(fgets(got, sizeof got, f));
  fclose(f);
  assert_string_equal(got, text);
}

static void test_names(void **state) {
  (void)state;
  struct stat st;
  struct ni_out_file o, zero = {0};
  ni_out_drop(&zero);
  int dir = ni_out_dir("a//b/./c/", true, why, sizeof why);
  assert_true(dir >= 0);
  write_as(dir, "x", "one", false, 0);
  write_as(dir, "x", "two", false, -EEXIST);
  holds("a/b/c/x", "one");
  write_as(dir, "x", "three", true, 0);
  holds("a/b/c/x", "three");
  write_as(dir, "../x", "four", true, -EINVAL);
  write_as(dir, "", "four", true, -EINVAL);
  assert_int_equal(symlink("../outside", "a/b/c/link"), 0);
  write_as(dir, "link", "five", false, -EEXIST);
  write_as(dir, "link", "six", true, 0);
  holds("a/b/c/link", "six");
  assert_int_equal(lstat("a/b/outside", &st), -1);
  assert_int_equal(ni_out_begin(&o, dir, 0600), 0);
  ni_out_drop(&o);
  assert_int_equal(unlink("a/b/c/x") | unlink("a/b/c/link"), 0);
  assert_int_equal(rmdir("a/b/c"), 0); /* so nothing hidden was left */
  close(dir);
}

static void test_folders(void **state) {
  (void)state;
  char full[128];
  assert_int_equal(ni_out_dir("gone", false, why, sizeof why), -ENOENT);
  assert_string_equal(why, "No such file or directory");
  close(creat("file", 0644));
  assert_int_equal(ni_out_dir("file", true, why, sizeof why), -ENOTDIR);
  assert_int_equal(ni_out_dir("file/below", true, why, sizeof why), -ENOTDIR);
  snprintf(full, sizeof full, "%s/made/link", root);
  int dir = ni_out_dir("made", true, why, sizeof why);
  assert_true(dir >= 0);
  assert_int_equal(symlink("..", full), 0); /* our own link is followed */
  int same = ni_out_dir(full, false, why, sizeof why);
  assert_true(same >= 0);
  write_as(same, "through", "link", true, 0);
  holds("through", "link");
  close(dir);
  close(same);
  assert_true((dir = ni_out_dir("/", false, why, sizeof why)) >= 0);
  close(dir);
}

/* Folders of others, seen by root and by a user. */
static void test_others(void **state) {
  (void)state;
  struct {
    mode_t mode;
    uid_t owner, us;
    bool fine;
  } t[] = {{0755, 64001, 0, false},    {01777, 0, 0, true},          {01777, 0, 64001, true},
           {0777, 64001, 64001, true}, {01777, 64002, 64001, false}, {0777, 64002, 64001, false},
           {02775, 64002, 64001, true}};
  if (geteuid() != 0)
    skip();
  assert_int_equal(chmod(root, 0755), 0);
  for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
    char name[16];
    snprintf(name, sizeof name, "d%zu", i);
    assert_int_equal(mkdir(name, 0700) | chown(name, t[i].owner, 64003) | chmod(name, t[i].mode), 0);
    assert_int_equal(seteuid(t[i].us), 0);
    int dir = ni_out_dir(name, false, why, sizeof why);
    assert_int_equal(seteuid(0), 0);
    if (dir >= 0)
      close(dir);
    assert_int_equal(t[i].fine ? dir >= 0 : dir == -EPERM, 1);
    if (dir < 0)
      assert_non_null(strstr(why, "Give a folder of your own"));
  }
  /* What lies below a folder of somebody else is his to move; nor is a link of his followed into ours. */
  assert_int_equal(mkdir("d0/ours", 0755) | mkdir("ours", 0755), 0);
  assert_int_equal(ni_out_dir("d0/ours", false, why, sizeof why), -EPERM);
  assert_int_equal(ni_out_dir("d0/new", true, why, sizeof why), -EPERM);
  assert_int_equal(access("d0/new", F_OK), -1);
  assert_int_equal(symlink("ours", "link") | lchown("link", 64001, 64001), 0);
  assert_int_equal(ni_out_dir("link", false, why, sizeof why), -EPERM);
  assert_non_null(strstr(why, "link belongs to uid 64001"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_names, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_folders, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_others, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
