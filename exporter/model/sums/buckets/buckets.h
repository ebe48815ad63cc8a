/*
 * Sums by time: --time-granularity W.
 *
 * The rule, in whole ns: bucket = floor(t / W) - floor(origin / W), where origin is the smallest time of any
 * record in the logs, before all filters. A bucket holds [start, start + W). A record counts in the bucket of
 * its start, whole; an operation in that of its first record; a roll-up line and what a counter did between
 * two samples in that of the last ns it describes, t = to - 1; a level at its sample. Tables keep floor(t /
 * W) as it is until the end, so they need no origin while they are filled.
 *
 * How it merges: a table is integer sums by key on absolute buckets, so parts are added up row by row
 * (ni_bucket_merge()) in any order, and the origin is the smallest one of all parts. Rows of records are made
 * where operations are joined, of segments alone; only those of roll-ups (ni_run.rolled) come from reading.
 *
 * Threads: one for each table. Memory: NI_BUCKET_ROWS_MAX rows of 144 bytes at most. Failure: -ENOMEM;
 * -E2BIG: more rows than that.
 */
#ifndef NI_BUCKETS_H
#define NI_BUCKETS_H

#include "exporter/base/counts.h"
#include "exporter/base/index.h"

#define NI_BUCKET_ROWS_MAX (1u << 20)
#define NI_BUCKET_MIN_NS UINT64_C(1000000)
#define NI_BUCKET_MAX_NS UINT64_C(3600000000000)
#define NI_BUCKET_NONE UINT32_MAX

struct ni_bucket_row {
  int64_t bucket;           /* floor(t / W); in the result less that of the origin */
  uint32_t comm, log_group; /* index in the result; NI_BUCKET_NONE */
  const char *func;         /* one pointer for each text */
  uint32_t kind, timing;
  NI_COUNTS(added, records, operations, bytes, ns, no_bandwidth, late, late_ns);
  uint64_t max_ns;
  unsigned __int128 bytes_per_s; /* sum over the records that have a bandwidth */
};

struct ni_bucket_table { /* all 0: empty */
  struct ni_bucket_row *row;
  size_t n, cap;
  struct ni_index at_hash;
};

static inline int64_t ni_bucket_of(int64_t ns, uint64_t width_ns) {
  const int64_t w = (int64_t)width_ns, q = ns / w;
  return ns % w < 0 ? q - 1 : q;
}

/* The row of what key names (bucket, comm, log_group, func, kind, timing), added where there is none. */
int ni_bucket_find_or_add(struct ni_bucket_table *t, const struct ni_bucket_row *key,
                          struct ni_bucket_row **out);
/* Adds what `from` has. */
int ni_bucket_merge(struct ni_bucket_table *to, const struct ni_bucket_table *from);
/* By time, then by what is named. The table only holds rows after that. */
void ni_bucket_sort(struct ni_bucket_table *t);
void ni_bucket_free(struct ni_bucket_table *t);

/* What counters of a host did in a bucket: a row for each that has a number there. */
struct ni_host_bucket {
  int64_t bucket;
  const char *host, *source, *device, *counter, *unit; /* one pointer for each text */
  uint32_t kind;                                       /* enum ni_metric_kind */
  uint64_t samples;
  double scale;
  __int128 sum;     /* of differences; of a gauge: of levels */
  int64_t min, max; /* of a gauge */
  double seconds;   /* that the differences span */
};
struct ni_host_buckets {
  struct ni_host_bucket *row;
  size_t n, cap;
  struct ni_index at_hash;
  /*
   * Of each counter of the series that is read: its bucket so far. A counter that stood still for a while and
   * then moved has a rate over both, so rows come when a bucket is over.
   */
  struct ni_host_bucket *now;
  size_t n_now, cap_now;
};
struct ni_run;
struct ni_summary;
struct ni_series_sample;
struct ni_reading;
struct ni_set;
/*
 * As a series of counters is read (model/counters/series.h): what its samples are of, pairs of them, its end.
 * Main thread.
 */
int ni_host_buckets_begin_set(struct ni_run *r, struct ni_host_buckets *t, const char *host,
                              const struct ni_set *set);
int ni_host_buckets_add(struct ni_host_buckets *t, uint64_t width_ns, const struct ni_series_sample *after,
                        const struct ni_reading *before);
int ni_host_buckets_flush(struct ni_host_buckets *t);
/*
 * Says that there are more rows than a table takes, and what to do. file: without its ending; each: what a
 * bucket has a row for.
 */
void ni_buckets_fail_too_many(struct ni_run *r, const char *file, const char *each);
/* Once all is summed: buckets count from the origin, rows are in order. */
void ni_buckets_end(struct ni_run *r, struct ni_summary *s);

#endif
