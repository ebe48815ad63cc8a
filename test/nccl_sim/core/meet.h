/*
 * Where the ranks of a communicator wait for each other inside a kernel: a ring of slots, one per kernel,
 * that may lie in memory shared between processes.
 *
 * A slot serves kernel index i when its generation is i / size. Every participant arrives once with the time
 * it entered the kernel, sees the latest arrival when all have come, and leaves once; the last to leave opens
 * the slot for the next generation. Threads: any; nothing blocks, the caller asks again. Failure: a
 * participant that never comes keeps the slot, as a missing rank keeps a real kernel.
 */
#ifndef NI_SIM_MEET_H
#define NI_SIM_MEET_H

#include <stdatomic.h>

#include "sim.h"

enum { NI_MEET_SLOTS = 256 };

struct ni_meet {
  struct {
    _Atomic uint64_t generation; /* release by the last to leave, acquire by arrivals of the next round */
    _Atomic uint64_t latest_ns;  /* raised before `arrived` (release), read after it (acquire) */
    _Atomic int arrived, left;
  } slots[NI_MEET_SLOTS];
};

/* False: the slot still serves an older kernel; ask again. */
static inline bool ni_meet_arrive(struct ni_meet *m, uint64_t index, uint64_t at_ns) {
  unsigned i = index % NI_MEET_SLOTS;
  if (atomic_load_explicit(&m->slots[i].generation, memory_order_acquire) != index / NI_MEET_SLOTS)
    return false;
  uint64_t seen = atomic_load_explicit(&m->slots[i].latest_ns, memory_order_relaxed);
  while (seen < at_ns &&
         !atomic_compare_exchange_weak_explicit(&m->slots[i].latest_ns, &seen, at_ns, memory_order_relaxed,
                                                memory_order_relaxed)) {}
  atomic_fetch_add_explicit(&m->slots[i].arrived, 1, memory_order_acq_rel);
  return true;
}

/* True, with the latest arrival, when all `n` are there; the caller has then left. */
static inline bool ni_meet_done(struct ni_meet *m, uint64_t index, int n, uint64_t *latest_ns) {
  unsigned i = index % NI_MEET_SLOTS;
  if (atomic_load_explicit(&m->slots[i].arrived, memory_order_acquire) < n)
    return false;
  *latest_ns = atomic_load_explicit(&m->slots[i].latest_ns, memory_order_relaxed);
  if (atomic_fetch_add_explicit(&m->slots[i].left, 1, memory_order_acq_rel) + 1 == n) {
    atomic_store_explicit(&m->slots[i].arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&m->slots[i].left, 0, memory_order_relaxed);
    atomic_store_explicit(&m->slots[i].latest_ns, 0, memory_order_relaxed);
    atomic_fetch_add_explicit(&m->slots[i].generation, 1, memory_order_release);
  }
  return true;
}

#endif
