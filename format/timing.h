/*
 * How long an operation took, from its stamps: which clock is believed, execution time, bandwidths.
 *
 * Pure functions, any thread. The plugin uses them when it writes a record, the exporter when it recovers one
 * from a black box, so that both say the same.
 *
 * Sources, best first: the GPU stamps (latest stop - earliest start over all channels) when they are
 * plausible; the CPU's arrival of the last channel's stop - arrival of the first channel's start; the bracket
 * around the enqueue, which says nothing about the kernel, so that no bandwidth is derived from it.
 *
 * A stamp is written by the device before the host can see it, so (host arrival - stamp) is never below the
 * true offset of the two clocks. A stop stamp that lies later than its own arrival by the offset observed so
 * far cannot be true: memory that was not a stamp (callbacks 3.8). Tolerance: NI_GPU_TOLERANCE_NS, plus 100
 * ppm of the time since the offset was last confirmed (drift). The first NI_GPU_WARMUP operations are not
 * judged by it.
 */
#ifndef NI_TIMING_H
#define NI_TIMING_H

#include <stdbool.h>
#include <stdint.h>

#include "record.h"

#define NI_GPU_SPAN_MAX_NS INT64_C(3600000000000) /* longer than an hour is no kernel */
/* The minimum is an upper bound of the offset, and a loaded poller may be milliseconds late for dozens of
 * operations in a row before one is seen in time: that one is no garbage (with 1 ms, 1 run in 6 of the
 * simulated all-to-all on a busy machine lost GPU times). Garbage misses by seconds. */
#define NI_GPU_TOLERANCE_NS INT64_C(50000000)
#define NI_GPU_WARMUP 8

/*
 * The stamps of one operation: GPU clock ns, and host arrivals in ns of one steady clock (CLOCK_MONOTONIC).
 */
struct ni_gpu_stamps {
  uint64_t start_ns, stop_ns;
  uint64_t first_arrival_ns; /* of the first channel's start */
  uint64_t done_arrival_ns;  /* of the last channel's stop */
};

enum ni_gpu_verdict {
  NI_GPU_OK = 0,
  NI_GPU_ZERO,
  NI_GPU_STOP_BEFORE_START,
  NI_GPU_SPAN_TOO_LONG,
  NI_GPU_AFTER_ARRIVAL
};

/* What is known of the relation of the clocks. */
struct ni_gpu_relation {
  uint64_t n_samples;
  int64_t offset_ns;        /* host - GPU; an upper bound */
  uint64_t confirmed_at_ns; /* host clock */
};

/* a - b clamped: offsets of garbage stamps may lie anywhere in 64 bits. */
static inline int64_t ni_sub_sat(int64_t a, int64_t b) {
  int64_t d;
  if (__builtin_sub_overflow(a, b, &d))
    return a < b ? INT64_MIN : INT64_MAX;
  return d;
}

/*
 * Host arrival - stamp, of the tighter of the two observations. Unsigned first: stamps are hostile numbers.
 */
static inline int64_t ni_gpu_observed_offset(const struct ni_gpu_stamps *s) {
  int64_t stop = (int64_t)(s->done_arrival_ns - s->stop_ns),
          start = (int64_t)(s->first_arrival_ns - s->start_ns);
  return stop < start ? stop : start;
}

/*
 * 100 ppm of the time since the offset was confirmed: two free-running clocks are never further apart than
 * that.
 */
static inline int64_t ni_gpu_tolerance(uint64_t confirmed_at_ns, uint64_t now_ns) {
  uint64_t age = now_ns > confirmed_at_ns ? now_ns - confirmed_at_ns : 0;
  return NI_GPU_TOLERANCE_NS + (int64_t)(age / 10000);
}

/* Can the stamps of a finished operation be true? */
static inline enum ni_gpu_verdict ni_gpu_judge(const struct ni_gpu_relation *r,
                                               const struct ni_gpu_stamps *s) {
  if (s->start_ns == 0 || s->stop_ns == 0)
    return NI_GPU_ZERO;
  if (s->stop_ns < s->start_ns)
    return NI_GPU_STOP_BEFORE_START;
  if (s->stop_ns - s->start_ns > (uint64_t)NI_GPU_SPAN_MAX_NS)
    return NI_GPU_SPAN_TOO_LONG;
  if (r->n_samples >= NI_GPU_WARMUP &&
      ni_sub_sat(r->offset_ns, ni_gpu_observed_offset(s)) >
          ni_gpu_tolerance(r->confirmed_at_ns, s->done_arrival_ns))
    return NI_GPU_AFTER_ARRIVAL;
  return NI_GPU_OK;
}

/*
 * Ticks from one reading of a counter to a later one; 0 when it went back in between (a VM that was moved).
 */
static inline uint64_t ni_ticks_between(uint64_t from, uint64_t to) { return to > from ? to - from : 0; }

struct ni_timing_in {
  bool gpu_ok;            /* all stamps present and nothing bad about them, verdict OK */
  bool has_kernel;        /* at least one channel started and all that started have stopped */
  uint64_t gpu_ns;        /* latest stop - earliest start */
  uint64_t kernel_cpu_ns; /* done_arrival - first_arrival */
  uint64_t bracket_ns;    /* stop callback - start callback */
};

/* 1e9 bytes per second; 0 when ns is 0. */
static inline double ni_algobw_gbs(enum ni_func func, uint64_t msg_bytes, int32_t n_ranks, uint64_t ns) {
  if (ns == 0)
    return 0;
  double bytes = (double)msg_bytes;
  if (ni_func_table[func].times_ranks && n_ranks > 1)
    bytes *= n_ranks;
  return bytes / (double)ns;
}

/*
 * Sets timing, exec_ns, exec_us, tests_bytes, bandwidths and their NI_HAS_* bits in *r from its func and
 * msg_bytes. func: enum of r->func. n_ranks: of the communicator. With n_ranks < 1 (v1 to v3), an unknown bus
 * factor or no kernel time no bandwidth is stated: their bits are cleared and the line says null. algobw of a
 * function without a known factor is null as well, because its size is not known either.
 */
static inline void ni_timing_fill(struct ni_record *r, enum ni_func func, int32_t n_ranks,
                                  const struct ni_timing_in *in) {
  if (in->gpu_ok) {
    r->timing = NI_TIMING_KERNEL_GPU;
    r->exec_ns = in->gpu_ns;
  } else if (in->has_kernel) {
    r->timing = NI_TIMING_KERNEL_CPU;
    r->exec_ns = in->kernel_cpu_ns;
  } else {
    r->timing = NI_TIMING_COLLECTIVE_CPU;
    r->exec_ns = in->bracket_ns;
  }
  r->exec_us = ni_exec_us(r->exec_ns);
  r->has |= NI_HAS_EXEC_NS;
  r->has &= ~(uint32_t)(NI_HAS_ALGOBW | NI_HAS_BUSBW | NI_HAS_TESTS_SIZE);
  r->algobw_gbs = r->busbw_gbs = 0;
  if (ni_func_table[func].factor == 0)
    return; /* the size that users mean is not known either */
  /* v1 to v3 never say how many ranks there are: what depends on it is not stated. */
  if (n_ranks < 1 && ni_func_table[func].times_ranks)
    return;
  r->tests_bytes = ni_nccl_tests_bytes(func, r->msg_bytes, n_ranks);
  r->has |= NI_HAS_TESTS_SIZE;
  if (r->timing == NI_TIMING_COLLECTIVE_CPU || r->exec_ns == 0)
    return;
  r->algobw_gbs = ni_algobw_gbs(func, r->msg_bytes, n_ranks, r->exec_ns);
  if (!(r->algobw_gbs <= NI_BW_MAX_GBS))
    return; /* readers would refuse the line, and the record with it */
  r->has |= NI_HAS_ALGOBW;
  if (n_ranks < 1 && ni_func_table[func].factor != 1)
    return;
  r->busbw_gbs = r->algobw_gbs * (n_ranks < 1 ? 1 : ni_bus_factor(func, n_ranks));
  if (r->busbw_gbs <= NI_BW_MAX_GBS)
    r->has |= NI_HAS_BUSBW;
}

/* One call of several in a kernel: the kernel's time, where there is one, says nothing of its bandwidth. */
static inline void ni_timing_shared(struct ni_record *r) {
  r->shared_span = r->timing != NI_TIMING_COLLECTIVE_CPU;
  r->has &= ~(uint32_t)(NI_HAS_ALGOBW | NI_HAS_BUSBW);
  r->algobw_gbs = r->busbw_gbs = 0;
}

struct ni_phases {
  uint64_t initial_sync_ns, compute_ns, final_sync_ns;
};

/*
 * The phases of a symmetric kernel that ran from start_ns to stop_ns; they add up to that. from_ns: when its
 * last channel began to compute, to_ns: when its last channel had computed, 0: no phase said it; all ones:
 * stamps came that cannot be true. GPU clock. false: none came, or they cannot be true.
 */
static inline bool ni_phases_of(uint64_t from_ns, uint64_t to_ns, uint64_t start_ns, uint64_t stop_ns,
                                struct ni_phases *out) {
  if ((from_ns == 0 && to_ns == 0) || from_ns == UINT64_MAX)
    return false;
  uint64_t from = from_ns > start_ns ? from_ns : start_ns;
  uint64_t to = to_ns > from ? to_ns : from;
  if (to > stop_ns)
    return false;
  *out = (struct ni_phases){from - start_ns, to - from, stop_ns - to};
  return true;
}

static inline void ni_record_phases(struct ni_record *r, const struct ni_phases *p) {
  r->has |= NI_HAS_PHASES;
  r->initial_sync_ns = p->initial_sync_ns;
  r->compute_ns = p->compute_ns;
  r->final_sync_ns = p->final_sync_ns;
}

#endif
