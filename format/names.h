/*
 * Names that NCCL and the logs use, with the sizes and bus factors that belong to them; causes of loss
 * (docs/format.md).
 *
 * One table each for functions, datatypes and timing sources. The plugin looks a name up once, when it first
 * sees NCCL's string; the exporter when it parses a line. Spellings are NCCL's own (src/collectives.cc of
 * 2.30.7, docs/format.md lists them). All functions here are pure and may be called from any thread.
 */
#ifndef NI_NAMES_H
#define NI_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum ni_func {
  NI_FUNC_OTHER = 0, /* a name NCCL may bring tomorrow: recorded as it is, bandwidth unknown */
  NI_FUNC_ALLREDUCE,
  NI_FUNC_ALLGATHER,
  NI_FUNC_REDUCESCATTER,
  NI_FUNC_BROADCAST,
  NI_FUNC_REDUCE,
  NI_FUNC_SEND,
  NI_FUNC_RECV,
  NI_FUNC_ALLTOALL,
  NI_FUNC_GATHER,
  NI_FUNC_SCATTER,
  NI_FUNC_COUNT
};

/* How the execution time of a record was measured; NVIDIA's spelling in `coll_timing_source`. */
enum ni_timing {
  NI_TIMING_NONE = 0,   /* not stated (oldest logs) */
  NI_TIMING_KERNEL_GPU, /* latest channel stop - earliest channel start, GPU clock */
  /* arrival of the last channel's stop - arrival of the first channel's start, CPU clock */
  NI_TIMING_KERNEL_CPU,
  NI_TIMING_COLLECTIVE_CPU, /* the bracket around the enqueue, CPU clock: says nothing about the kernel */
  NI_TIMING_COUNT
};

struct ni_func_info {
  const char *name;
  uint8_t times_ranks; /* 1: the user-visible size S is n_ranks x the bytes b that the descriptor carries */
  uint8_t factor;      /* bus factor: 0 none known, 1 = 1, 2 = (n-1)/n, 3 = 2(n-1)/n */
};

/* S and factor: nccl-tests' src/<collective>.cu, one file per collective. */
static const struct ni_func_info ni_func_table[NI_FUNC_COUNT] = {
    [NI_FUNC_OTHER] = {"", 0, 0},
    [NI_FUNC_ALLREDUCE] = {"AllReduce", 0, 3},
    [NI_FUNC_ALLGATHER] = {"AllGather", 1, 2},
    [NI_FUNC_REDUCESCATTER] = {"ReduceScatter", 1, 2},
    [NI_FUNC_BROADCAST] = {"Broadcast", 0, 1},
    [NI_FUNC_REDUCE] = {"Reduce", 0, 1},
    [NI_FUNC_SEND] = {"Send", 0, 1},
    [NI_FUNC_RECV] = {"Recv", 0, 1},
    [NI_FUNC_ALLTOALL] = {"AlltoAll", 1, 2},
    [NI_FUNC_GATHER] = {"Gather", 1, 2},
    [NI_FUNC_SCATTER] = {"Scatter", 1, 2},
};

static const char *const ni_timing_names[NI_TIMING_COUNT] = {"", "kernel_gpu", "kernel_cpu",
                                                             "collective_cpu"};

/* Function of a name; NI_FUNC_OTHER when it is not in the table. NULL is NI_FUNC_OTHER. */
static inline enum ni_func ni_func_from_name(const char *name) {
  if (name)
    for (int i = 1; i < NI_FUNC_COUNT; i++)
      if (strcmp(name, ni_func_table[i].name) == 0)
        return (enum ni_func)i;
  return NI_FUNC_OTHER;
}

static inline enum ni_timing ni_timing_from_name(const char *name) {
  if (name)
    for (int i = 1; i < NI_TIMING_COUNT; i++)
      if (strcmp(name, ni_timing_names[i]) == 0)
        return (enum ni_timing)i;
  return NI_TIMING_NONE;
}

/*
 * Bytes of one element. NCCL's own table has no case for ncclUint8 and prints "Unknown" (callbacks 2.1), so
 * "Unknown", NULL and names of the future count as 1 byte.
 */
static inline uint32_t ni_datatype_bytes(const char *name) {
  static const struct {
    const char *name;
    uint8_t bytes;
  } table[] = {{"ncclInt8", 1},    {"ncclUint8", 1},    {"ncclInt32", 4},      {"ncclUint32", 4},
               {"ncclInt64", 8},   {"ncclUint64", 8},   {"ncclFloat16", 2},    {"ncclFloat32", 4},
               {"ncclFloat64", 8}, {"ncclBfloat16", 2}, {"ncclFloat8e4m3", 1}, {"ncclFloat8e5m2", 1}};
  if (name)
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
      if (strcmp(name, table[i].name) == 0)
        return table[i].bytes;
  return 1;
}

/*
 * Bus factor for n ranks; 0 when none is known for the function or n < 1. Source: callbacks 2.2 and
 * nccl-tests.
 */
static inline double ni_bus_factor(enum ni_func func, int32_t n_ranks) {
  double n = n_ranks;
  if (n_ranks < 1)
    return 0;
  switch (ni_func_table[func].factor) {
    case 1:
      return 1;
    case 2:
      return (n - 1) / n;
    case 3:
      return 2 * (n - 1) / n;
    default:
      return 0;
  }
}

/* The size users see in nccl-tests, from the descriptor's bytes. n_ranks < 1 counts as 1. */
static inline uint64_t ni_nccl_tests_bytes(enum ni_func func, uint64_t msg_bytes, int32_t n_ranks) {
  return ni_func_table[func].times_ranks && n_ranks > 1 ? msg_bytes * (uint64_t)n_ranks : msg_bytes;
}

/* ---- the words of our own lines; an enum value and its name stand at the same index ---- */

/* inspector_output_format_version: what NVIDIA's exporter accepts */
#define NI_FORMAT_VERSION "v4.0"
#define NI_REC_MECHANISM "nccl_profiler_interface"
/* Of logs that `import` made: what it read. */
#define NI_MECHANISM_KINETO "kineto"
#define NI_MECHANISM_NSYS "nsys"
#define NI_MECHANISM_ACCL "accl"
enum { NI_IMPORTS = 3 };
static const char *const ni_import_names[NI_IMPORTS] = {NI_MECHANISM_KINETO, NI_MECHANISM_NSYS,
                                                        NI_MECHANISM_ACCL};
static inline bool ni_is_imported(const char *mechanism) {
  for (int i = 0; i < NI_IMPORTS; i++)
    if (mechanism && strcmp(mechanism, ni_import_names[i]) == 0)
      return true;
  return false;
}
#define NI_PRODUCER "nccl-inspector-c"

/* Kind of operation as control lines spell it; index is enum ni_kind. */
static const char *const ni_kind_names[2] = {"coll", "p2p"};
static inline uint8_t ni_kind_from_name(const char *name) { return strcmp(name, ni_kind_names[1]) == 0; }

/* record_type of a proxy_trace line: an operation, one of its steps. Earlier plugins also had
 * "proxy_op_segment": some of an operation's steps, before its own line. */
#define NI_PROXY_OP "proxy_op"
#define NI_PROXY_STEP "proxy_step"
#define NI_PROXY_START "proxy_op_start" /* NVIDIA's alone: an operation has begun */

#define NI_OBSERVED "observed" /* nchannels_src */

/* Why a started operation is not in the log: dropped_by{} and gap.cause. */
enum ni_drop {
  NI_DROP_POOL_FULL = 0, /* fixed pool, no free slot */
  NI_DROP_ARENA_FULL,    /* NCCL_INSPECTOR_POOL_MAX_BYTES reached */
  NI_DROP_OVERWRITTEN,   /* a newer operation got its slot: by earlier plugins alone */
  NI_DROP_WRITE_ERROR,   /* could not be written until the end, or its file was deleted by somebody */
  NI_DROP_EXPIRED,       /* was written; its file went by rotation */
  NI_DROP_BOX_FULL,      /* of a killed process: its black box had no room for them. By `recover` alone */
  NI_DROP_COUNT,
  NI_DROP_OF_CALLBACKS = NI_DROP_OVERWRITTEN, /* the causes before it are those that callbacks meet */
  /* the causes before it are those that a process counts itself */
  NI_DROP_OF_PLUGIN = NI_DROP_BOX_FULL
};
static const char *const ni_drop_names[NI_DROP_COUNT] = {"pool_full",   "arena_full", "overwritten",
                                                         "write_error", "expired",    "box_full"};

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
#define NI_FALLBACK_COUNT 8
static const char *const ni_fallback_names[NI_FALLBACK_COUNT] = {
    "zero_stamp",    "stop_before_start", "before_previous", "span_too_long",
    "after_arrival", "no_stop_stamp",     "counters_apart",  "clock_rate"};

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
  NI_STRAY_NO_ANNEX,  /* an operation whose tag or phases found no memory */
  NI_STRAY_COUNT
};
static const char *const ni_stray_names[NI_STRAY_COUNT] = {
    "null_parent", "stale_handle", "foreign_handle", "bad_channel", "double_stop",
    "bad_context", "unknown_type", "unknown_state",  "late_call",   "no_annex"};

#endif
