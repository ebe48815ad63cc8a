/*
 * The vocabulary of our log lines: format version, kinds of operation, causes of loss (docs/format.md).
 *
 * An enum value and its name stand at the same index. All tables are constant; any thread.
 */
#ifndef NI_SCHEMA_H
#define NI_SCHEMA_H

#include <stdint.h>

#define NI_FORMAT_VERSION "v4.0" /* inspector_output_format_version: what NVIDIA's exporter accepts */
#define NI_REC_MECHANISM "nccl_profiler_interface"
#define NI_PRODUCER "nccl-inspector-c"

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

#endif
