/* Lines of network operations: flat, nested, before the operation's end; what the longest of them takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "format/event_write.h"
#include "format/json_text.h"
#include "test/unit/exporter/json_check.h"

static char buf[NI_LINE_MAX_BYTES];
static struct ni_line_prefix px;
static struct ni_step_text steps[NI_STEPS_A_LINE];

/* What stands behind the head of the line. */
static void expect(const struct ni_proxy_line *in, const char *want) {
  size_t n = ni_format_proxy(buf, sizeof buf, &px, 5, in);
  assert_true(jc_line_ok(buf, n));
  const char *body = strstr(buf, "\"proxy_trace\"");
  assert_non_null(body);
  buf[n - 1] = 0;
  assert_string_equal(body, want);
}

#define STEP(sn) "{\"record_sn\":9" sn ",\"proxy_step_sn\":" sn ",\"step\":" sn ",\"trans_size_bytes\":1024,\"total_us\":40.000," \
                 "\"gpu_produce_us\":10.001,\"wire_us\":29.999,\"start_ns\":1790000000123012000}"
#define WHO ",\"parent_type\":\"coll\",\"parent_sn\":17,\"proxy_op_sn\":12"
#define WHERE ",\"channel_id\":2,\"peer\":1,\"direction\":\"send\""

static void the_same_step_in_three_lines(void **state) {
  (void)state;
  for (uint32_t i = 0; i < 2; i++) {
    steps[i] = (struct ni_step_text){.record_sn = 90 + i, .step_sn = i, .step = (int32_t)i, .bytes = 1024,
                                     .total_ns = 40000, .start_ns = 1790000000123012000};
    steps[i].phase_ns[NI_PH_GPU_PRODUCE - 1] = 10001;
    steps[i].phase_ns[NI_PH_WIRE - 1] = 29999;
  }
  struct ni_proxy_line in = {.what = NI_PROXY_STEP, .has_parent = true, .send = true, .record_sn = 90, .op_sn = 12,
                             .parent_sn = 17, .parent_kind = NI_KIND_COLL, .parent_func = "AllReduce", .rank = 3,
                             .parent_rec_sn = 18, .channel = 2, .peer = 1, .steps = steps, .n_listed = 1};
  expect(&in, "\"proxy_trace\":{\"record_type\":\"proxy_step\",\"record_sn\":90" WHO WHERE ",\"proxy_step_sn\":0,\"step\":0,"
              "\"trans_size_bytes\":1024,\"timing_source\":\"proxy_cpu\",\"total_us\":40.000,\"gpu_produce_us\":10.001,"
              "\"wire_us\":29.999,\"start_ns\":1790000000123012000,\"parent_func\":\"AllReduce\"}}");
  in.what = NI_PROXY_SEGMENT;
  in.record_sn = 12;
  in.n_listed = 2;
  expect(&in, "\"proxy_trace\":{\"record_type\":\"proxy_op_segment\",\"record_sn\":12" WHO WHERE ",\"is_final\":false,"
              "\"timing_source\":\"proxy_cpu\",\"parent_func\":\"AllReduce\",\"steps\":[" STEP("0") "," STEP("1") "]}}");
  in.what = NI_PROXY_OP;
  in.n_steps = in.chunk = 2;
  in.n_started = in.n_completed = 2;
  in.bytes = 2048;
  in.total_ns = 90000;
  in.max_step_ns = 40000;
  in.progress_ns = -1;
  in.start_ns = 1790000000123000000;
#define OP "\"proxy_trace\":{\"record_type\":\"proxy_op\",\"record_sn\":12" WHO ",\"rank\":3" WHERE ",\"is_final\":true," \
           "\"n_steps\":2,\"chunk_size_bytes\":2,\"n_steps_started\":2,\"n_steps_completed\":2,\"n_steps_dropped\":0," \
           "\"trans_size_bytes\":2048,\"timing_source\":\"proxy_cpu\",\"total_us\":90.000,\"op_bw_gbs\":0.022756," \
           "\"max_step_us\":40.000,\"parent_func\":\"AllReduce\",\"parent_rec_sn\":18,\"start_ns\":1790000000123000000," \
           "\"progress_us\":null"
  expect(&in, OP ",\"steps\":[" STEP("0") "," STEP("1") "]}}");
  in.n_listed = 0; /* asked for, and all in segments */
  expect(&in, OP ",\"steps\":[]}}");
  in.steps = NULL; /* not asked for */
  expect(&in, OP "}}");
  steps[0].total_ns = -1; /* never stopped */
  memset(steps[0].phase_ns, 0, sizeof steps[0].phase_ns);
  in.steps = steps;
  in.n_listed = 1;
  expect(&in, OP ",\"steps\":[{\"record_sn\":90,\"proxy_step_sn\":0,\"step\":0,\"trans_size_bytes\":1024,\"total_us\":null,"
                 "\"start_ns\":1790000000123012000}]}}");
}

/* Everything at its longest, and more steps than a line takes: within its buffer, or nothing at all. */
static void the_longest_fits(void **state) {
  (void)state;
  static char evil[4 * NI_TEXT_MAX_BYTES], guard[NI_LINE_MAX_BYTES + 64];
  memset(evil, 1, sizeof evil - 1);
  struct ni_ident id = {UINT64_MAX, evil, INT32_MIN, INT32_MIN, INT32_MIN};
  struct ni_origin o = {.hostname = evil, .git_rev = evil, .version = evil, .pid = INT32_MIN};
  struct ni_line_prefix p;
  assert_int_equal(ni_line_prefix_init(&p, &id, &o), 0);
  for (uint32_t i = 0; i < NI_STEPS_A_LINE; i++) {
    steps[i] = (struct ni_step_text){.record_sn = UINT64_MAX - 1, .step_sn = UINT32_MAX, .step = INT32_MIN, .bytes = INT64_MAX,
                                     .total_ns = INT64_MAX, .start_ns = UINT64_MAX};
    for (int k = 0; k < NI_PH_COUNT - 1; k++) steps[i].phase_ns[k] = INT64_MAX;
  }
  struct ni_proxy_line in = {.has_parent = true, .foreign = true, .record_sn = UINT64_MAX - 1, .op_sn = UINT64_MAX - 1,
                             .parent_sn = UINT64_MAX - 1, .parent_rec_sn = UINT64_MAX, .parent_func = evil, .rank = INT32_MIN,
                             .channel = INT32_MIN, .peer = INT32_MIN, .n_steps = INT32_MAX, .chunk = INT32_MAX,
                             .n_started = UINT32_MAX, .n_completed = UINT32_MAX, .n_dropped = UINT32_MAX, .pid = INT64_MIN,
                             .bytes = INT64_MAX, .start_ns = UINT64_MAX, .total_ns = 1, .progress_ns = INT64_MAX,
                             .max_step_ns = INT64_MAX, .state = evil, .steps = steps, .n_listed = NI_STEPS_A_LINE + 1};
  for (int k = 0; k < NI_PH_COUNT - 1; k++) in.phase_ns[k] = INT64_MAX;
  for (in.what = NI_PROXY_OP; in.what <= NI_PROXY_STEP; in.what++)
    for (size_t cap = 0;; cap += 997) {
      if (cap > NI_LINE_MAX_BYTES) cap = NI_LINE_MAX_BYTES;
      memset(guard, 0x5a, sizeof guard);
      size_t n = ni_format_proxy(guard, cap, &p, UINT64_MAX, &in);
      assert_true(n <= cap);
      assert_int_equal(guard[cap], 0x5a);
      if (n) assert_true(jc_line_ok(guard, n));
      if (cap < NI_LINE_MAX_BYTES) continue;
      assert_true(n > 0);
      break;
    }
  ni_line_prefix_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_step_in_three_lines), cmocka_unit_test(the_longest_fits)};
  struct ni_ident id = {1, "dp", 3, 8, 1};
  struct ni_origin o = {.hostname = "node-a", .git_rev = "1a2b", .version = "0.1.0", .pid = 4242};
  if (ni_line_prefix_init(&px, &id, &o)) return 1;
  int rc = cmocka_run_group_tests(tests, NULL, NULL);
  ni_line_prefix_free(&px);
  return rc;
}
