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

#include "discover.h"
#include "map.h"
#include "options.h"
#include "parse_record.h"
#include "seq_set.h"

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

enum ni_problem_code {
  NI_PROBLEM_UNREADABLE = 0,
  NI_PROBLEM_CUT,
  NI_PROBLEM_DAMAGED,
  NI_PROBLEM_BAD_LINES,
  NI_PROBLEM_ORPHANS,     /* records without a header and without a marker before them */
  NI_PROBLEM_MARKER,      /* a marker announced another number of records than followed */
  NI_PROBLEM_DROPPED,
  NI_PROBLEM_EXPIRED,
  NI_PROBLEM_INCOMPLETE,
  NI_PROBLEM_REFUSED,     /* whole communicators without a record */
  NI_PROBLEM_IN_FLIGHT,
  NI_PROBLEM_LATE,
  NI_PROBLEM_NO_FINAL,
  NI_PROBLEM_NO_END,      /* processes without their last line (unended.h) */
  NI_PROBLEM_NO_ACCOUNTING,
  NI_PROBLEM_SUM,         /* started is not the sum of its parts */
  NI_PROBLEM_WRITTEN,     /* written is not what the files hold */
  NI_PROBLEM_STATED,      /* gap or incomplete lines say another number than the final line */
  NI_PROBLEM_MISSING,     /* numbers that never came and that nothing explains */
  NI_PROBLEM_DOUBLE,
  NI_PROBLEM_EVENTS,      /* event lines that are not there, or more than were written */
  NI_PROBLEM_EVENTS_LOST, /* events that found no room */
  NI_PROBLEM_RANKS,
  NI_PROBLEM_ROLLUP,      /* roll-ups count another number than written + sampled */
  NI_PROBLEM_CLOCK,
  NI_PROBLEM_EXPECT,
  NI_PROBLEM_EMPTY,       /* from here on: worth a line, no verdict */
  NI_PROBLEM_MIXED,
  NI_PROBLEM_UNEVEN,
  NI_PROBLEM_UNKNOWN_KIND,
  NI_PROBLEM_FILTERED,
  NI_PROBLEM_ROLLUP_CUT,  /* what a killed process had counted since its last roll-ups */
  NI_PROBLEM_UNTOLD,      /* numbers that came after the last accounting of a rank that samples (sampling.h) */
  NI_PROBLEM_COUNT
};
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
