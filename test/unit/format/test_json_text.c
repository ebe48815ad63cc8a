/* Numbers against printf, strings against a table and a strict reader. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "format/json_text.h"
#include "test/unit/exporter/json_check.h"

static uint64_t rng = 0x9e3779b97f4a7c15u;
static uint64_t next(void) {
  rng ^= rng << 13;
  rng ^= rng >> 7;
  rng ^= rng << 17;
  return rng;
}

static void expect_text(const char *got, const char *end, const char *want) {
  assert_int_equal(end - got, strlen(want));
  assert_memory_equal(got, want, strlen(want));
}

static void integers_as_printf(void **state) {
  (void)state;
  char got[40], want[40];
  uint64_t edge[200];
  int n = 0;
  for (int b = 0; b < 64; b++) {
    edge[n++] = UINT64_C(1) << b;
    edge[n++] = (UINT64_C(1) << b) - 1;
  }
  for (uint64_t p = 1;; p *= 10) {
    edge[n++] = p;
    edge[n++] = p - 1;
    if (p > UINT64_MAX / 10)
      break;
  }
  edge[n++] = UINT64_MAX;
  for (int i = 0; i < 300000; i++) {
    uint64_t v = i < n ? edge[i] : next() >> (next() & 63);
    snprintf(want, sizeof want, "%llu", (unsigned long long)v);
    expect_text(got, ni_json_put_u64(got, v), want);
    snprintf(want, sizeof want, "%lld", (long long)v);
    expect_text(got, ni_json_put_i64(got, (int64_t)v), want);
    snprintf(want, sizeof want, "0x%llx", (unsigned long long)v);
    expect_text(got, ni_json_hex(got, v), want);
  }
}

static void check_fixed(double v) {
  char got[64], want[400];
  for (int d = 1; d <= 12; d++) {
    char *end = ni_json_fixed(got, v, d);
    assert_true(end - got <= 30);
    if (fabs(v) < 1e15)
      snprintf(want, sizeof want, "%.*f", d, v);
    else
      snprintf(want, sizeof want, "null");
    expect_text(got, end, want);
  }
}

static void doubles_as_printf(void **state) {
  (void)state;
  static const double edge[] = {0.0,
                                -0.0,
                                0.5,
                                1.5,
                                0.0000005,
                                0.0000015,
                                0.00000049999,
                                1e-300,
                                5e-324,
                                0.999999,
                                0.9999995,
                                0.9999994,
                                9.9999995,
                                999999.9999995,
                                1e15,
                                -1e15,
                                999999999999999.9,
                                123456789.987654321,
                                0.1,
                                -0.1,
                                -1e-9,
                                17.772475,
                                NAN,
                                INFINITY,
                                -INFINITY,
                                1e300,
                                0x1p-74,
                                0x1p-75,
                                0x1.fffffffffffffp-1,
                                562949953421312.5,
                                0.0009765625,
                                0.00048828125,
                                2.0000005,
                                0.125,
                                0.0625,
                                0.03125};
  for (size_t i = 0; i < sizeof edge / sizeof *edge; i++)
    check_fixed(edge[i]);
  for (int i = 0; i < 60000; i++) {
    double v;
    uint64_t r = next();
    switch (i % 4) {
      case 0:
        memcpy(&v, &r, sizeof v);
        break; /* any bit pattern */
      case 1:
        v = (double)(r >> 11) / (double)(1 + (next() >> 40));
        break; /* bandwidth-like */
      case 2:
        v = (double)(r >> 40) / 64;
        break; /* exact ties */
      default:
        v = ldexp((double)(r >> 11), -(int)(next() % 110));
        break;
    }
    check_fixed(v);
  }
}

static void strings(void **state) {
  (void)state;
  static const struct {
    const char *in, *out;
  } t[] = {
      {"", "\"\""},
      {"AllReduce", "\"AllReduce\""},
      {"a/b", "\"a\\/b\""},
      {"q\"b\\", "\"q\\\"b\\\\\""},
      {"\n\t\r\b\x01\x1f\x7f", "\"\\n\\t\\r\\u0008\\u0001\\u001f\\u007f\""},
      {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
       "\"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80\""},
      {"\xff", "\"\xef\xbf\xbd\""},
      {"\xc0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\""},                   /* overlong NUL */
      {"\xe0\x80\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},   /* overlong slash */
      {"\xed\xa0\x80x", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdx\""}, /* surrogate */
      {"\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
      {"ab\xe2\x82", "\"ab\xef\xbf\xbd\xef\xbf\xbd\""}, /* cut at the end */
  };
  char out[NI_JSON_STRING_MAX_BYTES];
  for (size_t i = 0; i < sizeof t / sizeof *t; i++)
    expect_text(out, ni_json_string(out, t[i].in), t[i].out);
  expect_text(out, ni_json_string(out, NULL), "null");
}

static void long_strings_are_cut_and_say_so(void **state) {
  (void)state;
  char in[2 * NI_TEXT_MAX_BYTES], out[NI_JSON_STRING_MAX_BYTES + 8];
  for (int ch = 1; ch < 256; ch++)
    for (int len = NI_TEXT_MAX_BYTES - 2; len <= NI_TEXT_MAX_BYTES + 2; len++) {
      memset(in, ch, (size_t)len);
      in[len] = 0;
      memset(out, 0x55, sizeof out);
      char *end = ni_json_string(out, in);
      assert_true(end - out <= NI_JSON_STRING_MAX_BYTES);
      assert_int_equal((unsigned char)*end, 0x55);
      bool cut = len > NI_TEXT_MAX_BYTES;
      assert_int_equal(!memcmp(end - 4, "\xe2\x80\xa6\"", 4), cut);
    }
  /* A character across the limit is not split. */
  memset(in, 'a', sizeof in);
  memcpy(in + NI_TEXT_MAX_BYTES - 1, "\xe2\x82\xac", 4);
  char *end = ni_json_string(out, in);
  assert_int_equal(end - out, 1 + NI_TEXT_MAX_BYTES - 1 + 3 + 1);
}

static void random_bytes_give_valid_json(void **state) {
  (void)state;
  char in[300], line[2100];
  for (int i = 0; i < 20000; i++) {
    size_t n = next() % (sizeof in - 1);
    for (size_t k = 0; k < n; k++) {
      in[k] = (char)(next() >> 5);
      if (!in[k])
        in[k] = 1;
    }
    in[n] = 0;
    char *p = NI_JSON_LIT(line, "{\"k\":");
    p = ni_json_string(p, in);
    p = NI_JSON_LIT(p, "}\n");
    assert_true(jc_line_ok(line, (size_t)(p - line)));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(integers_as_printf),
      cmocka_unit_test(doubles_as_printf),
      cmocka_unit_test(strings),
      cmocka_unit_test(long_strings_are_cut_and_say_so),
      cmocka_unit_test(random_bytes_give_valid_json),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
