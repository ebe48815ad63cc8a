/*
 * What `nccl-inspector check` knows about a set of logs: counts and intervals, never records.
 *
 * check_read.c fills it from the files, check_judge.c turns it into problems, check_print.c shows it. Memory grows with
 * communicators times ranks and with holes in their numbers, not with records. One thread; ni_check_free() frees all.
 */
#ifndef NI_CHECK_H
#define NI_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/input/discover.h"
#include "exporter/base/map.h"
#include "exporter/cli/options.h"
#include "format/line.h"
#include "exporter/base/seq_set.h"

#define NI_CHECK_NAMES 48
#define NI_CHECK_SAMPLES 10
#define NI_CHECK_WHERES 3

/* Counts by a name that the logs bring. */
struct ni_tally {
  struct {
    char *name;
    uint64_t count;
  } item[NI_CHECK_NAMES];
  size_t n;
  uint64_t other; /* beyond NI_CHECK_NAMES names */
  size_t last;    /* hit by the last call: names come in runs */
};

/* One kind (collective, P2P) of one communicator in one process. */
struct ni_check_kind {
  uint64_t records;
  struct ni_seq_set rec_sn;      /* ours */
  bool stated;                   /* the numbers below are from the newest dump_stats line */
  uint64_t started, written, filtered, dropped, incomplete, late, in_flight, fallback;
  uint64_t flushed;              /* sum of *_records over the dump_stats lines */
  uint64_t gap_lines, incomplete_lines, late_lines; /* gap_lines: sum of their counts */
  uint64_t nvidia_dropped;       /* *_dropped_total of NVIDIA's marker */
  uint64_t rolled, sampled;      /* counted in rollup lines; left out by NCCL_INSPECTOR_SAMPLE */
  uint64_t expired;              /* of those dropped; on the process's line */
  uint64_t missing, untold;      /* by ni_check_judge: numbers without a record; untold: NI_PROBLEM_UNTOLD */
};

/* NVIDIA: coll_sn counts per function. */
struct ni_check_func {
  struct ni_check_func *next;
  char *name;
  struct ni_seq_set sn;
};

struct ni_check_process;

/* One rank of one communicator, as one process saw it. */
struct ni_check_comm {
  struct ni_check_process *process;
  uint64_t hash, init_ns;
  int32_t rank, n_ranks, nnodes;
  char *name;
  bool final, ours;
  bool killed;                   /* its last lines are of recover */
  uint64_t stats_at;             /* dump_timestamp_us of the newest dump_stats line */
  struct ni_check_kind kind[NI_KIND_COUNT];
  uint64_t events_there[NI_EVENT_COUNT]; /* in lines of their own, or steps in their operation's */
  uint64_t proxy_lines, proxy_flushed;   /* there; sum of proxy_records over the dump_stats lines */
  struct ni_events_stats events; /* of the newest dump_stats line */
  struct ni_check_func *funcs;
};

struct ni_check_process {
  char *hostname;
  int64_t pid;
  uint64_t start_ns;
  bool ours, control_lines, rollups;
  uint64_t gone;       /* records of files that expired or that somebody deleted, and that no communicator misses yet */
  bool files_gone, ended;        /* ended: its own last line is there */
  bool has_line;                 /* its process line is there */
  bool killed;                   /* recover says so */
  unsigned limits;               /* NI_EXPIRES_* */
  uint64_t sample;               /* largest N of 1/N that records were sampled by; 0: all are written */
  bool has_clock;
  struct { uint64_t ticks, monotonic_ns; double ns_per_tick; } clock;
  const struct ni_file *file;    /* the first one */
};

/* Code, name in JSON, text of one, text of several. */
#define NI_PROBLEMS(X) \
  X(UNREADABLE, "unreadable", "path could not be read", "paths could not be read") \
  X(CUT, "cut", "file cut at its end", "files cut at their end") \
  X(DAMAGED, "damaged", "place of damaged gzip data", "places of damaged gzip data") \
  X(BAD_LINES, "bad_lines", "bad line", "bad lines") \
  /* Records without a header and without a marker before them */ \
  X(ORPHANS, "orphans", "record without a header before it", "records without a header before them") \
  X(MARKER, "marker", "record more or less than a marker announces", "records more or less than a marker announces") \
  X(DROPPED, "dropped", "operation dropped", "operations dropped") \
  X(EXPIRED, "expired", "record expired with its file", "records expired with their files") \
  X(INCOMPLETE, "incomplete", "operation incomplete", "operations incomplete") \
  X(REFUSED, "refused", "communicator not recorded at all", "communicators not recorded at all") \
  X(IN_FLIGHT, "in_flight", "operation still in flight at the end", "operations still in flight at the end") \
  X(LATE, "late", "operation with a channel that came late", "operations with a channel that came late") \
  X(NO_FINAL, "no_final", "rank of a communicator without a final line: killed, or still running", \
    "ranks of communicators without a final line: killed, or still running") \
  X(NO_END, "no_end", NI_UNENDED_ONE, NI_UNENDED_MANY) \
  X(NO_ACCOUNTING, "no_accounting", "rank of a communicator without accounting (NCCL_INSPECTOR_DUMP_CONTROL_LINES=0?)", \
    "ranks of communicators without accounting (NCCL_INSPECTOR_DUMP_CONTROL_LINES=0?)") \
  X(SUM, "sum", "operation that the final lines do not account for", "operations that the final lines do not account for") \
  X(WRITTEN, "written", "record more or less than stated as written", "records more or less than stated as written") \
  /* Gap or incomplete lines say another number than the final line */ \
  X(STATED, "stated", "loss told differently by the lines about it", "losses told differently by the lines about them") \
  /* Numbers that never came and that nothing explains */ \
  X(MISSING, "missing", "operation missing by its number", "operations missing by their numbers") \
  X(DOUBLE, "double", "record there twice", "records there twice") \
  /* Event lines that are not there, or more than were written */ \
  X(EVENTS, "events", "event line other than stated", "event lines other than stated") \
  X(EVENTS_LOST, "events_dropped", "event dropped", "events dropped") \
  X(RANKS, "ranks", "rank missing", "ranks missing") \
  X(ROLLUP, "rollup", "operation more or less in the roll-ups than was written or sampled", \
    "operations more or less in the roll-ups than were written or sampled") \
  X(CLOCK, "clock", "implausible clock line", "implausible clock lines") \
  X(EXPECT, "expect", "operation more or less than expected", "operations more or less than expected") \
  /* From here on: worth a line, no verdict */ \
  X(EMPTY, "empty", "file empty", "files empty") \
  X(MIXED, "mixed", "kind of file name", "kinds of file names together") \
  X(UNEVEN, "uneven", "communicator whose ranks started unequal numbers of collectives", \
    "communicators whose ranks started unequal numbers of collectives") \
  X(UNKNOWN_KIND, "unknown_kind", "line of a kind this version does not know", "lines of a kind this version does not know") \
  X(FILTERED, "filtered", "operation left out as asked for", "operations left out as asked for") \
  /* What a killed process had counted since its last roll-ups */ \
  X(ROLLUP_CUT, "rollup_cut", "operation that a killed process had not said in a roll-up yet", \
    "operations that killed processes had not said in roll-ups yet") \
  /* Numbers that came after the last accounting of a rank that samples (sampling.h) */ \
  X(UNTOLD, "untold", NI_SAMPLING_ONE, NI_SAMPLING_MANY)

#define NI_PROBLEM_CODE(code, name, one, many) NI_PROBLEM_##code,
enum ni_problem_code { NI_PROBLEMS(NI_PROBLEM_CODE) NI_PROBLEM_COUNT };
#define NI_PROBLEM_FIRST_NOTE NI_PROBLEM_EMPTY

struct ni_problem {
  uint64_t count;         /* of what the code counts: operations, lines, files, ranks */
  uint64_t places;
  char *where[NI_CHECK_WHERES];
};

struct ni_expect {
  char *func;
  uint64_t count;
};

struct ni_check {
  struct ni_inputs inputs;
  struct ni_expect *expect;
  size_t n_expect, cap_expect;
  bool json, quiet, partial, all;

  struct ni_files files;
  uint64_t file_bytes, text_bytes, lines, operations, control_lines, proxy_lines, bad_lines;
  uint64_t reasons[NI_REJ_COUNT];
  char *sample[NI_CHECK_SAMPLES]; /* "file:line: reason (key)" */
  size_t n_samples;
  uint64_t events[NI_EVENT_COUNT];  /* by kind */
  struct ni_tally funcs, dropped_by, filtered_by, strays, fallback_by, unknown_kinds;
  uint64_t unknown_keys, notes;

  struct ni_check_process **process;
  size_t n_processes, cap_processes;
  struct ni_check_comm **comms;   /* by hash and rank, once reading is done (ni_check_judge) */
  size_t n_comms, cap_comms;
  struct ni_map process_names, comm_names;
  struct ni_problem problem[NI_PROBLEM_COUNT];
};

/* 0 or -ENOMEM. Files that cannot be read become problems. */
int ni_check_read(struct ni_check *c);
int ni_check_judge(struct ni_check *c);
bool ni_check_complete(const struct ni_check *c);
void ni_check_print(const struct ni_check *c);
void ni_check_print_json(const struct ni_check *c);
void ni_check_free(struct ni_check *c);

/* Adds count to a problem, with a place as printf text. */
void ni_check_problem(struct ni_check *c, enum ni_problem_code code, uint64_t count, const char *where, ...)
    __attribute__((format(printf, 4, 5)));
const char *ni_problem_name(enum ni_problem_code code); /* as in JSON */
const char *ni_problem_text(enum ni_problem_code code, uint64_t count); /* "operations dropped" */
/* 0 or -ENOMEM. */
int ni_tally_add(struct ni_tally *t, const char *name, uint64_t count);
/* One total per communicator of the sorted list: comms[from..] up to the returned index. */
size_t ni_check_group_end(const struct ni_check *c, size_t from);

#endif
