/*
 * Samples NICs, GPUs and the host in a thread of its own, since a driver may make it wait, with processor time that nobody else
 * wants (SCHED_IDLE); and keeps the samples in a ring on disk.
 *
 *   thread: sweep ─▶ totals (running.h) under a lock ─▶ eventfd ─▶ agent: ni_sampler_take()
 *                 ─▶ series file (series_write.h) in <state>/ring; a new one every 16th of the ring's size or hour; the oldest go
 *
 * The ring's files are time series as `counters record` writes them: every command reads them. A member is whole or, after a kill,
 * not there; a full disk costs samples, which are counted. Threads: the caller's and its own.
 */
#ifndef NI_SAMPLER_H
#define NI_SAMPLER_H

#include "exporter/cmds/live.h"
#include "exporter/model/counters/running.h"

struct ni_sampler;
struct ni_sampler_totals {
  uint64_t samples, missed, lost, ring_bytes, errors; /* lost: the disk did not take them; errors: failed flushes */
  bool degraded;
};

/* ring: path of the folder, made where it is not there. 0 or -errno with a sentence in why. */
int ni_sampler_start(struct ni_sampler **out, uint64_t every_ns, const char *ring, uint64_t ring_bytes, char *why, size_t cap);
/* Readable after each sample; ni_sampler_take() empties it. */
int ni_sampler_fd(const struct ni_sampler *s);
/* A copy of the newest totals into *r, which begins as zeros or as the copy before. 0 or -ENOMEM. */
int ni_sampler_take(struct ni_sampler *s, struct ni_running *r, struct ni_sampler_totals *t);
void ni_sampler_stop(struct ni_sampler *s);

#endif
