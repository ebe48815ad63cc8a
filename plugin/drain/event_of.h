/*
 * What event_drain.c and proxy_drain.c share: from a slot number or a communicator to what belongs to it.
 * Dump role. A NULL writer is the process: ni_g.detached.
 */
#ifndef NI_EVENT_OF_H
#define NI_EVENT_OF_H

#include "drain.h"
#include "plugin/slots/state.h"

static inline struct ni_event_slot *event_at(uint32_t slot) { return ni_arena_event(&ni_g.arena, slot); }

static inline int is_proxy(uint32_t slot) {
  return ni_arena_page_class(&ni_g.arena, slot / NI_SLOTS_PER_PAGE) == NI_CHUNK_PROXY;
}

static inline struct ni_event_store *ev_store(const struct ni_comm_writer *s) {
  return s ? &s->comm->events : &ni_g.detached;
}

static inline struct ni_event_writer *ev_of(struct ni_drain *d, struct ni_comm_writer *s) {
  return s ? &s->ev : &d->w->detached;
}

static inline const struct ni_line_prefix *ev_prefix(const struct ni_drain *d,
                                                     const struct ni_comm_writer *s) {
  return s ? &s->prefix : &d->w->process_prefix;
}

/* ns between two readings of the counter; -1: the second never came. */
static inline int64_t ev_span(uint64_t from, uint64_t to) {
  return to && to >= from ? (int64_t)ni_clock_span_ns(&ni_g.clock, to - from) : -1;
}

/* n events of the kind are in the block now. */
static inline void ev_count(struct ni_drain *d, struct ni_comm_writer *s, enum ni_event kind, uint64_t n) {
  ev_of(d, s)->in_block[kind] += n;
  if (s)
    ni_drain_busy(d, s);
  ni_store_rlx(&d->w->progress, ni_load_rlx(&d->w->progress) + 1);
}

/* Its line is in the block, or will never be. */
static inline void ev_free_slot(const struct ni_comm_writer *s, uint32_t slot) {
  struct ni_event_store *st = ev_store(s);
  ni_pool_give(&ni_g.arena, is_proxy(slot) ? &st->proxies : &st->events, slot);
}

#endif
