/*
 * A GPU's clock: near Unix time, with an offset and a drift of its own, in steps of 32 ns as the hardware
 * shows; RCCL's in ticks of 10 ns. Pure functions; immutable after ni_gpu_clock_set.
 */
#ifndef NI_SIM_GPU_CLOCK_H
#define NI_SIM_GPU_CLOCK_H

#include <math.h>

#include "sim.h"

struct ni_gpu_clock {
  uint64_t epoch_ns; /* monotonic, where the drift starts */
  int64_t base_ns;   /* Unix minus monotonic, plus offset */
  double drift;      /* 1e-6 is 1 ppm */
  uint32_t tick_ns;  /* of a stamp: 1, RCCL 10 */
};

static inline void ni_gpu_clock_set(struct ni_gpu_clock *c, uint64_t mono_ns, int64_t unix_minus_mono,
                                    uint64_t random, double offset_us, double drift_ppm, uint32_t tick_ns) {
  if (isnan(offset_us))
    offset_us = (double)(random % 6000000) / 1000 - 3000;
  if (isnan(drift_ppm))
    drift_ppm = (double)((random >> 32) % 40000) / 1000 - 20;
  c->epoch_ns = mono_ns;
  c->base_ns = unix_minus_mono + (int64_t)(offset_us * 1000);
  c->drift = drift_ppm * 1e-6;
  c->tick_ns = tick_ns;
}

/* Stamp for a monotonic host time. */
static inline uint64_t ni_gpu_stamp(const struct ni_gpu_clock *c, uint64_t mono_ns) {
  int64_t since = (int64_t)(mono_ns - c->epoch_ns);
  uint64_t ns = (uint64_t)((int64_t)mono_ns + c->base_ns + (int64_t)((double)since * c->drift));
  return c->tick_ns > 1 ? ns / c->tick_ns : ns & ~31ull;
}

#endif
