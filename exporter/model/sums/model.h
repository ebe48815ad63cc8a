/*
 * What a set of logs says, added up: the result of `nccl-inspector summary`, as plain data.
 *
 * The pipeline fills it once; the printers (CSV, JSON, terminal, plots, report) only read it. Everything here
 * is bounded by the number of groups, communicators, processes and NI_SUM_* limits, never by the number of
 * records.
 *
 * Words: a *cell* is what NVIDIA's exporter has one CSV, histogram and box plot for: communicator type,
 * function, message size. A *group* is a cell and a timing source, since times by GPU and by CPU never mix. A
 * *process* is host and pid, which is one rank in each of its communicators; a *member* of a communicator is
 * one rank of it in one process. An *operation* is all records of one sequence number of one function, size
 * and communicator (P2P: one record).
 *
 * Units: times are ns where the name says _ns and µs in distributions (`us`); bandwidths GB/s (1e9). NAN: no
 * value. Order: cells and groups by type, kind, function (NVIDIA's four first, then by name), size, timing
 * source; communicators by hash text; processes by host, global rank, pid; hosts by name (digits by value).
 * The same input gives the same struct whatever --jobs.
 *
 * Threads: read-only once built; any thread. Ownership: everything hangs off the struct; ni_summary_free().
 */
#ifndef NI_SUMMARY_MODEL_H
#define NI_SUMMARY_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/model/clocks/hosts.h"
#include "exporter/model/counters/beside.h"
#include "exporter/model/sums/buckets/buckets.h"
#include "exporter/model/sums/buckets/tag_sums.h"
#include "exporter/model/sums/evidence/crossings.h"
#include "exporter/base/order.h"
#include "finding.h"
#include "format/names.h"
#include "format/record.h"

#define NI_SUM_TIME_BINS 200 /* of the run, in time series and heat map */
/* points of one cell; beyond, one of 2, 4, ... operations is kept, by what it is */
#define NI_SUM_SCATTER 2000
/* cells with the most records have points and time bins; the others have none */
#define NI_SUM_SERIES 512
/* by_comm, by_process and by_host together: cells with the most records first */
#define NI_SUM_SLICES (1u << 17)
#define NI_SUM_HIST_BINS 50
#define NI_SUM_OUTLIERS 50
/* delayed operations that are put down to incidents: those with the largest loss */
#define NI_SUM_LATE 8192
/* rows x bins at most: fewer bins when there are more than 5,242 processes */
#define NI_SUM_HEAT_CELLS (1u << 20)
#define NI_SUM_PAIRS 8192 /* rows of the P2P table: those with the most time */

/* As NVIDIA's exporter classifies, from the header alone, in its order. Unknown: the header has no number of
 * nodes (interfaces v1 to v3); with --compat that is what NVIDIA's exporter makes of it. */
enum ni_comm_type {
  NI_TYPE_SINGLE_RANK = 0,
  NI_TYPE_NVLINK_ONLY,
  NI_TYPE_HCA_ONLY,
  NI_TYPE_MIXED,
  NI_TYPE_UNKNOWN,
  NI_TYPE_COUNT
};
/* "single-rank", "nvlink-only", ...: NVIDIA's, for files */
extern const char *const ni_comm_type_names[NI_TYPE_COUNT];
/* what is known of it: "one node", ...; for people */
extern const char *const ni_comm_type_words[NI_TYPE_COUNT];

/* What a communicator is for (work/roles.h): tensor, data, pipeline or expert parallelism, or all ranks. */
enum ni_role { NI_ROLE_NONE = 0, NI_ROLE_TP, NI_ROLE_DP, NI_ROLE_PP, NI_ROLE_EP, NI_ROLE_WORLD, NI_ROLES };
extern const char *const ni_role_names[NI_ROLES]; /* "-": it cannot be told; "tp", ... */
extern const char *const ni_role_words[NI_ROLES]; /* in front of "communicator": "", "TP ", ... */

/* Statistics of one quantity. n == 0: all figures NAN. Percentiles: linear interpolation at q * (n - 1). */
struct ni_stats {
  uint64_t n;
  double mean, stddev; /* of the sample: n - 1 below the line; NAN for n == 1 */
  double min, p10, p25, p50, p75, p90, p99, max;
  /* percentiles from a histogram (0.4 %), since there were too many distinct values */
  bool approx;
};

struct ni_hist {
  bool log;   /* edges lo * (hi / lo)^(i / n); else lo + (hi - lo) * i / n */
  uint32_t n; /* bins; 0: no values */
  double lo, hi;
  uint64_t count[NI_SUM_HIST_BINS];
};

struct ni_whisker { /* over the operations' mean bandwidths */
  /* whiskers: last value within 1.5 IQR of the box */
  double min, whisker_lo, q1, median, q3, whisker_hi, max;
  uint64_t n, n_outside;
};

struct ni_point { /* one operation in the scatter plot */
  uint64_t sn;
  uint32_t comm;   /* index into ni_summary.comm */
  float busbw_gbs; /* mean over its records */
  int64_t time_us; /* Unix µs; see ni_summary.time_from */
};

/* One (type, kind, function, size): what NVIDIA's exporter has a file for. */
struct ni_cell {
  enum ni_comm_type type;
  enum ni_kind kind;
  const char *func; /* hostile text: whatever the log says */
  uint64_t msg_bytes;
  char human[32]; /* "33.55MB", as NVIDIA's exporter writes it */
  uint64_t records, operations;
  struct ni_stats busbw_gbs; /* of the operations' means, as in the CSV */
  struct ni_hist hist;       /* of the same */
  struct ni_whisker box;
  struct ni_point *point; /* by sn, communicator */
  uint32_t n_points;      /* 0 beyond NI_SUM_SERIES cells, and without pictures and page */
  /* while a team joins (team/team.h): which of so many parts is ours; chunks 0: none */
  uint32_t chunk, chunks;
  uint64_t point_stride; /* of so many operations one is a point */
};

struct ni_time_bin { /* of a group; n == 0: nothing happened, figures NAN */
  uint64_t n;
  float us_p10, us_p50, us_p90, us_p99;
  float busbw_p10, busbw_p50, busbw_p90;
};

struct ni_mix { /* algorithm and protocol as the log names them; "" when it does not */
  const char *algo, *proto;
  uint64_t records;
};

struct ni_group {
  uint32_t cell;          /* index into ni_summary.cell */
  enum ni_comm_type type; /* these four as in the cell, for those who only print */
  enum ni_kind kind;
  const char *func;
  uint64_t msg_bytes;
  enum ni_timing timing;
  uint64_t records;
  uint64_t operations; /* with at least one record in this group */
  /* records with null, "nan" or no bandwidth: in the times, not in the bandwidths */
  uint64_t no_bandwidth;
  struct ni_stats us, busbw_gbs; /* of the records, values as logged */
  struct ni_stats transfer_us;   /* per operation: minimum duration over its ranks (two ranks or more seen) */
  /* per operation: last stop - first start, where clocks allow; n says how many */
  struct ni_stats job_us;
  /* fused calls whose kernel's time another record counts; their times, not in time_share */
  uint64_t tails, tail_ns;
  double time_share; /* of the execution time of all records, 0..1 */
  /*
   * p50 of busbw / peak of the same type, function and timing; NAN: no bandwidth. The peak is the highest p90
   * of any size, or of any communicator with 10 records or more at it.
   */
  double of_best;
  uint32_t mix; /* first of its n_mix entries in ni_summary.mix */
  uint32_t n_mix;
  /* ni_summary.n_bins of them; all empty beyond NI_SUM_SERIES cells, and without pictures and page */
  struct ni_time_bin *bin;
};

/* A group seen from one communicator, process or host. */
struct ni_slice {
  uint32_t group, of; /* of: index into comm, process or host */
  uint64_t records;
  uint64_t met;       /* of a communicator: operations whose ranks are compared, */
  double transfer_us; /* and the sum of their least durations */
  double alone_us;    /* of a process, in sampled logs: what the others waited for it alone in `met` */
  struct ni_stats us, busbw_gbs;
};

struct ni_comm_row {
  uint64_t hash;
  char id[20];      /* "0x5d1c7e90aa41b2" */
  const char *name; /* NULL: none. Hostile text */
  enum ni_comm_type type;
  enum ni_role role;
  int32_t n_ranks, nnodes;
  uint32_t run; /* whose logs the folder holds (who.h): others are not compared with it */
  uint32_t ranks_seen, hosts_seen, max_ranks_seen; /* max_ranks_seen: at most so many in one operation */
  int32_t one_host;                                /* index of the host all its ranks are on; -1: several */
  /* no rank of the job lies between its ranks (work/joined.h) */
  bool neighbours;
  /* partial: fewer records than n_ranks (collectives only) */
  uint64_t records, operations, partial_operations;
  /* Where the time went, mean over its members, collectives only. transfer + waiting = time in kernels. */
  double transfer_ns; /* sum over operations of the minimum duration */
  /* operations that have a kernel's time, so are in it, and the sum of their sizes */
  uint64_t timed, timed_bytes;
  double waiting_ns; /* what ranks spent in kernels beyond that: waiting for the last one */
  /* between its first and last operation but outside of its kernels; NAN: no start times */
  double outside_ns;
  double span_ns;            /* first start to last stop; NAN as above */
  int64_t first_us, last_us; /* Unix µs */
  /*
   * With cost.known, of the run: its transfers on the way from begin to end, and what all causes cost in its
   * operations.
   */
  double path_us, cost_us;
};

struct ni_process {
  uint32_t host;
  int64_t pid;
  int32_t rank;     /* global, from a process line or the rank in the largest communicator */
  bool rank_stated; /* from a process line */
  /* of it in one communicator, at most: above 1, one process drives several GPUs */
  uint32_t ranks;
  int32_t first, last; /* with several: the lowest and the highest of them */
  int32_t gpu;         /* index on its host, -1: not known, or several */
  const char *file;    /* one of its files, as found */
  uint32_t log_group;  /* index into log_group; UINT32_MAX: none */
  uint64_t records;
  double exec_ns;    /* sum over records */
  uint64_t compared; /* collective operations in which two ranks or more were seen */
  uint64_t shortest; /* of these: it had the shortest duration, all others waited for it */
  uint64_t late;     /* of these: clearly, below 0.8 of the peers' median */
  double late_ns;    /* sum over `late` of the peers' median - own: the time one peer lost */
  /* mean of duration / peers' median; NAN: nothing to compare. < 1: arrives late */
  double relative;
  uint64_t timed_waits; /* symmetric kernels of which all ranks state what they waited for their peers */
  /* sum over these of how much later than its peers it came to them; below 0: earlier */
  double behind_ns;
  double behind_us2; /* sum of the squares */
  double own_us;     /* own time in all, beyond that of ranks with the same work; NAN: not judged */
  /* where steps differ: its CPU takes so many times as long from call to call as others; 0: as long */
  double calls;
  /* mean of its busbw / median busbw of its group over all communicators of that type; NAN */
  double busbw_relative;
  /* between its operations, in a communicator that is not in the logs (work/joined.h) */
  bool may_wait_unseen;
};

/* Of operations that roll-ups count: how many, how long in all, how many were long (long_waits.h). */
#define NI_LONG_STEPS 29u
struct ni_long_waits {
  uint64_t count, ns;
  uint64_t unknown; /* of these: lines without a histogram */
  uint64_t n[NI_LONG_STEPS];
};
/* Of a seat: collectives in which all ranks do the same; messages, and collectives with a root. */
struct ni_seat_waits {
  struct ni_long_waits alike, rest;
};

/* A process in a communicator (evidence/seats.h). */
struct ni_seat {
  uint32_t comm, process;
  uint64_t met;  /* collectives of all ranks alike of which several ranks' durations are known */
  uint64_t last; /* of these it came last to so many */
  /* sum over these of how much later than its peers it came to them; below 0: earlier */
  double behind_us;
  double behind_us2; /* sum of the squares */
  /*
   * sum over those that it came last to: how much later than the next one, than the next one of another host
   */
  double alone_us, host_alone_us;
};

/* What a host's ranks compute, where they are judged by durations (blame/host_paces.h). */
struct ni_paced {
  double own_us; /* between operations whose like others have, in all, a rank in the mean; 0: not known */
  /* longer than elsewhere by so much in all, with what lies before batches: GPUs wait for CPUs there */
  double later_us;
  uint32_t groups; /* communicators with such operations */
  double times;    /* its GPUs are slow: so many times as long as elsewhere; 0: they are not */
  double lost_us;  /* then: so much of own_us */
  uint32_t sizes;  /* so many were compared */
  bool in_stage;   /* its ranks are stages of a pipeline */
};

struct ni_host {
  const char *name; /* hostile text */
  uint32_t n_processes;
  uint64_t records;
  double exec_ns;
  uint64_t compared, shortest, late;
  double late_ns, relative, busbw_relative; /* the last over collectives of several hosts only; NAN: none */
  struct ni_paced paced;
};

enum ni_outlier_kind {
  NI_OUTLIER_LATE = 0, /* much shorter than its peers: they waited for it */
  /* the whole operation is much slower than the group's median: value is its minimum */
  NI_OUTLIER_SLOW,
};

struct ni_outlier {
  enum ni_outlier_kind kind;
  uint32_t group, comm, process; /* SLOW: the process of the shortest record */
  int32_t rank;                  /* in the communicator */
  uint64_t sn;
  /* own duration; median of the peers (LATE) or the group's median transfer time (SLOW) */
  double us, peers_us;
  double lost_us; /* difference: sorted by this, largest first */
  int64_t time_us;
  int64_t start_ns; /* of the process, by its host's clock; NI_NO_START */
  /*
   * With by_own_time an entry is an incident, the rest of it its example, and these say what belongs to it
   * (incidents.h):
   */
  uint32_t operations, ranks; /* delayed or slow; that waited in them. 0: the entry is an operation */
  double most_us, total_us;   /* the largest loss of these, and the sum */
  uint32_t began, began_host; /* process and host of who began it; UINT32_MAX: not known */
  int64_t began_step;         /* -1: not known */
  double began_us;            /* how long it paused; NAN: it did not */
  int64_t began_time_us;      /* when, by its host's clock; 0: it did not */
  bool before;                /* the example is the operation it paused before */
  int32_t finding;            /* index; -1: none */
  /* incidents of the same finding without an entry, behind the last that has one */
  uint32_t more;
};

/* P2P messages of one size from one rank to another: both sides, matched in their order. */
struct ni_p2p_pair {
  uint32_t comm;                     /* index into ni_summary.comm */
  int32_t from, to;                  /* ranks in it */
  uint32_t from_process, to_process; /* UINT32_MAX: no record of that side */
  uint64_t msg_bytes;
  char human[32];
  uint64_t sends, recvs, matched; /* matched < sends or recvs: the other side's record is missing */
  double exec_ns;                 /* both sides */
  struct ni_stats send_us, recv_us;
  /* per message, the shorter of both: the longer one includes waiting */
  struct ni_stats transfer_us;
  double bandwidth_gbs;                        /* size / p50 of transfer_us; NAN */
  double sender_waited_us, receiver_waited_us; /* sum of what one side was longer than the other */
};

/*
 * Of a process and a time bin, by what findings are judged. by_own: own time beyond that of ranks with the
 * same work, as a part of a step (evidence/lateness_map.h); else the mean over the records of duration /
 * peers' median of the same operation.
 */
struct ni_heat {
  bool by_own;
  /* = n_processes, in their order; 0: nothing to compare, or no pictures and page */
  uint32_t rows;
  uint32_t bins;
  float *relative; /* rows x bins, row by row; NAN: nothing */
  uint32_t *count;
};

struct ni_count { /* a number with a name, from the log or from us */
  const char *name;
  uint64_t count;
};
struct ni_counts { /* the largest first; names are owned */
  struct ni_count *item;
  size_t n, cap;
};

struct ni_input {
  uint64_t files, files_failed, files_empty, bytes, text_bytes, lines, records, filtered_out, control_lines,
      proxy_lines;
  uint64_t bad_lines, duplicates, gaps, out_of_range, no_bandwidth, cut_files, damaged_files;
  /* numbers of which only `recover` can tell whether they were sampled out or lost */
  uint64_t untold;
  /* bare records without a marker before them */
  uint64_t orphans;
  /* kinds of a later version */
  uint64_t unknown_lines;
  /* what the logs themselves say was not written, all causes */
  uint64_t stated_losses;
  /* operations, as the logs say; sampled ones where roll-ups have them are in without_record */
  uint64_t left_out_by_settings;
  /* of communicators, by n_ranks */
  uint64_t missing_ranks;
  /* operations counted by roll-ups */
  uint64_t rolled;
  /* finished operations without a record of their own: sampled away, expired. Only beside roll-ups */
  uint64_t without_record;
  /* finished operations that no roll-up counts: since its last one, of a process killed or running */
  uint64_t unrolled;
  /* nnodes - hosts seen, at most as many as ranks; largest over the communicators */
  uint64_t missing_hosts;
  /* problems_by: as in check, by code */
  struct ni_counts bad_by_reason, losses_by_cause, out_of_range_by, problems_by;
  /* "INCOMPLETE" sentences, worst first: what, how many, where. Empty: complete */
  char **trouble;
  size_t n_trouble;
  char **note; /* sentences that are worth a line and no verdict */
  size_t n_notes;
  char **where; /* "file:line: reason (key)", the first ones */
  size_t n_where;
};

/* What roll-ups say of one function and size over all ranks: also of operations without a record. */
struct ni_rolled {
  enum ni_kind kind;
  enum ni_timing timing;
  const char *func;
  uint64_t msg_bytes, msg_to_bytes; /* a class of sizes: first and last; one size: msg_to_bytes 0 */
  uint64_t count, sum_bytes, sum_ns, min_ns, max_ns;
  /* upper edge of the bucket, at most max_ns: not below the true value; 0: no histogram */
  uint64_t p50_ns, p99_ns;
  uint64_t records; /* in the statistics, of the same key */
};

/* What calls with a tag of the application come to, by one timing source (buckets/tag_sums.h). */
struct ni_tag_row {
  uint64_t tag;
  const char *name; /* NULL: none. Hostile text */
  enum ni_timing timing;
  uint64_t operations, records, bytes, no_bandwidth;
  double exec_ns;    /* sum over records; of a fused kernel once */
  double busbw_gbs;  /* mean of the records that have one; NAN */
  double time_share; /* of the execution time of all records */
};

struct ni_job_facts { /* from process lines; NULL, -1: not stated */
  const char *id, *exe;
  /* of several jobs: "6101 and 6102", control characters are '?'; of one job NULL */
  const char *ids;
  uint32_t jobs, runs; /* whose logs these are, all added up; jobs 0: no log states one */
  int32_t world_size, nccl_version;
  const char *formats;   /* "v4.0, v4.3" */
  const char *producers; /* "nccl-inspector-c 0.1.0", "NVIDIA" */
};

/*
 * What NICs of a host sent while collectives ran, beside what NCCL says it sent. More on the NICs: sent
 * again, or a neighbour.
 */
struct ni_sent {
  uint32_t host;
  /* of the proxies' operations, or of their steps where there is more of these */
  uint64_t nccl_bytes;
  /* with, least, most of tx_bytes (exporter/model/counters/beside.h) */
  double nic_bytes, nic_least, nic_most;
};

/* Sums by time (buckets/buckets.h). width_ns 0: they were not asked for. */
struct ni_buckets {
  uint64_t width_ns;
  /* the smallest time of a record; where its bucket, number 0, begins. Unix ns */
  int64_t origin_ns, first_ns;
  struct ni_bucket_table records, rolled; /* rolled: of roll-ups, without communicators */
  struct ni_host_buckets hosts;
};

/* operations' start; only the time of the dump is logged */
enum ni_time_from { NI_TIME_START = 0, NI_TIME_DUMP };

struct ni_summary {
  struct ni_job_facts job;
  const struct ni_clocks *clocks; /* of the hosts; NULL: nobody looked (--compat) */
  struct ni_input input;
  bool complete;
  /*
   * "likely", "not_yet": it stands for some time; "dead": not in order, and with operations in flight. As it
   * was seen while the job ran: "certain", too. NULL: none of them
   */
  const char *hang_verdict;
  /* then: the sentence of `hang`. Control characters in names are '?' */
  char *hang;
  bool stood_still; /* it hangs, or nothing had moved for 10 s when it ended: it was not stopped at work */
  /* sums of records alone (approx/log_sums.h): what compares ranks is 0, NAN or empty, and means nothing */
  bool approximate;
  enum ni_time_from time_from;  /* DUMP when any record has no start time */
  int64_t first_us, last_us;    /* of the records, Unix µs; 0, 0 without records */
  uint32_t n_bins;              /* equal parts of first_us..last_us; 1..NI_SUM_TIME_BINS, 0 without records */
  uint64_t records, operations; /* in the statistics: without duplicates and out of range */

  struct ni_cell *cell;
  struct ni_group *group;
  struct ni_mix *mix;
  struct ni_rolled *rolled;
  size_t n_rolled;
  /* sums of roll-ups and by time that would be more than NI_COUNT_MAX, and stand as that */
  uint64_t capped;
  struct ni_comm_row *comm;
  struct ni_process *process;
  struct ni_host *host;
  struct ni_seat *seat; /* by comm, process */
  size_t n_seats;
  struct ni_seat_waits *long_waits; /* by seat; NULL: there are no roll-ups */
  bool has_left_out;                /* settings left operations out of the logs, beside a sample */
  struct ni_crossing *crossing;     /* of sampled logs: evidence/crossings.h */
  size_t n_crossings;
  double one_in;          /* of so many collectives one has a record: NCCL_INSPECTOR_SAMPLE; 1: all */
  const char **log_group; /* names of --groups; the run's */
  size_t n_log_groups, n_by_log_group;
  struct ni_slice *by_comm, *by_process, *by_host, *by_log_group; /* by group, then of */
  struct ni_outlier *outlier;
  size_t n_cells, n_groups, n_mix, n_comms, n_processes, n_hosts, n_by_comm, n_by_process, n_by_host,
      n_outliers;
  uint64_t groups_without_slices; /* left out of by_comm, by_process, by_host for their number */
  struct ni_time_bin *no_bins;    /* what the empty ones share */
  struct ni_heat heat;
  struct ni_p2p_pair *pair; /* by communicator, from, to, size */
  size_t n_pairs;
  uint64_t pair_records_left_out;
  struct ni_finding finding[NI_SUM_FINDINGS];
  size_t n_findings; /* in `finding` */
  uint64_t findings_left_out;
  uint64_t causes_not_judged; /* beyond the room for them: what they cost is not known */
  /* findings are judged by own time and transfers; else by durations, why_durations says why */
  bool by_own_time;
  /* no step does what another does: ranks are compared operation by operation, within communicators */
  bool steps_differ;
  const char *why_durations; /* a constant; NULL */
  struct ni_cost cost;
  uint32_t cost_run;    /* which of several runs cost and steps are of; 0: there is one */
  struct ni_step *step; /* n_step_bins, each of bin_steps steps; none: steps were not found */
  uint32_t n_step_bins, bin_steps, n_steps;
  char step_mark[128];      /* what ends a step: "AllReduce of 4 B on world" */
  struct ni_beside beside;  /* of the series of counters in the input: its processes are `process` */
  uint64_t counter_samples; /* in these */
  struct ni_sent *sent;     /* of hosts whose NICs and NCCL's network operations are both known */
  size_t n_sent;
  double late_share_median; /* in which part of its operations the median rank came late */
  /* operations whose ranks cannot have run at the times they state: not in job_us */
  uint64_t clocks_disagree;

  struct ni_buckets buckets;
  struct ni_tag_sums tag_sums;
  struct ni_tag_row *tag; /* those with the most time first */
  size_t n_tags;          /* 0: none, or too many of them (tag_sums.too_many) */
  double tagged_share;    /* of the execution time of all records */

  void *memory; /* texts and arrays above live here */
};

/* Numbers of the groups, those with the most time first; ties keep the order of the model, so that the same
 * summary gives the same page. NULL: no memory. Caller frees. */
uint32_t *ni_groups_by_share(const struct ni_summary *s);
void ni_summary_free(struct ni_summary *s);

/* Whose a NIC or GPU is: "rank 3", "ranks 0-7", "8 ranks". out: 48 bytes. Returns out. */
const char *ni_beside_ranks(const struct ni_summary *s, const struct ni_beside_entity *e, char out[48]);

/*
 * How a process is named: "rank 5"; with several ranks "ranks 0-7", or "4 of ranks 0-7". out: 48 bytes.
 * Returns out.
 */
const char *ni_ranks_text(const struct ni_process *p, char out[48]);

/*
 * A size as NVIDIA's exporter writes it: 8192 is "8.19KB", 999999 is "1000.00KB", 0 is "0B". out: 32 bytes.
 */
void ni_human_bytes(uint64_t bytes, char *out);
/* "msg_size_8192_8.19KB". out: 80 bytes. */
void ni_size_dir(uint64_t bytes, char *out);
/*
 * A function name as part of a file name: letters, digits, - and _ stay, all else becomes %XX. Writes at most
 * `size`.
 */
void ni_file_word(const char *name, char *out, size_t size);

#endif
