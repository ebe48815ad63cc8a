/*
 * What a run of `nccl-inspector summary` holds while it reads: files, names, members, cells and their
 * segments.
 *
 * Phases: plan (files, ranges) → read (all ranges, in parallel: lines → batches → Parquet and segments) →
 * join (all cells, in parallel: segments → operations → CSV and figures) → build (struct ni_summary). Numbers
 * of members, cells and names depend on which thread came first, so nothing may be written in their order;
 * build sorts everything by what it is called.
 *
 * Threads: `lock` guards all tables below it; a thread keeps what it looked up in caches of its own. After
 * the read phase the tables are read-only. Ownership: the command's (exporter/cmds/summary.c).
 */
#ifndef NI_SUMMARY_STATE_H
#define NI_SUMMARY_STATE_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

#include "exporter/index/atlas.h"
#include "exporter/input/discover.h"
#include "exporter/input/filters.h"
#include "exporter/base/index.h"
#include "exporter/input/scan_files.h"
#include "exporter/input/tags/tags.h"
#include "exporter/model/clocks/hosts.h"
#include "exporter/model/ledger/ledger.h"
#include "exporter/input/inputs.h"
#include "format/line.h"
#include "model.h"
#include "exporter/base/name_table.h"
#include "exporter/model/sums/work/log_groups.h"
#include "exporter/model/sums/work/roles.h"
#include "exporter/model/sums/reading/stamps.h"
#include "exporter/model/sums/reading/step_marks.h"
#include "exporter/model/sums/packed/segment.h"
#include "exporter/model/ledger/read.h"
#include "exporter/model/who/who.h"
#include "exporter/model/counters/beside.h"

#define NI_BATCH_ROWS 4096u
/* different pairs of algorithm and protocol; beyond, they count as not stated */
#define NI_MIX_MAX 255

/* What the folders of the data set are by, in the order of the words of --partition; NONE: nothing more. */
enum ni_partition { NI_PARTITION_NONE = 0, NI_PARTITION_HOST, NI_PARTITION_COMM, NI_PARTITIONS };

struct ni_sum_options {
  struct ni_inputs inputs;
  const char *output_dir;
  unsigned jobs;
  uint64_t memory_bytes;
  bool no_plots, no_html, no_parquet, no_csv; /* parts left out, by --only and by options of these names */
  bool compat, json, quiet, keep_scripts, force, nccl_tests;
  bool dataset, allow_missing, approximate;
  uint32_t shard, shards;           /* from 1, of so many; 0: all of the input */
  const char *partial;              /* the file for a partial result; NULL: a whole one is wanted */
  struct ni_inputs parts;           /* of merge: partial results */
  uint8_t partition[NI_PARTITIONS]; /* all NONE: by host */
  unsigned codec, plot_format;      /* enum ni_pq_codec (writer.h), enum ni_plot_format (plot.h) */
  struct ni_filters filter;
  struct ni_atlas_options index;
  uint64_t skip_first;
  const char *step_by;   /* what ends a step; NULL: it is found */
  const char *groups;    /* a file that names parts of the logs (work/log_groups.h); NULL: none */
  uint64_t bucket_ns;    /* --time-granularity; 0: no sums by time */
  const char *comm_map;  /* a file that says roles of communicators (work/roles.h); NULL: none */
  const char *seen_hang; /* what `hang` said while the job ran, its first line; NULL: logs and boxes say */
  const char *box_dir;   /* where black boxes of these logs lie; NULL: where they lie by default */
};

/*
 * What is known of a process and of a communicator beside who they are: at the place of its number in `who`.
 */
struct ni_sum_process {
  int32_t rank, world_size, nccl_version, gpu; /* -1: not stated */
  uint32_t host, job, exe, producer;           /* names */
  uint32_t file;                               /* index into files, the first one */
  uint32_t gpu_pci;                            /* a name */
  /* when operations were in flight; only where the input has counters */
  struct ni_cover cover;
  /* over the network, as the proxy's operations and as its steps say */
  uint64_t sent_bytes[2];
  /* of r->clocks; NULL: its times are right (reading/correct_clocks.h) */
  const struct ni_host_clock *clock;
};

struct ni_sum_comm {
  uint32_t id;      /* name: "0x..." */
  bool p2p_sampled; /* P2P were left out of the records, on each rank others */
};

/* Header and metadata of a line, but for the time. Compared as bytes. */
enum ni_context_text {
  NI_CTX_COMM_NAME,
  NI_CTX_VERSION,
  NI_CTX_GIT_REV,
  NI_CTX_MECHANISM,
  NI_CTX_PRODUCER,
  NI_CTX_TEXTS
};
struct ni_context {
  uint32_t member, text[NI_CTX_TEXTS]; /* names */
  int32_t nnodes;
};

struct ni_piece { /* a segment of one member, with its place in the input */
  uint32_t member;
  uint32_t file, range, ordinal;
  struct ni_segment s;
};

struct ni_sum_cell {
  uint8_t type, kind;
  uint32_t func;
  uint64_t msg_bytes;
  struct ni_piece **piece;
  size_t n, cap;
  uint64_t records;
  struct ni_log_row *row; /* with opt.approximate, in place of pieces (approx/log_sums.h) */
  size_t n_rows, cap_rows;
};

/* What one rank did of one function, and from which number on it is behind each step of its host's clock. */
struct ni_turns_stream {
  uint32_t member, func; /* func: a name */
  uint8_t kind;
  struct ni_clock_turns turns;
};
struct ni_turns {
  struct ni_turns_stream *item; /* by member, kind, function */
  size_t n, cap;
};

struct ni_log_row { /* what a log has of a rank in a cell, packed */
  uint32_t member;
  uint8_t timing;
  const uint8_t *at; /* of the log's sums */
  size_t n;
};
struct ni_log_sums { /* of a log: where they lie, in the index or in `own` */
  const uint8_t *at;
  size_t n;
  struct ni_wire own;
};

struct ni_rollups;
struct ni_long_table { /* by member, two each (long_waits.h) */
  struct ni_long_waits **item;
  size_t cap;
};
struct ni_partial;
struct ni_team;

struct ni_parquet_file;
struct ni_sum_file {
  const struct ni_file *file;
  char *parquet;      /* base name of its Parquet file */
  uint32_t log_group; /* in log_groups; NI_BUCKET_NONE */
  const char *folder; /* of that, in the output; NULL: parquet_files */
  int n_ranges;
  atomic_int left; /* ranges not read yet. acq_rel: the last one closes the file */
  struct ni_parquet_file *out;
  uint64_t records;
};

/* Whose lines were seen, beside the versions: those of the plugin, those that `import` made. */
#define NI_VERSIONS_OURS (1u << 31)
#define NI_VERSIONS_IMPORTED 27 /* the first bit of NI_IMPORTS: from which of ni_import_names */

/* Counters each thread has for itself; added up at the end. */
struct ni_tally_sum {
  NI_COUNTS(added, records, filtered, no_bandwidth);
  int64_t first_us, last_us; /* of records in the statistics */
  /* the smallest time of any record, where `records` is not 0; merges as the smaller one */
  int64_t origin_ns;
  bool any, no_start;
  unsigned versions; /* bit per v4.x seen, NI_VERSIONS_OURS, from NI_VERSIONS_IMPORTED on */
};

struct ni_run {
  struct ni_sum_options opt;
  struct ni_files files;
  struct ni_runs runs;
  struct ni_sum_file *file;
  char *out_dir;              /* OUT */
  int out_fd, tmp_fd;         /* of OUT and of the temporary folder in it; -1: none */
  bool replaces;              /* an earlier result in OUT */
  bool of_others;             /* which is of other logs */
  char tmp_name[64];          /* in OUT */
  char tmp_dir[32];           /* the same folder by its descriptor: nobody can put another in its place */
  int lock_fd;                /* of .lock in it: held while this process lives */
  FILE *log;                  /* output.log in tmp_dir */
  int64_t since_us, until_us; /* resolved */
  struct ni_names names;
  struct ni_spill store;
  const volatile sig_atomic_t *stop; /* not 0: a signal came; NULL: nobody stops it */
  _Atomic uint64_t waiting_bytes;    /* of batches that wait for their turn at Parquet. relaxed: a level */
  atomic_int error;                  /* the first -errno; everybody stops. relaxed: joined by pthread_join */
  char error_text[512];

  pthread_mutex_t lock;
  /* members without their instances: ranges are read at once, and a line does not tell its own */
  struct ni_who who;
  struct ni_sum_process *process;
  struct ni_sum_comm *comm;
  struct ni_context *context; /* reserved address space: rows of other threads are read without the lock */
  struct ni_sum_cell *cell;
  uint32_t n_contexts, n_cells;
  size_t cap_processes, cap_comms, cap_contexts, cap_cells;
  struct ni_index context_at_hash, cell_at_hash;
  struct {
    uint32_t algo, proto;
  } mix[NI_MIX_MAX + 1];
  unsigned n_mix;
  struct ni_tally_sum tally;
  struct ni_scan_plan plan;
  struct ni_atlas *atlas;          /* the index; NULL: none. Until all is read */
  bool has_counters;               /* some file is one of `counters record`: covers are wanted */
  struct ni_role_map roles;        /* of opt.comm_map */
  struct ni_log_groups log_groups; /* of opt.groups */
  struct ni_step_marks marks;
  struct ni_stamps stamps; /* under the lock */
  struct ni_tag_names tag_names;
  const struct ni_sink *records; /* takes the wanted records (record_row.h) */
  struct ni_ledger ledger;       /* what is there and what is missing, of all of the input */
  struct ni_ledgers ledgers;     /* while reading; calls are one at a time */
  struct ni_clocks clocks;       /* of the hosts, by the ledger. From ni_build_begin() on */
  /* where these were set, by the numbers of operations (reading/turns.h). Likewise */
  struct ni_turns turns;
  struct ni_progress progress;
  /* our index (of seat_at: who.member) -> index in the result */
  uint32_t *comm_at, *process_at, *seat_at;
  uint32_t *cell_order;            /* index in the result -> ours */
  struct ni_rollups *rollups;      /* rollups.c; NULL: none. Under the lock */
  struct ni_long_table long_waits; /* likewise */
  /* the same by time; integer sums by key (buckets/buckets.h). Under the lock */
  struct ni_bucket_table rolled;
  struct ni_sort *sorted; /* rows of the data set (records.h); NULL: none */
  /* the times of all who read shards at once; NULL: nobody else does */
  void (*agree)(int64_t *first, int64_t *last);
  /* other processes that sum up with us (team/team.h); NULL: nobody else does */
  const struct ni_team *team;
  struct ni_log_sums *log_sums; /* of each file, with opt.approximate */
  /* of shards of the input (partial/partial.h); NULL: all of it is read here */
  struct ni_partial *partial;
};
#define NI_CONTEXTS_MAX (1u << 22)

/* Stops all threads; the first call's error and text stay. Returns `error`. Any thread. */
int ni_run_fail(struct ni_run *r, int error, const char *text, ...) __attribute__((format(printf, 3, 4)));
/*
 * A file of a user's words into *text, which ends with 0 and is the caller's to free. How many bytes, or
 * -errno.
 */
#define NI_WORDS_BYTES (1u << 20) /* at most */
int ni_run_read_words(struct ni_run *r, const char *path, char **text);
/* Also for struct ni_scan_team; run: a struct ni_run. */
static inline bool ni_run_stopped(void *run) {
  struct ni_run *r = run;
  return atomic_load_explicit(&r->error, memory_order_relaxed) != 0 || (r->stop && *r->stop);
}

/* Settings left operations of this kind (NI_KIND_COLL ..) out of the logs; those of a sample do not count. */
bool ni_run_has_left_out(const struct ni_run *r, int kind);

/* By what a line states of its communicator; nnodes below 1: not stated. */
enum ni_comm_type ni_comm_type_of(const struct ni_run *r, int32_t n_ranks, int32_t nnodes);

#endif
