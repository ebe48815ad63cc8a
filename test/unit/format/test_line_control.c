/* The exact text of every line that is not an operation's. */
#include "format/hist.h"
#include "line_samples.h"

static void control_lines(void **state) {
  (void)state;
  struct ni_ident proc = {0, NULL, -1, 0, 0};
  struct ni_line_prefix p = prefix(&proc), c = prefix(&ident);
  struct ni_process_line pl = {.start_ns = 5,
                               .boot_id = "b-1",
                               .exe = "python3",
                               .interface = "v6",
                               .rank = 3,
                               .local_rank = -1,
                               .world_size = 8,
                               .nccl_version = 23007,
                               .env = {.n = 2, .item = {{"SLURM_JOB_ID", "77"}, {"RANK", "3\n"}}},
                               .settings.text = "{\"A\":\"1\"}"};
#define PROC_HEAD "{\"header\":{\"id\":\"0x0\",\"rank\":-1,\"n_ranks\":0,\"nnodes\":0}," META("9")
  expect_line(ni_format_process(buf, sizeof buf, &p, 9, &pl),
              PROC_HEAD
              "\"process\":{\"start_ns\":5,\"boot_id\":\"b-1\",\"exe\":\"python3\",\"rank\":3,"
              "\"local_rank\":null,\"world_size\":8,\"env\":{\"SLURM_JOB_ID\":\"77\",\"RANK\":\"3\\n\"},"
              "\"nccl_version\":23007,\"interface\":\"v6\",\"settings\":{\"A\":\"1\"}}}\n");
  struct ni_process_line none = {.rank = -1, .local_rank = -1, .world_size = -1, .nccl_version = -1};
  expect_line(ni_format_process(buf, sizeof buf, &p, 9, &none),
              PROC_HEAD
              "\"process\":{\"start_ns\":0,\"boot_id\":null,\"exe\":null,\"rank\":null,\"local_rank\":null,"
              "\"world_size\":null,\"env\":{},\"nccl_version\":null,\"interface\":null,\"settings\":{}}}\n");
  struct ni_comm_line cl = {"dp", ident.comm_hash, 3, 8, 1, 2, "GPU-1", "0000:1b:00.0", 12};
  expect_line(ni_format_comm(buf, sizeof buf, &c, 9, &cl),
              HEAD META("9") "\"comm\":{\"name\":\"dp\",\"hash\":\"0x5d1c7e90aa41b2ff\",\"rank\":3,\"n_ranks\":8,"
                             "\"nnodes\":1,\"gpu_index\":2,\"gpu_uuid\":\"GPU-1\",\"gpu_pci\":\"0000:1b:00.0\","
                             "\"init_ns\":12}}\n");
  cl.gpu_index = -1;
  cl.gpu_uuid = cl.gpu_pci = NULL;
  expect_line(ni_format_comm(buf, sizeof buf, &c, 9, &cl),
              HEAD META("9") "\"comm\":{\"name\":\"dp\",\"hash\":\"0x5d1c7e90aa41b2ff\",\"rank\":3,\"n_ranks\":8,"
                             "\"nnodes\":1,\"gpu_index\":null,\"gpu_uuid\":null,\"gpu_pci\":null,\"init_ns\":12}}\n");
  expect_line(ni_format_comm_end(buf, sizeof buf, &c, 9, &(struct ni_comm_end_line){"destroy", 13}),
              HEAD META("9") "\"comm_end\":{\"why\":\"destroy\",\"ns\":13}}\n");
  struct ni_clock_line kl = {"tsc", 100, 200, 300, 0.4761904761904762, -7, 250, 4};
  expect_line(ni_format_clock(buf, sizeof buf, &c, 9, &kl),
              HEAD META("9") "\"clock\":{\"source\":\"tsc\",\"ticks\":100,\"monotonic_ns\":200,\"realtime_ns\":300,"
                             "\"ns_per_tick\":0.476190476190,\"gpu_offset_ns\":-7,\"gpu_offset_at_ns\":250,"
                             "\"gpu_samples\":4}}\n");
  kl.gpu_offset_ns = kl.gpu_offset_at_ns = NI_NO_OFFSET;
  kl.gpu_samples = 0;
  expect_line(ni_format_clock(buf, sizeof buf, &p, 9, &kl),
              PROC_HEAD
              "\"clock\":{\"source\":\"tsc\",\"ticks\":100,\"monotonic_ns\":200,\"realtime_ns\":300,"
              "\"ns_per_tick\":0.476190476190,\"gpu_offset_ns\":null,\"gpu_offset_at_ns\":null,"
              "\"gpu_samples\":0}}\n");
  struct ni_gap_line gl = {"p2p", ni_drop_names[NI_DROP_ARENA_FULL], 4, 10, 13};
  expect_line(ni_format_gap(buf, sizeof buf, &c, 9, &gl),
              HEAD META("9") "\"gap\":{\"kind\":\"p2p\",\"count\":4,\"cause\":\"arena_full\",\"rec_sn_from\":10,"
                             "\"rec_sn_to\":13}}\n");
  struct ni_late_line ll = {"coll", "AllGather", 5, 6, 99, 63};
  expect_line(ni_format_late(buf, sizeof buf, &c, 9, &ll),
              HEAD META("9") "\"late\":{\"kind\":\"coll\",\"func\":\"AllGather\",\"sn\":5,\"rec_sn\":6,\"channel\":63,"
                             "\"stop_gpu_ns\":99}}\n");
  struct ni_unfinished_line il = {.kind = "coll",
                                  .func = "AllGather",
                                  .why = "overtaken",
                                  .sn = 5,
                                  .rec_sn = 6,
                                  .msg_bytes = 4096,
                                  .enqueue_ns = 77,
                                  .age_ms = 10000,
                                  .channels_expected = 8,
                                  .channels_started = 3,
                                  .channels_stopped = 2};
  expect_line(ni_format_incomplete(buf, sizeof buf, &c, 9, &il),
              HEAD META("9") "\"incomplete\":{\"kind\":\"coll\",\"func\":\"AllGather\",\"sn\":5,\"rec_sn\":6,"
                             "\"msg_size_bytes\":4096,\"channels_expected\":8,\"channels_started\":3,"
                             "\"channels_stopped\":2,\"enqueue_ns\":77,\"age_ms\":10000,\"why\":\"overtaken\"}}\n");
  il.channels_expected = -1;
  struct ni_unfinished_line st = il;
  st.kind = "p2p";
  st.func = "Recv";
  st.why = "exit";
  st.state = "kernel";
  st.datatype = "ncclInt8";
  st.peer = 3;
  st.channels_open = 0x80000000000000a1;
  expect_line(ni_format_in_flight(buf, sizeof buf, &c, 9, &st),
              HEAD META("9") "\"in_flight\":{\"kind\":\"p2p\",\"func\":\"Recv\",\"sn\":5,\"rec_sn\":6,"
              "\"msg_size_bytes\":4096,\"channels_expected\":null,\"channels_started\":3,\"channels_stopped\":2,"
              "\"enqueue_ns\":77,\"age_ms\":10000,\"why\":\"exit\",\"state\":\"kernel\",\"datatype\":\"ncclInt8\","
              "\"peer\":3,\"channels_open\":\"0x80000000000000a1\"}}\n");
  size_t n = ni_format_incomplete(buf, sizeof buf, &c, 9, &il);
  char *got = jc_get(buf, n, "incomplete.channels_expected");
  assert_string_equal(got, "null");
  free(got);
  struct ni_pool_line ol = {"coll", 256, 17, 1, 32768, 128, .dropped = 0};
  expect_line(ni_format_pool_stats(buf, sizeof buf, &c, 9, &ol),
              HEAD META("9") "\"pool_stats\":{\"kind\":\"coll\",\"capacity\":256,\"high_water\":17,\"growths\":1,"
                             "\"bytes\":32768,\"slot_bytes\":128,\"dropped\":0}}\n");
  struct ni_pool_line al = {
      .kind = "arena", .capacity_bytes = 1, .used_bytes = 2, .high_water_bytes = 3, .cap_bytes = 4};
  expect_line(ni_format_pool_stats(buf, sizeof buf, &p, 9, &al),
              PROC_HEAD
              "\"pool_stats\":{\"kind\":\"arena\",\"capacity_bytes\":1,\"used_bytes\":2,"
              "\"high_water_bytes\":3,\"cap_bytes\":4}}\n");
  expect_line(ni_format_note(buf, sizeof buf, &p, 9, &(struct ni_note_line){"wrote \"early\""}),
              PROC_HEAD "\"note\":{\"text\":\"wrote \\\"early\\\"\"}}\n");
  struct ni_control_line ml = {.source = "file",
                               .file = "nccl-inspector.control",
                               .line = 2,
                               .command = "mark a \"b\"",
                               .result = "done",
                               .mark = "a \"b\"",
                               .events = "coll",
                               .verbose = true,
                               .sample = 10,
                               .ns = 5};
  expect_line(ni_format_control(buf, sizeof buf, &p, 9, &ml),
              PROC_HEAD
              "\"control\":{\"source\":\"file\",\"file\":\"nccl-inspector.control\",\"line\":2,"
              "\"command\":\"mark a \\\"b\\\"\",\"mark\":\"a \\\"b\\\"\",\"result\":\"done\",\"why\":null,"
              "\"events\":\"coll\",\"verbose\":true,\"sample\":10,\"ns\":5}}\n");
  struct ni_control_line dl = {.source = "duty",
                               .command = "kernelch off",
                               .result = "done",
                               .why = "why",
                               .events = "coll",
                               .sample = 1,
                               .ns = 6};
  expect_line(ni_format_control(buf, sizeof buf, &p, 9, &dl),
              PROC_HEAD
              "\"control\":{\"source\":\"duty\",\"command\":\"kernelch off\",\"result\":\"done\","
              "\"why\":\"why\",\"events\":\"coll\",\"verbose\":false,\"sample\":1,\"ns\":6}}\n");
  struct ni_rollup_line rl = {
      "p2p", "Send", NI_TIMING_KERNEL_CPU,          1024, 2047, 1, 2, 3, 4000, 6000, 900,
      3000,  true,   {1, [NI_HIST_BUCKETS - 1] = 2}};
  expect_line(ni_format_rollup(buf, sizeof buf, &c, 9, &rl),
              HEAD META("9") "\"rollup\":{\"kind\":\"p2p\",\"func\":\"Send\",\"msg_size_bytes\":1024,"
                             "\"msg_size_to_bytes\":2047,\"timing_source\":\"kernel_cpu\",\"from_ns\":1,\"to_ns\":2,"
                             "\"count\":3,\"sum_bytes\":4000,\"sum_ns\":6000,\"min_ns\":900,\"max_ns\":3000,"
                             "\"hist\":{\"0\":1,\"68719476736\":2}}}\n");
  ni_line_prefix_free(&p);
  ni_line_prefix_free(&c);
}

static void stats_line(void **state) {
  (void)state;
  struct ni_line_prefix c = prefix(&ident);
  struct ni_stats_line s = {.final = true};
  struct ni_kind_counts counts[2] = {{.records = 3,
                                      .started = 10,
                                      .written = 5,
                                      .filtered[NI_FILTER_MIN_SIZE] = 1,
                                      .dropped[NI_DROP_POOL_FULL] = 1,
                                      .dropped[NI_DROP_EXPIRED] = 2,
                                      .dropped_since_last = 1,
                                      .in_flight = 1,
                                      .fallback[5] = 4},
                                     {.late = 8}};
  uint64_t strays[NI_STRAY_COUNT] = {[NI_STRAY_NULL_PARENT] = 2, [NI_STRAY_UNKNOWN_TYPE] = 1};
  for (int k = 0; k < 2; k++)
    ni_stats_set_kind(&s, (enum ni_kind)k, &counts[k]);
  ni_stats_set_strays(&s, strays);
  expect_line(ni_format_dump_stats(buf, sizeof buf, &c, 9, &s),
              HEAD META("9")
              "\"dump_stats\":{\"coll_records\":3,\"coll_dropped_total\":3,\"coll_dropped_since_last_dump\":1,"
              "\"p2p_records\":0,\"p2p_dropped_total\":0,\"p2p_dropped_since_last_dump\":0,\"proxy_records\":0,"
              "\"proxy_dropped_total\":0,\"proxy_dropped_since_last_dump\":0,\"final\":true,"
              "\"coll\":{\"started\":10,\"written\":5,\"filtered_by\":{\"min_size\":1},"
              "\"dropped_by\":{\"pool_full\":1,\"expired\":2},\"incomplete\":0,\"late\":0,\"in_flight\":1,"
              "\"timing_fallback_by\":{\"no_stop_stamp\":4}},"
              "\"p2p\":{\"started\":0,\"written\":0,\"filtered_by\":{},\"dropped_by\":{},\"incomplete\":0,\"late\":8,"
              "\"in_flight\":0,\"timing_fallback_by\":{}},\"strays\":{\"null_parent\":2,\"unknown_type\":1}}}\n");
  ni_line_prefix_free(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(control_lines), cmocka_unit_test(stats_line)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
