/* Lines of network operations and of their steps; what the longest of them takes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "format/line_write.h"
#include "format/json_text.h"
#include "test/unit/exporter/json_check.h"

static char buf[NI_LINE_MAX_BYTES];
static struct ni_line_prefix px;

/* What stands behind the head of the line. */
static void expect(const struct ni_proxy_line *in, const char *want) {
  size_t n = ni_format_proxy(buf, sizeof buf, &px, 5, in);
  assert_true(jc_line_ok(buf, n));
  const char *body = strstr(buf, "\"proxy_trace\"");
  assert_non_null(body);
  buf[n - 1] = 0;
  assert_string_equal(body, want);
}

#define WHO ",\"parent_type\":\"coll\",\"parent_sn\":17,\"proxy_op_sn\":12"
#define WHERE ",\"channel_id\":2,\"peer\":1,\"direction\":\"send\""

static void a_step_and_its_operation(void **state) {
  (void)state;
  struct ni_proxy_line in = {NI_NO_PROXY};
  in.record_type = NI_PROXY_STEP;
  in.parent_type = "coll";
  in.direction = "send";
  in.timing_source = "proxy_cpu";
  in.record_sn = 90;
  in.proxy_op_sn = 12;
  in.parent_sn = 17;
  in.parent_func = "AllReduce";
  in.rank = 3;
  in.parent_rec_sn = 18;
  in.channel = 2;
  in.peer = 1;
  in.step = in.proxy_step_sn = 0;
  in.trans_size_bytes = 1024;
  in.total_us = 40;
  in.gpu_produce_us = 10.001;
  in.wire_us = 29.999;
  in.start_ns = 1790000000123012000;
  expect(&in,
         "\"proxy_trace\":{\"record_type\":\"proxy_step\",\"record_sn\":90" WHO WHERE
         ",\"proxy_step_sn\":0,\"step\":0,"
         "\"trans_size_bytes\":1024,\"timing_source\":\"proxy_cpu\",\"total_us\":40.000,\"gpu_produce_us\":"
         "10.001,"
         "\"wire_us\":29.999,\"start_ns\":1790000000123012000,\"parent_func\":\"AllReduce\"}}");
  in.record_type = NI_PROXY_OP;
  in.record_sn = 12;
  in.gpu_produce_us = in.wire_us = NAN;
  in.is_final = true;
  in.n_steps = in.chunk_size_bytes = 2;
  in.n_steps_started = in.n_steps_completed = 2;
  in.trans_size_bytes = 2048;
  in.total_us = 90;
  in.op_bw_gbs = 2048.0 / 90000;
  in.max_step_us = 40;
  in.start_ns = 1790000000123000000;
  expect(
      &in,
      "\"proxy_trace\":{\"record_type\":\"proxy_op\",\"record_sn\":12" WHO ",\"rank\":3" WHERE
      ",\"is_final\":true,"
      "\"n_steps\":2,\"chunk_size_bytes\":2,\"n_steps_started\":2,\"n_steps_completed\":2,\"n_steps_"
      "dropped\":0,"
      "\"trans_size_bytes\":2048,\"timing_source\":\"proxy_cpu\",\"total_us\":90.000,\"op_bw_gbs\":0.022756,"
      "\"max_step_us\":40.000,\"parent_func\":\"AllReduce\",\"parent_rec_sn\":18,\"start_ns\":"
      "1790000000123000000,"
      "\"progress_us\":null}}");
}

/* Everything at its longest: within its buffer, or nothing at all. */
static void the_longest_fits(void **state) {
  (void)state;
  static char evil[4 * NI_TEXT_MAX_BYTES], guard[NI_LINE_MAX_BYTES + 64];
  memset(evil, 1, sizeof evil - 1);
  struct ni_ident id = {UINT64_MAX, evil, INT32_MIN, INT32_MIN, INT32_MIN};
  struct ni_meta o = {.hostname = evil, .git_rev = evil, .producer = evil, .pid = INT64_MIN};
  struct ni_line_prefix p;
  assert_int_equal(ni_line_prefix_init(&p, &id, &o), 0);
  const double huge = 999999999999999.0;
  struct ni_proxy_line in = {NI_NO_PROXY};
  in.parent_type = in.direction = in.timing_source = in.parent_func = in.state = evil;
  in.record_sn = in.proxy_op_sn = in.trans_size_bytes = in.start_ns = in.proxy_step_sn = UINT64_MAX;
  in.parent_sn = in.parent_rec_sn = INT64_MAX;
  in.rank = in.channel = in.peer = INT32_MIN;
  in.n_steps = in.chunk_size_bytes = in.n_steps_started = in.n_steps_completed = in.n_steps_dropped =
      UINT64_MAX;
  in.origin_pid = INT64_MAX;
  in.step = INT64_MIN;
  in.op_bw_gbs = in.max_step_us = in.progress_us = in.total_us = huge;
  in.gpu_produce_us = in.peer_credit_us = in.wire_us = in.flush_us = in.gpu_consume_us = huge;
  const char *const types[] = {NI_PROXY_OP, NI_PROXY_STEP};
  for (int k = 0; k < 2; k++) {
    in.record_type = types[k];
    for (size_t cap = 0;; cap += 997) {
      if (cap > NI_LINE_MAX_BYTES)
        cap = NI_LINE_MAX_BYTES;
      memset(guard, 0x5a, sizeof guard);
      size_t n = ni_format_proxy(guard, cap, &p, UINT64_MAX, &in);
      assert_true(n <= cap);
      assert_int_equal(guard[cap], 0x5a);
      if (n)
        assert_true(jc_line_ok(guard, n));
      if (cap < NI_LINE_MAX_BYTES)
        continue;
      assert_true(n > 0);
      break;
    }
  }
  ni_line_prefix_free(&p);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_step_and_its_operation),
                                     cmocka_unit_test(the_longest_fits)};
  struct ni_ident id = {1, "dp", 3, 8, 1};
  struct ni_meta o = {.hostname = "node-a", .git_rev = "1a2b", .producer = NI_PRODUCER " 0.1.0", .pid = 4242};
  if (ni_line_prefix_init(&px, &id, &o))
    return 1;
  int rc = cmocka_run_group_tests(tests, NULL, NULL);
  ni_line_prefix_free(&px);
  return rc;
}
