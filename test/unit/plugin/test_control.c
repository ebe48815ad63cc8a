/* Control files: what a text asks for, and when a file is looked at. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "format/events.h"
#include "plugin/settings/control_file.h"
#include "plugin/settings/control_parse.h"

static struct ni_ctl_command got[64];
static int n_got;
static void collect(void *arg, const struct ni_ctl_command *c) {
  (void)arg;
  assert_true(n_got < 64);
  got[n_got++] = *c;
}
static void parse(const char *text) {
  n_got = 0;
  ni_ctl_parse(text, strlen(text), collect, NULL);
}

static void control_text(void **state) {
  (void)state;
  parse(
      "# remark\n\n  preset deep \r\n@17 events coll, p2p -p2p # less\nverbose on\n\tverbose\t0\nsample "
      "1/10\nflush\n"
      "flush now\n@9223372036854775807 mark step 100 of 7\n#\n@5\n");
  assert_int_equal(n_got, 8); /* remarks, blank lines, and a number with nothing behind it are none */
  assert_true(got[0].verb == NI_CTL_EVENTS && got[0].kinds == NI_KINDS_DEEP && got[0].line == 3 &&
              got[0].at_ns == 0);
  assert_string_equal(got[0].text, "preset deep");
  assert_true(got[1].verb == NI_CTL_EVENTS && got[1].kinds == NI_KINDS(NI_EVENT_COLL) && got[1].at_ns == 17);
  assert_string_equal(got[1].text, "events coll, p2p -p2p");
  assert_true(got[2].verb == NI_CTL_VERBOSE && got[2].on);
  assert_true(got[3].verb == NI_CTL_VERBOSE && !got[3].on);
  assert_true(got[4].verb == NI_CTL_SAMPLE && got[4].sample == 10);
  assert_true(got[5].verb == NI_CTL_FLUSH && got[6].verb == NI_CTL_FLUSH);
  assert_true(got[7].verb == NI_CTL_MARK && got[7].at_ns == INT64_MAX && got[7].line == 10);
  assert_string_equal(got[7].mark, "step 100 of 7");

  static const char *const bad[] = {"preset",
                                    "preset foo",
                                    "presets deep",
                                    "events",
                                    "events xyz",
                                    "verbose",
                                    "verbose maybe",
                                    "sample",
                                    "sample 1/0",
                                    "sample 10",
                                    "flush later",
                                    "mark",
                                    "@ flush",
                                    "@x flush",
                                    "@9223372036854775808 flush",
                                    "@5flush",
                                    "rm -rf /",
                                    "preset deep extra",
                                    "mark 12345678901234567890123456789012345678901234567890123456789012345"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char text[256];
    snprintf(text, sizeof text, "%s\nflush\n", bad[i]);
    parse(text);
    assert_int_equal(n_got, 2); /* that line alone */
    assert_int_equal(got[0].verb, NI_CTL_REFUSED);
    assert_true(got[0].why[0] && got[0].line == 1);
    assert_int_equal(got[1].verb, NI_CTL_FLUSH);
  }
  parse("flush\nmark half");
  assert_true(n_got == 2 && got[0].verb == NI_CTL_FLUSH && got[1].verb == NI_CTL_REFUSED);
  assert_non_null(strstr(got[1].why, "line feed"));
  char many[NI_CTL_FILE_BYTES] = "";
  for (int i = 0; i < 40; i++)
    strcat(many, "flush\n");
  parse(many);
  assert_int_equal(n_got, NI_CTL_LINES + 1);
  assert_int_equal(got[NI_CTL_LINES].verb, NI_CTL_REFUSED);
  char wide[600];
  memset(wide, 'x', sizeof wide);
  memcpy(wide, "mark ", 5);
  memcpy(wide + 590, "\nflush\n", 8);
  parse(wide);
  assert_true(n_got == 2 && got[0].verb == NI_CTL_REFUSED && got[1].verb == NI_CTL_FLUSH);
  parse("mark a\x01\x1b[31mb\n");
  assert_string_equal(got[0].mark, "a??[31mb");
}

static const char *write_file(const char *dir, const char *text, mode_t mode) {
  static char path[300];
  snprintf(path, sizeof path, "%s/c", dir);
  unlink(path);
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
  assert_int_equal(chmod(path, mode), 0);
  return path;
}

static void control_file(void **state) {
  (void)state;
  char dir[] = "/tmp/ni_ctl_XXXXXX", buf[NI_CTL_FILE_BYTES];
  assert_non_null(mkdtemp(dir));
  struct ni_ctl_file f;
  size_t n;
  uint64_t mtime;
  const char *why = NULL, *path;
  assert_int_equal(ni_ctl_file_init(&f, dir, "c"), 0);
  assert_string_equal(f.name, "c");
#define LOOK() ni_ctl_file_look(&f, buf, sizeof buf, &n, &mtime, &why)
  assert_int_equal(LOOK(), 0);
  path = write_file(dir, "flush\n", 0644);
  assert_int_equal(LOOK(), 1);
  assert_true(n == 6 && memcmp(buf, "flush\n", 6) == 0 && mtime > UINT64_C(1000000000) * 1700000000);
  assert_int_equal(LOOK(), 0); /* once */
  static const struct {
    mode_t mode;
    const char *why;
  } bad[] = {{0664, "writable"}, {0646, "writable"}};
  for (size_t i = 0; i < 2; i++) {
    write_file(dir, "flush\n", bad[i].mode);
    assert_int_equal(LOOK(), -1);
    assert_non_null(strstr(why, bad[i].why));
    assert_int_equal(LOOK(), 0); /* told once */
  }
  assert_int_equal(chmod(path, 0600), 0); /* put right: a change */
  assert_int_equal(LOOK(), 1);
  unlink(path);
  assert_int_equal(LOOK(), 0);
  assert_int_equal(symlink("/etc/hostname", path), 0);
  assert_int_equal(LOOK(), -1);
  assert_non_null(strstr(why, "plain file"));
  unlink(path);
  assert_int_equal(mkfifo(path, 0600), 0); /* must not wait for a writer */
  assert_int_equal(LOOK(), -1);
  unlink(path);
  char big[NI_CTL_FILE_BYTES + 2];
  memset(big, '#', sizeof big - 1);
  big[sizeof big - 1] = 0;
  write_file(dir, big, 0644);
  assert_int_equal(LOOK(), -1);
  assert_non_null(strstr(why, "8192"));
  write_file(dir, "flush\n", 0644);
  if (geteuid() == 0) { /* another user's: root's own is accepted, so only root can try */
    assert_int_equal(chown(path, 12345, 12345), 0);
    assert_int_equal(LOOK(), -1);
    assert_non_null(strstr(why, "another user"));
  }
  unlink(path);
  rmdir(dir);
  char far[NI_CTL_PATH_BYTES + 1];
  memset(far, 'd', sizeof far - 1);
  far[sizeof far - 1] = 0;
  assert_int_equal(ni_ctl_file_init(&f, far, "c"), -ENAMETOOLONG);
  assert_int_equal(LOOK(), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(control_text), cmocka_unit_test(control_file)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
