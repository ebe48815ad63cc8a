/*
 * Samples in a ring on disk: time series of counters (series_write.h) in files of one folder that together
 * stay below a size.
 *
 * <host>-counters-<start>.jsonl.gz gets a whole member every 10 s; a new file begins at a 16th of the size,
 * or after an hour. Above the size, or beyond 1,000 files, the oldest of this host go, by their names; empty
 * ones, too; other names are not touched. A disk that takes nothing is asked again 10 s later; what 4 MiB of
 * text do not hold meanwhile is lost and counted, as is what came while there was no file. One thread. Times:
 * CLOCK_MONOTONIC.
 */
#ifndef NI_RING_H
#define NI_RING_H

#include "exporter/model/counters/series_write.h"

struct ni_ring;
struct ni_ring_totals {
  uint64_t lost, bytes, errors; /* samples that the disk did not take; of all files; what failed */
  bool degraded;                /* the newest try failed */
  char why[256];                /* why the newest one that failed did; "" */
};

/* every_ns: between samples. A folder that cannot be written is no error, but degraded. 0 or -ENOMEM. */
int ni_ring_open(struct ni_ring **out, const char *dir, uint64_t bytes, uint64_t every_ns, uint64_t now_ns);
void ni_ring_put(struct ni_ring *r, const struct ni_set *set, const struct ni_reading *at,
                 const struct ni_series_sweep *when);
/* After each sample: writes what is due. */
void ni_ring_turn(struct ni_ring *r, uint64_t now_ns);
const struct ni_ring_totals *ni_ring_totals(const struct ni_ring *r);
/* Writes all and closes. NULL is accepted. */
void ni_ring_close(struct ni_ring *r);

#endif
