/* Lines that are not records: steps and traces, a run's own lines, roll-ups. */
#include "parse_text.h"

/* Steps in their operation's line; a line has its own and none of those before it. */
static void test_nested_steps(void **state) {
  (void)state;
#define SEGMENT(steps) \
  "{" HEAD "," META \
  ",\"proxy_trace\":{\"record_type\":\"proxy_op_segment\",\"is_final\":false,\"steps\":" steps "}}"
  assert_int_equal(
      parse(SEGMENT(
          "[{\"record_sn\":96,\"proxy_step_sn\":3,\"step\":7,\"trans_size_bytes\":1024,\"total_us\":40.5,"
          "\"gpu_produce_us\":10,\"peer_credit_us\":11,\"wire_us\":12,\"flush_us\":13,\"gpu_consume_us\":14,"
          "\"start_ns\":1790000000123012000},{\"step\":null,\"total_us\":null,\"of_later\":[1]},{}]")),
      NI_OK);
  assert_false(line.proxy.is_final);
  assert_int_equal(line.proxy.steps.n, 3);
  assert_int_equal(line.unknown_keys, 1);
  const struct ni_proxy_step *s = line.proxy.steps.list;
  assert_true(s[0].record_sn == 96 && s[0].proxy_step_sn == 3 && s[0].step == 7 &&
              s[0].trans_size_bytes == 1024);
  assert_true(s[0].total_us == 40.5 && s[0].gpu_produce_us == 10 && s[0].peer_credit_us == 11 &&
              s[0].wire_us == 12);
  assert_true(s[0].flush_us == 13 && s[0].gpu_consume_us == 14 && s[0].start_ns == 1790000000123012000u);
  for (int i = 1; i < 3; i++)
    assert_true(s[i].step == -1 && isnan(s[i].total_us) && isnan(s[i].wire_us) && s[i].start_ns == 0);
  assert_int_equal(parse(SEGMENT("[]")), NI_OK);
  assert_int_equal(line.proxy.steps.n, 0);
  assert_int_equal(parse(SEGMENT("null")), NI_OK);
  assert_int_equal(line.proxy.steps.n, 0);
  assert_int_equal(parse(SEGMENT("{}")), NI_REJ_BAD_TYPE);
  assert_int_equal(parse(SEGMENT("[3]")), NI_REJ_BAD_TYPE);
  assert_int_equal(parse(SEGMENT("[{\"step\":\"x\"}]")), NI_REJ_BAD_TYPE);
  assert_int_equal(parse(SEGMENT("[{\"step\":1,\"step\":1}]")), NI_REJ_DUPLICATE_KEY);
  assert_int_equal(parse(SEGMENT("[{}")), NI_REJ_BAD_JSON);
  /* As many as a line holds: those beyond the limit are counted. */
  static const char head[] = "{\"proxy_trace\":{\"record_type\":\"proxy_op\",\"steps\":[";
  for (int k = 0; k < 2; k++) {
    size_t n = k ? NI_STEPS_MAX + 5 : 1000, at = sizeof head - 1;
    char *long_line = malloc(at + 11 * n + 8);
    assert_non_null(long_line);
    memcpy(long_line, head, at);
    for (size_t i = 0; i < n; i++) {
      int put = snprintf(long_line + at, 12, "{\"step\":%zu},", i % 10);
      assert_true(put > 0);
      at += (size_t)put;
    }
    memcpy(long_line + at - 1, "]}}", 4);
    assert_int_equal(parse(long_line), NI_OK);
    assert_int_equal(line.proxy.steps.n, k ? NI_STEPS_MAX : n);
    assert_int_equal(line.proxy.steps.more, k ? 5 : 0);
    for (size_t i = 0; i < line.proxy.steps.n; i++)
      assert_int_equal(line.proxy.steps.list[i].step, i % 10);
    free(long_line);
  }
}

static void test_verbose(void **state) {
  (void)state;
#define TRACE \
  ",\"event_trace_sn\":{\"coll_start_sn\":1,\"coll_stop_sn\":2,\"kernel_events\":[{\"channel_id\":7," \
  "\"kernel_start_sn\":3," \
  "\"kernel_stop_sn\":5,\"kernel_record_sn\":4},{\"channel_id\":9}]},\"event_trace_ts\":{\"coll_start_ts\":" \
  "10,\"coll_stop_ts\":14," \
  "\"kernel_events\":[{\"channel_id\":7,\"kernel_start_ts\":20,\"kernel_stop_ts\":79,\"kernel_record_ts\":" \
  "78}]}"
#define PERF "\"coll_perf\":{\"coll\":\"A\",\"coll_sn\":1,\"coll_msg_size_bytes\":1,\"coll_exec_time_us\":1"
  static const char *const texts[] = {"{" HEAD "," META "," PERF TRACE "}}",
                                      "{" HEAD "," META "," PERF "}" TRACE "}"};
  for (int i = 0; i < 2; i++) {
    assert_int_equal(parse(texts[i]), NI_OK);
    assert_non_null(line.trace);
    assert_true(line.trace->has_sn && line.trace->has_ts);
    assert_int_equal(line.trace->n, 2);
    assert_int_equal(line.trace->stop_us, 14);
    assert_int_equal(line.trace->event[0].channel, 7);
    assert_int_equal(line.trace->event[0].stop_sn, 5);
    assert_int_equal(line.trace->event[0].stop_us, 79);
    assert_int_equal(line.trace->event[1].channel, 9);
    assert_int_equal(line.trace->event[1].stop_us, 0);
  }
  /* The next line has none. */
  assert_int_equal(parse("{" HEAD "," META "," COLL "}"), NI_OK);
  assert_null(line.trace);
}

static void test_run_lines(void **state) {
  (void)state;
#define ZERO "{\"header\":{\"id\":\"0x0\",\"rank\":-1,\"n_ranks\":0,\"nnodes\":0}," OURS ","
  assert_int_equal(
      parse(ZERO "\"process\":{\"start_ns\":7,\"boot_id\":\"b\",\"exe\":\"python3\",\"rank\":null,"
                 "\"local_rank\":1,\"world_size\":null,\"env\":{\"RANK\":\"3\",\"X\":\"\"},"
                 "\"nccl_version\":null,\"interface\":\"v6\",\"settings\":{}}}"),
      NI_OK);
  assert_int_equal(line.kind, NI_LINE_PROCESS);
  assert_int_equal(line.process.rank, -1);
  assert_int_equal(line.process.local_rank, 1);
  assert_int_equal(line.process.nccl_version, -1);
  assert_int_equal(line.process.env.n, 2);
  assert_string_equal(line.process.env.item[0].value, "3");
  assert_int_equal(parse("{" HEAD "," OURS
                         ",\"clock\":{\"source\":\"tsc\",\"ticks\":1,\"monotonic_ns\":2,\"realtime_ns\":3,"
                         "\"ns_per_tick\":0.416666666667,\"gpu_offset_ns\":null,\"gpu_offset_at_ns\":null,"
                         "\"gpu_samples\":0}}"),
                   NI_OK);
  assert_true(line.clock.gpu_offset_ns == NI_NO_OFFSET);
  assert_true(line.clock.ns_per_tick == 0.416666666667);
  assert_int_equal(
      parse("{" HEAD "," OURS
            ",\"dump_stats\":{\"coll_records\":1,\"final\":true,\"coll\":{\"started\":10,\"written\":4,"
            "\"filtered_by\":{\"min_size\":1},\"dropped_by\":{\"pool_full\":2,\"new_cause\":1},"
            "\"incomplete\":1,\"late\":0,"
            "\"in_flight\":1,\"timing_fallback_by\":{}},\"p2p\":{\"started\":0,\"written\":0,\"filtered_by\":"
            "{},"
            "\"dropped_by\":{},\"incomplete\":0,\"late\":0,\"in_flight\":0,\"timing_fallback_by\":{}},"
            "\"strays\":{\"null_parent\":3}}}"),
      NI_OK);
  assert_true(line.stats.final && line.stats.has_accounting);
  assert_int_equal(line.stats.kind[0].dropped_by.total, 3);
  assert_string_equal(line.stats.kind[0].dropped_by.item[1].name, "new_cause");
  assert_int_equal(line.stats.kind[0].filtered_by.total, 1);
  assert_int_equal(line.stats.strays.total, 3);
  static const struct {
    const char *text;
    enum ni_line_kind kind;
  } others[] = {
      {"\"comm\":{\"name\":null,\"hash\":\"0x12\",\"rank\":1,\"n_ranks\":2,\"nnodes\":1,\"gpu_index\":null,"
       "\"gpu_uuid\":null,\"gpu_pci\":\"p\",\"init_ns\":5}",
       NI_LINE_COMM},
      {"\"comm_end\":{\"why\":\"exit\",\"ns\":5}", NI_LINE_COMM_END},
      {"\"gap\":{\"kind\":\"coll\",\"count\":3,\"cause\":\"pool_full\",\"rec_sn_from\":1,\"rec_sn_to\":3}",
       NI_LINE_GAP},
      {"\"late\":{\"kind\":\"coll\",\"func\":\"AllReduce\",\"sn\":1,\"rec_sn\":1,\"channel\":3,\"stop_gpu_"
       "ns\":9}",
       NI_LINE_LATE},
      {"\"incomplete\":{\"kind\":\"p2p\",\"func\":\"Send\",\"sn\":1,\"rec_sn\":1,\"msg_size_bytes\":1,"
       "\"channels_expected\":null,\"channels_started\":1,\"channels_stopped\":0,\"enqueue_ns\":1,\"age_ms\":"
       "5,\"why\":\"finalize\"}",
       NI_LINE_INCOMPLETE},
      {"\"stuck\":{\"kind\":\"p2p\"}", NI_LINE_STUCK},
      {"\"in_flight\":{\"kind\":\"coll\",\"state\":\"kernel\",\"root\":3,\"channels_open\":"
       "\"0x8000000000000001\"}",
       NI_LINE_IN_FLIGHT},
      {"\"in_flight\":{\"kind\":\"p2p\"}", NI_LINE_IN_FLIGHT},
      {"\"pool_stats\":{\"kind\":\"arena\",\"capacity_bytes\":1,\"used_bytes\":2,\"high_water_bytes\":3,"
       "\"cap_bytes\":4}",
       NI_LINE_POOL_STATS},
      {"\"note\":{\"text\":\"x\"}", NI_LINE_NOTE},
      {"\"control\":{\"source\":\"duty\",\"command\":\"kernelch "
       "off\",\"result\":\"done\",\"why\":null,\"events\":\"coll\",\"verbose\":true,\"sample\":10,\"ns\":5}",
       NI_LINE_CONTROL},
  };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    char text[2048];
    snprintf(text, sizeof text, "{" HEAD "," OURS ",%s}", others[i].text);
    assert_int_equal(parse(text), NI_OK);
    assert_int_equal(line.kind, others[i].kind);
    assert_int_equal(line.unknown_keys, 0);
  }
  assert_int_equal(parse("{" HEAD "," OURS ",\"in_flight\":{\"kind\":\"p2p\",\"func\":\"Recv\",\"state\":"
                         "\"network\",\"datatype\":\"ncclInt8\","
                         "\"peer\":3,\"channels_open\":\"0x8000000000000001\",\"net_peer\":4,\"net_channel\":"
                         "63,\"net_state\":\"recv_wait\"}}"),
                   NI_OK);
  const struct ni_unfinished_line *u = &line.unfinished;
  assert_string_equal(u->state, "network");
  assert_true(u->peer == 3 && u->root == -1 && u->net_peer == 4 && u->net_channel == 63);
  assert_true(u->channels_open == 0x8000000000000001);
  assert_string_equal(u->net_state, "recv_wait");
  assert_int_equal(
      parse("{" HEAD "," OURS ",\"process\":{\"start_ns\":5,\"recovered_ns\":7,\"recovered_live\":true}}"),
      NI_OK);
  assert_true(line.process.recovered_ns == 7 && line.process.recovered_live);
}

static void test_rollup_lines(void **state) {
  (void)state;
  assert_int_equal(
      parse(
          "{" HEAD "," OURS ",\"rollup\":{\"kind\":\"p2p\",\"func\":\"Send\",\"msg_size_bytes\":1024,"
          "\"msg_size_to_bytes\":2047,\"timing_source\":\"kernel_cpu\",\"from_ns\":1,\"to_ns\":2,\"count\":3,"
          "\"sum_bytes\":4000,\"sum_ns\":6000,\"min_ns\":900,\"max_ns\":3000,\"hist\":{\"0\":1,\"2048\":2}}"
          "}"),
      NI_OK);
  assert_int_equal(line.kind, NI_LINE_ROLLUP);
  assert_int_equal(line.rollup.msg_to_bytes, 2047);
  assert_int_equal(line.rollup.timing, NI_TIMING_KERNEL_CPU);
  uint64_t all = 0;
  for (uint32_t i = 0; i < NI_HIST_BUCKETS; i++)
    all += line.rollup.hist[i];
  assert_int_equal(all, 3);
  assert_int_equal(line.rollup.hist[0], 1);
  assert_int_equal(line.rollup.hist[ni_hist_bucket(2048)], 2);
  static const struct {
    const char *hist;
    enum ni_reject why;
  } bad[] = {{"[]", NI_REJ_BAD_TYPE},
             {"{\"x\":1}", NI_REJ_BAD_VALUE},
             {"{\"\":1}", NI_REJ_BAD_VALUE},
             {"{\"1\":-1}", NI_REJ_OUT_OF_RANGE},
             {"{\"1\":\"2\"}", NI_REJ_BAD_TYPE},
             {"{\"1\":9223372036854775807,\"2\":1}", NI_REJ_OUT_OF_RANGE},
             {"{\"99999999999999999999\":1}", NI_REJ_BAD_VALUE}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char text[2048];
    snprintf(text, sizeof text,
             "{" HEAD "," OURS
             ",\"rollup\":{\"kind\":\"coll\",\"func\":\"x\",\"msg_size_bytes\":1,"
             "\"count\":1,\"sum_ns\":1,\"min_ns\":1,\"max_ns\":1,\"hist\":%s}}",
             bad[i].hist);
    assert_int_equal(parse(text), bad[i].why);
  }
  /* Buckets: every edge begins its own, and the one before ends there. */
  for (uint32_t b = 0; b < NI_HIST_BUCKETS; b++) {
    assert_int_equal(ni_hist_bucket(ni_hist_edge(b)), b);
    if (b)
      assert_int_equal(ni_hist_bucket(ni_hist_edge(b) - 1), b - 1);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nested_steps),
      cmocka_unit_test(test_verbose),
      cmocka_unit_test(test_run_lines),
      cmocka_unit_test(test_rollup_lines),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
