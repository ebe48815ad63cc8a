/* Every character against the list of those that may not reach a terminal; bytes that are no UTF-8; ni_say's
 * own controls; strings in JSON and cells of CSV. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "exporter/base/text/json_numbers.h"
#include "exporter/base/text/json_write.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/csv_write.h"

static unsigned encode(uint32_t c, char *out) {
  unsigned n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (unsigned i = n; i-- > 1; c >>= 6)
    out[i] = (char)(0x80 | (c & 0x3f));
  out[0] = (char)(n == 1 ? c : (0xf00u >> n & 0xff) | c);
  out[n] = 0;
  return n;
}

static void every_character(void **state) {
  (void)state;
  static const uint32_t bad[][2] = {{1, 0x1f},        {0x7f, 0x9f},     {0xad, 0xad},
                                    {0x61c, 0x61c},   {0x200b, 0x200f}, {0x2028, 0x202e},
                                    {0x2060, 0x206f}, {0xd800, 0xdfff}, {0xfeff, 0xfeff}};
  for (uint32_t c = 1; c <= 0x10ffff; c++) {
    char text[8], got[8];
    int fine = 1;
    encode(c, text);
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
      fine &= c < bad[i][0] || c > bad[i][1];
    ni_safe_text(text, got, sizeof got);
    if (fine)
      assert_string_equal(got, text);
    else if (c >= 0xd800 && c <= 0xdfff)
      assert_string_equal(got, "???");
    else
      assert_string_equal(got, "?");
  }
}

static void what_is_no_utf8(void **state) {
  (void)state;
  static const char *const from[] = {"\x80",        "\x9b[31m",     "\xc0\xaf",         "\xc3",
                                     "caf\xc3x",    "\xe0\x80\xaf", "\xf4\x90\x80\x80", "\xff\xfe",
                                     "\xf0\x9f\x98"};
  static const char *const want[] = {"?", "?[31m", "??", "?", "caf?x", "???", "????", "??", "???"};
  char got[32];
  for (unsigned i = 0; i < sizeof from / sizeof *from; i++)
    assert_string_equal(ni_safe_text(from[i], got, sizeof got), want[i]);
  assert_string_equal(ni_safe_text(NULL, got, sizeof got), "");
}

static void cut_between_characters(void **state) {
  (void)state;
  char got[6];
  assert_string_equal(ni_safe_text("abcdefgh", got, sizeof got), "abcde");
  assert_string_equal(ni_safe_text("abc\xce\x94\xce\x94", got, sizeof got), "abc\xce\x94");
  assert_string_equal(ni_safe_text("abcd\xce\x94", got, sizeof got), "abcd");
  assert_string_equal(ni_safe_text("abcd", got, 1), "");
}

__attribute__((format(printf, 1, 2))) static char *said(const char *format, ...) {
  char *text = NULL;
  size_t n = 0;
  FILE *f = open_memstream(&text, &n);
  va_list args;
  va_start(args, format);
  ni_vsay(f, format, args);
  va_end(args);
  fclose(f);
  return text;
}

static void controls_of_the_format_only(void **state) {
  (void)state;
  char *long_text = malloc(100001);
  memset(long_text, '\n', 100000);
  long_text[100000] = 0;
  struct {
    char *got;
    const char *want;
  } t[] = {{said("%s: %d\n", "a\nb\x1b[31m\xe2\x80\xae", 7), "a?b?[31m?: 7\n"},
           {said("\r%s\tx\n\n%-4s|\n%s", "\n\n", "\t", "\n"), "\r??\tx\n\n?   |\n?"},
           {said("\n"), "\n"},
           {said("%s", ""), ""},
           {said("no end"), "no end"},
           {said("%.3s\n", "ab\xce\x94"), "ab?\n"}};
  for (unsigned i = 0; i < sizeof t / sizeof *t; i++) {
    assert_string_equal(t[i].got, t[i].want);
    free(t[i].got);
  }
  char *got = said("%s\n", long_text);
  assert_int_equal(strspn(got, "?"), 100000);
  assert_string_equal(got + 100000, "\n");
  free(got);
  free(long_text);
}

static void strings_in_json(void **state) {
  (void)state;
  static const char *const from[] = {"a\"\\\n", "\x1b\x7f", "\xc2\x9b|\xe2\x80\xae|\xef\xbb\xbf",
                                     "\xff\xce\x94", ""};
  static const char *const want[] = {"\"a\\\"\\\\\\u000a\"\n", "\"\\u001b\\u007f\"\n",
                                     "\"\\u009b|\\u202e|\\ufeff\"\n", "\"\\ufffd\xce\x94\"\n", "\"\"\n"};
  for (unsigned i = 0; i < sizeof from / sizeof *from; i++) {
    char *text = NULL;
    size_t n = 0;
    struct ni_json j;
    FILE *f = open_memstream(&text, &n);
    ni_json_begin(&j, f);
    ni_json_text(&j, NULL, from[i]);
    ni_json_finish(&j);
    fclose(f);
    assert_string_equal(text, want[i]);
    free(text);
  }
}

static void cells_of_csv(void **state) {
  (void)state;
  static const char *const from[] = {"node-1", "=cmd|calc\x1b[31m", "+1", "-1", "@x", "\t=1",    "\r=1",
                                     "a,b",    "=\"a\",\n\"",       "\"", "",   "'",  "\xc2\x9b"};
  static const char *const want[] = {
      "node-1",  "'=cmd|calc?[31m",       "'+1",      "'-1", "'@x", "?=1", "?=1",
      "\"a,b\"", "\"'=\"\"a\"\",?\"\"\"", "\"\"\"\"", "",    "'",   "?"};
  for (unsigned i = 0; i < sizeof from / sizeof *from; i++) {
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    ni_csv_text(f, from[i]);
    fclose(f);
    assert_string_equal(text, want[i]);
    free(text);
  }
}

/* What 64 bits or a double hold stays a number, and so does what is no number at all. */
static void numbers_in_json(void **state) {
  (void)state;
  static const char *const from[] = {"[18446744073709551615,18446744073709551616]",
                                     "{\"a\":-9223372036854775808,\"b\":-9223372036854775809}",
                                     "[1.7e308,1.8e308,-1e309,1e-999,0.10000000000000000000000001]",
                                     "[NaN, Infinity,-Infinity]",
                                     "{\"18446744073709551616\":\"NaN \\\" 1e999\"}",
                                     "[00018446744073709551616,1e,1.,-,+1e999]",
                                     "99999999999999999999",
                                     "\"1e999",
                                     "\"1e999\\",
                                     "[true,null,{}]",
                                     ""};
  static const char *const want[] = {"[18446744073709551615,\"18446744073709551616\"]",
                                     "{\"a\":-9223372036854775808,\"b\":\"-9223372036854775809\"}",
                                     "[1.7e308,\"1.8e308\",\"-1e309\",1e-999,0.10000000000000000000000001]",
                                     "[\"NaN\", \"Infinity\",\"-Infinity\"]",
                                     "{\"18446744073709551616\":\"NaN \\\" 1e999\"}",
                                     "[00018446744073709551616,1e,1.,-,+\"1e999\"]",
                                     "\"99999999999999999999\"",
                                     "\"1e999",
                                     "\"1e999\\",
                                     "[true,null,{}]",
                                     ""};
  char got[256];
  for (unsigned i = 0; i < sizeof from / sizeof *from; i++) {
    size_t n = strlen(from[i]);
    size_t length = ni_json_quote_numbers(from[i], n, got);
    assert_true(length <= NI_JSON_QUOTED_MAX(n));
    got[length] = 0;
    assert_string_equal(got, want[i]);
  }
}

/* A pipe of packets: each write() is read alone. */
static void stderr_gets_it_at_once(void **state) {
  (void)state;
  char got[64] = "";
  int p[2], before = dup(STDERR_FILENO);
  assert_int_equal(pipe2(p, O_DIRECT | O_NONBLOCK), 0);
  dup2(p[1], STDERR_FILENO);
  ni_say(stderr, "%s: serves\t%s\n", "agent\033", "http://127.0.0.1:9777");
  dup2(before, STDERR_FILENO);
  ssize_t n = read(p[0], got, sizeof got - 1);
  close(p[0]);
  close(p[1]);
  close(before);
  assert_string_equal(got, "agent?: serves\thttp://127.0.0.1:9777\n");
  assert_int_equal(n, strlen(got));
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(stderr_gets_it_at_once),
                                     cmocka_unit_test(every_character),
                                     cmocka_unit_test(what_is_no_utf8),
                                     cmocka_unit_test(cut_between_characters),
                                     cmocka_unit_test(controls_of_the_format_only),
                                     cmocka_unit_test(strings_in_json),
                                     cmocka_unit_test(numbers_in_json),
                                     cmocka_unit_test(cells_of_csv)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
