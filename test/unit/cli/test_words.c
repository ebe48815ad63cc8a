/* What had a meaning once is accepted, named once on standard error unless JSON is asked for, and does
 * nothing (cli/words.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "exporter/cli/words.h"

struct options {
  unsigned form;
  const char *parts, *file;
  bool json;
};

static int take_parts(const struct ni_opt *o, void *into, const char *arg) {
  static char text[64];
  (void)o;
  if (strstr(arg, "bad"))
    return -EINVAL;
  snprintf(text, sizeof text, "%s", arg);
  ((struct options *)into)->parts = text;
  return 0;
}

static const struct ni_command command = {
    .name = "try",
    .opt = (const struct ni_opt[]){
        {"form", 0, NI_OPT_CHOICE, "FORM", "Form", NI_INTO(struct options, form), .want = "a|b",
         .gone = "c|d"},
        {"parts", 0, NI_OPT_TAKE, "LIST", "Parts", .take = take_parts, .want = "a list", .gone = "old|older"},
        {"watch", 0, NI_OPT_FLAG, NULL, NULL, .gone = ""},
        {"wait", 'w', NI_OPT_NUMBER, "S", NULL, .gone = ""},
        {"json", 0, NI_OPT_FLAG, NULL, "JSON", NI_INTO(struct options, json)},
        {0}}};

static char said[1024];

/* Parses the words, up to a NULL; what came on standard error is in `said`. Returns the exit code, or 0. */
static int parse(struct options *o, ...) {
  char *argv[16] = {(char *)"try"};
  int argc = 1, done;
  va_list words;
  va_start(words, o);
  while ((argv[argc] = va_arg(words, char *)))
    argc++;
  va_end(words);
  *o = (struct options){.form = 7};
  FILE *f = tmpfile();
  assert_non_null(f);
  fflush(stderr);
  int kept = dup(2);
  dup2(fileno(f), 2);
  int code = ni_words_parse(&command, argc, argv, o, &done);
  fflush(stderr);
  dup2(kept, 2);
  close(kept);
  rewind(f);
  said[fread(said, 1, sizeof said - 1, f)] = 0;
  fclose(f);
  return code;
}

static void values(void **state) {
  (void)state;
  struct options o;
  assert_int_equal(parse(&o, "--form=b", "--parts", "x,y", NULL), 0);
  assert_int_equal(o.form, 1);
  assert_string_equal(o.parts, "x,y");
  assert_string_equal(said, "");

  assert_int_equal(parse(&o, "--form=c", "--form", "d", "--form=c", NULL), 0);
  assert_int_equal(o.form, 7);
  assert_string_equal(said, "try: no effect any more: --form=c, --form=d\n");

  assert_int_equal(parse(&o, "--parts=old,x,older,y,old", NULL), 0);
  assert_string_equal(o.parts, "x,y");
  assert_string_equal(said, "try: no effect any more: --parts=old, --parts=older\n");

  assert_int_equal(parse(&o, "--parts=older", NULL), 0);
  assert_null(o.parts);

  /* What never was is refused, and nothing else is said. */
  assert_int_equal(parse(&o, "--form=e", NULL), 64);
  assert_non_null(strstr(said, "try: --form=e: want a or b"));
  assert_int_equal(parse(&o, "--parts=old,bad", NULL), 64);
  assert_null(strstr(said, "no effect"));
}

static void whole_options(void **state) {
  (void)state;
  struct options o;
  assert_int_equal(parse(&o, "--watch", "-w5", "--wait=7", "--watch", NULL), 0);
  assert_string_equal(said, "try: no effect any more: --watch, --wait\n");
}

static void never_with_json(void **state) {
  (void)state;
  struct options o;
  assert_int_equal(parse(&o, "--watch", "--form=c", "--json", NULL), 0);
  assert_string_equal(said, "");
  assert_true(o.json);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(values), cmocka_unit_test(whole_options),
                                     cmocka_unit_test(never_with_json)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
