/*
 * Writes a time series of counters: lines of the log's format (format/counter_lines.def) in a file of its
 * own.
 *
 *   sets, readings ─▶ lines ─▶ text in memory ─▶ every 10 s a whole gzip member at the end of the file
 *
 * A live reader sees whole members; a killed writer loses what was not flushed. Values are differences to the
 * sample before of their set. Names and values themselves come first, again every five minutes, so that a
 * reader can begin in the middle, and where a counter was reset: a difference would be no number of events
 * there.
 *
 * What the disk does not take stays in memory, to 4 MiB; beyond that it is lost, which the numbers of samples
 * show.
 *
 * One thread. Errors: negative errno.
 */
#ifndef NI_SERIES_WRITE_H
#define NI_SERIES_WRITE_H

#include "exporter/collect/set.h"

struct ni_series_writer;

/* The sets that come one after the other under one number: what was said last of them. Zeros: none yet. */
struct ni_series_set {
  uint64_t set_sn, last_sn, digest; /* digest: of the names; another one is another set */
  int64_t named_ns;                 /* when they were said last */
  struct ni_reading *last;          /* of each counter the last one that was said */
  size_t n;
  uint64_t interval_ns; /* 0: of all counters, for both ends */
  bool any;
};

struct ni_series_sweep {
  int64_t real_ns, mono_ns; /* when it began */
  uint64_t ns, missed;      /* it took; samples that were due before it and not taken */
};

/* Makes <host>-counters-<start>.jsonl.gz in dir, and dir. Fails with a sentence in why, cut to cap. */
int ni_series_create(struct ni_series_writer **out, const char *dir, char *why, size_t cap);
const char *ni_series_path(const struct ni_series_writer *w);
/* Adds a sample, and the names where they are due. 0 or -ENOMEM: then it is not there. */
int ni_series_put(struct ni_series_writer *w, struct ni_series_set *of, const struct ni_set *set,
                  const struct ni_reading *r, const struct ni_series_sweep *sweep);
/*
 * Is a member due? Or write it now. 0; -ESTALE: the file is gone, its folder was removed; else of write(),
 * and again next time.
 */
bool ni_series_due(const struct ni_series_writer *w);
int ni_series_flush(struct ni_series_writer *w);
struct ni_series_totals {
  uint64_t samples, lost, held, bytes; /* of the samples lost, and not written yet; bytes: of the file */
};
struct ni_series_totals ni_series_totals(const struct ni_series_writer *w);
/* Flushes and closes: what ni_series_flush() says. NULL is accepted. */
int ni_series_close(struct ni_series_writer *w);
void ni_series_set_free(struct ni_series_set *s);

#endif
