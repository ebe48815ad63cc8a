/* Lines of every version and kind, any key order, every reason for a rejection; the short way against the whole one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exporter/input/parse/parse.h"
#include "format/line_tables.h"

#define HEAD "\"header\":{\"id\":\"0x5d1c7e90aa41b2\",\"rank\":3,\"n_ranks\":8,\"nnodes\":1}"
#define META_AT(v, t) \
  "\"metadata\":{\"inspector_output_format_version\":\"" v "\",\"git_rev\":\"1a2b\",\"rec_mechanism\":\"m\"," \
  "\"dump_timestamp_us\":" t ",\"hostname\":\"node-a\",\"pid\":4242}"
#define META META_AT("v4.0", "1790000000123456")
#define OURS \
  "\"metadata\":{\"inspector_output_format_version\":\"v4.0\",\"git_rev\":\"1a2b\",\"rec_mechanism\":\"m\"," \
  "\"dump_timestamp_us\":1790000000123456,\"hostname\":\"node-a\",\"pid\":4242,\"producer\":\"nccl-inspector-c 0.1.0\"}"
#define COLL \
  "\"coll_perf\":{\"coll\":\"AllReduce\",\"coll_sn\":17,\"coll_msg_size_bytes\":1048576,\"coll_exec_time_us\":59," \
  "\"coll_timing_source\":\"kernel_gpu\",\"coll_algobw_gbs\":17.772475,\"coll_busbw_gbs\":31.101831}"

static struct ni_parser *p;
static struct ni_line line;

/* Parses a line where it lies, with hostile bytes behind it; the text must be unchanged after. */
static enum ni_reject parse(const char *text) {
  size_t len = strlen(text);
  char *b = malloc(len + NI_PARSE_PADDING);
  memcpy(b, text, len);
  memset(b + len, '}', NI_PARSE_PADDING);
  enum ni_reject r = ni_parse_line(p, b, len, len + NI_PARSE_PADDING, &line);
  assert_memory_equal(b, text, len);
  free(b);
  return r;
}

static void test_nvidia_v40(void **state) {
  (void)state;
  /* Twice: the second time takes the short way. */
  for (int i = 0; i < 2; i++) {
    assert_int_equal(parse("{" HEAD "," META "," COLL "}"), NI_OK);
    assert_int_equal(line.kind, NI_LINE_OP);
    assert_true(line.has_header);
    assert_false(line.is_p2p);
    assert_int_equal(line.ident.comm_hash, 0x5d1c7e90aa41b2);
    assert_null(line.ident.comm_name);
    assert_int_equal(line.ident.rank, 3);
    assert_int_equal(line.ident.n_ranks, 8);
    assert_int_equal(line.ident.nnodes, 1);
    assert_string_equal(line.meta.version, "v4.0");
    assert_string_equal(line.meta.hostname, "node-a");
    assert_int_equal(line.meta.pid, 4242);
    assert_null(line.meta.producer);
    assert_int_equal(line.meta.dump_timestamp_us, 1790000000123456);
    assert_string_equal(line.op.func, "AllReduce");
    assert_int_equal(line.op.sn, 17);
    assert_int_equal(line.op.msg_bytes, 1048576);
    assert_int_equal(line.op.exec_us, 59);
    assert_int_equal(line.op.timing, NI_TIMING_KERNEL_GPU);
    assert_int_equal(line.op.has, NI_HAS_ALGOBW | NI_HAS_BUSBW);
    assert_true(line.op.algobw_gbs == 17.772475);
    assert_true(line.op.busbw_gbs == 31.101831);
    assert_null(line.op.algo);
    assert_null(line.trace);
    assert_string_equal(line.kind_name, "coll_perf");
  }
}

static void test_ours(void **state) {
  (void)state;
  assert_int_equal(
      parse("{\"header\":{\"id\":\"0xffffffffffffffff\",\"comm_name\":\"tp\\/0 \\u00e9\",\"rank\":0,\"n_ranks\":2,\"nnodes\":1}," OURS
            ",\"coll_perf\":{\"coll\":\"AllGather\",\"coll_sn\":1,\"coll_msg_size_bytes\":8,\"coll_exec_time_us\":1,"
            "\"coll_timing_source\":\"kernel_cpu\",\"coll_algobw_gbs\":null,\"coll_busbw_gbs\":null,\"coll_algo\":\"RING\","
            "\"coll_proto\":\"LL\",\"coll_datatype\":\"ncclInt8\",\"coll_root\":0,\"coll_nchannels\":4,"
            "\"nchannels_src\":\"observed\",\"coll_exec_time_ns\":900,\"coll_enqueue_ns\":1790000000123456789,"
            "\"coll_gpu_start_delta_ns\":-5,\"rec_sn\":9223372036854775807,\"nccl_tests_size_bytes\":16}}"),
      NI_OK);
  assert_int_equal(line.ident.comm_hash, 0xffffffffffffffff);
  assert_string_equal(line.ident.comm_name, "tp/0 \xc3\xa9");
  assert_string_equal(line.meta.producer, "nccl-inspector-c 0.1.0");
  assert_int_equal(line.op.has, NI_HAS_ROOT | NI_HAS_NCHANNELS | NI_HAS_EXEC_NS | NI_HAS_ENQUEUE | NI_HAS_GPU_DELTA |
                                    NI_HAS_REC_SN | NI_HAS_TESTS_SIZE);
  assert_string_equal(line.op.algo, "RING");
  assert_string_equal(line.op.proto, "LL");
  assert_string_equal(line.op.datatype, "ncclInt8");
  assert_true(line.op.nchannels_observed);
  assert_int_equal(line.op.gpu_start_delta_ns, -5);
  assert_true(line.op.rec_sn == INT64_MAX);
  assert_int_equal(line.op.enqueue_ns, 1790000000123456789);
  assert_int_equal(line.unknown_keys, 0);

  assert_int_equal(parse("{" HEAD "," OURS ",\"p2p_perf\":{\"p2p\":\"Send\",\"p2p_sn\":5,\"p2p_peer\":2,"
                         "\"p2p_msg_size_bytes\":65536,\"p2p_exec_time_us\":12,\"p2p_timing_source\":\"collective_cpu\","
                         "\"p2p_algobw_gbs\":5.461333,\"p2p_busbw_gbs\":5.461333,\"rec_sn\":3}}"), NI_OK);
  assert_true(line.is_p2p);
  assert_int_equal(line.op.kind, NI_KIND_P2P);
  assert_int_equal(line.op.root, 2);
  assert_int_equal(line.op.rec_sn, 3);
  assert_int_equal(line.op.timing, NI_TIMING_COLLECTIVE_CPU);
}

static void test_any_order_and_unknown_keys(void **state) {
  (void)state;
  assert_int_equal(parse(" { \"coll_perf\" : {\"coll_exec_time_us\":59,\"new_key\":[1,{\"a\":\"}\"}],\"coll_sn\":17,"
                         "\"coll\":\"X\",\"coll_msg_size_bytes\":1}, \"more\":{}," META "," HEAD " } \r"), NI_OK);
  assert_int_equal(line.kind, NI_LINE_OP);
  assert_int_equal(line.op.sn, 17);
  assert_int_equal(line.unknown_keys, 2);
  assert_string_equal(line.unknown_key, "new_key");
  assert_string_equal(line.kind_name, "coll_perf");
  /* An escaped spelling of a key is another spelling of an unknown key, not a crash. */
  assert_int_equal(parse("{" HEAD "," META ",\"fut\\u0075re\":{\"x\":1}}"), NI_OK);
  assert_int_equal(line.kind, NI_LINE_UNKNOWN);
  assert_string_equal(line.kind_name, "future");
}

static void test_no_value(void **state) {
  (void)state;
  static const char *const words[] = {"null", "\"nan\"", "\"NaN\"", "NaN", "nan", "-nan", "inf", "-inf", "\"inf\"", "Infinity"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    char text[1024];
    snprintf(text, sizeof text,
             "{" HEAD "," META ",\"coll_perf\":{\"coll\":\"AllReduce\",\"coll_sn\":1,\"coll_msg_size_bytes\":1,"
             "\"coll_exec_time_us\":0,\"coll_algobw_gbs\":%s,\"coll_busbw_gbs\":2.5e0}}", words[i]);
    assert_int_equal(parse(text), NI_OK);
    assert_int_equal(line.op.has, NI_HAS_BUSBW);
    assert_true(line.op.busbw_gbs == 2.5);
  }
}

static void test_doubles(void **state) {
  (void)state;
  static const char *const numbers[] = {"0", "0.0", "0.000001", "1", "17.772475", "123456789.123456", "0.1", "5e-324",
                                        "999999999.999999", "1.7976931348623157e2", "4503599627370497.5", "12345678901234567890e-12"};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    char text[1024];
    snprintf(text, sizeof text,
             "{\"coll_perf\":{\"coll\":\"A\",\"coll_sn\":1,\"coll_msg_size_bytes\":1,\"coll_exec_time_us\":0,"
             "\"coll_algobw_gbs\":0,\"coll_busbw_gbs\":%s}}", numbers[i]);
    enum ni_reject r = parse(text);
    if (strtod(numbers[i], NULL) > NI_BW_MAX_GBS) {
      assert_int_equal(r, NI_REJ_OUT_OF_RANGE);
      continue;
    }
    assert_int_equal(r, NI_OK);
    assert_true(line.op.busbw_gbs == strtod(numbers[i], NULL));
  }
}

static void test_bare_and_marker(void **state) {
  (void)state;
  assert_int_equal(parse("{" HEAD "," META_AT("v4.3", "5") ",\"dump_stats\":{\"coll_records\":2,\"coll_dropped_total\":4,"
                         "\"coll_dropped_since_last_dump\":1,\"p2p_records\":0,\"proxy_records\":1,\"proxy_output_mode\":\"nested\"}}"), NI_OK);
  assert_int_equal(line.kind, NI_LINE_DUMP_STATS);
  assert_false(line.stats.has_accounting);
  assert_int_equal(line.stats.records[0], 2);
  assert_int_equal(line.stats.dropped_total[0], 4);
  assert_int_equal(line.unknown_keys, 1);
  assert_int_equal(parse("{" COLL "}"), NI_OK);
  assert_false(line.has_header);
  assert_int_equal(line.kind, NI_LINE_OP);
  assert_int_equal(parse("{\"proxy_trace\":{\"record_type\":\"proxy_op\",\"parent_sn\":18,\"is_final\":true,"
                         "\"wire_us\":1.5,\"steps\":[{\"step\":0}]}}"), NI_OK);
  assert_int_equal(line.kind, NI_LINE_PROXY);
  assert_true(line.proxy.is_final);
  assert_true(line.proxy.wire_us == 1.5);
  assert_true(isnan(line.proxy.flush_us));
  assert_int_equal(line.proxy.steps.n, 1);
  assert_int_equal(line.unknown_keys, 0);
}

/* Steps in their operation's line; a line has its own and none of those before it. */
static void test_nested_steps(void **state) {
  (void)state;
#define SEGMENT(steps) "{" HEAD "," META ",\"proxy_trace\":{\"record_type\":\"proxy_op_segment\",\"is_final\":false,\"steps\":" steps "}}"
  assert_int_equal(parse(SEGMENT("[{\"record_sn\":96,\"proxy_step_sn\":3,\"step\":7,\"trans_size_bytes\":1024,\"total_us\":40.5,"
                                 "\"gpu_produce_us\":10,\"peer_credit_us\":11,\"wire_us\":12,\"flush_us\":13,\"gpu_consume_us\":14,"
                                 "\"start_ns\":1790000000123012000},{\"step\":null,\"total_us\":null,\"of_later\":[1]},{}]")), NI_OK);
  assert_false(line.proxy.is_final);
  assert_int_equal(line.proxy.steps.n, 3);
  assert_int_equal(line.unknown_keys, 1);
  const struct ni_proxy_step *s = line.proxy.steps.list;
  assert_true(s[0].record_sn == 96 && s[0].proxy_step_sn == 3 && s[0].step == 7 && s[0].trans_size_bytes == 1024);
  assert_true(s[0].total_us == 40.5 && s[0].gpu_produce_us == 10 && s[0].peer_credit_us == 11 && s[0].wire_us == 12);
  assert_true(s[0].flush_us == 13 && s[0].gpu_consume_us == 14 && s[0].start_ns == 1790000000123012000u);
  for (int i = 1; i < 3; i++) assert_true(s[i].step == -1 && isnan(s[i].total_us) && isnan(s[i].wire_us) && s[i].start_ns == 0);
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
    for (size_t i = 0; i < line.proxy.steps.n; i++) assert_int_equal(line.proxy.steps.list[i].step, i % 10);
    free(long_line);
  }
}

static void test_verbose(void **state) {
  (void)state;
#define TRACE \
  ",\"event_trace_sn\":{\"coll_start_sn\":1,\"coll_stop_sn\":2,\"kernel_events\":[{\"channel_id\":7,\"kernel_start_sn\":3," \
  "\"kernel_stop_sn\":5,\"kernel_record_sn\":4},{\"channel_id\":9}]},\"event_trace_ts\":{\"coll_start_ts\":10,\"coll_stop_ts\":14," \
  "\"kernel_events\":[{\"channel_id\":7,\"kernel_start_ts\":20,\"kernel_stop_ts\":79,\"kernel_record_ts\":78}]}"
#define PERF "\"coll_perf\":{\"coll\":\"A\",\"coll_sn\":1,\"coll_msg_size_bytes\":1,\"coll_exec_time_us\":1"
  static const char *const texts[] = {"{" HEAD "," META "," PERF TRACE "}}", "{" HEAD "," META "," PERF "}" TRACE "}"};
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
  assert_int_equal(parse(ZERO "\"process\":{\"start_ns\":7,\"boot_id\":\"b\",\"exe\":\"python3\",\"rank\":null,"
                              "\"local_rank\":1,\"world_size\":null,\"env\":{\"RANK\":\"3\",\"X\":\"\"},"
                              "\"nccl_version\":null,\"interface\":\"v6\",\"settings\":{}}}"), NI_OK);
  assert_int_equal(line.kind, NI_LINE_PROCESS);
  assert_int_equal(line.process.rank, -1);
  assert_int_equal(line.process.local_rank, 1);
  assert_int_equal(line.process.nccl_version, -1);
  assert_int_equal(line.process.env.n, 2);
  assert_string_equal(line.process.env.item[0].value, "3");
  assert_int_equal(parse("{" HEAD "," OURS ",\"clock\":{\"source\":\"tsc\",\"ticks\":1,\"monotonic_ns\":2,\"realtime_ns\":3,"
                         "\"ns_per_tick\":0.416666666667,\"gpu_offset_ns\":null,\"gpu_offset_at_ns\":null,\"gpu_samples\":0}}"), NI_OK);
  assert_true(line.clock.gpu_offset_ns == NI_NO_OFFSET);
  assert_true(line.clock.ns_per_tick == 0.416666666667);
  assert_int_equal(
      parse("{" HEAD "," OURS ",\"dump_stats\":{\"coll_records\":1,\"final\":true,\"coll\":{\"started\":10,\"written\":4,"
            "\"filtered_by\":{\"min_size\":1},\"dropped_by\":{\"pool_full\":2,\"new_cause\":1},\"incomplete\":1,\"late\":0,"
            "\"in_flight\":1,\"timing_fallback_by\":{}},\"p2p\":{\"started\":0,\"written\":0,\"filtered_by\":{},"
            "\"dropped_by\":{},\"incomplete\":0,\"late\":0,\"in_flight\":0,\"timing_fallback_by\":{}},\"strays\":{\"null_parent\":3}}}"), NI_OK);
  assert_true(line.stats.final && line.stats.has_accounting);
  assert_int_equal(line.stats.kind[0].dropped_by.total, 3);
  assert_string_equal(line.stats.kind[0].dropped_by.item[1].name, "new_cause");
  assert_int_equal(line.stats.kind[0].filtered_by.total, 1);
  assert_int_equal(line.stats.strays.total, 3);
  static const struct {
    const char *text;
    enum ni_line_kind kind;
  } others[] = {
      {"\"comm\":{\"name\":null,\"hash\":\"0x12\",\"rank\":1,\"n_ranks\":2,\"nnodes\":1,\"gpu_index\":null,\"gpu_uuid\":null,\"gpu_pci\":\"p\",\"init_ns\":5}", NI_LINE_COMM},
      {"\"comm_end\":{\"why\":\"exit\",\"ns\":5}", NI_LINE_COMM_END},
      {"\"gap\":{\"kind\":\"coll\",\"count\":3,\"cause\":\"pool_full\",\"rec_sn_from\":1,\"rec_sn_to\":3}", NI_LINE_GAP},
      {"\"late\":{\"kind\":\"coll\",\"func\":\"AllReduce\",\"sn\":1,\"rec_sn\":1,\"channel\":3,\"stop_gpu_ns\":9}", NI_LINE_LATE},
      {"\"incomplete\":{\"kind\":\"p2p\",\"func\":\"Send\",\"sn\":1,\"rec_sn\":1,\"msg_size_bytes\":1,\"channels_expected\":null,\"channels_started\":1,\"channels_stopped\":0,\"enqueue_ns\":1,\"age_ms\":5,\"why\":\"finalize\"}", NI_LINE_INCOMPLETE},
      {"\"stuck\":{\"kind\":\"p2p\"}", NI_LINE_STUCK},
      {"\"in_flight\":{\"kind\":\"coll\",\"state\":\"kernel\",\"root\":3,\"channels_open\":\"0x8000000000000001\"}", NI_LINE_IN_FLIGHT},
      {"\"in_flight\":{\"kind\":\"p2p\"}", NI_LINE_IN_FLIGHT},
      {"\"pool_stats\":{\"kind\":\"arena\",\"capacity_bytes\":1,\"used_bytes\":2,\"high_water_bytes\":3,\"cap_bytes\":4}", NI_LINE_POOL_STATS},
      {"\"note\":{\"text\":\"x\"}", NI_LINE_NOTE},
      {"\"control\":{\"source\":\"duty\",\"command\":\"kernelch off\",\"result\":\"done\",\"why\":null,\"events\":\"coll\",\"verbose\":true,\"sample\":10,\"ns\":5}", NI_LINE_CONTROL},
  };
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    char text[2048];
    snprintf(text, sizeof text, "{" HEAD "," OURS ",%s}", others[i].text);
    assert_int_equal(parse(text), NI_OK);
    assert_int_equal(line.kind, others[i].kind);
    assert_int_equal(line.unknown_keys, 0);
  }
  assert_int_equal(
      parse("{" HEAD "," OURS ",\"in_flight\":{\"kind\":\"p2p\",\"func\":\"Recv\",\"state\":\"network\",\"datatype\":\"ncclInt8\","
            "\"peer\":3,\"channels_open\":\"0x8000000000000001\",\"net_peer\":4,\"net_channel\":63,\"net_state\":\"recv_wait\"}}"),
      NI_OK);
  const struct ni_unfinished_line *u = &line.unfinished;
  assert_string_equal(u->state, "network");
  assert_true(u->peer == 3 && u->root == -1 && u->net_peer == 4 && u->net_channel == 63);
  assert_true(u->channels_open == 0x8000000000000001);
  assert_string_equal(u->net_state, "recv_wait");
  assert_int_equal(parse("{" HEAD "," OURS ",\"process\":{\"start_ns\":5,\"recovered_ns\":7,\"recovered_live\":true}}"), NI_OK);
  assert_true(line.process.recovered_ns == 7 && line.process.recovered_live);
}

static void test_rollup_lines(void **state) {
  (void)state;
  assert_int_equal(parse("{" HEAD "," OURS ",\"rollup\":{\"kind\":\"p2p\",\"func\":\"Send\",\"msg_size_bytes\":1024,"
                         "\"msg_size_to_bytes\":2047,\"timing_source\":\"kernel_cpu\",\"from_ns\":1,\"to_ns\":2,\"count\":3,"
                         "\"sum_bytes\":4000,\"sum_ns\":6000,\"min_ns\":900,\"max_ns\":3000,\"hist\":{\"0\":1,\"2048\":2}}}"), NI_OK);
  assert_int_equal(line.kind, NI_LINE_ROLLUP);
  assert_int_equal(line.rollup.msg_to_bytes, 2047);
  assert_int_equal(line.rollup.timing, NI_TIMING_KERNEL_CPU);
  uint64_t all = 0;
  for (uint32_t i = 0; i < NI_HIST_BUCKETS; i++) all += line.rollup.hist[i];
  assert_int_equal(all, 3);
  assert_int_equal(line.rollup.hist[0], 1);
  assert_int_equal(line.rollup.hist[ni_hist_bucket(2048)], 2);
  static const struct {
    const char *hist;
    enum ni_reject why;
  } bad[] = {{"[]", NI_REJ_BAD_TYPE}, {"{\"x\":1}", NI_REJ_BAD_VALUE}, {"{\"\":1}", NI_REJ_BAD_VALUE},
             {"{\"1\":-1}", NI_REJ_OUT_OF_RANGE}, {"{\"1\":\"2\"}", NI_REJ_BAD_TYPE},
             {"{\"1\":9223372036854775807,\"2\":1}", NI_REJ_OUT_OF_RANGE},
             {"{\"99999999999999999999\":1}", NI_REJ_BAD_VALUE}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    char text[2048];
    snprintf(text, sizeof text, "{" HEAD "," OURS ",\"rollup\":{\"kind\":\"coll\",\"func\":\"x\",\"msg_size_bytes\":1,"
             "\"count\":1,\"sum_ns\":1,\"min_ns\":1,\"max_ns\":1,\"hist\":%s}}", bad[i].hist);
    assert_int_equal(parse(text), bad[i].why);
  }
  /* Buckets: every edge begins its own, and the one before ends there. */
  for (uint32_t b = 0; b < NI_HIST_BUCKETS; b++) {
    assert_int_equal(ni_hist_bucket(ni_hist_edge(b)), b);
    if (b) assert_int_equal(ni_hist_bucket(ni_hist_edge(b) - 1), b - 1);
  }
}

/* Every reason, and the key it names. Each is tried after the head was learnt, so that the short way is met too. */
static void test_rejections(void **state) {
  (void)state;
#define OP(rest) "{" HEAD "," META ",\"coll_perf\":{" rest "}}"
#define REST ",\"coll_msg_size_bytes\":1,\"coll_exec_time_us\":1"
  char deep[400] = "{" HEAD "," META ",\"x\":", *d = deep + strlen(deep);
  memset(d, '[', 60);
  memset(d + 60, ']', 60);
  strcpy(d + 120, "}");
  const struct {
    const char *text;
    enum ni_reject why;
    const char *key;
  } cases[] = {
      {"", NI_REJ_BLANK, NULL},
      {" \t\r", NI_REJ_BLANK, NULL},
      {"garbage", NI_REJ_BAD_JSON, NULL},
      {"{", NI_REJ_BAD_JSON, NULL},
      {"5", NI_REJ_NOT_OBJECT, NULL},
      {"[1]", NI_REJ_NOT_OBJECT, NULL},
      {"{}", NI_REJ_NO_PERF, NULL},
      {"{" HEAD "," META "}", NI_REJ_NO_PERF, NULL},
      {"{\"x\":{}}", NI_REJ_NO_PERF, NULL},
      {"{" HEAD "," META "," COLL, NI_REJ_BAD_JSON, NULL},
      {"{" HEAD "," META "," COLL "}}", NI_REJ_BAD_JSON, NULL},
      {"{" HEAD "," META "," COLL "} x", NI_REJ_BAD_JSON, NULL},
      {"{" HEAD "," META "," COLL "," COLL "}", NI_REJ_DUPLICATE_KEY, "coll_perf"},
      {"{" HEAD "," META "," COLL ",\"note\":{\"text\":\"\"}}", NI_REJ_TWO_KINDS, "note"},
      {"{" HEAD "," COLL "}", NI_REJ_MISSING_KEY, "metadata"},
      {"{" META "," COLL "}", NI_REJ_MISSING_KEY, "header"},
      {"{\"header\":5," META "," COLL "}", NI_REJ_BAD_TYPE, "header"},
      {OP("\"coll\":\"A\",\"coll_sn\":1,\"coll_exec_time_us\":1"), NI_REJ_MISSING_KEY, "coll_msg_size_bytes"},
      {OP("\"coll\":\"A\",\"coll_sn\":-1" REST), NI_REJ_OUT_OF_RANGE, "coll_sn"},
      {OP("\"coll\":\"A\",\"coll_sn\":9223372036854775808" REST), NI_REJ_OUT_OF_RANGE, "coll_sn"},
      {OP("\"coll\":\"A\",\"coll_sn\":99999999999999999999999" REST), NI_REJ_OUT_OF_RANGE, "coll_sn"},
      {OP("\"coll\":\"A\",\"coll_sn\":1.5" REST), NI_REJ_BAD_TYPE, "coll_sn"},
      {OP("\"coll\":\"A\",\"coll_sn\":\"1\"" REST), NI_REJ_BAD_TYPE, "coll_sn"},
      {OP("\"coll\":\"A\",\"coll_sn\":null" REST), NI_REJ_BAD_TYPE, "coll_sn"},
      {OP("\"coll\":\"A\",\"coll_sn\":01" REST), NI_REJ_BAD_JSON, "coll_sn"},
      {OP("\"coll\":\"A\",\"coll_sn\":1x" REST), NI_REJ_BAD_JSON, "coll_sn"},
      {OP("\"coll\":5,\"coll_sn\":1" REST), NI_REJ_BAD_TYPE, "coll"},
      {OP("\"coll\":\"A\\u0000B\",\"coll_sn\":1" REST), NI_REJ_BAD_VALUE, "coll"},
      {OP("\"coll\":\"A\\q\",\"coll_sn\":1" REST), NI_REJ_BAD_JSON, "coll"},
      {OP("\"coll\":\"A\",\"coll_sn\":1,\"coll_sn\":1" REST), NI_REJ_DUPLICATE_KEY, "coll_sn"},
      {OP("\"coll\":\"A\",\"coll_sn\":1,\"coll_busbw_gbs\":-0.5" REST), NI_REJ_OUT_OF_RANGE, "coll_busbw_gbs"},
      {OP("\"coll\":\"A\",\"coll_sn\":1,\"coll_busbw_gbs\":1e200" REST), NI_REJ_OUT_OF_RANGE, "coll_busbw_gbs"},
      {OP("\"coll\":\"A\",\"coll_sn\":1,\"coll_busbw_gbs\":1e999" REST), NI_REJ_OUT_OF_RANGE, "coll_busbw_gbs"},
      {OP("\"coll\":\"A\",\"coll_sn\":1,\"coll_busbw_gbs\":\"fast\"" REST), NI_REJ_BAD_TYPE, "coll_busbw_gbs"},
      {OP("\"coll\":\"A\",\"coll_sn\":1,\"coll_busbw_gbs\":1.2.3" REST), NI_REJ_BAD_JSON, "coll_busbw_gbs"},
      {OP("\"coll\":\"A\",\"coll_sn\":1,\"coll_timing_source\":\"guess\"" REST), NI_REJ_BAD_VALUE, "coll_timing_source"},
      {OP("\"coll\":\"A\",\"coll_sn\":1,\"new\":tru" REST), NI_REJ_BAD_JSON, NULL},
      {OP("\"coll\":\"A\",\"coll_sn\":1,\"new\":{\"a\" 1}" REST), NI_REJ_BAD_JSON, NULL},
      {"{" HEAD "," META ",xcoll_perf\":{\"coll\":\"A\",\"coll_sn\":1" REST "}}", NI_REJ_BAD_JSON, NULL},
      {OP("\"coll\":\"A\":\"B\",\"coll_sn\":1" REST), NI_REJ_BAD_JSON, NULL},
      {OP("\"coll\":\"A\",\"new\":\"A\":\"B\",\"coll_sn\":1" REST), NI_REJ_BAD_JSON, NULL},
      {OP("\"coll\":\"A\",\"coll_busbw_gbs\":\"nan\":1,\"coll_sn\":1" REST), NI_REJ_BAD_JSON, NULL},
      {"{\"header\":{\"id\":\"0x1\":1,\"rank\":3,\"n_ranks\":8,\"nnodes\":1}," META "," COLL "}", NI_REJ_BAD_JSON, NULL},
      {OP("\"coll\":\"A\",\"coll_sn\":1 2" REST), NI_REJ_BAD_JSON, NULL},
      {OP("\"coll\":\"\xff\",\"coll_sn\":1" REST), NI_REJ_BAD_UTF8, NULL},
      {"{\"header\":{\"id\":\"5d1c\",\"rank\":3,\"n_ranks\":8,\"nnodes\":1}," META "," COLL "}", NI_REJ_BAD_VALUE, "id"},
      {"{\"header\":{\"id\":\"0x1g\",\"rank\":3,\"n_ranks\":8,\"nnodes\":1}," META "," COLL "}", NI_REJ_BAD_VALUE, "id"},
      {"{\"header\":{\"id\":\"0x11112222333344445\",\"rank\":3,\"n_ranks\":8,\"nnodes\":1}," META "," COLL "}", NI_REJ_OUT_OF_RANGE, "id"},
      {"{\"header\":{\"id\":\"0x1\",\"rank\":8,\"n_ranks\":8,\"nnodes\":1}," META "," COLL "}", NI_REJ_OUT_OF_RANGE, "rank"},
      {"{\"header\":{\"id\":\"0x1\",\"rank\":4294967296,\"n_ranks\":8,\"nnodes\":1}," META "," COLL "}", NI_REJ_OUT_OF_RANGE, "rank"},
      {"{" HEAD "," META_AT("v4.0", "-5") "," COLL "}", NI_REJ_OUT_OF_RANGE, "dump_timestamp_us"},
      {"{" HEAD "," META_AT("v4.0", "0123") "," COLL "}", NI_REJ_BAD_JSON, "dump_timestamp_us"},
      {deep, NI_REJ_TOO_DEEP, NULL},
      /* A brace missing inside and one too many outside must not cancel out, also where '}' follows the line. */
      {"{" HEAD "," META ",\"coll_perf\":{\"coll\":\"A\",\"coll_sn\":1,\"x\":{\"y\":1}" REST "}", NI_REJ_BAD_JSON, NULL},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_int_equal(parse("{" HEAD "," META "," COLL "}"), NI_OK);
    enum ni_reject why = parse(cases[i].text);
    if (why != cases[i].why)
      print_error("%s: %s, not %s\n", cases[i].text, ni_reject_name(why), ni_reject_name(cases[i].why));
    assert_int_equal(why, cases[i].why);
    if (cases[i].key) {
      assert_non_null(line.bad_key);
      assert_string_equal(line.bad_key, cases[i].key);
    }
  }
}

/* Lines cut at every byte are rejected, never accepted, never beyond their end. */
static void test_cut_everywhere(void **state) {
  (void)state;
  static const char text[] = "{" HEAD "," META "," COLL "}";
  for (size_t n = 0; n < sizeof text - 1; n++) {
    char *b = malloc(n + 1);
    memcpy(b, text, n);
    assert_int_not_equal(ni_parse_line(p, b, n, n, &line), NI_OK);
    free(b);
  }
}

/* Heads of many communicators in turn, with other names, times and ranks. */
static void test_heads_do_not_mix(void **state) {
  (void)state;
  for (unsigned i = 0; i < 5000; i++) {
    unsigned k = i * 7919u % 23u;
    char text[1024];
    snprintf(text, sizeof text,
             "{\"header\":{\"id\":\"0x%x\",%s\"rank\":%u,\"n_ranks\":99,\"nnodes\":1},\"metadata\":{"
             "\"inspector_output_format_version\":\"v4.0\",\"git_rev\":\"\",\"rec_mechanism\":\"m\","
             "\"dump_timestamp_us\":%u,\"hostname\":\"h%u\",\"pid\":%u},\"coll_perf\":{\"coll\":\"A\",\"coll_sn\":%u"
             ",\"coll_msg_size_bytes\":1,\"coll_exec_time_us\":1}}",
             0x10000000u + k % 5, k & 1 ? "\"comm_name\":\"c\"," : "", k, i, k / 3, k / 5, i);
    assert_int_equal(parse(text), NI_OK);
    assert_int_equal(line.ident.comm_hash, 0x10000000u + k % 5);
    assert_int_equal(line.ident.rank, k);
    assert_int_equal(!!line.ident.comm_name, k & 1);
    assert_int_equal(line.meta.dump_timestamp_us, i);
    assert_int_equal(line.meta.pid, k / 5);
    assert_int_equal(atoi(line.meta.hostname + 1), k / 3);
    assert_int_equal(line.op.sn, i);
  }
}

static void test_names(void **state) {
  (void)state;
  for (int i = 0; i < NI_REJ_COUNT; i++) assert_non_null(ni_reject_name((enum ni_reject)i));
  for (int i = 0; i < NI_LINE_KIND_COUNT; i++) assert_non_null(ni_line_kind_name((enum ni_line_kind)i));
}

static int setup(void **state) {
  (void)state;
  return ni_parser_new(&p);
}

static int teardown(void **state) {
  (void)state;
  ni_parser_free(p);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nvidia_v40),  cmocka_unit_test(test_ours),        cmocka_unit_test(test_any_order_and_unknown_keys),
      cmocka_unit_test(test_no_value),    cmocka_unit_test(test_doubles),     cmocka_unit_test(test_bare_and_marker),
      cmocka_unit_test(test_nested_steps),
      cmocka_unit_test(test_verbose),     cmocka_unit_test(test_run_lines), cmocka_unit_test(test_rollup_lines),   cmocka_unit_test(test_rejections),
      cmocka_unit_test(test_cut_everywhere), cmocka_unit_test(test_heads_do_not_mix), cmocka_unit_test(test_names),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
