/*
 * The fit of the GPU clock: the smallest (host arrival - stamp) of the last 30 to 60 seconds is the offset of
 * the two clocks plus the smallest latency (format/timing.h judges stamps by it).
 *
 * Poisoned minimum: when NI_GPU_AGREE rejected observations in a row agree with each other within the
 * tolerance, the fit was wrong or the GPU clock was set: it starts anew from them. When as many accepted ones
 * in a row lie more than NI_GPU_FAR_NS above the minimum, the minimum itself was garbage: likewise.
 *
 * Threads: the fit belongs to one thread (the dump thread), one per communicator. Nothing to free.
 */
#ifndef NI_GPU_FIT_H
#define NI_GPU_FIT_H

#include "format/timing.h"

#define NI_GPU_WINDOW_NS UINT64_C(30000000000) /* half of the window of the minimum */
#define NI_GPU_AGREE 16
#define NI_GPU_FAR_NS INT64_C(10000000000)

struct ni_gpu_fit {
  uint64_t n_samples; /* accepted since the fit (re)started */
  uint64_t n_resets;
  int64_t min_ns, prev_min_ns;        /* minimum of this and of the previous half window */
  uint64_t min_at_ns, prev_min_at_ns; /* host clock of the observations that set them */
  uint64_t window_start_ns;
  uint64_t confirmed_at_ns;             /* last accepted observation near the minimum */
  int64_t streak_min_ns, streak_max_ns; /* of rejected (or far) observations in a row */
  uint64_t streak_at_ns;
  uint32_t n_rejected, n_far; /* length of the running streaks */
  bool has_min, has_prev;
};

/* Judges; changes nothing. A zeroed fit is a fresh one. */
enum ni_gpu_verdict ni_gpu_fit_check(const struct ni_gpu_fit *f, const struct ni_gpu_stamps *s);

/* Learns from an operation and the verdict that check gave for it. Only OK and AFTER_ARRIVAL teach anything.
 * Returns true when the fit started anew. */
bool ni_gpu_fit_observe(struct ni_gpu_fit *f, const struct ni_gpu_stamps *s, enum ni_gpu_verdict v);

/*
 * Does the GPU's clock run at the rate that made ns of its stamps? One per communicator, a zeroed one is
 * fresh.
 */
/* over so long at least: on a loaded machine arrivals are late by 100 ms and more */
#define NI_GPU_RATE_NS UINT64_C(1000000000)
#define NI_GPU_RATE_DOUBT_NS UINT64_C(5000000000) /* before it is said that it does not */
/* what is further apart is another rate: they differ by 4, 10, 40 */
#define NI_GPU_RATE_FACTOR 3
struct ni_gpu_rate {
  uint64_t stop_ns, arrival_ns; /* what it is measured from; 0: nothing yet */
  int8_t agrees;                /* 1: it does; -1: it does not; 0: not measured yet */
};

/* Learns from stamps that ni_gpu_fit_check found OK, and returns agrees. */
int ni_gpu_rate_check(struct ni_gpu_rate *r, const struct ni_gpu_stamps *s);

/* Offset host - GPU: stamp + *offset_ns is host time. False before the first sample. at_ns may be NULL. */
bool ni_gpu_fit_offset(const struct ni_gpu_fit *f, int64_t *offset_ns, uint64_t *at_ns);

#endif
