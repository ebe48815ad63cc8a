/*
 * Lines of every version and kind, any key order, every reason for a rejection; the short way against the
 * whole one.
 */
#include "parse_text.h"

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
      parse(
          "{\"header\":{\"id\":\"0xffffffffffffffff\",\"comm_name\":\"tp\\/0 "
          "\\u00e9\",\"rank\":0,\"n_ranks\":2,\"nnodes\":1}," OURS
          ",\"coll_perf\":{\"coll\":\"AllGather\",\"coll_sn\":1,\"coll_msg_size_bytes\":8,\"coll_exec_time_"
          "us\":1,"
          "\"coll_timing_source\":\"kernel_cpu\",\"coll_algobw_gbs\":null,\"coll_busbw_gbs\":null,\"coll_"
          "algo\":\"RING\","
          "\"coll_proto\":\"LL\",\"coll_datatype\":\"ncclInt8\",\"coll_root\":0,\"coll_nchannels\":4,"
          "\"nchannels_src\":\"observed\",\"coll_exec_time_ns\":900,\"coll_enqueue_ns\":1790000000123456789,"
          "\"coll_gpu_start_delta_ns\":-5,\"rec_sn\":9223372036854775807,\"nccl_tests_size_bytes\":16}}"),
      NI_OK);
  assert_int_equal(line.ident.comm_hash, 0xffffffffffffffff);
  assert_string_equal(line.ident.comm_name, "tp/0 \xc3\xa9");
  assert_string_equal(line.meta.producer, "nccl-inspector-c 0.1.0");
  assert_int_equal(line.op.has,
                   NI_HAS_ROOT | NI_HAS_NCHANNELS | NI_HAS_EXEC_NS | NI_HAS_ENQUEUE | NI_HAS_GPU_DELTA |
                       NI_HAS_REC_SN | NI_HAS_TESTS_SIZE);
  assert_string_equal(line.op.algo, "RING");
  assert_string_equal(line.op.proto, "LL");
  assert_string_equal(line.op.datatype, "ncclInt8");
  assert_true(line.op.nchannels_observed);
  assert_int_equal(line.op.gpu_start_delta_ns, -5);
  assert_true(line.op.rec_sn == INT64_MAX);
  assert_int_equal(line.op.enqueue_ns, 1790000000123456789);
  assert_int_equal(line.unknown_keys, 0);

  assert_int_equal(
      parse("{" HEAD "," OURS ",\"p2p_perf\":{\"p2p\":\"Send\",\"p2p_sn\":5,\"p2p_peer\":2,"
            "\"p2p_msg_size_bytes\":65536,\"p2p_exec_time_us\":12,\"p2p_timing_source\":\"collective_cpu\","
            "\"p2p_algobw_gbs\":5.461333,\"p2p_busbw_gbs\":5.461333,\"rec_sn\":3}}"),
      NI_OK);
  assert_true(line.is_p2p);
  assert_int_equal(line.op.kind, NI_KIND_P2P);
  assert_int_equal(line.op.root, 2);
  assert_int_equal(line.op.rec_sn, 3);
  assert_int_equal(line.op.timing, NI_TIMING_COLLECTIVE_CPU);
}

static void test_any_order_and_unknown_keys(void **state) {
  (void)state;
  assert_int_equal(
      parse(" { \"coll_perf\" : {\"coll_exec_time_us\":59,\"new_key\":[1,{\"a\":\"}\"}],\"coll_sn\":17,"
            "\"coll\":\"X\",\"coll_msg_size_bytes\":1}, \"more\":{}," META "," HEAD " } \r"),
      NI_OK);
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
  static const char *const words[] = {"null", "\"nan\"", "\"NaN\"", "NaN",     "nan",
                                      "-nan", "inf",     "-inf",    "\"inf\"", "Infinity"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    char text[1024];
    snprintf(text, sizeof text,
             "{" HEAD "," META
             ",\"coll_perf\":{\"coll\":\"AllReduce\",\"coll_sn\":1,\"coll_msg_size_bytes\":1,"
             "\"coll_exec_time_us\":0,\"coll_algobw_gbs\":%s,\"coll_busbw_gbs\":2.5e0}}",
             words[i]);
    assert_int_equal(parse(text), NI_OK);
    assert_int_equal(line.op.has, NI_HAS_BUSBW);
    assert_true(line.op.busbw_gbs == 2.5);
  }
}

static void test_doubles(void **state) {
  (void)state;
  static const char *const numbers[] = {"0",
                                        "0.0",
                                        "0.000001",
                                        "1",
                                        "17.772475",
                                        "123456789.123456",
                                        "0.1",
                                        "5e-324",
                                        "999999999.999999",
                                        "1.7976931348623157e2",
                                        "4503599627370497.5",
                                        "12345678901234567890e-12"};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    char text[1024];
    snprintf(text, sizeof text,
             "{\"coll_perf\":{\"coll\":\"A\",\"coll_sn\":1,\"coll_msg_size_bytes\":1,\"coll_exec_time_us\":0,"
             "\"coll_algobw_gbs\":0,\"coll_busbw_gbs\":%s}}",
             numbers[i]);
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
  assert_int_equal(
      parse("{" HEAD "," META_AT("v4.3", "5") ",\"dump_stats\":{\"coll_records\":2,\"coll_dropped_total\":4,"
                                              "\"coll_dropped_since_last_dump\":1,\"p2p_records\":0,\"proxy_"
                                              "records\":1,\"proxy_output_mode\":\"nested\"}}"),
      NI_OK);
  assert_int_equal(line.kind, NI_LINE_DUMP_STATS);
  assert_false(line.stats.has_accounting);
  assert_int_equal(line.stats.records[0], 2);
  assert_int_equal(line.stats.dropped_total[0], 4);
  assert_int_equal(line.unknown_keys, 1);
  assert_int_equal(parse("{" COLL "}"), NI_OK);
  assert_false(line.has_header);
  assert_int_equal(line.kind, NI_LINE_OP);
  assert_int_equal(parse("{\"proxy_trace\":{\"record_type\":\"proxy_op\",\"parent_sn\":18,\"is_final\":true,"
                         "\"wire_us\":1.5,\"steps\":[{\"step\":0}]}}"),
                   NI_OK);
  assert_int_equal(line.kind, NI_LINE_PROXY);
  assert_true(line.proxy.is_final);
  assert_true(line.proxy.wire_us == 1.5);
  assert_true(isnan(line.proxy.flush_us));
  assert_int_equal(line.proxy.steps.n, 1);
  assert_int_equal(line.unknown_keys, 0);
}

/*
 * Every reason, and the key it names. Each is tried after the head was learnt, so that the short way is met
 * too.
 */
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
      {OP("\"coll\":\"A\",\"coll_sn\":1,\"coll_busbw_gbs\":-0.5" REST), NI_REJ_OUT_OF_RANGE,
       "coll_busbw_gbs"},
      {OP("\"coll\":\"A\",\"coll_sn\":1,\"coll_busbw_gbs\":1e200" REST), NI_REJ_OUT_OF_RANGE,
       "coll_busbw_gbs"},
      {OP("\"coll\":\"A\",\"coll_sn\":1,\"coll_busbw_gbs\":1e999" REST), NI_REJ_OUT_OF_RANGE,
       "coll_busbw_gbs"},
      {OP("\"coll\":\"A\",\"coll_sn\":1,\"coll_busbw_gbs\":\"fast\"" REST), NI_REJ_BAD_TYPE,
       "coll_busbw_gbs"},
      {OP("\"coll\":\"A\",\"coll_sn\":1,\"coll_busbw_gbs\":1.2.3" REST), NI_REJ_BAD_JSON, "coll_busbw_gbs"},
      {OP("\"coll\":\"A\",\"coll_sn\":1,\"coll_timing_source\":\"guess\"" REST), NI_REJ_BAD_VALUE,
       "coll_timing_source"},
      {OP("\"coll\":\"A\",\"coll_sn\":1,\"new\":tru" REST), NI_REJ_BAD_JSON, NULL},
      {OP("\"coll\":\"A\",\"coll_sn\":1,\"new\":{\"a\" 1}" REST), NI_REJ_BAD_JSON, NULL},
      {"{" HEAD "," META ",xcoll_perf\":{\"coll\":\"A\",\"coll_sn\":1" REST "}}", NI_REJ_BAD_JSON, NULL},
      {OP("\"coll\":\"A\":\"B\",\"coll_sn\":1" REST), NI_REJ_BAD_JSON, NULL},
      {OP("\"coll\":\"A\",\"new\":\"A\":\"B\",\"coll_sn\":1" REST), NI_REJ_BAD_JSON, NULL},
      {OP("\"coll\":\"A\",\"coll_busbw_gbs\":\"nan\":1,\"coll_sn\":1" REST), NI_REJ_BAD_JSON, NULL},
      {"{\"header\":{\"id\":\"0x1\":1,\"rank\":3,\"n_ranks\":8,\"nnodes\":1}," META "," COLL "}",
       NI_REJ_BAD_JSON, NULL},
      {OP("\"coll\":\"A\",\"coll_sn\":1 2" REST), NI_REJ_BAD_JSON, NULL},
      {OP("\"coll\":\"\xff\",\"coll_sn\":1" REST), NI_REJ_BAD_UTF8, NULL},
      {"{\"header\":{\"id\":\"5d1c\",\"rank\":3,\"n_ranks\":8,\"nnodes\":1}," META "," COLL "}",
       NI_REJ_BAD_VALUE, "id"},
      {"{\"header\":{\"id\":\"0x1g\",\"rank\":3,\"n_ranks\":8,\"nnodes\":1}," META "," COLL "}",
       NI_REJ_BAD_VALUE, "id"},
      {"{\"header\":{\"id\":\"0x11112222333344445\",\"rank\":3,\"n_ranks\":8,\"nnodes\":1}," META "," COLL
       "}",
       NI_REJ_OUT_OF_RANGE, "id"},
      {"{\"header\":{\"id\":\"0x1\",\"rank\":8,\"n_ranks\":8,\"nnodes\":1}," META "," COLL "}",
       NI_REJ_OUT_OF_RANGE, "rank"},
      {"{\"header\":{\"id\":\"0x1\",\"rank\":4294967296,\"n_ranks\":8,\"nnodes\":1}," META "," COLL "}",
       NI_REJ_OUT_OF_RANGE, "rank"},
      {"{" HEAD "," META_AT("v4.0", "-5") "," COLL "}", NI_REJ_OUT_OF_RANGE, "dump_timestamp_us"},
      {"{" HEAD "," META_AT("v4.0", "0123") "," COLL "}", NI_REJ_BAD_JSON, "dump_timestamp_us"},
      {deep, NI_REJ_TOO_DEEP, NULL},
      /*
       * A brace missing inside and one too many outside must not cancel out, also where '}' follows the line.
       */
      {"{" HEAD "," META ",\"coll_perf\":{\"coll\":\"A\",\"coll_sn\":1,\"x\":{\"y\":1}" REST "}",
       NI_REJ_BAD_JSON, NULL},
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
             "\"dump_timestamp_us\":%u,\"hostname\":\"h%u\",\"pid\":%u},\"coll_perf\":{\"coll\":\"A\",\"coll_"
             "sn\":%u"
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
  for (int i = 0; i < NI_REJ_COUNT; i++)
    assert_non_null(ni_reject_name((enum ni_reject)i));
  for (int i = 0; i < NI_LINE_KIND_COUNT; i++)
    assert_non_null(ni_line_kind_name((enum ni_line_kind)i));
}

/* Each number is one name's, whatever came between; what has none is told by 0. Names that differ in their
 * last byte, or in their length alone, differ. */
static void test_function_numbers(void **state) {
  (void)state;
  static const char *const plain[] = {
      "A", "AllReduce", "AllReducf", "AllReduceAllRed", "AllReduceAllRedu", "AllRedu", "AllReduc"};
  char name_of[NI_FUNCS_NUMBERED + 1][32] = {""}, text[1024], made[32];
  unsigned with = 0;
  for (int i = 0; i < 400; i++) {
    const char *name = plain[i % 7];
    if (i >= 100)
      snprintf(made, sizeof made, "Func%d", i % 150);
    if (i >= 100)
      name = made;
    snprintf(text, sizeof text,
             "{" HEAD "," META
             ",\"coll_perf\":{\"coll\":\"%s\",\"coll_sn\":1,\"coll_msg_size_bytes\":8,"
             "\"coll_exec_time_us\":59,\"coll_timing_source\":\"kernel_gpu\",\"coll_algobw_gbs\":1.5,\"coll_"
             "busbw_gbs\":1.5}}",
             name);
    assert_int_equal(parse(text), NI_OK);
    const uint32_t no = line.func_no;
    assert_true(no <= NI_FUNCS_NUMBERED);
    if (strlen(name) > 15)
      assert_int_equal(no, 0);
    else if (i < 100)
      assert_int_not_equal(no, 0);
    with += no != 0;
    if (no && !*name_of[no])
      snprintf(name_of[no], sizeof name_of[no], "%s", name);
    if (no)
      assert_string_equal(name_of[no], name);
  }
  assert_true(with > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nvidia_v40),
      cmocka_unit_test(test_ours),
      cmocka_unit_test(test_any_order_and_unknown_keys),
      cmocka_unit_test(test_no_value),
      cmocka_unit_test(test_doubles),
      cmocka_unit_test(test_bare_and_marker),
      cmocka_unit_test(test_rejections),
      cmocka_unit_test(test_cut_everywhere),
      cmocka_unit_test(test_heads_do_not_mix),
      cmocka_unit_test(test_names),
      cmocka_unit_test(test_function_numbers),
  };
  return cmocka_run_group_tests(tests, setup, teardown);
}
