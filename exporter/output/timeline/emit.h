/*
 * The second pass; and what its files share: times of a line's host in the clock of the reference, and the
 * ids of arrows.
 */
#ifndef NI_TRACE_EMIT_H
#define NI_TRACE_EMIT_H

#include "exporter/base/mix.h"
#include "exporter/model/timeline/pass.h"
#include "event.h"

/* Aligned time of a host time in a line of this process. */
static inline int64_t ni_tr_time(const struct ni_tr *r, uint32_t process, int64_t t) {
  return ni_tr_aligned(r, r->process[process].host, t);
}

/*
 * Both ends of an arrow work it out: the scope (a member, for groups a process), what it joins, 1 for P2P, a
 * number.
 */
static inline uint64_t ni_tr_arrow_id(uint32_t scope, enum ni_tr_arrow_kind kind, bool p2p, uint64_t sn) {
  uint64_t h = ni_spread((uint64_t)scope << 8 | (uint64_t)kind << 1 | p2p);
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL + sn;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
  return h ^ (h >> 31);
}

int ni_tr_emit(struct ni_tr *r); /* the second pass. 0 or -errno, told by ni_tr_fail() */

#endif
