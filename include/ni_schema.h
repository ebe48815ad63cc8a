/*
 * The vocabulary of our log lines: format version, line kinds, causes of loss, and the keys of operation lines.
 *
 * The writer (plugin/format_jsonl.c) and the tests that read lines back both walk these tables; docs/format.md is the
 * text form. An enum value and its name stand at the same index. All tables are constant; any thread.
 */
#ifndef NI_SCHEMA_H
#define NI_SCHEMA_H

#include <stdint.h>

#define NI_FORMAT_VERSION "v4.0" /* inspector_output_format_version: what NVIDIA's exporter accepts */
#define NI_REC_MECHANISM "nccl_profiler_interface"
#define NI_PRODUCER "nccl-inspector-c"

/* The key beside "header" and "metadata" that says what a line is. */
enum ni_line_key {
  NI_LKEY_COLL = 0,
  NI_LKEY_P2P,
  NI_LKEY_PROCESS,
  NI_LKEY_COMM,
  NI_LKEY_COMM_END,
  NI_LKEY_CLOCK,
  NI_LKEY_DUMP_STATS,
  NI_LKEY_GAP,
  NI_LKEY_LATE,
  NI_LKEY_INCOMPLETE,
  NI_LKEY_POOL_STATS,
  NI_LKEY_NOTE,
  NI_LKEY_CONTROL,
  NI_LKEY_ROLLUP,
  NI_LKEY_API, /* from here on: events (ni_events.h) */
  NI_LKEY_LAUNCH,
  NI_LKEY_GROUP,
  NI_LKEY_CE,
  NI_LKEY_SYNC,
  NI_LKEY_BATCH,
  NI_LKEY_PROXY,
  NI_LKEY_PROXY_CTRL,
  NI_LKEY_NET,
  NI_LKEY_COUNT
};
static const char *const ni_line_keys[NI_LKEY_COUNT] = {
    "coll_perf", "p2p_perf", "process", "comm",       "comm_end",   "clock",
    "dump_stats", "gap",     "late",    "incomplete", "pool_stats", "note",
    "control",    "rollup",  "api",     "launch",     "group",      "ce",
    "sync",       "batch",   "proxy_trace", "proxy_ctrl", "net"};

/* Kind of operation as control lines spell it; index is enum ni_kind. */
static const char *const ni_kind_names[2] = {"coll", "p2p"};

/* Why a started operation is not in the log: dropped_by{} and gap.cause. */
enum ni_drop {
  NI_DROP_POOL_FULL = 0, /* fixed pool, no free slot */
  NI_DROP_ARENA_FULL,    /* NCCL_INSPECTOR_POOL_MAX_BYTES reached */
  NI_DROP_OVERWRITTEN,   /* pool keep=last gave the slot to a newer operation */
  NI_DROP_WRITE_ERROR,   /* could not be written until the end, or its file was deleted by somebody */
  NI_DROP_EXPIRED,       /* was written; its file went by rotation */
  NI_DROP_COUNT
};
static const char *const ni_drop_names[NI_DROP_COUNT] = {"pool_full", "arena_full", "overwritten", "write_error",
                                                         "expired"};

/* Which setting left an operation out on purpose: filtered_by{}. */
enum ni_filter {
  NI_FILTER_MIN_SIZE = 0,
  NI_FILTER_P2P_DISABLED,
  NI_FILTER_NO_KERNEL_TIMING,
  NI_FILTER_SAMPLED, /* NCCL_INSPECTOR_SAMPLE: in the roll-ups, without a record of its own */
  NI_FILTER_COUNT
};
static const char *const ni_filter_names[NI_FILTER_COUNT] = {"min_size", "p2p_disabled", "no_kernel_timing",
                                                             "sampled"};

/* Why GPU stamps were not believed: timing_fallback_by{}. Same order as the plugin's enum ni_bad. */
#define NI_FALLBACK_COUNT 7
static const char *const ni_fallback_names[NI_FALLBACK_COUNT] = {"zero_stamp",    "stop_before_start", "before_previous",
                                                                 "span_too_long", "after_arrival",     "no_stop_stamp",
                                                                 "counters_apart"};

/* Callbacks that belong to no operation of ours: strays{}. */
enum ni_stray {
  NI_STRAY_NULL_PARENT = 0,
  NI_STRAY_STALE_HANDLE,
  NI_STRAY_FOREIGN_HANDLE,
  NI_STRAY_BAD_CHANNEL,
  NI_STRAY_DOUBLE_STOP,
  NI_STRAY_BAD_CONTEXT,
  NI_STRAY_UNKNOWN_TYPE,
  NI_STRAY_UNKNOWN_STATE,
  NI_STRAY_LATE_CALL, /* a Coll for an API call that was recorded as seen by its call alone */
  NI_STRAY_COUNT
};
static const char *const ni_stray_names[NI_STRAY_COUNT] = {"null_parent", "stale_handle", "foreign_handle",
                                                           "bad_channel", "double_stop",  "bad_context",
                                                           "unknown_type", "unknown_state", "late_call"};

/* Keys of an operation line, in the order in which they are written. */
enum ni_key_type { NI_KEY_STRING, NI_KEY_UINT, NI_KEY_INT, NI_KEY_GBS /* six decimals, or null */, NI_KEY_BOOL };
enum ni_key_when { NI_WHEN_ALWAYS, NI_WHEN_STATED /* left out where the record does not have it */ };
struct ni_key {
  const char *name;
  enum ni_key_type type;
  enum ni_key_when when;
};

#define NI_COLL_KEY_COUNT 22
static const struct ni_key ni_coll_keys[NI_COLL_KEY_COUNT] = {
    {"coll", NI_KEY_STRING, NI_WHEN_ALWAYS},
    {"coll_sn", NI_KEY_UINT, NI_WHEN_ALWAYS},
    {"coll_msg_size_bytes", NI_KEY_UINT, NI_WHEN_ALWAYS},
    {"coll_exec_time_us", NI_KEY_UINT, NI_WHEN_ALWAYS},
    {"coll_timing_source", NI_KEY_STRING, NI_WHEN_ALWAYS},
    {"coll_algobw_gbs", NI_KEY_GBS, NI_WHEN_ALWAYS},
    {"coll_busbw_gbs", NI_KEY_GBS, NI_WHEN_ALWAYS},
    {"coll_algo", NI_KEY_STRING, NI_WHEN_STATED},
    {"coll_proto", NI_KEY_STRING, NI_WHEN_STATED},
    {"coll_datatype", NI_KEY_STRING, NI_WHEN_STATED},
    {"coll_root", NI_KEY_INT, NI_WHEN_STATED},
    {"coll_nchannels", NI_KEY_UINT, NI_WHEN_STATED},
    {"nchannels_src", NI_KEY_STRING, NI_WHEN_STATED}, /* "observed", only then */
    {"coll_exec_time_ns", NI_KEY_UINT, NI_WHEN_STATED},
    {"coll_enqueue_ns", NI_KEY_UINT, NI_WHEN_STATED},
    {"coll_gpu_start_delta_ns", NI_KEY_INT, NI_WHEN_STATED},
    {"rec_sn", NI_KEY_UINT, NI_WHEN_STATED},
    {"nccl_tests_size_bytes", NI_KEY_UINT, NI_WHEN_STATED},
    {"call_sn", NI_KEY_UINT, NI_WHEN_STATED},
    {"plan_sn", NI_KEY_UINT, NI_WHEN_STATED},
    {"graph", NI_KEY_BOOL, NI_WHEN_STATED},      /* true, only then */
    {"coll_src", NI_KEY_STRING, NI_WHEN_STATED}, /* "api" or "ce", only then */
};

#define NI_P2P_KEY_COUNT 19
static const struct ni_key ni_p2p_keys[NI_P2P_KEY_COUNT] = {
    {"p2p", NI_KEY_STRING, NI_WHEN_ALWAYS},
    {"p2p_sn", NI_KEY_UINT, NI_WHEN_ALWAYS},
    {"p2p_peer", NI_KEY_INT, NI_WHEN_ALWAYS},
    {"p2p_msg_size_bytes", NI_KEY_UINT, NI_WHEN_ALWAYS},
    {"p2p_exec_time_us", NI_KEY_UINT, NI_WHEN_ALWAYS},
    {"p2p_timing_source", NI_KEY_STRING, NI_WHEN_ALWAYS},
    {"p2p_algobw_gbs", NI_KEY_GBS, NI_WHEN_ALWAYS},
    {"p2p_busbw_gbs", NI_KEY_GBS, NI_WHEN_ALWAYS},
    {"p2p_datatype", NI_KEY_STRING, NI_WHEN_STATED},
    {"p2p_nchannels", NI_KEY_UINT, NI_WHEN_STATED},
    {"nchannels_src", NI_KEY_STRING, NI_WHEN_STATED},
    {"p2p_exec_time_ns", NI_KEY_UINT, NI_WHEN_STATED},
    {"p2p_enqueue_ns", NI_KEY_UINT, NI_WHEN_STATED},
    {"p2p_gpu_start_delta_ns", NI_KEY_INT, NI_WHEN_STATED},
    {"rec_sn", NI_KEY_UINT, NI_WHEN_STATED},
    {"nccl_tests_size_bytes", NI_KEY_UINT, NI_WHEN_STATED},
    {"call_sn", NI_KEY_UINT, NI_WHEN_STATED},
    {"plan_sn", NI_KEY_UINT, NI_WHEN_STATED},
    {"graph", NI_KEY_BOOL, NI_WHEN_STATED},
};

#endif
