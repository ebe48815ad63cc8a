/*
 * Records and control lines as JSONL text in the caller's buffer. No I/O, no allocation, no locale.
 *
 *   {"header":{…},"metadata":{…,"dump_timestamp_us":  T  ,"hostname":…,"producer":…},  "coll_perf":{…}}\n
 *   └───────────── prefix.head ─────────────────────┘   └────── prefix.tail ───────┘
 *
 * The prefix is rendered once per communicator, so that an operation line is two memcpy and numbers. All lines of one
 * flush should carry the same timestamp: it is when they were written, and equal bytes cost nothing after gzip.
 *
 * Bounds. A line never exceeds NI_LINE_MAX_BYTES, newline included: strings are cut at NI_TEXT_MAX_BYTES. Every
 * function returns the length of a whole line, or 0 without having written beyond cap when cap is too small for the
 * worst case (NI_LINE_MAX_BYTES is always enough). The text is not terminated.
 *
 * Threads: pure functions; a prefix is constant between init and free. Called by the dump thread. Strings are read
 * during the call only.
 */
#ifndef NI_FORMAT_JSONL_H
#define NI_FORMAT_JSONL_H

#include "events.h"
#include "record.h"
#include "schema.h"

#define NI_LINE_MAX_BYTES 73728

/* What all lines of a process have in common. Strings may be NULL: "unknown". */
struct ni_origin {
  const char *hostname;
  const char *git_rev;
  const char *version; /* of the producer */
  int64_t pid;
};

struct ni_line_prefix {
  char *text; /* head, then tail; owned, freed by ni_line_prefix_free */
  uint32_t head_len, tail_len;
};

/* Renders the prefix of a communicator (or of the process: ident with hash 0). 0, or -ENOMEM with p zeroed. Allocates:
 * not for callbacks. */
int ni_line_prefix_init(struct ni_line_prefix *p, const struct ni_ident *ident, const struct ni_origin *origin);
/* A zeroed or freed prefix is accepted. */
void ni_line_prefix_free(struct ni_line_prefix *p);

/* An operation line. ts_us: dump_timestamp_us, Unix microseconds. */
size_t ni_format_op(char *buf, size_t cap, const struct ni_line_prefix *p, uint64_t ts_us, const struct ni_record *r);

#define NI_ENV_MAX 16
#define NI_ENV_VALUE_BYTES 128       /* of a launcher variable, terminator included */
#define NI_SETTINGS_JSON_BYTES 16384 /* of the settings, terminator included */

struct ni_env_pair {
  const char *name;               /* constant */
  char value[NI_ENV_VALUE_BYTES]; /* hostile text */
};
struct ni_process_line {
  uint64_t start_ns; /* Unix ns */
  const char *boot_id, *exe, *interface; /* NULL is written as null */
  int64_t rank, local_rank, world_size;  /* < 0: null */
  const struct ni_env_pair *env;         /* launcher variables */
  uint32_t n_env;                        /* at most NI_ENV_MAX */
  int32_t nccl_version;                  /* <= 0: null */
  const char *settings_json;             /* a JSON object; NULL: {} */
  bool blackbox_wanted;                  /* false: no word of it */
  const char *blackbox;                  /* path; NULL: there is none, and blackbox_why says why */
  const char *blackbox_why;
};
size_t ni_format_process(char *buf, size_t cap, const struct ni_line_prefix *p, uint64_t ts_us,
                         const struct ni_process_line *in);

struct ni_comm_line {
  const struct ni_ident *ident;
  int32_t gpu_index;              /* < 0: null */
  const char *gpu_uuid, *gpu_pci; /* NULL or "": null */
  uint64_t init_ns;               /* Unix ns */
};
size_t ni_format_comm(char *buf, size_t cap, const struct ni_line_prefix *p, uint64_t ts_us,
                      const struct ni_comm_line *in);

/* why: "destroy" or "exit". */
size_t ni_format_comm_end(char *buf, size_t cap, const struct ni_line_prefix *p, uint64_t ts_us, const char *why,
                          uint64_t ns);

struct ni_clock_line {
  const char *source; /* ni_clock_source_name() */
  uint64_t ticks, monotonic_ns, realtime_ns;
  double ns_per_tick;
  bool has_gpu;              /* false: gpu_offset_* are null */
  int64_t gpu_offset_ns;     /* min(host arrival in Unix ns - pTimer) */
  uint64_t gpu_offset_at_ns; /* Unix ns of the observation that set the minimum */
  uint64_t gpu_samples;
};
size_t ni_format_clock(char *buf, size_t cap, const struct ni_line_prefix *p, uint64_t ts_us,
                       const struct ni_clock_line *in);

/* Accounting of one kind of operation on one communicator; all since the communicator's init unless said otherwise. */
struct ni_kind_stats {
  uint64_t records;            /* written since the last dump_stats line */
  uint64_t dropped_since_last; /* since the last dump_stats line; the total is the sum of dropped[] */
  uint64_t started, written;
  uint64_t filtered[NI_FILTER_COUNT];
  uint64_t dropped[NI_DROP_COUNT];
  uint64_t incomplete, late, in_flight;
  uint64_t fallback[NI_FALLBACK_COUNT];
};
/* Accounting of one kind of event (format/events.h). */
struct ni_event_count {
  uint64_t started, written, dropped, in_flight;
};
struct ni_stats_line {
  bool final;
  struct ni_kind_stats kind[NI_KIND_COUNT];
  uint64_t strays[NI_STRAY_COUNT];
  struct ni_event_count events[NI_EVENT_COUNT]; /* written for kinds that were started */
  uint64_t proxy_records, proxy_dropped_total, proxy_dropped_since;
  uint64_t refused_communicators; /* of the process; written when not 0 */
};
size_t ni_format_dump_stats(char *buf, size_t cap, const struct ni_line_prefix *p, uint64_t ts_us,
                            const struct ni_stats_line *in);

struct ni_gap_line {
  enum ni_kind kind;
  enum ni_drop cause;
  uint64_t count;                    /* operations lost */
  uint64_t rec_sn_from, rec_sn_to;   /* first and last rec_sn among them, both included */
};
size_t ni_format_gap(char *buf, size_t cap, const struct ni_line_prefix *p, uint64_t ts_us,
                     const struct ni_gap_line *in);

struct ni_late_line {
  enum ni_kind kind;
  const char *func;
  uint64_t sn, rec_sn;
  uint32_t channel;
  uint64_t stop_gpu_ns;
};
size_t ni_format_late(char *buf, size_t cap, const struct ni_line_prefix *p, uint64_t ts_us,
                      const struct ni_late_line *in);

/* An operation that has not finished: which line says so. */
enum ni_unfinished { NI_UNFINISHED_INCOMPLETE = 0, NI_UNFINISHED_STUCK, NI_UNFINISHED_IN_FLIGHT };
struct ni_incomplete_line {
  enum ni_kind kind;
  const char *func;
  uint64_t sn, rec_sn, msg_bytes;
  int32_t channels_expected; /* < 0: null */
  uint32_t channels_started, channels_stopped;
  uint64_t enqueue_ns; /* Unix ns */
  uint64_t age_ms;
  const char *why; /* incomplete: "overtaken" or "finalize"; stuck: "stuck"; in_flight: "exit" */
  /* stuck and in_flight only */
  enum ni_unfinished line;
  const char *state, *datatype;
  int32_t root; /* or peer */
  uint64_t channels_open; /* bit per channel */
};
size_t ni_format_incomplete(char *buf, size_t cap, const struct ni_line_prefix *p, uint64_t ts_us,
                            const struct ni_incomplete_line *in);

struct ni_pool_line {
  const char *kind; /* "coll", "p2p", "event" or "proxy" */
  uint64_t capacity, high_water; /* slots */
  uint64_t growths, bytes, slot_bytes, dropped;
};
size_t ni_format_pool_stats(char *buf, size_t cap, const struct ni_line_prefix *p, uint64_t ts_us,
                            const struct ni_pool_line *in);

struct ni_arena_line {
  uint64_t capacity_bytes, used_bytes, high_water_bytes, cap_bytes;
};
/* pool_stats with "kind":"arena", one per process. */
size_t ni_format_arena_stats(char *buf, size_t cap, const struct ni_line_prefix *p, uint64_t ts_us,
                             const struct ni_arena_line *in);

size_t ni_format_note(char *buf, size_t cap, const struct ni_line_prefix *p, uint64_t ts_us, const char *text);

#endif
