/*
 * nccl-inspector trace: logs to one timeline in the Chrome trace-event format (docs/timeline.md).
 *
 * Phases, one thread: scan (first pass over all lines, the files in order: who is there, which collectives
 * several hosts ran, what was lost) -> align (a clock for each host, align.h) -> emit (second pass: every
 * line to events in aligned time, into the external sort) -> write (events in order of time onto tracks, as
 * JSON, compressed). With filters the passes read those granules of the logs that can hold what is asked for
 * (choose.h).
 *
 * What exists once: hosts (a clock each), processes, units (one GPU of a process: what the timeline calls a
 * rank) and members (one rank of one communicator). Who a process or a member is, `who` knows
 * (model/who/who.h); what the timeline knows of it stands at the same number here. All times are Unix ns;
 * before align in the clock of their host.
 *
 * Memory: --memory for sorting, the names, about 300 bytes a member, 12 MB for matching and 16 MB for
 * messages where there are any. It does not grow with the number of records. Ownership: the command's
 * (exporter/cmds/trace.c). Failure: -errno, with what failed in r->error_text.
 */
#ifndef NI_TRACE_H
#define NI_TRACE_H

#include <stdbool.h>
#include <stdint.h>

#include "exporter/index/atlas.h"
#include "exporter/input/discover.h"
#include "exporter/input/filters.h"
#include "exporter/base/index.h"
#include "exporter/base/map.h"
#include "exporter/input/inputs.h"
#include "exporter/input/tags/tags.h"
#include "format/line.h"
#include "exporter/base/name_table.h"
#include "exporter/input/scan_files.h"
#include "exporter/model/clocks/gpu_clock.h"
#include "exporter/model/clocks/host_clock.h"
#include "exporter/model/clocks/kernel_fit.h"
#include "exporter/model/clocks/match.h"
#include "exporter/model/ledger/ledger.h"
#include "exporter/model/who/who.h"
#include "exporter/base/spill/spill_sort.h"

#define NI_TR_NONE UINT32_MAX
#define NI_TR_NO_TIME INT64_MIN

struct ni_tr_options {
  struct ni_inputs inputs;
  const char *output;       /* NULL: NAME-trace.json.gz here; "-": standard output */
  struct ni_filters filter; /* no sn, no size */
  uint64_t memory_bytes;
  struct ni_inputs with; /* [RANK=]FILE or folder */
  bool json, quiet, no_flows;
  struct ni_atlas_options index;
};

/*
 * A clock: the hosts with one name and boot id. Each boot sets the clock anew, so that the offset of the boot
 * before tells nothing; and containers of one name on two machines have two clocks. Processes know a host by
 * its name alone.
 */
struct ni_tr_host {
  uint32_t name, boot;        /* names */
  int64_t first_ns, last_ns;  /* of its operations */
  struct ni_host_clock clock; /* by align.c */
};

struct ni_tr_process {
  uint32_t host;
  int32_t rank;                /* in the job; -1: not stated */
  int64_t last_us;             /* latest dump */
  bool ours, final, has_lines; /* final line of the process read; lines about the run */
  uint32_t first_unit;         /* chain by next_in_process */
  /* P2P was not asked for all the time: its numbers on two ranks do not agree */
  bool p2p_changed;
  bool has_api, has_launches, has_net; /* lines of these kinds: worth an arrow */
};

struct ni_tr_unit {
  uint32_t process, next_in_process;
  int32_t rank; /* in the job; rank_stated false: taken from its largest communicator */
  int32_t gpu;  /* -1: not known */
  bool rank_stated, shown;
  uint32_t out_pid;          /* what the timeline calls its process */
  bool with;                 /* has files of --with */
  struct ni_kernel *started; /* then its kernels, aligned */
  size_t n_started, cap_started;
  struct ni_gpu_clock clock; /* its GPU's clock against the host's */
};

/* Numbers that were lost, and between which times: the records around them tell. */
struct ni_tr_gap {
  uint64_t from, to, count;
  uint32_t cause; /* name */
  uint8_t kind;
  int64_t after_ns, before_ns; /* aligned; NI_TR_NO_TIME: no record on that side */
  int64_t told_us;             /* dump time of the line */
  uint32_t file, granule;      /* that hold the line; granule NI_TR_NONE: of a log that is read whole */
  bool away;                   /* cannot touch the window, so the records around it are not read */
};

/* An operation of which a stuck, in_flight or incomplete line was seen; the newest line counts. */
struct ni_tr_open {
  struct ni_unfinished_line u;          /* strings are not kept, but the names below */
  uint32_t func, why, state, net_state; /* names */
  int64_t told_us;
  bool finished; /* a record followed */
  uint8_t kind;
};

struct ni_tr_member {
  uint32_t unit;
  int32_t gpu; /* -1: not known */
  /* the first one with its hash and rank in its process; how many of them came before it */
  uint32_t first, instance;
  uint32_t n_instances; /* of the first one: how many there are */
  /* another communicator of its unit has the same name; another rank of it is there, too */
  bool ambiguous, doubled;
  struct ni_tr_gap *gap;
  size_t n_gaps, cap_gaps;
  struct ni_tr_open *open;
  size_t n_open, cap_open;
  struct ni_gpu_points points; /* by its clock lines, until its unit is known */
  int64_t gpu_offset_ns;       /* of the last clock line before the record at hand; NI_NO_OFFSET: none */
  uint32_t track[8];           /* cache: track + 1 of the kinds that are used all the time */
  bool shown, announced;       /* announced: its begin is drawn */
  bool matched, drawn;         /* of a first one: operations of some instance tell clocks apart; are shown */
};

/* What a pass reads of a log (choose.h). */
struct ni_tr_log {
  const struct ni_granules *map; /* NULL: all of it */
  uint32_t *member;              /* of each context of the map; NI_TR_NONE: none */
  uint32_t process;              /* the last one of its lines */
  bool *wanted;                  /* of each granule */
};

enum ni_tr_pass {
  NI_TR_ALL,   /* the first one, over everything */
  NI_TR_WHO,   /* the first one by maps: what the lines say that are kept */
  NI_TR_MATCH, /* by maps: operations that tell clocks apart */
  NI_TR_DRAW
};

/* What is drawn and what is not: told at the end, beside what the ledger knows. */
struct ni_tr_counts {
  uint64_t operations, shown, no_start, start_assumed, unknown_lines, proxy_untimed, open, marks, events,
      slices, arrows, arrows_back, samples, open_lost, filtered, sampled, no_time, with_crowded;
};

/* The NICs and GPUs of a host, whose counters have tracks: what the timeline has as one process. */
struct ni_tr_device {
  uint32_t host, out_pid; /* host: a name */
};

/* A file of another profiler, drawn below a rank (with.c). */
struct ni_tr_with {
  char *path;
  int32_t rank;    /* -1: not known */
  uint32_t unit;   /* NI_TR_NONE: no such rank */
  int64_t base_ns; /* added to its times; 0: not stated */
  struct ni_kernel *theirs;
  size_t n_theirs, cap_theirs;
  struct ni_kernel_fit fit;
  struct ni_map places; /* of a hash of ni_kineto_event the name */
  uint64_t events, left_out;
  int error; /* it is not whole, or no such file */
};

struct ni_tr_track;
struct ni_tr_replays;
struct ni_tr_out;

struct ni_tr {
  struct ni_tr_options opt;
  struct ni_files files;
  struct ni_runs runs;
  struct ni_ledger ledger; /* by the first pass, or of the index */
  struct ni_atlas *atlas;  /* the command's; NULL: everything is read */
  struct ni_tr_log *log;   /* as many as files; NULL: everything is read */
  enum ni_tr_pass pass;
  uint32_t file, granule; /* of the line at hand; granule NI_TR_NONE: of a log that is read whole */
  bool windowed;          /* r->match holds what runs between --since and --until, and a bit more */
  struct ni_progress progress;
  struct ni_names names;
  struct ni_name_cache cache;
  struct ni_tr_host *host;
  struct ni_who who;
  /* as numbered by who; without what only the second pass saw of logs that still grow */
  struct ni_tr_process *process;
  struct ni_tr_unit *unit;
  struct ni_tr_member *member;
  uint32_t n_hosts, n_processes, n_units, n_members;
  size_t cap_hosts, cap_processes, cap_units, cap_members;
  struct ni_tag_names tags;      /* by the first pass */
  struct ni_tr_replays *replays; /* that wait for the next one (output/timeline/emit_parts.h); NULL: none */
  struct ni_map instances;       /* the first member of (process, hash, rank) */
  struct ni_match match, messages;
  struct ni_sort *p2p;        /* of Sends and Recvs, during the first pass */
  struct ni_spill *store;     /* the command's: for what does not fit into memory */
  uint32_t reference;         /* host; NI_TR_NONE: no host */
  int64_t since_ns, until_ns; /* in aligned time */
  int64_t first_ns, last_ns;  /* of the operations, not aligned */
  int64_t contradiction_ns;   /* largest between GPUs of one host: what their clocks' errors add up to */
  struct ni_tr_device *device;
  uint32_t n_devices;
  size_t cap_devices;
  struct ni_tr_with *with;
  uint32_t n_with;
  size_t cap_with;
  struct ni_tr_track *track;
  uint32_t n_tracks;
  size_t cap_tracks;
  struct ni_index track_at_hash;
  struct ni_sort *sort;
  int64_t t0_ns, t1_ns; /* first and last time in the output */
  struct ni_tr_counts count;
  char *out_path;
  bool replaces; /* a file that is there, and that the user has not named */
  uint64_t out_bytes, out_text_bytes;
  bool out_large; /* more text than Perfetto opens */
  char error_text[512];
};

/* what the model took: who, hosts, units, members, names. The rest is the command's */
void ni_tr_free(struct ni_tr *r);
/* Notes the first error; returns e. */
int ni_tr_fail(struct ni_tr *r, int e, const char *text, ...) __attribute__((format(printf, 3, 4)));

/* What can be said of who a member is; and its name, "": none. */
static inline const struct ni_who_member *ni_tr_who(const struct ni_tr *r, const struct ni_tr_member *m) {
  return &r->who.member[m - r->member];
}
static inline const char *ni_tr_comm_name(const struct ni_tr *r, const struct ni_tr_member *m) {
  const char *name = ni_tr_who(r, m)->name;
  return name ? name : "";
}
static inline uint32_t ni_tr_host_of(const struct ni_tr *r, const struct ni_tr_member *m) {
  return r->process[ni_tr_who(r, m)->process].host;
}

/* A time of a host's clock in the clock of the reference. */
static inline int64_t ni_tr_aligned(const struct ni_tr *r, uint32_t host, int64_t t) {
  return ni_clock_right(&r->host[host].clock, NULL, 0, t);
}

#endif
