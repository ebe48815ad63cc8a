/*
 * The one account of a set of logs: what is there, what is missing, and why. check, summary, trace and pools
 * ask it, so that they cannot disagree.
 *
 * Counts and intervals, and of records a bounded sample that tells clocks apart (anchors.h): memory grows
 * with communicators times ranks and with holes in their numbers.
 *
 * ledger.c has its parts, take.c fills it line by line, read.c puts the accounts of parts together, judge.c
 * turns it into problems. A part is a file, or a range of one (line_reader.h); parts are merged in the order
 * of the files and of the ranges in them, so the result does not depend on how many threads read.
 *
 *   struct ni_ledger part = {0};
 *   ni_ledger_begin(&part, file, first);    a thread of its own: take and fault are for ni_scan_file()
 *   ni_ledger_end(&part, &scan_end);
 *   ni_ledgers_merge(), or ni_atlas_read_ledger() (exporter/index/atlas.h) for all of it
 *   ni_ledger_judge(&all);                  once
 *
 * Threads: one for each ledger. Ownership: ni_ledger_free() frees all; files are borrowed. Failure: -ENOMEM.
 */
#ifndef NI_LEDGER_H
#define NI_LEDGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/base/counts.h"
#include "exporter/base/seq_set.h"
#include "exporter/input/discover.h"
#include "exporter/input/scan.h"
#include "exporter/model/who/who.h"
#include "format/line.h"
#include "anchors.h"
#include "implausible.h"

/*
 * What the settings of a process leave out of its log, in the words that all commands use. Pure functions.
 *
 * Sampling: dump_stats lines count what NCCL_INSPECTOR_SAMPLE left out (`sampled`). Behind the newest one of
 * a process that was killed or still runs nobody has counted: a number without a record there was left out,
 * lost, or is in flight, and only `recover` tells which. Numbers below are judged as always.
 *
 * Expiry: the log counts the records of deleted files (`expired` on the process's last line); why they went
 * is in its settings.
 */
/* N of 1/N that a process or control line states; 0: the line says nothing of it. */
uint64_t ni_sampling_of(const struct ni_line *l);

/* What such numbers are; with the count and, in brackets or behind a colon, the place. */
#define NI_SAMPLING_ONE \
  "operation without a record since the last accounting: sampled out or lost, `recover` tells which"
#define NI_SAMPLING_MANY \
  "operations without a record since the last accounting: sampled out or lost, `recover` tells which"

enum { NI_EXPIRES_BY_SIZE = 1, NI_EXPIRES_BY_AGE = 2 };

/* NI_EXPIRES_*, or'ed; 0: nothing of this process expires. */
unsigned ni_expiry_limits(const struct ni_process_line *p);
/* The settings by name; of 0: that its process line is not there. */
const char *ni_expiry_text(unsigned limits);

#define NI_UNENDED_ONE "process without its own last line: killed, or still running"
#define NI_UNENDED_MANY "processes without their own last line: killed, or still running"

#define NI_LEDGER_NAMES 48
#define NI_LEDGER_SAMPLES 10
#define NI_LEDGER_WHERES 3

/* Counts by a name that the logs bring. */
struct ni_tally {
  struct {
    char *name;
    uint64_t count;
  } item[NI_LEDGER_NAMES];
  size_t n;
  uint64_t other; /* beyond NI_LEDGER_NAMES names */
  size_t last;    /* hit by the last call: names come in runs; NI_LEDGER_NAMES: it is one of the others */
};

/* One kind (collective, P2P) of one communicator in one process. */
struct ni_ledger_kind {
  struct ni_seq_set rec_sn; /* ours */
  /*
   * flushed: sum of *_records over the dump_stats lines; gap_lines: sum of their counts; rolled: counted in
   * rollup lines.
   */
  NI_COUNTS(added, records, flushed, gap_lines, incomplete_lines, late_lines, rolled);
  bool stated; /* the numbers below are from the newest dump_stats line */
  /* sampled: left out by NCCL_INSPECTOR_SAMPLE; expired: of those dropped; on the process's line. */
  NI_COUNTS(newest, started, written, filtered, dropped, incomplete, late, in_flight, fallback, sampled,
            expired);
  uint64_t nvidia_dropped; /* *_dropped_total of NVIDIA's marker */
  struct ni_ledger_cause { /* of those dropped, where the newest line is no final one */
    uint32_t name;         /* in dropped_by of the ledger; NI_LEDGER_NAMES: others */
    uint64_t count;
  } *cause;
  uint32_t n_causes;
  uint64_t missing, untold; /* by ni_ledger_judge: numbers without a record; untold: NI_PROBLEM_UNTOLD */
};

/* NVIDIA: coll_sn counts per function. */
struct ni_ledger_func {
  struct ni_ledger_func *next;
  char *name;
  struct ni_seq_set sn;
};

/* One rank of one communicator, as one process saw it. */
struct ni_ledger_member {
  const struct ni_who_member *who; /* by ni_ledger_judge */
  struct ni_ledger_process *process;
  bool final, ours;
  bool killed;            /* its last lines are of recover */
  uint64_t stats_started; /* by the newest dump_stats line (ni_ledger_newest()) */
  struct ni_ledger_kind kind[NI_KIND_COUNT];
  uint64_t events_there[NI_EVENT_COUNT]; /* in lines of their own, or steps in their operation's */
  uint64_t proxy_lines, proxy_flushed;   /* there; sum of proxy_records over the dump_stats lines */
  struct ni_events_stats events;         /* of the newest dump_stats line */
  struct ni_anchors anchors;             /* of its collectives, where it may span hosts */
  struct ni_ledger_func *funcs;
};

struct ni_ledger_process {
  const struct ni_who_process *who; /* by ni_ledger_judge */
  bool ours, control_lines, rollups;
  bool imported; /* its log is made of another program's: no plugin of ours ran in it */
  /* records of files that expired or that somebody deleted, and that no communicator misses yet */
  uint64_t gone;
  bool files_gone, ended; /* ended: its own last line is there */
  bool has_line;          /* its process line is there */
  bool killed;            /* recover wrote a part of its log: killed, or ended with something unwritten */
  unsigned limits;        /* NI_EXPIRES_* */
  uint64_t sample;        /* largest N of 1/N that records were sampled by; 0: all are written */
  bool has_clock;
  /* clock: the newest */
  struct ni_ledger_clock {
    uint64_t ticks, monotonic_ns, line_no;
    double ns_per_tick;
  } first_clock, clock;
  /* the first one */
  const struct ni_file *file;
  /* while its part is merged: its number there */
  uint32_t merged;
  /* of whoever counts processes (absent.c) */
  uint32_t stamp;
};

/* Code, name in JSON, text of one, text of several. */
#define NI_PROBLEMS(X) \
  X(UNREADABLE, "unreadable", "path could not be read", "paths could not be read") \
  X(CUT, "cut", "file cut at its end", "files cut at their end") \
  X(DAMAGED, "damaged", "place of damaged gzip data", "places of damaged gzip data") \
  X(BAD_LINES, "bad_lines", "bad line", "bad lines") \
  /* Records without a header that no marker before them announces */ \
  X(ORPHANS, "orphans", "record without a header that nothing before it announces", \
    "records without a header that nothing before them announces") \
  X(MARKER, "marker", "record less than a marker announces", "records less than markers announce") \
  X(DROPPED, "dropped", "operation dropped", "operations dropped") \
  X(EXPIRED, "expired", "record expired with its file", "records expired with their files") \
  X(INCOMPLETE, "incomplete", "operation incomplete", "operations incomplete") \
  X(REFUSED, "refused", "communicator not recorded at all", "communicators not recorded at all") \
  X(IN_FLIGHT, "in_flight", "operation still in flight at the end", "operations still in flight at the end") \
  X(LATE, "late", "operation with a channel that came late", "operations with a channel that came late") \
  X(NO_FINAL, "no_final", "final line missing, of a communicator in one process: killed, or still running", \
    "final lines missing, one for each communicator of a process: killed, or still running") \
  X(NO_END, "no_end", NI_UNENDED_ONE, NI_UNENDED_MANY) \
  X(NO_ACCOUNTING, "no_accounting", \
    "account missing, of a communicator in one process (NCCL_INSPECTOR_DUMP_CONTROL_LINES=0?)", \
    "accounts missing, one for each communicator of a process (NCCL_INSPECTOR_DUMP_CONTROL_LINES=0?)") \
  X(SUM, "sum", "operation that the final lines do not account for", \
    "operations that the final lines do not account for") \
  X(WRITTEN, "written", "record more or less than stated as written", \
    "records more or less than stated as written") \
  /* Gap or incomplete lines say another number than the final line */ \
  X(STATED, "stated", "loss told differently by the lines about it", \
    "losses told differently by the lines about them") \
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
  /* Of a merge with --allow-missing: nobody read their logs */ \
  X(SHARDS, "shards", "shard missing", "shards missing") \
  X(NOTHING, "nothing", "file, and not a line in it", "files, and not a line in any of them") \
  /* From here on: worth a line, no verdict */ \
  X(EMPTY, "empty", "file empty", "files empty") \
  X(RUNS, "runs", "run in these logs", "runs in these logs, added up here: --run chooses one") \
  X(MIXED, "mixed", "kind of file name", "kinds of file names together") \
  X(IMPLAUSIBLE, "implausible", "record holds a value that cannot be and is left out of the statistics", \
    "records hold values that cannot be and are left out of the statistics") \
  X(UNEVEN, "uneven", "communicator whose ranks started unequal numbers of collectives", \
    "communicators whose ranks started unequal numbers of collectives") \
  X(UNKNOWN_KIND, "unknown_kind", "line of a kind this version does not know", \
    "lines of a kind this version does not know") \
  X(FILTERED, "filtered", "operation left out as asked for", "operations left out as asked for") \
  /* What a killed process had counted since its last roll-ups */ \
  X(ROLLUP_CUT, "rollup_cut", "operation that a killed process had not said in a roll-up yet", \
    "operations that killed processes had not said in roll-ups yet") \
  /* Numbers that came after the last accounting of a rank that samples */ \
  X(UNTOLD, "untold", NI_SAMPLING_ONE, NI_SAMPLING_MANY) \
  /* NCCL has one event mask a process, which RAS can write as well */ \
  X(MASK, "mask", "change of NCCL's event mask by another than the plugin", \
    "changes of NCCL's event mask by another than the plugin") \
  /* Time series of counters: samples that were due and not taken; that the file has lost */ \
  X(COUNTERS_MISSED, "counters_missed", "sample of counters not taken in time", \
    "samples of counters not taken in time") \
  X(COUNTERS_LOST, "counters_lost", "sample of counters lost", "samples of counters lost")

#define NI_PROBLEM_CODE(code, name, one, many) NI_PROBLEM_##code,
enum ni_problem_code { NI_PROBLEMS(NI_PROBLEM_CODE) NI_PROBLEM_COUNT };
#define NI_PROBLEM_FIRST_NOTE NI_PROBLEM_EMPTY

/*
 * "FILE:12 and what is there": the number is put in once it is known which line of the file a line of a range
 * is.
 */
struct ni_where {
  char *text;
  uint64_t line; /* 0: none */
  size_t at;     /* where in the text it goes */
};

struct ni_problem {
  uint64_t count; /* of what the code counts: operations, lines, files, ranks */
  uint64_t places;
  struct ni_where where[NI_LEDGER_WHERES];
};

/* A time series of counters: a file. */
struct ni_ledger_series {
  char *host;
  const char *path;                          /* borrowed */
  NI_COUNTS(added, samples, sweeps, missed); /* sweeps: over all counters, at both ends; not in samples */
  uint64_t counters, interval_ns, to_sn;     /* to_sn: behind the last one */
};

struct ni_ledger {
  bool partial; /* set by the caller: some of the ranks only, so do not ask for the others */
  NI_COUNTS(totals, files, file_bytes, text_bytes, lines, blank, operations, control_lines, proxy_lines,
            bad_lines, orphans, unknown_keys, notes, unfinished,
            since_231); /* unfinished: stuck and in_flight lines; since_231: process lines of
                                                            * NCCL 2.31 and later */
  uint64_t reasons[NI_REJ_COUNT];
  struct ni_where sample[NI_LEDGER_SAMPLES]; /* "file:line: reason (key)" */
  size_t n_samples;
  uint64_t events[NI_EVENT_COUNT]; /* by kind */
  struct ni_tally funcs, dropped_by, filtered_by, strays, fallback_by, unknown_kinds;
  uint64_t implausible[NI_IMPLAUSIBLE_COUNT];
  /* By ni_ledger_judge: NVIDIA's markers say so many went; operations in roll-ups, finished ones without a
   * record of their own, finished ones that no roll-up counts, those that sampling left out; numbers without
   * a record and without a reason, however they are told. */
  uint64_t nvidia_dropped, rolled, without_record, unrolled, sampled, missing;

  struct ni_who who;
  struct ni_ledger_process **process; /* by their numbers in who */
  struct ni_ledger_member **member;   /* the same; by run, hash and rank, once judged */
  size_t n_processes, cap_processes, n_members, cap_members;
  struct ni_ledger_series *series;
  size_t n_series, cap_series;
  struct ni_problem problem[NI_PROBLEM_COUNT];

  /* The part that is being read, or that was merged last. */
  const struct ni_file *file;
  bool first;                      /* the part begins the file */
  uint64_t file_lines;             /* of that file so far */
  int64_t now_process, now_member; /* of the last line with a header; -1: none */
  struct ni_ledger_met {           /* by the reader's number of a function (format/line.h) */
    size_t tally;                  /* 1 + its place in funcs, 0: not met yet */
    /* NVIDIA: func[i] is of member[i]; of the even and the odd members, the last one */
    struct ni_ledger_member *member[2];
    struct ni_ledger_func *func[2];
  } met[NI_FUNCS_NUMBERED + 1];
  /* the map of the part, of a file; NULL: nobody makes it. Never of several files */
  struct ni_granules *granules;
};

void ni_ledger_free(struct ni_ledger *c);

/* Adds count to a problem, with a place as printf text; _at: "PATH:LINE", and behind it the text. */
void ni_ledger_problem(struct ni_ledger *c, enum ni_problem_code code, uint64_t count, const char *where, ...)
    __attribute__((format(printf, 4, 5)));
void ni_ledger_problem_at(struct ni_ledger *c, enum ni_problem_code code, uint64_t count, uint64_t line_no,
                          const char *what, ...) __attribute__((format(printf, 5, 6)));
/* Keeps the first few bad lines: "PATH:LINE" and the text. 0 or -ENOMEM. */
int ni_ledger_sample(struct ni_ledger *c, uint64_t line_no, const char *what, ...)
    __attribute__((format(printf, 3, 4)));
const char *ni_problem_name(enum ni_problem_code code);                 /* as in JSON */
const char *ni_problem_text(enum ni_problem_code code, uint64_t count); /* "operations dropped" */
/* 0 or -ENOMEM. */
int ni_tally_add(struct ni_tally *t, const char *name, uint64_t count);
/* Does a dump_stats line state more of x than what x has? No clock says so: a job's clock may be set back.
 * What was started never falls, and a final line is the last. Where both say the same, the later place
 * counts. */
bool ni_ledger_newest(const struct ni_ledger_member *x, bool final, uint64_t started);
/* Who has come to c->who gets an account. What was asked for there, k, or -ENOMEM. */
int64_t ni_ledger_accounts(struct ni_ledger *c, int64_t k);
/* Moves the numbers of b, a member in NVIDIA's logs, to a. 0 or -ENOMEM. */
int ni_ledger_merge_funcs(struct ni_ledger_member *a, struct ni_ledger_member *b);
/* Why clock line b behind a cannot be right; NULL: it can. a NULL: the first one. */
const char *ni_ledger_clock_wrong(const struct ni_ledger_clock *a, const struct ni_ledger_clock *b);

/* Time series of counters; files before their parts. */
/* A line of a time series. 0 or -ENOMEM. */
int ni_ledger_add_series(struct ni_ledger *c, const struct ni_line *l);
/* Parts of one file become one. 0 or -ENOMEM. */
int ni_ledger_merge_series(struct ni_ledger *all, struct ni_ledger *part);
/* Samples that were not taken, or that a file has lost, become notes. */
void ni_ledger_judge_series(struct ni_ledger *c);

#endif
