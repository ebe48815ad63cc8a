/*
 * Children that came after their operation had been judged finished: a small queue from the poller to the
 * dump thread, which writes a `late` line for each. Bounded; an entry that finds it full is counted and has
 * no line.
 *
 * Many producers (callbacks), one consumer (dump thread). Lock-free.
 */
#ifndef NI_LATE_H
#define NI_LATE_H

#include "plugin/os/atomics.h"

#define NI_LATE_SLOTS 64u

struct ni_late_stop {
  uint32_t comm_page;
  uint64_t sn, rec_sn, stop_gpu_ns; /* as the GPU gave it: ticks of its clock */
  uint8_t kind, func, channel;
};

struct ni_late_ring {
  _Atomic uint32_t head; /* producers: next position */
  _Atomic uint32_t tail; /* consumer: everything below is taken. Release there, acquire by the producers */
  _Atomic uint64_t lost;
  struct {
    _Atomic uint32_t turn; /* Position + 1 when filled; release by the producer, acquire by the consumer. */
    struct ni_late_stop what;
  } entry[NI_LATE_SLOTS];
};

static inline void ni_late_push(struct ni_late_ring *r, const struct ni_late_stop *what) {
  uint32_t pos = ni_load_rlx(&r->head);
  do {
    /* pairs with ni_late_pop's release: the entry was read */
    if (pos - ni_load_acq(&r->tail) >= NI_LATE_SLOTS) {
      ni_add_rlx(&r->lost, 1);
      return;
    }
  } while (!ni_cas_rlx(&r->head, &pos, pos + 1));
  r->entry[pos % NI_LATE_SLOTS].what = *what;
  ni_store_rel(&r->entry[pos % NI_LATE_SLOTS].turn, pos + 1); /* pairs with ni_late_pop */
}

/* A hint: nothing is being handed over. Dump thread. */
static inline int ni_late_empty(const struct ni_late_ring *r) {
  return ni_load_rlx(&r->head) == ni_load_rlx(&r->tail);
}

/* 1 and the entry in *out, or 0 when none is ready. Dump thread only. */
static inline int ni_late_pop(struct ni_late_ring *r, struct ni_late_stop *out) {
  uint32_t pos = ni_load_rlx(&r->tail);
  if (ni_load_acq(&r->entry[pos % NI_LATE_SLOTS].turn) != pos + 1)
    return 0; /* pairs with ni_late_push */
  *out = r->entry[pos % NI_LATE_SLOTS].what;
  ni_store_rel(&r->tail, pos + 1);
  return 1;
}

#endif
