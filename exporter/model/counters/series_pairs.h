/*
 * A time series as pairs of samples that follow one another, for those who want rates: series.h with a memory of one sample.
 *
 * Sweeps over all counters at both ends are passed over: they span the whole series. One thread a file.
 */
#ifndef NI_SERIES_PAIRS_H
#define NI_SERIES_PAIRS_H

#include "series.h"

/* Is that file a series of counters, by its name: HOST-counters-START.jsonl.gz? */
bool ni_is_series(const char *path);

/* A negative result ends the reading with it. Sets and readings are valid during the call; a set until the next one. */
struct ni_series_pairs {
  void *arg;
  int (*set)(void *arg, const char *host, const struct ni_set *set);   /* NULL: nobody asks */
  int (*pair)(void *arg, const struct ni_series_sample *after, const struct ni_reading *before);
};

/* 0, -ENOMEM, or what a callback returned. end: as ni_series_read() fills it. */
int ni_series_pairs(const char *path, const struct ni_series_pairs *to, struct ni_series_end *end);

#endif
