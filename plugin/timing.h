/*
 * How long an operation took: which clock is believed, execution time, bandwidths. Pure functions and one small fit.
 *
 * Sources, best first: the GPU stamps (latest stop - earliest start over all channels) when they are plausible; the
 * CPU's arrival of the last channel's stop - arrival of the first channel's start; the bracket around the enqueue,
 * which says nothing about the kernel, so that no bandwidth is derived from it.
 *
 * The fit of the GPU clock. A stamp is written by the device before the host can see it, so (host arrival - stamp) is
 * never below the true offset of the two clocks, and its minimum over the last 30 to 60 seconds is that offset plus
 * the smallest latency. A stop stamp that lies later than its own arrival by that offset cannot be true: memory that
 * was not a stamp (contract Q4 to Q6), judged NI_GPU_AFTER_ARRIVAL.
 *   - Tolerance: NI_GPU_TOLERANCE_NS, plus 100 ppm of the time since the minimum was last confirmed (drift).
 *   - The first NI_GPU_WARMUP operations are never judged by it.
 *   - Poisoned minimum: when NI_GPU_AGREE rejected observations in a row agree with each other within the tolerance,
 *     the fit was wrong or the GPU clock was set: it starts anew from them. When as many accepted ones in a row lie
 *     more than NI_GPU_FAR_NS above the minimum, the minimum itself was garbage: likewise.
 *
 * Threads: the fit belongs to one thread (the dump thread), one per communicator. Nothing to free.
 */
#ifndef NI_TIMING_H
#define NI_TIMING_H

#include <stdbool.h>
#include <stdint.h>

#include "ni_record.h"

#define NI_GPU_SPAN_MAX_NS INT64_C(3600000000000)     /* longer than an hour is no kernel */
/* The minimum is an upper bound of the offset, and a loaded poller may be milliseconds late for dozens of operations in a
 * row before one is seen in time: that one is no garbage (with 1 ms, 1 run in 6 of the simulated all-to-all on a busy
 * machine lost GPU times). Garbage misses by seconds. */
#define NI_GPU_TOLERANCE_NS INT64_C(50000000)
#define NI_GPU_WINDOW_NS UINT64_C(30000000000)        /* half of the window of the minimum */
#define NI_GPU_WARMUP 8
#define NI_GPU_AGREE 16
#define NI_GPU_FAR_NS INT64_C(10000000000)

/* The stamps of one operation: GPU clock ns, and host arrivals in ns of one steady clock (ni_clock_monotonic_ns). */
struct ni_gpu_stamps {
  uint64_t start_ns, stop_ns;
  uint64_t first_arrival_ns; /* of the first channel's start */
  uint64_t done_arrival_ns;  /* of the last channel's stop */
};

enum ni_gpu_verdict { NI_GPU_OK = 0, NI_GPU_ZERO, NI_GPU_STOP_BEFORE_START, NI_GPU_SPAN_TOO_LONG, NI_GPU_AFTER_ARRIVAL };

struct ni_gpu_fit {
  uint64_t n_samples;         /* accepted since the fit (re)started */
  uint64_t n_resets;
  int64_t min_ns, prev_min_ns; /* minimum of this and of the previous half window */
  uint64_t min_at_ns, prev_min_at_ns; /* host clock of the observations that set them */
  uint64_t window_start_ns;
  uint64_t confirmed_at_ns;   /* last accepted observation near the minimum */
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

/* Offset host - GPU: stamp + *offset_ns is host time. False before the first sample. at_ns may be NULL. */
bool ni_gpu_fit_offset(const struct ni_gpu_fit *f, int64_t *offset_ns, uint64_t *at_ns);

struct ni_timing_in {
  bool gpu_ok;            /* all stamps present and nothing bad about them, verdict OK */
  bool has_kernel;        /* at least one channel started and all that started have stopped */
  uint64_t gpu_ns;        /* latest stop - earliest start */
  uint64_t kernel_cpu_ns; /* done_arrival - first_arrival */
  uint64_t bracket_ns;    /* stop callback - start callback */
};

/*
 * Sets timing, exec_ns, exec_us, tests_bytes, bandwidths and their NI_HAS_* bits in *r from its func and msg_bytes.
 * func: enum of r->func (looked up once when the name was interned). n_ranks: of the communicator. Bandwidths need a
 * kernel time above 0 and a known bus factor; otherwise their bits are cleared and the line says null. algobw of a
 * function without a known factor is null as well, because its size is not known either.
 */
void ni_timing_fill(struct ni_record *r, enum ni_func func, int32_t n_ranks, const struct ni_timing_in *in);

/* 1e9 bytes per second; 0 when ns is 0. */
double ni_algobw_gbs(enum ni_func func, uint64_t msg_bytes, int32_t n_ranks, uint64_t ns);

#endif
