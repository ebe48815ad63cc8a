/*
 * Reads a time series of counters (series_write.h) back into sets and readings, one sample after the other.
 *
 *   file ─▶ lines (exporter/input/scan.h) ─▶ names: a set ─▶ values: readings ─▶ sample()
 *
 * Values are exact: what the counters showed, from which ni_change_of() tells wraps and resets. A sample
 * whose differences hang on one that is not there does not come, and neither do those behind it until values
 * begin anew, within five minutes: it is a fault. Memory: NI_SERIES_SETS sets at most, however long the file
 * is.
 *
 * One thread a file. Sets and readings are the reader's, valid during the call.
 */
#ifndef NI_SERIES_H
#define NI_SERIES_H

#include "exporter/collect/set.h"
#include "exporter/input/scan.h"

#define NI_SERIES_SETS 4
#define NI_SERIES_COUNTERS_MAX (1u << 18)
#define NI_SERIES_ENTITIES_MAX 4096u

/* "counter", "sticky", "gauge": by enum ni_metric_kind. */
extern const char *const ni_series_kinds[3];

struct ni_series_sample {
  const char *host;
  int64_t pid;                             /* of the recorder */
  uint64_t set_sn, sample_sn, interval_ns; /* interval_ns 0: a sweep over all counters at one end */
  int64_t real_ns, mono_ns;                /* the sweep began */
  uint64_t sweep_ns, missed;
  const struct ni_set *set;
  /* of the set: another one where the set is another one, whatever set_sn a file gives it */
  uint64_t made;
  const struct ni_reading *reading; /* one a counter */
};

/*
 * A negative result of sample() or fault() ends the reading with it. fault NULL: nobody asks; its text is a
 * sentence.
 */
struct ni_series_to {
  void *arg;
  int (*sample)(void *arg, const struct ni_series_sample *s);
  int (*fault)(void *arg, uint64_t line_no, const char *what);
};

/* What was in the file, beside samples. */
struct ni_series_end {
  struct ni_scan_end scan;
  uint64_t samples, faults;
};

/* 0, -ENOMEM, or what a callback returned; a file that cannot be read is told in end->scan.error alone. */
int ni_series_read(const char *path, const struct ni_series_to *to, struct ni_series_end *end);

/* Is that file a series of counters, by its name: HOST-counters-START.jsonl.gz? */
bool ni_is_series(const char *path);

/* The same as pairs of samples that follow one another, for those who want rates. Sweeps over all counters at
 * both ends are passed over: they span the whole series. A set is valid until the next one. */
struct ni_series_pairs {
  void *arg;
  int (*set)(void *arg, const char *host, const struct ni_set *set); /* what pairs are of from now on */
  int (*pair)(void *arg, const struct ni_series_sample *after, const struct ni_reading *before);
};
int ni_series_pairs(const char *path, const struct ni_series_pairs *to, struct ni_series_end *end);

#endif
