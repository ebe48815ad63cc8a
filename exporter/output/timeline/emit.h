/*
 * What the files of the second pass share: times of a line's host and GPU in the clock of the reference, and the ids of
 * arrows.
 */
#ifndef NI_TRACE_EMIT_H
#define NI_TRACE_EMIT_H

#include "exporter/base/mix.h"
#include "event.h"

/* Aligned time of a host time in a line of this process. */
static inline int64_t ni_tr_time(const struct ni_tr *r, uint32_t process, int64_t t) {
  return ni_tr_aligned(r, r->process[process].host, t);
}

/* Both ends of an arrow work it out: the scope (a member, for groups a process), what it joins, 1 for P2P, a number. */
static inline uint64_t ni_tr_arrow_id(uint32_t scope, enum ni_tr_arrow_kind kind, bool p2p, uint64_t sn) {
  uint64_t h = ni_spread((uint64_t)scope << 8 | (uint64_t)kind << 1 | p2p);
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL + sn;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
  return h ^ (h >> 31);
}

/* emit_op.c */
int ni_tr_emit_op(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_line *l);
/* emit_events.c: api to net; proxy_trace */
int ni_tr_emit_event(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_line *l);
int ni_tr_emit_proxy(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_line *l);
/* emit_marks.c: lines about the run, and what the first pass kept of losses and of what never ended */
int ni_tr_emit_mark(struct ni_tr *r, const struct ni_tr_where *w, const struct ni_line *l);
int ni_tr_emit_kept(struct ni_tr *r);
void ni_tr_sort_gaps(struct ni_tr_member *m); /* before the second pass */
/* A record tells the gaps of its member where they lie. */
void ni_tr_note_gap_border(struct ni_tr_member *m, unsigned kind, uint64_t rec_sn, int64_t ts);

#endif
