/*
 * What a line of the log says, one struct for each kind, for those who write lines (line_write.h) and those
 * who read them (exporter/input/parse/parse.h). Which key goes with which member stands in lines.def.
 */
#ifndef NI_LINE_H
#define NI_LINE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "events.h"
#include "hist.h"
#include "record.h"

#define NI_NO_OFFSET INT64_MIN
#define NI_NO_SN UINT64_MAX /* of a number that a line does not have, or has as null */
#define NI_BY_MAX 12
#define NI_PAIRS_MAX 48
#define NI_STEPS_MAX 65536 /* of one line; more are verified and counted */
#define NI_METRICS_MAX 4096
#define NI_FUNCS_NUMBERED 32

enum ni_line_kind {
  NI_LINE_OP = 0, /* coll_perf, p2p_perf */
  NI_LINE_PROXY,  /* proxy_trace (NVIDIA v4.3 and later) */
  NI_LINE_PROCESS,
  NI_LINE_COMM,
  NI_LINE_COMM_END,
  NI_LINE_CLOCK,
  NI_LINE_DUMP_STATS, /* ours (stats.has_accounting), or NVIDIA's marker */
  NI_LINE_GAP,
  NI_LINE_LATE,
  NI_LINE_INCOMPLETE,
  NI_LINE_STUCK, /* the three of them in line->unfinished */
  NI_LINE_IN_FLIGHT,
  NI_LINE_POOL_STATS,
  NI_LINE_NOTE,
  NI_LINE_CONTROL,       /* detail was changed while the job ran, or a mark was set */
  NI_LINE_ROLLUP,        /* what all operations of one function and size came to in a minute */
  NI_LINE_COUNTER_NAMES, /* what NICs and GPUs count: of an entity */
  NI_LINE_COUNTERS,      /* one sweep of their values */
  NI_LINE_API,           /* from here to NI_LINE_NET: events, in line->event */
  NI_LINE_LAUNCH,
  NI_LINE_GROUP,
  NI_LINE_CE,
  NI_LINE_SYNC,
  NI_LINE_BATCH,
  NI_LINE_PROXY_CTRL,
  NI_LINE_NET,
  NI_LINE_UNKNOWN, /* header, metadata and a key of a later version: kind_name says which */
  NI_LINE_KIND_COUNT
};

/* Code, and the name as in messages and in JSON. */
#define NI_REJECTS(X) \
  X(BLANK, "blank") /* nothing but white space */ \
  X(BAD_JSON, "bad_json") \
  X(BAD_UTF8, "bad_utf8") \
  X(NOT_OBJECT, "not_object")  /* JSON, but a number, a string, an array */ \
  X(NO_PERF, "no_perf_object") /* an object without any record in it */ \
  X(TWO_KINDS, "two_kinds")    /* more than one record in one line */ \
  X(MISSING_KEY, "missing_key") \
  X(BAD_TYPE, "bad_type") \
  X(OUT_OF_RANGE, "out_of_range") \
  X(BAD_VALUE, \
    "bad_value") /* right type, but no such value: a hash that is not hexadecimal, a NUL in a name */ \
  X(DUPLICATE_KEY, "duplicate_key") \
  X(TOO_DEEP, "too_deep") \
  X(TOO_LONG, "too_long") /* given by the reader (line_reader.h) */ \
  X(NO_MEMORY, "no_memory")

#define NI_REJECT_CODE(code, name) NI_REJ_##code,
enum ni_reject { NI_OK = 0, NI_REJECTS(NI_REJECT_CODE) NI_REJ_COUNT };

/* The structs below are those of lines.def: what the writer is given and the reader gives. A text that a line
 * does not have, or has as null, is "" when it was read; the writer takes NULL for null. */

/* The "metadata" object. */
struct ni_meta {
  const char *version; /* "" when absent; the writer's own is NI_FORMAT_VERSION whatever this says */
  const char *git_rev, *rec_mechanism;
  const char *hostname;
  const char *producer; /* NULL: not ours */
  uint64_t dump_timestamp_us;
  int64_t pid;
};

/*
 * Numbers by name, for causes that a later version may add to. total is the sum over all, also over those not
 * listed.
 */
struct ni_by {
  uint64_t total;
  uint32_t n, more; /* listed; not listed for want of space */
  struct {
    const char *name;
    uint64_t count;
  } item[NI_BY_MAX];
};

/*
 * Adds a cause; a count of 0 is left out. Readers add counts up, so the sum is kept within what a log may
 * hold.
 */
static inline void ni_by_add(struct ni_by *by, const char *name, uint64_t count) {
  uint64_t room = by->total < INT64_MAX ? INT64_MAX - by->total : 0;
  if (count > room)
    count = room;
  if (!count || by->n == NI_BY_MAX)
    return;
  by->item[by->n].name = name;
  by->item[by->n++].count = count;
  by->total += count;
}

static inline uint64_t ni_by_count(const struct ni_by *by, const char *name) {
  for (uint32_t i = 0; i < by->n; i++)
    if (strcmp(by->item[i].name, name) == 0)
      return by->item[i].count;
  return 0;
}

struct ni_pairs {
  const char *text; /* for the writer, instead of the items: the object as JSON; NULL: none */
  uint32_t n, more;
  struct {
    const char *key, *value;
  } item[NI_PAIRS_MAX];
};

/* Of a setting: one that is not there has its default. */
static inline const char *ni_pairs_value(const struct ni_pairs *pairs, const char *key) {
  for (uint32_t i = 0; i < pairs->n; i++)
    if (strcmp(pairs->item[i].key, key) == 0)
      return pairs->item[i].value;
  return NULL;
}

#define NI_PAIRS_WRITTEN 16 /* of a pairs' items; more are left out, and longer values cut */
#define NI_PAIR_VALUE_BYTES 128
#define NI_PAIRS_TEXT_BYTES 16384 /* of a pairs' text; a longer one is written as {} */

struct ni_process_line {
  uint64_t start_ns; /* Unix ns; 0: not stated */
  const char *boot_id, *exe, *interface;
  int32_t rank, local_rank, world_size; /* as the launcher gives them, -1: not given */
  int32_t nccl_version;                 /* 23007 is 2.30.7; -1: unknown */
  /* Unix ns when `recover` read the black box; 0: the process wrote this file itself */
  uint64_t recovered_ns;
  bool recovered_live; /* the process was alive then: more may have followed */
  struct ni_pairs env, settings;
  /* path of the black box; why there is none. "": not stated. Writer: both NULL */
  const char *blackbox, *blackbox_why;
  const char *library; /* "rccl", "unknown"; "": NCCL */
  /* of a GPU's clock that does not count ns, which those of the log are made from; 0: it does */
  uint64_t gpu_clock_khz;
};

struct ni_comm_line {
  const char *name; /* NULL: none */
  uint64_t hash;
  int32_t rank, n_ranks, nnodes;
  int32_t gpu_index;              /* -1: unknown */
  const char *gpu_uuid, *gpu_pci; /* NULL: unknown */
  uint64_t init_ns;
};

struct ni_comm_end_line {
  const char *why;
  uint64_t ns;
};

struct ni_clock_line {
  const char *source;
  uint64_t ticks, monotonic_ns, realtime_ns;
  double ns_per_tick;    /* 0: none given; written with 12 decimals */
  int64_t gpu_offset_ns; /* NI_NO_OFFSET: none measured */
  int64_t gpu_offset_at_ns;
  uint64_t gpu_samples;
};

struct ni_kind_stats {
  uint64_t started, written, incomplete, late, in_flight;
  struct ni_by filtered_by, dropped_by, timing_fallback_by;
};

struct ni_event_stats {
  uint64_t started, written, dropped, in_flight;
};
struct ni_events_stats {
  struct ni_event_stats kind[NI_EVENT_COUNT]; /* by bit of enum ni_event */
};

struct ni_stats_line {
  uint64_t records[NI_KIND_COUNT], dropped_total[NI_KIND_COUNT], dropped_since[NI_KIND_COUNT];
  uint64_t proxy_records, proxy_dropped_total, proxy_dropped_since, proxy_ops_dropped_total;
  bool final;
  bool has_accounting; /* "coll" and "p2p" objects present: the line is ours */
  struct ni_kind_stats kind[NI_KIND_COUNT];
  struct ni_by strays;
  bool has_events;
  struct ni_events_stats events;
  uint64_t refused_communicators; /* of the process: not recorded at all */
  /* of the process: how it ended, in docs/format.md's words; NULL, "": not said */
  const char *end;
};

/* The accounts of one kind by number of the cause, as writers keep them. */
struct ni_kind_counts {
  uint64_t records;            /* written since the last dump_stats line */
  uint64_t dropped_since_last; /* since the last dump_stats line; the total is the sum of dropped[] */
  uint64_t started, written;
  uint64_t filtered[NI_FILTER_COUNT];
  uint64_t dropped[NI_DROP_COUNT];
  uint64_t incomplete, late, in_flight;
  uint64_t fallback[NI_FALLBACK_COUNT];
};

struct ni_gap_line {
  const char *kind, *cause;
  uint64_t count, rec_sn_from, rec_sn_to;
};

struct ni_late_line {
  const char *kind, *func;
  uint64_t sn, rec_sn, stop_gpu_ns;
  int32_t channel;
};

struct ni_unfinished_line {
  const char *kind, *func, *why;
  uint64_t sn, rec_sn, msg_bytes, enqueue_ns, age_ms;
  int32_t channels_expected; /* -1: not known */
  int32_t channels_started, channels_stopped;
  /* stuck and in_flight only; "", -1 and 0 where the line does not say */
  const char *state; /* called, launched, kernel, network, finishing */
  const char *datatype;
  int32_t root, peer;     /* of a collective; of a P2P. The writer takes that of its kind */
  uint64_t channels_open; /* bit per channel that has started and not stopped: the first 64 */
  int32_t net_peer, net_channel;
  const char *net_state;       /* what the oldest waiting network operation waits for */
  uint64_t user_tag;           /* 0: untagged */
  int32_t channels_open_above; /* of those from 64 on, how many have; RCCL alone has them */
};

struct ni_pool_line {
  const char *kind; /* coll, p2p, arena */
  uint64_t capacity, high_water, growths, bytes, slot_bytes, dropped;
  uint64_t capacity_bytes, used_bytes, high_water_bytes, cap_bytes; /* arena */
};

struct ni_note_line {
  const char *text;
};

struct ni_control_line {
  /* "file", "tags" or "mask"; of earlier releases also "duty" and "budget" */
  const char *source;
  const char *file;                   /* NULL: not from a file */
  const char *command, *result, *why; /* why: NULL where there is nothing to explain */
  const char *mark;                   /* NULL: no mark */
  const char *events;                 /* kinds of events asked for from here on */
  bool verbose;
  uint64_t line, sample, ns; /* line 0: not stated; sample: one record in so many */
};

struct ni_rollup_line {
  const char *kind, *func;
  enum ni_timing timing;
  uint64_t msg_bytes;    /* the size, or the smallest of a class of sizes */
  uint64_t msg_to_bytes; /* of a class: the largest; 0: one size */
  uint64_t from_ns, to_ns, count, sum_bytes, sum_ns, min_ns, max_ns;
  bool has_hist; /* for the writer: hist is to be written */
  uint64_t hist[NI_HIST_BUCKETS];
};

/* A step nested in its operation's line, as earlier plugins wrote it. NAN: not measured. */
struct ni_proxy_step {
  uint64_t record_sn, proxy_step_sn, trans_size_bytes;
  uint64_t start_ns; /* Unix ns, 0: not stated */
  int64_t step;      /* -1: not stated */
  double total_us, gpu_produce_us, peer_credit_us, wire_us, flush_us, gpu_consume_us;
};
struct ni_proxy_steps {
  const struct ni_proxy_step *list;
  uint64_t n, more; /* listed; beyond NI_STEPS_MAX */
};

#define NI_NO_PHASES \
  .total_us = NAN, .gpu_produce_us = NAN, .peer_credit_us = NAN, .wire_us = NAN, .flush_us = NAN, \
  .gpu_consume_us = NAN
/* what a step begins with that is yet to be filled */
#define NI_NO_STEP .step = -1, NI_NO_PHASES

/* NVIDIA's proxy_trace, and ours, which has the keys from n_steps on. NAN: phase not measured. */
struct ni_proxy_line {
  const char *record_type, *parent_type, *direction;
  uint64_t record_sn, parent_sn, proxy_op_sn, trans_size_bytes;
  int32_t rank, channel, peer;
  bool is_final;
  double total_us, gpu_produce_us, peer_credit_us, wire_us, flush_us, gpu_consume_us, op_bw_gbs;
  uint64_t n_steps, chunk_size_bytes, n_steps_started, n_steps_completed, n_steps_dropped, proxy_step_sn;
  uint64_t parent_rec_sn; /* NI_NO_SN: not stated */
  uint64_t start_ns;      /* Unix ns, 0: not stated */
  int64_t step;           /* -1: not stated */
  int64_t origin_pid;     /* of an operation served for another process; -1: our own */
  double max_step_us, progress_us;
  const char *timing_source, *parent_func, *state;
  struct ni_proxy_steps steps; /* read only: earlier plugins wrote them */
};
#define NI_NO_PROXY \
  .record_type = "", .parent_type = "", .direction = "", .rank = -1, .channel = -1, .peer = -1, NI_NO_STEP, \
  .op_bw_gbs = NAN, .timing_source = "", .max_step_us = NAN, .parent_func = "", .parent_rec_sn = NI_NO_SN, \
  .origin_pid = -1, .progress_us = NAN, .state = ""

/*
 * A whole operation or a step: not a segment, which is steps and nothing else, nor the word that an operation
 * has begun.
 */
static inline bool ni_proxy_has_figures(const struct ni_proxy_line *p) {
  return strcmp(p->record_type, NI_PROXY_OP) == 0 || strcmp(p->record_type, NI_PROXY_STEP) == 0;
}

/* The other events (docs/format.md, 4b). Each kind of line fills what it has; numbers without a value are
 * NI_NO_SN or -1, texts "". */
struct ni_event_line {
  const char *api, *func, *datatype, *seen, *sync_strategy, *what, *type;
  uint64_t ev_sn, call_sn, group_sn, plan_sn, ce_sn, proxy_op_sn;
  uint64_t start_ns;                  /* Unix ns */
  int64_t dur_ns;                     /* -1: it never stopped */
  int64_t start_end_ns, end_begin_ns; /* after start_ns */
  uint64_t count, stream, bytes, appended, wr_id, updates;
  uint64_t user_tag, nccl_tag; /* as in struct ni_record */
  int64_t step, device, op, qp, fd;
  int32_t root, depth, n_ranks, n_ops, version;
  bool graph, is_complete, intra_sync;
};
#define NI_NO_EVENT \
  .api = "", .func = "", .datatype = "", .seen = "", .sync_strategy = "", .what = "", .type = "", \
  .call_sn = NI_NO_SN, .group_sn = NI_NO_SN, .plan_sn = NI_NO_SN, .ce_sn = NI_NO_SN, \
  .proxy_op_sn = NI_NO_SN, .dur_ns = -1, .start_end_ns = -1, .end_begin_ns = -1, .step = -1

/* What is counted (exporter/collect/set.h), as a time series names it. */
struct ni_metric_name {
  const char *name, *kind, *unit; /* kind: counter, sticky, gauge */
  uint32_t width, scale;
};
struct ni_metric_names {
  const struct ni_metric_name *list;
  uint64_t n, more; /* listed; beyond NI_METRICS_MAX */
};
#define NI_METRICS_A_LINE 32u /* the writer lists at most so many */

struct ni_counter_names_line {
  uint64_t set_sn, interval_ns;
  /* number of it, of how many; of its first metric here, of how many */
  uint32_t entity, n_entities, first, n_counters;
  const char *source, *name, *pci, *nearest, *link, *about; /* NULL: not known */
  double link_bytes_s;                                      /* 0: not known */
  int32_t numa;                                             /* -1: not known */
  struct ni_metric_names metrics;
};

/* Numbers in a list; null is NI_NO_NUMBER. */
#define NI_NO_NUMBER INT64_MIN
#define NI_NUMBERS_A_LINE 1280u /* the writer lists at most so many */
struct ni_numbers {
  const int64_t *list;
  uint64_t n;
};

struct ni_sample_line {
  uint64_t set_sn, sample_sn, realtime_ns, monotonic_ns, sweep_ns, missed;
  /* the sample to which values are differences; NI_NO_SN: none, they are the counters' own */
  uint64_t since_sn;
  uint32_t first; /* number of the first counter here; further lines of the sample have the others */
  bool full;      /* of all counters, at one end */
  struct ni_numbers at_us, values;
};

struct ni_line {
  enum ni_line_kind kind;
  bool has_header; /* header and metadata were there: ident and meta are filled */
  bool is_p2p;     /* of an operation: from p2p_perf */
  struct ni_ident ident;
  struct ni_meta meta;
  const char *kind_name; /* the key that holds the record */
  const char *bad_key;   /* of a rejected line: the key at fault, or NULL */
  /* of the reader: lines with the same number, not 0, have the same ident, and meta but for the time */
  uint32_t head_no;
  /* of an operation, by the reader, 1 to NI_FUNCS_NUMBERED: each is one function's name; 0: of another one */
  uint32_t func_no;
  uint32_t unknown_keys;
  const char *unknown_key;      /* the first one, NULL: none */
  const struct ni_trace *trace; /* NULL: not verbose */
  union {
    struct ni_record op;
    struct ni_process_line process;
    struct ni_comm_line comm;
    struct ni_comm_end_line comm_end;
    struct ni_clock_line clock;
    struct ni_stats_line stats;
    struct ni_gap_line gap;
    struct ni_late_line late;
    struct ni_unfinished_line unfinished;
    struct ni_pool_line pool;
    struct ni_note_line note;
    struct ni_control_line control;
    struct ni_rollup_line rollup;
    struct ni_proxy_line proxy;
    struct ni_event_line event;
    struct ni_counter_names_line counter_names;
    struct ni_sample_line counters;
  };
};

/* When its first channel started as the CPU saw it, in Unix ns: in verbose logs. 0: not told. */
static inline int64_t ni_first_channel_ns(const struct ni_line *l) {
  uint64_t first = 0;
  for (uint32_t i = 0; l->trace && l->trace->has_ts && i < l->trace->n; i++)
    if (l->trace->event[i].start_us && (!first || l->trace->event[i].start_us < first))
      first = l->trace->event[i].start_us;
  return first < INT64_MAX / 1000 ? (int64_t)first * 1000 : 0;
}

#endif
