/*
 * Every line kind: exact text once, then the extremes, the bounds and the order of the keys.
 * `test_line_write --sample` prints a small, complete and sound log for the exporter's check (test/cases).
 */
#include <math.h>

#include "format/hist.h"
#include "line_samples.h"

static void op_lines(void **state) {
  (void)state;
  struct ni_line_prefix p = prefix(&ident);
  struct ni_record r = coll_record();
  expect_line(ni_format_op(buf, sizeof buf, &p, 1790000000123456, &r),
              HEAD META("1790000000123456")
              "\"coll_perf\":{\"coll\":\"AllReduce\",\"coll_sn\":17,\"coll_msg_size_bytes\":1048576,"
              "\"coll_exec_time_us\":59,\"coll_timing_source\":\"kernel_gpu\",\"coll_algobw_gbs\":17.772475,"
              "\"coll_busbw_gbs\":31.101831,\"coll_algo\":\"RING\",\"coll_proto\":\"LL128\","
              "\"coll_datatype\":\"ncclFloat32\",\"coll_root\":0,\"coll_nchannels\":8,\"coll_exec_time_ns\":59000,"
              "\"coll_enqueue_ns\":1790000000123000001,\"coll_gpu_start_delta_ns\":-250,\"rec_sn\":21,"
              "\"nccl_tests_size_bytes\":1048576}}\n");
  r.has &= ~(uint32_t)(NI_HAS_ALGOBW | NI_HAS_BUSBW | NI_HAS_GPU_DELTA);
  r.timing = NI_TIMING_COLLECTIVE_CPU;
  r.nchannels_observed = true;
  r.algo = NULL;
  r.proto = "";
  expect_line(ni_format_op(buf, sizeof buf, &p, 1, &r),
              HEAD META("1")
              "\"coll_perf\":{\"coll\":\"AllReduce\",\"coll_sn\":17,\"coll_msg_size_bytes\":1048576,"
              "\"coll_exec_time_us\":59,\"coll_timing_source\":\"collective_cpu\",\"coll_algobw_gbs\":null,"
              "\"coll_busbw_gbs\":null,\"coll_datatype\":\"ncclFloat32\",\"coll_root\":0,\"coll_nchannels\":8,"
              "\"nchannels_src\":\"observed\",\"coll_exec_time_ns\":59000,"
              "\"coll_enqueue_ns\":1790000000123000001,\"rec_sn\":21,\"nccl_tests_size_bytes\":1048576}}\n");
  r = coll_record();
  r.kind = NI_KIND_P2P;
  r.func = "Send";
  r.root = 2;
  expect_line(ni_format_op(buf, sizeof buf, &p, 2, &r),
              HEAD META("2")
              "\"p2p_perf\":{\"p2p\":\"Send\",\"p2p_sn\":17,\"p2p_peer\":2,\"p2p_msg_size_bytes\":1048576,"
              "\"p2p_exec_time_us\":59,\"p2p_timing_source\":\"kernel_gpu\",\"p2p_algobw_gbs\":17.772475,"
              "\"p2p_busbw_gbs\":31.101831,\"p2p_datatype\":\"ncclFloat32\",\"p2p_nchannels\":8,"
              "\"p2p_exec_time_ns\":59000,\"p2p_enqueue_ns\":1790000000123000001,\"p2p_gpu_start_delta_ns\":-250,"
              "\"rec_sn\":21,\"nccl_tests_size_bytes\":1048576}}\n");
  ni_line_prefix_free(&p);
  ni_line_prefix_free(&p); /* twice is harmless */
}

/* The keys of an operation line in their order, and those of a record that has nothing else to state. */
static const struct {
  const char *line, *always, *stated;
} keys[NI_KIND_COUNT] = {
    {"coll_perf",
     "coll,coll_sn,coll_msg_size_bytes,coll_exec_time_us,coll_timing_source,coll_algobw_gbs,coll_busbw_gbs",
     ",coll_algo,coll_proto,coll_datatype,coll_root,coll_nchannels,nchannels_src,coll_exec_time_ns,coll_"
     "enqueue_ns,"
     "coll_gpu_start_delta_ns,rec_sn,nccl_tests_size_bytes,call_sn,plan_sn,graph,coll_src"},
    {"p2p_perf",
     "p2p,p2p_sn,p2p_peer,p2p_msg_size_bytes,p2p_exec_time_us,p2p_timing_source,p2p_algobw_gbs,p2p_busbw_gbs",
     ",p2p_datatype,p2p_nchannels,nchannels_src,p2p_exec_time_ns,p2p_enqueue_ns,p2p_gpu_start_delta_ns,rec_"
     "sn,"
     "nccl_tests_size_bytes,call_sn,plan_sn,graph,pair_sn"},
};

static void keys_in_their_order(void **state) {
  (void)state;
  struct ni_line_prefix p = prefix(&ident);
  struct ni_record r = coll_record();
  r.nchannels_observed = true;
  r.has |= NI_HAS_CALL_SN | NI_HAS_PLAN_SN | NI_HAS_PAIR_SN;
  r.graph = true;
  r.src = NI_SRC_CE;
  for (int kind = 0; kind < NI_KIND_COUNT; kind++) {
    r.kind = (enum ni_kind)kind;
    char want[1024];
    snprintf(want, sizeof want, "%s%s", keys[kind].always, keys[kind].stated);
    size_t n = ni_format_op(buf, sizeof buf, &p, 1, &r);
    char *got = jc_keys(buf, n, keys[kind].line);
    assert_string_equal(got, want);
    free(got);
    struct ni_record bare = {.kind = (enum ni_kind)kind, .timing = NI_TIMING_KERNEL_CPU, .func = "X"};
    n = ni_format_op(buf, sizeof buf, &p, 1, &bare);
    got = jc_keys(buf, n, keys[kind].line);
    assert_string_equal(got, keys[kind].always);
    free(got);
  }
  ni_line_prefix_free(&p);
}

/* NVIDIA's form, both kinds. */
static void verbose_records(void **state) {
  (void)state;
  struct ni_line_prefix c = prefix(&ident);
  struct ni_trace t = {.start_sn = 1,
                       .stop_sn = 2,
                       .start_us = 100,
                       .stop_us = 104,
                       .n = 2,
                       .event = {{0, 3, 6, 5, 120, 179, 178}, {7, 4, 8, 0, 121, 180, 0}}};
  struct ni_record r = {
      .kind = NI_KIND_COLL, .func = "AllReduce", .timing = NI_TIMING_KERNEL_CPU, .trace = &t};
  expect_line(ni_format_op(buf, sizeof buf, &c, 9, &r),
              HEAD META("9") "\"coll_perf\":{\"coll\":\"AllReduce\",\"coll_sn\":0,\"coll_msg_size_bytes\":0,"
              "\"coll_exec_time_us\":0,\"coll_timing_source\":\"kernel_cpu\",\"coll_algobw_gbs\":null,\"coll_busbw_gbs\":null,"
              "\"event_trace_sn\":{\"coll_start_sn\":1,\"coll_stop_sn\":2,\"kernel_events\":["
              "{\"channel_id\":0,\"kernel_start_sn\":3,\"kernel_stop_sn\":6,\"kernel_record_sn\":5},"
              "{\"channel_id\":7,\"kernel_start_sn\":4,\"kernel_stop_sn\":8,\"kernel_record_sn\":0}]},"
              "\"event_trace_ts\":{\"coll_start_ts\":100,\"coll_stop_ts\":104,\"kernel_events\":["
              "{\"channel_id\":0,\"kernel_start_ts\":120,\"kernel_stop_ts\":179,\"kernel_record_ts\":178},"
              "{\"channel_id\":7,\"kernel_start_ts\":121,\"kernel_stop_ts\":180,\"kernel_record_ts\":0}]}}}\n");
  r.kind = NI_KIND_P2P;
  t.n = 0;
  size_t n = ni_format_op(buf, sizeof buf, &c, 9, &r);
  buf[n] = 0;
  assert_non_null(
      strstr(buf,
             "\"event_trace_sn\":{\"p2p_start_sn\":1,\"p2p_stop_sn\":2,\"kernel_events\":[]},"
             "\"event_trace_ts\":{\"p2p_start_ts\":100,\"p2p_stop_ts\":104,\"kernel_events\":[]}}}\n"));
  ni_line_prefix_free(&c);
}

/*
 * 64-bit maxima and names of 1 KiB and more of the worst bytes: valid, bounded, and nothing behind cap is
 * touched.
 */
static void extremes(void **state) {
  (void)state;
  static char evil[3000];
  for (int fill = 0; fill < 3; fill++) {
    memset(evil, fill == 0 ? 1 : fill == 1 ? 0xff : '/', sizeof evil - 1);
    struct ni_ident id = {UINT64_MAX, evil, INT32_MIN, INT32_MIN, INT32_MIN};
    struct ni_meta o = {.hostname = evil, .git_rev = evil, .producer = evil, .pid = INT64_MIN};
    struct ni_line_prefix p;
    assert_int_equal(ni_line_prefix_init(&p, &id, &o), 0);
    struct ni_record r = coll_record();
    r.func = r.datatype = r.algo = r.proto = evil;
    r.sn = r.msg_bytes = r.tests_bytes = r.exec_us = r.exec_ns = r.enqueue_ns = r.rec_sn = UINT64_MAX;
    r.root = INT32_MIN;
    r.nchannels = UINT32_MAX;
    r.nchannels_observed = true;
    r.gpu_start_delta_ns = INT64_MIN;
    r.algobw_gbs = -999999999999999.0;
    r.busbw_gbs = NAN;
    struct ni_process_line pl = {UINT64_MAX,
                                 evil,
                                 evil,
                                 evil,
                                 INT32_MAX,
                                 INT32_MAX,
                                 INT32_MAX,
                                 INT32_MAX,
                                 UINT64_MAX,
                                 true,
                                 .blackbox = evil,
                                 .blackbox_why = evil,
                                 .library = evil,
                                 .gpu_clock_khz = UINT64_MAX};
    for (int i = 0; i < NI_PAIRS_MAX; i++)
      pl.env.item[i].key = pl.env.item[i].value = evil;
    pl.env.n = 1000;
    static char settings[NI_PAIRS_TEXT_BYTES];
    memset(settings, 'x', sizeof settings - 1);
    memcpy(settings, "{\"a\":\"", 6);
    memcpy(settings + sizeof settings - 3, "\"}", 2);
    pl.settings.text = settings;
    struct ni_stats_line s;
    memset(&s, 0xff, sizeof s);
    s.final = s.has_events = true;
    s.end = evil;
    struct ni_by *by[] = {&s.strays,
                          &s.kind[0].filtered_by,
                          &s.kind[0].dropped_by,
                          &s.kind[0].timing_fallback_by,
                          &s.kind[1].filtered_by,
                          &s.kind[1].dropped_by,
                          &s.kind[1].timing_fallback_by};
    for (size_t i = 0; i < sizeof by / sizeof *by; i++)
      for (int n = 0; n < NI_BY_MAX; n++)
        by[i]->item[n].name = evil;
    struct ni_comm_line cl = {evil,      UINT64_MAX, INT32_MIN, INT32_MIN, INT32_MIN,
                              INT32_MAX, evil,       evil,      UINT64_MAX};
    struct ni_unfinished_line il = {"p",        evil,       evil,      UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                    UINT64_MAX, UINT64_MAX, INT32_MIN, INT32_MIN,  INT32_MIN,  evil,
                                    evil,       INT32_MIN,  INT32_MIN, UINT64_MAX, INT32_MAX,  INT32_MIN,
                                    evil,       UINT64_MAX, INT32_MAX};
    size_t longest = 0;
    static char guard[NI_LINE_MAX_BYTES + 64];
    static struct ni_trace trace;
    memset(&trace, 0xff, sizeof trace);
    trace.n = NI_TRACE_MAX;
    struct ni_control_line ctl = {evil, evil,  evil,       evil,       evil,      evil,
                                  evil, false, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    struct ni_rollup_line rl = {evil,       evil,       NI_TIMING_COUNT, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                UINT64_MAX, UINT64_MAX, UINT64_MAX,      UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                true,       {0}};
    memset(rl.hist, 0xff, sizeof rl.hist);
    struct ni_note_line note = {evil};
    for (int k = 0; k < 10; k++) {
      /* From a buffer of nothing upwards: either 0, or a whole line within cap. */
      for (size_t cap = 0;; cap += 997) {
        if (cap > NI_LINE_MAX_BYTES)
          cap = NI_LINE_MAX_BYTES;
        memset(guard, 0x5a, sizeof guard);
        size_t n = 0;
        switch (k) {
          case 0:
            n = ni_format_op(guard, cap, &p, UINT64_MAX, &r);
            break;
          case 1:
            r.kind = NI_KIND_P2P;
            n = ni_format_op(guard, cap, &p, UINT64_MAX, &r);
            r.kind = NI_KIND_COLL;
            break;
          case 2:
            n = ni_format_process(guard, cap, &p, UINT64_MAX, &pl);
            break;
          case 3:
            n = ni_format_dump_stats(guard, cap, &p, UINT64_MAX, &s);
            break;
          case 4:
            n = ni_format_comm(guard, cap, &p, UINT64_MAX, &cl);
            break;
          case 5:
            n = ni_format_stuck(guard, cap, &p, UINT64_MAX, &il);
            break;
          case 6:
            n = ni_format_note(guard, cap, &p, UINT64_MAX, &note);
            break;
          case 7:
            n = ni_format_control(guard, cap, &p, UINT64_MAX, &ctl);
            break;
          case 8:
            n = ni_format_rollup(guard, cap, &p, UINT64_MAX, &rl);
            break;
          case 9:
            r.trace = &trace;
            n = ni_format_op(guard, cap, &p, UINT64_MAX, &r);
            r.trace = NULL;
            break;
        }
        assert_true(n <= cap);
        assert_int_equal(guard[cap], 0x5a);
        if (n)
          assert_true(jc_line_ok(guard, n));
        if (n > longest)
          longest = n;
        if (cap == NI_LINE_MAX_BYTES) {
          assert_true(n > 0);
          break;
        }
      }
    }
    assert_true(longest <= NI_LINE_MAX_BYTES);
    ni_line_prefix_free(&p);
  }
}

static void print(size_t n) {
  assert_true(n > 0);
  fwrite(buf, 1, n, stdout);
}

/*
 * One process, one communicator of one rank seen: 3 collectives started, 1 lost, 1 incomplete; 2 P2P written.
 */
static int sample(void) {
  const uint64_t ts = 1790000000123456, ns = 1790000000000000000;
  struct ni_ident proc = {0, NULL, 3, 8, 0};
  struct ni_line_prefix p = prefix(&proc), c = prefix(&ident);
  struct ni_process_line pl = {ns,
                               "b-1",
                               "python3",
                               "v6",
                               3,
                               3,
                               8,
                               23007,
                               .env = {.n = 1, .item = {{"SLURM_JOB_ID", "77"}}},
                               .settings.text = "{\"NCCL_INSPECTOR_ENABLE\":\"1\"}",
                               .blackbox_why = "/dev/shm: not a tmpfs"};
  struct ni_comm_line cl = {
      "dp", ident.comm_hash, 3, 8, 1, 2, "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f", "0000:1b:00.0", ns};
  struct ni_clock_line kl = {"tsc", 1000, 2000, ns, 0.5, -700, (int64_t)ns, 40};
  struct ni_record r = coll_record();
  struct ni_gap_line gap = {"coll", ni_drop_names[NI_DROP_POOL_FULL], 1, 1, 1};
  struct ni_unfinished_line il = {.kind = "coll",
                                  .func = "AllReduce",
                                  .why = "finalize",
                                  .sn = 1,
                                  .rec_sn = 2,
                                  .msg_bytes = 4096,
                                  .enqueue_ns = ns,
                                  .age_ms = 10000,
                                  .channels_expected = -1,
                                  .channels_started = 3,
                                  .channels_stopped = 2};
  struct ni_pool_line ol = {"coll", 256, 2, 1, 32768, 128, .dropped = 1};
  struct ni_pool_line al = {.kind = "arena",
                            .capacity_bytes = 1 << 20,
                            .used_bytes = 65536,
                            .high_water_bytes = 65536,
                            .cap_bytes = 1 << 28};
  struct ni_stats_line st = {.final = true};
  struct ni_kind_counts k[2] = {{.records = 1,
                                 .dropped_since_last = 1,
                                 .started = 3,
                                 .written = 1,
                                 .incomplete = 1,
                                 .dropped[NI_DROP_POOL_FULL] = 1},
                                {.records = 2, .started = 2, .written = 2, .fallback[2] = 1}};
  for (int i = 0; i < 2; i++)
    ni_stats_set_kind(&st, (enum ni_kind)i, &k[i]);
  print(ni_format_process(buf, sizeof buf, &p, ts, &pl));
  print(ni_format_clock(buf, sizeof buf, &p, ts, &kl));
  print(ni_format_comm(buf, sizeof buf, &c, ts, &cl));
  r.sn = r.rec_sn = 0;
  print(ni_format_op(buf, sizeof buf, &c, ts, &r));
  r.kind = NI_KIND_P2P;
  r.func = "Send";
  print(ni_format_op(buf, sizeof buf, &c, ts, &r));
  r.rec_sn = r.sn = 1;
  r.nchannels_observed = true;
  r.timing = NI_TIMING_COLLECTIVE_CPU;
  r.has &= ~(uint32_t)(NI_HAS_ALGOBW | NI_HAS_BUSBW | NI_HAS_GPU_DELTA);
  print(ni_format_op(buf, sizeof buf, &c, ts, &r));
  print(ni_format_gap(buf, sizeof buf, &c, ts, &gap));
  print(ni_format_incomplete(buf, sizeof buf, &c, ts, &il));
  print(ni_format_clock(buf, sizeof buf, &c, ts, &kl));
  print(ni_format_pool_stats(buf, sizeof buf, &c, ts, &ol));
  print(ni_format_dump_stats(buf, sizeof buf, &c, ts, &st));
  print(ni_format_comm_end(buf, sizeof buf, &c, ts, &(struct ni_comm_end_line){"destroy", ns}));
  print(ni_format_pool_stats(buf, sizeof buf, &p, ts, &al));
  print(ni_format_note(buf, sizeof buf, &p, ts, &(struct ni_note_line){"sample"}));
  ni_line_prefix_free(&p);
  ni_line_prefix_free(&c);
  return 0;
}

int main(int argc, char **argv) {
  if (argc > 1 && !strcmp(argv[1], "--sample"))
    return sample();
  const struct CMUnitTest tests[] = {cmocka_unit_test(op_lines), cmocka_unit_test(keys_in_their_order),
                                     cmocka_unit_test(verbose_records), cmocka_unit_test(extremes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
