/*
 * Event slots as callbacks take, fill, publish and close them (event_slot.h). Private to callbacks_{event,call,proxy}.c.
 */
#ifndef NI_EVENT_IN_H
#define NI_EVENT_IN_H

#include "callbacks_in.h"

static inline bool is_asked(enum ni_event kind) { return (ni_load_rlx(&ni_g.kinds) & NI_KINDS(kind)) != 0; }

/* A slot of a store, its kind, flags and number set; 0 when there is none (counted). Not published yet. */
static inline uint32_t take_slot(struct ni_event_store *st, uint32_t comm_page, enum ni_event kind, bool asked) {
  int why;
  uint64_t sn = asked ? ni_add_rlx(&st->started[kind], 1) : 0; /* relaxed: a number; the line carries it */
  uint32_t slot = ni_pool_get(&ni_g.arena, &st->events, &why);
  if (ni_unlikely(!slot)) {
    if (asked) ni_add_rlx(&st->dropped[kind], 1);
    return 0;
  }
  struct ni_event_slot *e = ni_arena_event(&ni_g.arena, slot);
  e->comm_page = comm_page;
  e->kind = (uint8_t)kind;
  ni_store_rlx(&e->flags, asked ? NI_EVF_ASKED : 0);
  e->sn = sn;
  e->ticks_stop = 0;
  e->number = e->group = e->count = 0;
  return slot;
}

/* The slot is not published yet. */
static inline void add_flag(struct ni_event_slot *e, uint8_t flag) {
  ni_store_rlx(&e->flags, (uint8_t)(ni_load_rlx(&e->flags) | flag));
}

/* Begins the slot's life; returns its generation. */
static inline uint32_t publish(struct ni_event_slot *e) {
  uint32_t gen = ni_state_gen(ni_load_rlx(&e->state)); /* relaxed: the slot is ours since the pop's acquire */
  NI_TESTPOINT();
  ni_store_rel(&e->state, ni_state_make(gen, NI_EVS_LIVE, 0)); /* pairs with the acquire of whoever is given the tag */
  return gen;
}

/* The event of this kind that a handle names, or NULL: it has ended its life, or is none of ours. */
static inline struct ni_event_slot *event_of(const void *handle, enum ni_event kind) {
  uint64_t p = ni_handle_payload(handle, ni_g.nonce);
  struct ni_event_slot *e = ni_handle_kind(handle) == NI_H_EVENT ? event_checked(ni_payload_index(p)) : NULL;
  /* Acquire pairs with publish: kind and number are there. */
  return e && ni_state_is(ni_load_acq(&e->state), ni_payload_gen(p)) && e->kind == kind ? e : NULL;
}

/* Sets flags on the living generation; the state before, or 0 when it lives another life. acq_rel: what the other
 * threads released before is seen, and what we wrote goes with it. */
static inline uint64_t set_flags(struct ni_event_slot *e, uint32_t handle_gen, uint32_t flags) {
  uint64_t old = ni_load_acq(&e->state);
  do {
    if (!ni_state_is(old, handle_gen)) return 0;
  } while (!ni_cas_acqrel(&e->state, &old, old | NI_STATE_FLAG(flags)));
  return old;
}

/* Ends the bracket; the first to do so hands the slot over. */
static inline void close_slot(struct ni_event_slot *e, uint32_t slot, uint32_t gen) {
  e->ticks_stop = ni_ticks(ni_g.tick_source);
  uint64_t old = set_flags(e, gen & NI_H_GEN_MASK, NI_EVS_CLOSED);
  if (old && !(ni_state_flags(old) & NI_EVS_CLOSED)) (void)ni_done_push(&ni_g.arena, &store_of(e->comm_page)->done, slot);
}

#endif
