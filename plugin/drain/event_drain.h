/*
 * What event_dump.c and proxy_dump.c share. Dump role. A NULL side is the process: ni_g.detached.
 */
#ifndef NI_EVENT_DUMP_H
#define NI_EVENT_DUMP_H

#include "plugin/dump/dump.h"
#include "format/event_write.h"

static inline struct ni_event_slot *event_at(uint32_t slot) { return ni_arena_event(&ni_g.arena, slot); }

static inline int is_proxy(uint32_t slot) {
  return ni_arena_page_class(&ni_g.arena, slot / NI_SLOTS_PER_PAGE) == NI_CHUNK_PROXY;
}

static inline struct ni_event_store *ev_store(const struct ni_side *s) { return s ? &s->comm->events : &ni_g.detached; }

static inline struct ni_side_events *ev_of(struct ni_dump *d, struct ni_side *s) { return s ? &s->ev : &d->detached; }

static inline const struct ni_line_prefix *ev_prefix(const struct ni_dump *d, const struct ni_side *s) {
  return s ? &s->prefix : &d->process_prefix;
}

/* ns between two readings of the counter; -1: the second never came. */
static inline int64_t ev_span(uint64_t from, uint64_t to) {
  return to && to >= from ? (int64_t)ni_clock_span_ns(&ni_g.clock, to - from) : -1;
}

/* n events of the kind are in the block now. */
void ni_events_count(struct ni_dump *d, struct ni_side *s, enum ni_event kind, uint64_t n);
void ni_events_free_slot(const struct ni_side *s, uint32_t slot);

/* ---- proxy_dump.c ---- */

/* A closed proxy operation of todo into the block. 1: its slot can go; negative errno: the block takes no more. */
int ni_proxy_finish(struct ni_dump *d, struct ni_side *s, uint32_t slot);
/* The same for a step. 0: its operation's line will have it, and ni_step_keep is to be given the slot. */
int ni_step_finish(struct ni_dump *d, struct ni_side *s, uint32_t slot);
void ni_step_keep(struct ni_dump *d, struct ni_side *s, uint32_t slot);
/* At exit, out of time: steps that wait count as dropped. */
void ni_steps_give_up(struct ni_dump *d, struct ni_side_events *ev);

#endif
