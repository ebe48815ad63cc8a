#include "line_tables.h"

#include <pthread.h>
#include <stddef.h>

#define KEY(k) .key = k "\"", .len = sizeof(k)
#define F(k, t, s, m, ...) {KEY(k), .type = NI_F_##t, .offset = offsetof(struct s, m), __VA_ARGS__}
#define OBJ(k, s, m, table, ...) F(k, OBJECT, s, m, .sub = &table, __VA_ARGS__)
#define REQ .flags = NI_FLAG_REQUIRED
#define NUL .flags = NI_FLAG_NULL
#define TABLE(name, ...) \
  static struct ni_table name = {.field = name##_fields, .n = sizeof name##_fields / sizeof *name##_fields, \
                                 __VA_ARGS__}
#define DEFAULTS(s, d) .defaults = &d, .size = sizeof(struct s)

/* ---- header, metadata ------------------------------------------------------------------------------------------ */

static const struct ni_field header_fields[] = {
    F("id", HASH, ni_ident, comm_hash, REQ),
    F("comm_name", STR, ni_ident, comm_name, NUL),
    F("rank", I32, ni_ident, rank, REQ, .min = -1),
    F("n_ranks", I32, ni_ident, n_ranks, REQ),
    F("nnodes", I32, ni_ident, nnodes, REQ),
};
static const struct ni_ident header_defaults;
TABLE(header, DEFAULTS(ni_ident, header_defaults));

static const struct ni_field metadata_fields[] = {
    F("inspector_output_format_version", STR, ni_meta, version, .flags = 0),
    F("git_rev", STR, ni_meta, git_rev, NUL),
    F("rec_mechanism", STR, ni_meta, rec_mechanism, NUL),
    F("dump_timestamp_us", U64, ni_meta, dump_timestamp_us, REQ),
    F("hostname", STR, ni_meta, hostname, REQ),
    F("pid", I64, ni_meta, pid, REQ),
    F("producer", STR, ni_meta, producer, NUL),
};
static const struct ni_meta metadata_defaults = {.version = "", .git_rev = "", .rec_mechanism = "", .hostname = ""};
TABLE(metadata, DEFAULTS(ni_meta, metadata_defaults));
const struct ni_field *const ni_field_timestamp = &metadata_fields[3];

/* ---- channel events of verbose lines --------------------------------------------------------------------------- */

static const struct ni_field event_fields[] = {
    F("channel_id", I32, ni_trace_event, channel, .min = -1),
    F("kernel_start_sn", U64, ni_trace_event, start_sn, NUL),
    F("kernel_stop_sn", U64, ni_trace_event, stop_sn, NUL),
    F("kernel_record_sn", U64, ni_trace_event, record_sn, NUL),
    F("kernel_start_ts", U64, ni_trace_event, start_us, NUL),
    F("kernel_stop_ts", U64, ni_trace_event, stop_us, NUL),
    F("kernel_record_ts", U64, ni_trace_event, record_us, NUL),
};
TABLE(event, .defaults = NULL);

static const struct ni_field trace_fields[] = {
    F("coll_start_sn", U64, ni_trace, start_sn, NUL), F("coll_stop_sn", U64, ni_trace, stop_sn, NUL),
    F("coll_start_ts", U64, ni_trace, start_us, NUL), F("coll_stop_ts", U64, ni_trace, stop_us, NUL),
    F("kernel_events", EVENTS, ni_trace, event, .sub = &event),
    F("p2p_start_sn", U64, ni_trace, start_sn, NUL),  F("p2p_stop_sn", U64, ni_trace, stop_sn, NUL),
    F("p2p_start_ts", U64, ni_trace, start_us, NUL),  F("p2p_stop_ts", U64, ni_trace, stop_us, NUL),
};
TABLE(trace, .defaults = NULL);

#define TRACE_FIELDS                                                                     \
  {KEY("event_trace_sn"), .type = NI_F_TRACE, .sub = &trace, .has = offsetof(struct ni_trace, has_sn)}, \
  {KEY("event_trace_ts"), .type = NI_F_TRACE, .sub = &trace, .has = offsetof(struct ni_trace, has_ts)}

/* ---- operations ------------------------------------------------------------------------------------------------ */

/* What both kinds of operations have, k being the first word of the key. */
#define SIZE_AND_TIME(k)                                              \
  F(k "_msg_size_bytes", U64, ni_record, msg_bytes, REQ),             \
  F(k "_exec_time_us", U64, ni_record, exec_us, REQ),                 \
  F(k "_timing_source", TIMING, ni_record, timing, NUL),              \
  F(k "_algobw_gbs", BW, ni_record, algobw_gbs, .has = NI_HAS_ALGOBW), \
  F(k "_busbw_gbs", BW, ni_record, busbw_gbs, .has = NI_HAS_BUSBW)
#define DETAILS(k)                                                                                  \
  F(k "_nchannels", U32, ni_record, nchannels, NUL, .has = NI_HAS_NCHANNELS),                       \
  F("nchannels_src", OBSERVED, ni_record, nchannels_observed, .flags = 0),                          \
  F(k "_exec_time_ns", U64, ni_record, exec_ns, NUL, .has = NI_HAS_EXEC_NS),                        \
  F(k "_enqueue_ns", U64, ni_record, enqueue_ns, NUL, .has = NI_HAS_ENQUEUE),                       \
  F(k "_gpu_start_delta_ns", I64, ni_record, gpu_start_delta_ns, NUL, .has = NI_HAS_GPU_DELTA),     \
  F("rec_sn", U64, ni_record, rec_sn, .has = NI_HAS_REC_SN),                                        \
  F("nccl_tests_size_bytes", U64, ni_record, tests_bytes, NUL, .has = NI_HAS_TESTS_SIZE),           \
  F("call_sn", U64, ni_record, call_sn, NUL, .has = NI_HAS_CALL_SN),                                \
  F("plan_sn", U64, ni_record, plan_sn, NUL, .has = NI_HAS_PLAN_SN),                                \
  F("graph", BOOL, ni_record, graph, .flags = 0)

/* In the order of our lines; NVIDIA's v4.2 has algo and proto after the name, which costs two probes of the table. */
static const struct ni_field coll_fields[] = {
    F("coll", STR, ni_record, func, REQ),
    F("coll_sn", U64, ni_record, sn, REQ),
    SIZE_AND_TIME("coll"),
    F("coll_algo", STR, ni_record, algo, NUL),
    F("coll_proto", STR, ni_record, proto, NUL),
    F("coll_datatype", STR, ni_record, datatype, NUL),
    F("coll_root", I32, ni_record, root, NUL, .min = -1, .has = NI_HAS_ROOT),
    DETAILS("coll"),
    F("coll_src", SRC, ni_record, src, .flags = 0),
    TRACE_FIELDS,
};
static const struct ni_record coll_defaults = {.kind = NI_KIND_COLL, .func = ""};
TABLE(coll, DEFAULTS(ni_record, coll_defaults), .has_at = 1 + offsetof(struct ni_record, has));

static const struct ni_field p2p_fields[] = {
    F("p2p", STR, ni_record, func, REQ),
    F("p2p_sn", U64, ni_record, sn, REQ),
    F("p2p_peer", I32, ni_record, root, REQ, .min = -1),
    SIZE_AND_TIME("p2p"),
    F("p2p_datatype", STR, ni_record, datatype, NUL),
    DETAILS("p2p"),
    TRACE_FIELDS,
};
static const struct ni_record p2p_defaults = {.kind = NI_KIND_P2P, .func = ""};
TABLE(p2p, DEFAULTS(ni_record, p2p_defaults), .has_at = 1 + offsetof(struct ni_record, has));

#define WAITS(s)                                              \
  F("total_us", F64, s, total_us, .flags = 0),                \
  F("gpu_produce_us", F64, s, gpu_produce_us, .flags = 0),    \
  F("peer_credit_us", F64, s, peer_credit_us, .flags = 0),    \
  F("wire_us", F64, s, wire_us, .flags = 0),                  \
  F("flush_us", F64, s, flush_us, .flags = 0),                \
  F("gpu_consume_us", F64, s, gpu_consume_us, .flags = 0)
#define NO_WAITS                                                                                    \
  .total_us = NAN, .gpu_produce_us = NAN, .peer_credit_us = NAN, .wire_us = NAN, .flush_us = NAN,   \
  .gpu_consume_us = NAN

static const struct ni_field step_fields[] = {
    F("record_sn", U64, ni_proxy_step, record_sn, NUL),
    F("proxy_step_sn", U64, ni_proxy_step, proxy_step_sn, NUL),
    F("step", I64, ni_proxy_step, step, NUL),
    F("trans_size_bytes", U64, ni_proxy_step, trans_size_bytes, NUL),
    WAITS(ni_proxy_step),
    F("start_ns", U64, ni_proxy_step, start_ns, NUL),
};
static const struct ni_proxy_step step_defaults = {.step = -1, NO_WAITS};
TABLE(step, DEFAULTS(ni_proxy_step, step_defaults));

static const struct ni_field proxy_fields[] = {
    F("record_type", STR, ni_proxy_line, record_type, REQ),
    F("record_sn", U64, ni_proxy_line, record_sn, .flags = 0),
    F("parent_type", STR, ni_proxy_line, parent_type, NUL),
    F("parent_sn", U64, ni_proxy_line, parent_sn, NUL),
    F("proxy_op_sn", U64, ni_proxy_line, proxy_op_sn, NUL),
    F("rank", I32, ni_proxy_line, rank, .min = -1),
    F("channel_id", I32, ni_proxy_line, channel, .min = -1),
    F("peer", I32, ni_proxy_line, peer, .min = -1),
    F("direction", STR, ni_proxy_line, direction, NUL),
    F("is_final", BOOL, ni_proxy_line, is_final, .flags = 0),
    F("trans_size_bytes", U64, ni_proxy_line, trans_size_bytes, NUL),
    WAITS(ni_proxy_line),
    F("op_bw_gbs", BW, ni_proxy_line, op_bw_gbs, .flags = 0),
    F("n_steps", U64, ni_proxy_line, n_steps, NUL),
    F("chunk_size_bytes", U64, ni_proxy_line, chunk_size_bytes, NUL),
    F("n_steps_started", U64, ni_proxy_line, n_steps_started, NUL),
    F("n_steps_completed", U64, ni_proxy_line, n_steps_completed, NUL),
    F("n_steps_dropped", U64, ni_proxy_line, n_steps_dropped, NUL),
    F("timing_source", STR, ni_proxy_line, timing_source, NUL),
    F("proxy_step_sn", U64, ni_proxy_line, proxy_step_sn, NUL),
    F("step", I64, ni_proxy_line, step, NUL),
    F("max_step_us", F64, ni_proxy_line, max_step_us, .flags = 0),
    F("parent_func", STR, ni_proxy_line, parent_func, NUL),
    F("parent_rec_sn", U64, ni_proxy_line, parent_rec_sn, NUL),
    F("origin_pid", I64, ni_proxy_line, origin_pid, NUL),
    F("start_ns", U64, ni_proxy_line, start_ns, NUL),
    F("progress_us", F64, ni_proxy_line, progress_us, .flags = 0),
    F("state", STR, ni_proxy_line, state, NUL),
    F("steps", STEPS, ni_proxy_line, steps, .sub = &step, .flags = NI_FLAG_NULL),
};
static const struct ni_proxy_line proxy_defaults = {
    .record_type = "", .parent_type = "", .direction = "", .rank = -1, .channel = -1, .peer = -1, NO_WAITS,
    .op_bw_gbs = NAN, .timing_source = "", .step = -1, .max_step_us = NAN, .parent_func = "",
    .parent_rec_sn = NI_NO_SN, .origin_pid = -1, .progress_us = NAN, .state = ""};
TABLE(proxy, DEFAULTS(ni_proxy_line, proxy_defaults));

/* ---- lines about the run --------------------------------------------------------------------------------------- */

static const struct ni_field process_fields[] = {
    F("start_ns", U64, ni_process_line, start_ns, REQ),
    F("boot_id", STR, ni_process_line, boot_id, NUL),
    F("exe", STR, ni_process_line, exe, NUL),
    F("rank", I32, ni_process_line, rank, NUL, .min = -1),
    F("local_rank", I32, ni_process_line, local_rank, NUL, .min = -1),
    F("world_size", I32, ni_process_line, world_size, NUL, .min = -1),
    F("env", PAIRS, ni_process_line, env, .flags = 0),
    F("nccl_version", I32, ni_process_line, nccl_version, NUL),
    F("interface", STR, ni_process_line, interface, NUL),
    F("recovered_ns", U64, ni_process_line, recovered_ns, NUL),
    F("recovered_live", BOOL, ni_process_line, recovered_live, .flags = 0),
    F("settings", PAIRS, ni_process_line, settings, .flags = 0),
    F("blackbox", STR, ni_process_line, blackbox, NUL),
    F("blackbox_why", STR, ni_process_line, blackbox_why, NUL),
};
static const struct ni_process_line process_defaults = {
    .boot_id = "", .exe = "", .interface = "", .blackbox = "", .blackbox_why = "", .rank = -1, .local_rank = -1, .world_size = -1, .nccl_version = -1};
TABLE(process, DEFAULTS(ni_process_line, process_defaults));

static const struct ni_field comm_fields[] = {
    F("name", STR, ni_comm_line, name, NUL),
    F("hash", HASH, ni_comm_line, hash, REQ),
    F("rank", I32, ni_comm_line, rank, REQ, .min = -1),
    F("n_ranks", I32, ni_comm_line, n_ranks, REQ),
    F("nnodes", I32, ni_comm_line, nnodes, .flags = 0),
    F("gpu_index", I32, ni_comm_line, gpu_index, NUL, .min = -1),
    F("gpu_uuid", STR, ni_comm_line, gpu_uuid, NUL),
    F("gpu_pci", STR, ni_comm_line, gpu_pci, NUL),
    F("init_ns", U64, ni_comm_line, init_ns, NUL),
};
static const struct ni_comm_line comm_defaults = {.gpu_index = -1};
TABLE(comm, DEFAULTS(ni_comm_line, comm_defaults));

static const struct ni_field comm_end_fields[] = {
    F("why", STR, ni_comm_end_line, why, REQ),
    F("ns", U64, ni_comm_end_line, ns, NUL),
};
static const struct ni_comm_end_line comm_end_defaults = {.why = ""};
TABLE(comm_end, DEFAULTS(ni_comm_end_line, comm_end_defaults));

static const struct ni_field clock_line_fields[] = {
    F("source", STR, ni_clock_line, source, REQ),
    F("ticks", U64, ni_clock_line, ticks, REQ),
    F("monotonic_ns", U64, ni_clock_line, monotonic_ns, REQ),
    F("realtime_ns", U64, ni_clock_line, realtime_ns, REQ),
    F("ns_per_tick", F64, ni_clock_line, ns_per_tick, .flags = 0),
    F("gpu_offset_ns", I64, ni_clock_line, gpu_offset_ns, NUL),
    F("gpu_offset_at_ns", I64, ni_clock_line, gpu_offset_at_ns, NUL),
    F("gpu_samples", U64, ni_clock_line, gpu_samples, NUL),
};
static const struct ni_clock_line clock_defaults = {
    .source = "", .gpu_offset_ns = NI_NO_OFFSET, .gpu_offset_at_ns = NI_NO_OFFSET};
TABLE(clock_line, DEFAULTS(ni_clock_line, clock_defaults));

static const struct ni_field kind_stats_fields[] = {
    F("started", U64, ni_kind_stats, started, REQ),
    F("written", U64, ni_kind_stats, written, REQ),
    F("filtered_by", BY, ni_kind_stats, filtered_by, .flags = 0),
    F("dropped_by", BY, ni_kind_stats, dropped_by, .flags = 0),
    F("incomplete", U64, ni_kind_stats, incomplete, REQ),
    F("late", U64, ni_kind_stats, late, .flags = 0),
    F("in_flight", U64, ni_kind_stats, in_flight, REQ),
    F("timing_fallback_by", BY, ni_kind_stats, timing_fallback_by, .flags = 0),
};
TABLE(kind_stats, .defaults = NULL);

static const struct ni_field event_stats_fields[] = {
    F("started", U64, ni_event_stats, started, REQ),
    F("written", U64, ni_event_stats, written, REQ),
    F("dropped", U64, ni_event_stats, dropped, REQ),
    F("in_flight", U64, ni_event_stats, in_flight, REQ),
};
TABLE(event_stats, .defaults = NULL);

#define EVENT(k, e) OBJ(k, ni_events_stats, kind[e], event_stats, .flags = 0)
static const struct ni_field events_fields[] = {
    EVENT("groupapi", NI_EVENT_GROUP_API), EVENT("collapi", NI_EVENT_COLL_API), EVENT("p2papi", NI_EVENT_P2P_API),
    EVENT("launch", NI_EVENT_LAUNCH),      EVENT("group", NI_EVENT_GROUP),      EVENT("ce", NI_EVENT_CE),
    EVENT("sync", NI_EVENT_SYNC),          EVENT("batch", NI_EVENT_BATCH),      EVENT("proxyop", NI_EVENT_PROXY_OP),
    EVENT("steps", NI_EVENT_STEPS),        EVENT("proxyctrl", NI_EVENT_PROXY_CTRL), EVENT("net", NI_EVENT_NET),
};
TABLE(events, .defaults = NULL);

static const struct ni_field stats_fields[] = {
    F("coll_records", U64, ni_stats_line, records[0], REQ),
    F("coll_dropped_total", U64, ni_stats_line, dropped_total[0], .flags = 0),
    F("coll_dropped_since_last_dump", U64, ni_stats_line, dropped_since[0], .flags = 0),
    F("p2p_records", U64, ni_stats_line, records[1], .flags = 0),
    F("p2p_dropped_total", U64, ni_stats_line, dropped_total[1], .flags = 0),
    F("p2p_dropped_since_last_dump", U64, ni_stats_line, dropped_since[1], .flags = 0),
    F("proxy_records", U64, ni_stats_line, proxy_records, .flags = 0),
    F("proxy_dropped_total", U64, ni_stats_line, proxy_dropped_total, .flags = 0),
    F("proxy_dropped_since_last_dump", U64, ni_stats_line, proxy_dropped_since, .flags = 0),
    F("final", BOOL, ni_stats_line, final, .flags = 0),
    OBJ("coll", ni_stats_line, kind[0], kind_stats, .has = offsetof(struct ni_stats_line, has_accounting)),
    OBJ("p2p", ni_stats_line, kind[1], kind_stats, .has = offsetof(struct ni_stats_line, has_accounting)),
    F("strays", BY, ni_stats_line, strays, .flags = 0),
    OBJ("events", ni_stats_line, events, events, .has = offsetof(struct ni_stats_line, has_events)),
    F("refused_communicators", U64, ni_stats_line, refused_communicators, .flags = 0),
    F("proxy_ops_dropped_total", U64, ni_stats_line, proxy_ops_dropped_total, .flags = 0),
};
static const struct ni_stats_line stats_defaults;
TABLE(stats, DEFAULTS(ni_stats_line, stats_defaults));

static const struct ni_field gap_fields[] = {
    F("kind", STR, ni_gap_line, kind, REQ),
    F("count", U64, ni_gap_line, count, REQ),
    F("cause", STR, ni_gap_line, cause, REQ),
    F("rec_sn_from", U64, ni_gap_line, rec_sn_from, NUL),
    F("rec_sn_to", U64, ni_gap_line, rec_sn_to, NUL),
};
static const struct ni_gap_line gap_defaults = {.kind = "", .cause = ""};
TABLE(gap, DEFAULTS(ni_gap_line, gap_defaults));

static const struct ni_field late_fields[] = {
    F("kind", STR, ni_late_line, kind, REQ),
    F("func", STR, ni_late_line, func, NUL),
    F("sn", U64, ni_late_line, sn, NUL),
    F("rec_sn", U64, ni_late_line, rec_sn, NUL),
    F("channel", I32, ni_late_line, channel, NUL, .min = -1),
    F("stop_gpu_ns", U64, ni_late_line, stop_gpu_ns, NUL),
};
static const struct ni_late_line late_defaults = {.kind = "", .func = "", .channel = -1};
TABLE(late, DEFAULTS(ni_late_line, late_defaults));

static const struct ni_field unfinished_fields[] = {
    F("kind", STR, ni_unfinished_line, kind, REQ),
    F("func", STR, ni_unfinished_line, func, NUL),
    F("sn", U64, ni_unfinished_line, sn, NUL),
    F("rec_sn", U64, ni_unfinished_line, rec_sn, NUL),
    F("msg_size_bytes", U64, ni_unfinished_line, msg_bytes, NUL),
    F("channels_expected", I32, ni_unfinished_line, channels_expected, NUL, .min = -1),
    F("channels_started", I32, ni_unfinished_line, channels_started, NUL),
    F("channels_stopped", I32, ni_unfinished_line, channels_stopped, NUL),
    F("enqueue_ns", U64, ni_unfinished_line, enqueue_ns, NUL),
    F("age_ms", U64, ni_unfinished_line, age_ms, NUL),
    F("why", STR, ni_unfinished_line, why, NUL),
    F("state", STR, ni_unfinished_line, state, NUL),
    F("datatype", STR, ni_unfinished_line, datatype, NUL),
    F("root", I32, ni_unfinished_line, root, NUL, .min = -1),
    F("peer", I32, ni_unfinished_line, peer, NUL, .min = -1),
    F("channels_open", HASH, ni_unfinished_line, channels_open, NUL),
    F("net_peer", I32, ni_unfinished_line, net_peer, NUL, .min = -1),
    F("net_channel", I32, ni_unfinished_line, net_channel, NUL, .min = -1),
    F("net_state", STR, ni_unfinished_line, net_state, NUL),
};
static const struct ni_unfinished_line unfinished_defaults = {
    .kind = "", .func = "", .why = "", .state = "", .datatype = "", .net_state = "", .channels_expected = -1,
    .root = -1, .peer = -1, .net_peer = -1, .net_channel = -1};
TABLE(unfinished, DEFAULTS(ni_unfinished_line, unfinished_defaults));

static const struct ni_field pool_fields[] = {
    F("kind", STR, ni_pool_line, kind, REQ),
    F("capacity", U64, ni_pool_line, capacity, .flags = 0),
    F("high_water", U64, ni_pool_line, high_water, .flags = 0),
    F("growths", U64, ni_pool_line, growths, .flags = 0),
    F("bytes", U64, ni_pool_line, bytes, .flags = 0),
    F("slot_bytes", U64, ni_pool_line, slot_bytes, .flags = 0),
    F("dropped", U64, ni_pool_line, dropped, .flags = 0),
    F("capacity_bytes", U64, ni_pool_line, capacity_bytes, .flags = 0),
    F("used_bytes", U64, ni_pool_line, used_bytes, .flags = 0),
    F("high_water_bytes", U64, ni_pool_line, high_water_bytes, .flags = 0),
    F("cap_bytes", U64, ni_pool_line, cap_bytes, .flags = 0),
};
static const struct ni_pool_line pool_defaults = {.kind = ""};
TABLE(pool, DEFAULTS(ni_pool_line, pool_defaults));

static const struct ni_field note_fields[] = {F("text", STR, ni_note_line, text, REQ)};
static const struct ni_note_line note_defaults = {.text = ""};
TABLE(note, DEFAULTS(ni_note_line, note_defaults));

static const struct ni_field control_fields[] = {
    F("source", STR, ni_control_line, source, REQ),
    F("file", STR, ni_control_line, file, NUL),
    F("line", U64, ni_control_line, line, NUL),
    F("command", STR, ni_control_line, command, REQ),
    F("mark", STR, ni_control_line, mark, NUL),
    F("result", STR, ni_control_line, result, REQ),
    F("why", STR, ni_control_line, why, NUL),
    F("events", STR, ni_control_line, events, NUL),
    F("verbose", BOOL, ni_control_line, verbose, .flags = 0),
    F("sample", U64, ni_control_line, sample, .flags = 0),
    F("ns", U64, ni_control_line, ns, .flags = 0),
};
static const struct ni_control_line control_defaults = {.source = "", .command = "", .result = "", .events = "", .sample = 1};
TABLE(control, DEFAULTS(ni_control_line, control_defaults));

static const struct ni_field rollup_fields[] = {
    F("kind", STR, ni_rollup_line, kind, REQ),
    F("func", STR, ni_rollup_line, func, REQ),
    F("msg_size_bytes", U64, ni_rollup_line, msg_bytes, REQ),
    F("msg_size_to_bytes", U64, ni_rollup_line, msg_to_bytes, .flags = 0),
    F("timing_source", TIMING, ni_rollup_line, timing, NUL),
    F("from_ns", U64, ni_rollup_line, from_ns, .flags = 0),
    F("to_ns", U64, ni_rollup_line, to_ns, .flags = 0),
    F("count", U64, ni_rollup_line, count, REQ),
    F("sum_bytes", U64, ni_rollup_line, sum_bytes, .flags = 0),
    F("sum_ns", U64, ni_rollup_line, sum_ns, REQ),
    F("min_ns", U64, ni_rollup_line, min_ns, REQ),
    F("max_ns", U64, ni_rollup_line, max_ns, REQ),
    F("hist", HIST, ni_rollup_line, hist, .flags = 0),
};
static const struct ni_rollup_line rollup_defaults = {.kind = "", .func = ""};
TABLE(rollup, DEFAULTS(ni_rollup_line, rollup_defaults));
/* ---- events: one struct for all of them, each kind of line with the keys it may have ---- */

#define TIMES F("start_ns", U64, ni_event_line, start_ns, REQ), F("dur_ns", I64, ni_event_line, dur_ns, NUL)
#define EV_SN F("ev_sn", U64, ni_event_line, ev_sn, REQ)
#define STREAM F("stream", HASH, ni_event_line, stream, .flags = 0)
#define CALLED                                                                                           \
  F("func", STR, ni_event_line, func, NUL), F("call_sn", U64, ni_event_line, call_sn, NUL),               \
      F("count", U64, ni_event_line, count, .flags = 0), F("datatype", STR, ni_event_line, datatype, NUL), \
      F("root", I32, ni_event_line, root, .min = -1)

static const struct ni_field api_fields[] = {
    F("api", STR, ni_event_line, api, REQ), EV_SN, CALLED,
    F("group_sn", U64, ni_event_line, group_sn, NUL), STREAM,
    F("graph", BOOL, ni_event_line, graph, .flags = 0),
    F("seen", STR, ni_event_line, seen, NUL),
    F("depth", I32, ni_event_line, depth, .min = -1),
    F("start_end_ns", I64, ni_event_line, start_end_ns, NUL),
    F("end_begin_ns", I64, ni_event_line, end_begin_ns, NUL), TIMES,
};
static const struct ni_field launch_fields[] = {
    EV_SN, F("group_sn", U64, ni_event_line, group_sn, NUL), F("plan_sn", U64, ni_event_line, plan_sn, NUL), STREAM,
    TIMES,
};
static const struct ni_field group_fields[] = {EV_SN, F("plan_sn", U64, ni_event_line, plan_sn, NUL), TIMES};
static const struct ni_field ce_fields[] = {
    EV_SN, F("ce_sn", U64, ni_event_line, ce_sn, NUL), CALLED,
    F("sync_strategy", STR, ni_event_line, sync_strategy, NUL), STREAM, TIMES,
};
static const struct ni_field sync_fields[] = {
    EV_SN, F("ce_sn", U64, ni_event_line, ce_sn, NUL),
    F("is_complete", BOOL, ni_event_line, is_complete, .flags = 0),
    F("n_ranks", I32, ni_event_line, n_ranks, .min = -1), TIMES,
};
static const struct ni_field batch_fields[] = {
    EV_SN, F("ce_sn", U64, ni_event_line, ce_sn, NUL), F("n_ops", I32, ni_event_line, n_ops, .min = -1),
    F("total_bytes", U64, ni_event_line, bytes, .flags = 0),
    F("intra_sync", BOOL, ni_event_line, intra_sync, .flags = 0), TIMES,
};
static const struct ni_field proxy_ctrl_fields[] = {
    EV_SN, F("what", STR, ni_event_line, what, REQ), F("appended", U64, ni_event_line, appended, .flags = 0), TIMES,
};
static const struct ni_field net_fields[] = {
    EV_SN, F("type", STR, ni_event_line, type, REQ), F("version", I32, ni_event_line, version, .min = -1),
    F("proxy_op_sn", U64, ni_event_line, proxy_op_sn, NUL), F("step", I64, ni_event_line, step, NUL),
    F("device", I64, ni_event_line, device, .flags = 0), F("wr_id", U64, ni_event_line, wr_id, .flags = 0),
    F("opcode", I64, ni_event_line, op, .flags = 0), F("qp", I64, ni_event_line, qp, .flags = 0),
    F("bytes", U64, ni_event_line, bytes, .flags = 0), F("fd", I64, ni_event_line, fd, .flags = 0),
    F("op", I64, ni_event_line, op, .flags = 0), F("updates", U64, ni_event_line, updates, .flags = 0), TIMES,
};
static const struct ni_event_line event_line_defaults = {
    .api = "", .func = "", .datatype = "", .seen = "", .sync_strategy = "", .what = "", .type = "",
    .call_sn = NI_NO_SN, .group_sn = NI_NO_SN, .plan_sn = NI_NO_SN, .ce_sn = NI_NO_SN, .proxy_op_sn = NI_NO_SN,
    .dur_ns = -1, .start_end_ns = -1, .end_begin_ns = -1, .step = -1};
#define EVENT_TABLE(name) TABLE(name, DEFAULTS(ni_event_line, event_line_defaults))
EVENT_TABLE(api);
EVENT_TABLE(launch);
EVENT_TABLE(group);
EVENT_TABLE(ce);
EVENT_TABLE(sync);
EVENT_TABLE(batch);
EVENT_TABLE(proxy_ctrl);
EVENT_TABLE(net);

/* ---- top level ------------------------------------------------------------------------------------------------- */

/* The kinds of lines but operations: key, member of struct ni_line, keys, kind. */
#define KINDS(X) \
  X("dump_stats", stats, stats, NI_LINE_DUMP_STATS) \
  X("proxy_trace", proxy, proxy, NI_LINE_PROXY) \
  X("process", process, process, NI_LINE_PROCESS) \
  X("comm", comm, comm, NI_LINE_COMM) \
  X("comm_end", comm_end, comm_end, NI_LINE_COMM_END) \
  X("clock", clock, clock_line, NI_LINE_CLOCK) \
  X("gap", gap, gap, NI_LINE_GAP) \
  X("late", late, late, NI_LINE_LATE) \
  X("incomplete", unfinished, unfinished, NI_LINE_INCOMPLETE) \
  X("stuck", unfinished, unfinished, NI_LINE_STUCK) \
  X("in_flight", unfinished, unfinished, NI_LINE_IN_FLIGHT) \
  X("pool_stats", pool, pool, NI_LINE_POOL_STATS) \
  X("note", note, note, NI_LINE_NOTE) \
  X("control", control, control, NI_LINE_CONTROL) \
  X("rollup", rollup, rollup, NI_LINE_ROLLUP) \
  X("api", event, api, NI_LINE_API) \
  X("launch", event, launch, NI_LINE_LAUNCH) \
  X("group", event, group, NI_LINE_GROUP) \
  X("ce", event, ce, NI_LINE_CE) \
  X("sync", event, sync, NI_LINE_SYNC) \
  X("batch", event, batch, NI_LINE_BATCH) \
  X("proxy_ctrl", event, proxy_ctrl, NI_LINE_PROXY_CTRL) \
  X("net", event, net, NI_LINE_NET)
#define KIND(k, m, table, k2, ...) F(k, KIND, ni_line, m, .sub = &table, .arg = k2, __VA_ARGS__),
#define NO_OP(k, m, table, k2) KIND(k, m, table, k2, .flags = 0)
static const struct ni_field line_fields[] = {
    OBJ("header", ni_line, ident, header, .flags = 0),
    OBJ("metadata", ni_line, meta, metadata, .flags = 0),
    KIND("coll_perf", op, coll, NI_LINE_OP, .flags = 0)
    KIND("p2p_perf", op, p2p, NI_LINE_OP, .flags = NI_FLAG_P2P)
    KINDS(NO_OP)
    TRACE_FIELDS,
};
struct ni_table ni_table_line = {
    .field = line_fields, .n = sizeof line_fields / sizeof *line_fields};

static void complete(struct ni_table *t) {
  t->required = 0;
  for (uint32_t i = 0; i < t->n; i++) {
    if (t->field[i].flags & NI_FLAG_REQUIRED) t->required |= 1ULL << i;
    if (t->field[i].sub) complete(t->field[i].sub);
  }
}

static void complete_all(void) { complete(&ni_table_line); }

void ni_tables_init(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, complete_all);
}

const char *ni_reject_name(enum ni_reject reason) {
#define REJECT_NAME(code, name) name,
  static const char *const names[NI_REJ_COUNT] = {"ok", NI_REJECTS(REJECT_NAME)};
  return (unsigned)reason < NI_REJ_COUNT ? names[reason] : "unknown";
}

const char *ni_line_kind_name(enum ni_line_kind kind) {
#define NAME(k, m, table, kind) [kind] = k,
  static const char *const names[NI_LINE_KIND_COUNT] = {[NI_LINE_OP] = "op", KINDS(NAME)[NI_LINE_UNKNOWN] = "unknown"};
  return (unsigned)kind < NI_LINE_KIND_COUNT ? names[kind] : "unknown";
}
