#include "meter.h"

#include "plugin/slots/state.h"

static _Thread_local uint32_t left, gap, seed;

void ni_meter_start(struct ni_meter *m, double ns_per_tick) {
  uint64_t best = UINT64_MAX;
  for (int i = 0; i < 100; i++) {
    uint64_t t = ni_ticks(ni_g.tick_source), d = ni_ticks(ni_g.tick_source) - t;
    if (d < best) best = d;
  }
  m->pair_ticks = best;
  m->max_ticks = (uint64_t)(NI_METER_MAX_NS / (ns_per_tick > 0 ? ns_per_tick : 1));
  ni_store_rlx(&m->on, 1);
  (void)atomic_fetch_or_explicit(&ni_g.armed, NI_EXTRA_METER, memory_order_relaxed);
}

uint64_t ni_meter_begin(void) {
  if (!ni_load_rlx(&ni_g.meter.on)) return 0;
  if (left) {
    left--;
    return 0;
  }
  return ni_ticks(ni_g.tick_source) | 1; /* never 0 */
}

void ni_meter_end(uint64_t began) {
  struct ni_meter *m = &ni_g.meter;
  uint64_t d = ni_ticks(ni_g.tick_source) - began, pair = m->pair_ticks, max = m->max_ticks;
  d = d > pair ? d - pair : 0;
  if (d > max) d = max;
  if (gap) { /* the thread's first one only draws */
    ni_add_rlx(&m->ticks, d * gap);
    ni_add_rlx(&m->callbacks, gap);
  }
  if (!seed) seed = (uint32_t)((uintptr_t)&seed >> 4) | 1;
  seed ^= seed << 13, seed ^= seed >> 17, seed ^= seed << 5;
  gap = 33 + seed % 64;
  left = gap - 1;
}
