/*
 * Samples NICs, GPUs and the host in a thread of its own, since a driver may make it wait, with processor
 * time that nobody else wants (SCHED_IDLE); and keeps the samples in a ring on disk (ring.h). What is there
 * to sample is looked for every 60 samples, also where nothing was found. The caller has blocked his signals.
 * Threads: the caller's and its own.
 */
#ifndef NI_SAMPLER_H
#define NI_SAMPLER_H

#include "exporter/model/counters/running.h"
#include "ring.h"

struct ni_sampler;
struct ni_sampler_totals {
  uint64_t samples, missed; /* of this process's life */
  int64_t at_mono_ns;       /* CLOCK_MONOTONIC: when the newest one began */
  struct ni_ring_totals ring;
};

/*
 * ring: path of the folder, made where it is not there; one that cannot be written costs the ring alone,
 * which is degraded. As many descriptors as the process may have are allowed from then on. 0 or -errno: no
 * thread, no memory, no descriptors.
 */
int ni_sampler_start(struct ni_sampler **out, uint64_t every_ns, const char *ring, uint64_t ring_bytes);
/*
 * From now on samples are due at this time of CLOCK_MONOTONIC and whole periods (10 ms to 1 h) from it,
 * whatever it was begun with. Ticks that move by less than half a period move samples, and leave out or
 * repeat none. bandwidth: they have PCIe's rates of GPUs also where asking for them takes long
 * (ni_wanted.pcie). Any thread.
 */
void ni_sampler_follow(struct ni_sampler *s, int64_t tick_mono_ns, uint64_t period_ns, bool bandwidth);
/* Readable after each sample; ni_sampler_copy() empties it. */
int ni_sampler_fd(const struct ni_sampler *s);
/*
 * A copy of the newest totals into *r, which begins as zeros or as the copy before, and *t. Never waits:
 * while the thread changes them both stay, and the descriptor will be readable again. 0 or -ENOMEM: *r is as
 * it was.
 */
int ni_sampler_copy(struct ni_sampler *s, struct ni_running *r, struct ni_sampler_totals *t);
/* Writes what is due and ends, in 5 s at most. A thread that a driver holds is left behind. */
void ni_sampler_stop(struct ni_sampler *s);

#endif
