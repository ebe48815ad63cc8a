/* Protocol Buffers' bytes, and messages in them: fixed ones, as protobuf's own writer makes them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exporter/rpc/messages.h"

#define BYTES(text) text, sizeof(text) - 1

static void fields(void **ctx) {
  (void)ctx;
  static const struct {
    const char *bytes;
    size_t len;
    int n;
    uint64_t last;
  } known[] = {
      {BYTES(""), 0, 0},
      {BYTES("\x08\x96\x01"), 1, 150},
      {BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), 1, UINT64_MAX},
      {BYTES("\x0d\x01\x02\x03\x04"), 1, 0x04030201},
      {BYTES("\x09\x01\0\0\0\0\0\0\x80\x10\x07"), 2, 7},
      {BYTES("\xf8\xff\xff\xff\x0f\x05"), 1, 5}, /* the largest number */
      {BYTES("\x0a\x02zz\x08\x01"), 2, 1},
  };
  static const struct {
    const char *bytes;
    size_t len;
  } bad[] = {{BYTES("\x08")},
             {BYTES("\x08\x80")},
             {BYTES("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")},
             {BYTES("\x0d\x01\x02\x03")},
             {BYTES("\x09\x01")},
             {BYTES("\x0a\x03zz")},
             {BYTES("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01")},
             {BYTES("\x0b\x0c")},
             {BYTES("\x00\x01")},
             {BYTES("\x0f\x01")},
             {BYTES("\xf8\xff\xff\xff\xff\x01\x05")}};
  struct ni_pb_field f;
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    struct ni_pb_reader r = ni_pb_read(known[i].bytes, known[i].len);
    uint64_t last = 0;
    int n = 0;
    while (ni_pb_next(&r, &f)) {
      n++;
      last = f.value;
    }
    assert_false(r.bad);
    assert_int_equal(n, known[i].n);
    assert_true(last == known[i].last);
  }
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    struct ni_pb_reader r = ni_pb_read(bad[i].bytes, bad[i].len);
    while (ni_pb_next(&r, &f))
      continue;
    assert_true(r.bad);
    assert_false(ni_pb_next(&r, &f));
  }
  struct ni_pb_reader r = ni_pb_read(BYTES("\x08\x05\x0d\x01\x02\x03\x04"));
  while (ni_pb_next(&r, &f)) { /* none of them is what it is not */
    char text[4];
    assert_true(isnan(ni_pb_f64(&f)));
    assert_true(ni_pb_inside(&f).bad);
    assert_false(ni_pb_text(&f, text, sizeof text));
    assert_string_equal(text, "");
  }
}

static void written(void **ctx) {
  (void)ctx;
  struct ni_pb_writer w = {0};
  static const char want[] =
      "\x08\x96\x01\x10\xfb\xff\xff\xff\xff\xff\xff\xff\xff\x01\x1a\x02?"
      "b\x21\0\0\0\0\0\0\xf8\x3f\x2a\xcb\x01\x32\xc8\x01";
  char inner[200];
  memset(inner, 'i', sizeof inner);
  ni_pb_put_u64(&w, 1, 150);
  ni_pb_put_i64(&w, 2, -5);
  ni_pb_put_text(&w, 3,
                 "\xff"
                 "b");
  ni_pb_put_text(&w, 3, "");
  ni_pb_put_f64(&w, 4, 1.5);
  size_t mark = ni_pb_begin(&w, 5);
  ni_pb_put_bytes(&w, 6, inner, sizeof inner);
  ni_pb_end(&w, mark);
  assert_false(w.failed);
  size_t n = sizeof want - 1;
  assert_int_equal(w.n, n + sizeof inner);
  assert_memory_equal(w.bytes, want, n);
  assert_memory_equal(w.bytes + n, inner, sizeof inner);
  ni_pb_free(&w);
}

/*
 * MetricsUpdate(hostname="n7", gpus_metrics=[(1, "H100", .37, .5, 2, 3)], system_metrics=(50, 25),
 * timestamp=1.79e9), by protobuf.
 */
static const char update[] =
    "\x0a\x02n7\x12\x2c\x08\x01\x12\x04H100\x19\xae\x47\xe1\x7a\x14\xae\xd7\x3f\x21\0\0\0\0\0\0\xe0\x3f\x29\0"
    "\0\0\0\0\0\0\x40\x31\0\0\0\0\0\0\x08\x40"
    "\x22\x12\x09\0\0\0\0\0\0\x49\x40\x11\0\0\0\0\0\0\x39\x40\x29\0\0\0\xe0N\xac\xda\x41";

static void gsprofs(void **ctx) {
  (void)ctx;
  char host[NI_HOST_MAX];
  struct ni_sample *s;
  assert_true(ni_update_decode(update, sizeof update - 1, host, &s));
  assert_string_equal(host, "n7");
  assert_int_equal(s->n_gpus, 1);
  assert_int_equal(s->gpu[0].index, 1);
  assert_string_equal(s->gpu[0].name, "H100");
  assert_true(s->gpu[0].util == 0.37 && s->gpu[0].memory == 0.5);
  assert_true(s->gpu[0].pcie_tx == 2048 && s->gpu[0].pcie_rx == 3072); /* exchanged */
  assert_true(isnan(s->gpu[0].nvlink_rx) && isnan(s->gpu[0].nvlink_tx) && isnan(s->gpu[0].power_w));
  assert_true(s->memory == 0.5 && s->disk == 0.25 && isnan(s->cpu));
  assert_true(s->time_ns == INT64_C(1790000000000000000));
  free(s);
  assert_false(ni_update_decode(update, sizeof update - 3, host, &s));
  assert_null(s);
}

static void flags(void **ctx) {
  (void)ctx;
  struct ni_reply r;
  struct ni_from_agent a;
  assert_true(ni_reply_decode(BYTES("\x08\xff\x01\x12\x01\x1b"), &r)); /* 255 is true, ESC is no text */
  assert_true(r.success == 1);
  assert_string_equal(r.message, "?");
  /* a job's state that there is none of */
  assert_true(ni_agent_decode(BYTES("\x12\x04\x62\x02\x28\x09"), &a));
  assert_int_equal(a.sample->job[0].state, 0);
  free(a.sample);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(fields), cmocka_unit_test(written),
                                     cmocka_unit_test(gsprofs), cmocka_unit_test(flags)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
