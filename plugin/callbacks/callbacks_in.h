/*
 * What the callback files share: from a tag that NCCL hands back to the memory it names. Private to
 * callbacks*.c.
 *
 * Everything here checks before it looks: kind, page class, generation. Any thread; lock-free.
 */
#ifndef NI_CALLBACKS_IN_H
#define NI_CALLBACKS_IN_H

#include "loss.h"
#include "plugin/os/futex.h"
#include "plugin/slots/state.h"

/* Anomalies are rare: out of line, so that the ways that matter stay short. */
#define COLD __attribute__((noinline, cold)) static
#define HOT static inline __attribute__((always_inline))

/* ---- from tag to memory ---- */

static inline void *stray_process(enum ni_stray why) {
  ni_stray(why);
  return NULL;
}

/* The live communicator that a context names, or NULL. */
HOT struct ni_comm *comm_named(const void *context) {
  if (ni_unlikely(ni_handle_kind(context) != NI_H_CONTEXT))
    return NULL;
  uint64_t p = ni_handle_payload(context, ni_g.nonce);
  uint32_t page = ni_payload_index(p);
  if (ni_unlikely(ni_arena_page_class(&ni_g.arena, page) != NI_CHUNK_COMM))
    return NULL;
  struct ni_comm *c = ni_arena_comm(&ni_g.arena, page);
  /* pairs with init's release store of LIVE: identity and pools are there */
  uint64_t s = ni_load_acq(&c->state);
  return ni_likely((s & NI_H_GEN_MASK) == ni_payload_gen(p) && ni_comm_phase_of(s) == NI_COMM_LIVE) ? c
                                                                                                    : NULL;
}

/* The same for events whose context must be right: counted when it is not. */
HOT struct ni_comm *comm_of(const void *context) {
  struct ni_comm *c = comm_named(context);
  return ni_likely(c != NULL) ? c : stray_process(NI_STRAY_BAD_CONTEXT);
}

/*
 * The operation that a payload names, with its state in *state; NULL (counted) when it is over or never was.
 */
HOT struct ni_op *op_of(uint64_t payload, uint64_t *state) {
  struct ni_op *op = ni_arena_op_checked(&ni_g.arena, ni_payload_index(payload));
  *state = 0;
  if (ni_unlikely(!op))
    return stray_process(NI_STRAY_FOREIGN_HANDLE);
  *state = ni_load_acq(&op->state); /* pairs with the LIVE store in ni_cb_op_start: the descriptor is there */
  if (ni_unlikely(!ni_state_is(*state, ni_payload_gen(payload))))
    return stray_process(NI_STRAY_STALE_HANDLE);
  return op;
}

/*
 * The same of a payload that this plugin has kept for itself: its slot was looked at before, and pages are
 * type-stable.
 */
HOT struct ni_op *op_kept(uint64_t payload, uint64_t *state) {
  struct ni_op *op = ni_arena_op(&ni_g.arena, ni_payload_index(payload));
  *state = ni_load_acq(&op->state); /* pairs as in op_of */
  if (ni_unlikely(!ni_state_is(*state, ni_payload_gen(payload))))
    return stray_process(NI_STRAY_STALE_HANDLE);
  return op;
}

/* The event slot that a number from outside names, or NULL. */
HOT struct ni_event_slot *event_checked(uint32_t slot) {
  return ni_likely(ni_arena_page_class(&ni_g.arena, slot / NI_SLOTS_PER_PAGE) == NI_CHUNK_EVENT)
      ? ni_arena_event(&ni_g.arena, slot)
      : NULL;
}

/* Store of an event's communicator, or the process's. The slot is alive, so its communicator's page is. */
HOT struct ni_event_store *store_of(uint32_t comm_page) {
  return ni_likely(comm_page) ? &ni_arena_comm(&ni_g.arena, comm_page)->events : &ni_g.detached;
}

/* ---- completion ---- */

/*
 * Hands a finished operation to the dump thread. The caller's exchange added DONE, so this runs once per
 * operation. At interval 0 only: the push that makes a list non-empty while the dump thread has published
 * that it sleeps does one futex wake, the only system call of the hot path. Dekker's pattern, hence seq_cst
 * on both sides: here the dirty bit is set, then `sleeping` is read; rest() of plugin/dump/thread.c sets
 * `sleeping`, then reads the dirty bits. One of the two sees the other, so no record waits for a timer.
 */
HOT void publish_done(struct ni_op *op, uint32_t slot) {
  struct ni_comm *c = ni_arena_comm(&ni_g.arena, op->comm_page);
  if (!ni_done_push(&ni_g.arena, &c->done, slot))
    return;
  NI_TESTPOINT();
  _Atomic uint64_t *word = &ni_g.dirty[c->index / 64];
  uint64_t bit = UINT64_C(1) << (c->index % 64);
  if (ni_likely(!ni_g.wake_on_push)) {
    ni_or_rel(word, bit); /* pairs with the dump thread's exchange of the word: it then finds the entry */
    return;
  }
  ni_or_sc(word, bit);
  if (ni_load_sc(&ni_g.sleeping) && ni_swap_acqrel(&ni_g.sleeping, 0))
    ni_futex_wake_one(&ni_g.wake_word);
}

/* ---- event slots: taken, filled, published, closed (event_slot.h) ---- */

static inline bool is_asked(enum ni_event kind) { return (ni_load_rlx(&ni_g.kinds) & NI_KINDS(kind)) != 0; }

/* A slot of a store, its kind, flags and number set; 0 when there is none (counted). Not published yet. */
static inline uint32_t take_slot(struct ni_event_store *st, uint32_t comm_page, enum ni_event kind,
                                 bool asked) {
  int why;
  uint64_t sn = asked ? ni_add_rlx(&st->started[kind], 1) : 0; /* relaxed: a number; the line carries it */
  uint32_t slot = ni_pool_get(&ni_g.arena, &st->events, &why);
  if (ni_unlikely(!slot)) {
    if (asked)
      ni_add_rlx(&st->dropped[kind], 1);
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
  /* pairs with the acquire of whoever is given the tag */
  ni_store_rel(&e->state, ni_state_make(gen, NI_EVS_LIVE, 0));
  return gen;
}

/* The event of this kind that a handle names, or NULL: it has ended its life, or is none of ours. */
static inline struct ni_event_slot *event_of(const void *handle, enum ni_event kind) {
  uint64_t p = ni_handle_payload(handle, ni_g.nonce);
  struct ni_event_slot *e = ni_handle_kind(handle) == NI_H_EVENT ? event_checked(ni_payload_index(p)) : NULL;
  /* Acquire pairs with publish: kind and number are there. */
  return e && ni_state_is(ni_load_acq(&e->state), ni_payload_gen(p)) && e->kind == kind ? e : NULL;
}

/* Sets flags on the living generation; the state before, or 0 when it lives another life. acq_rel: what the
 * other threads released before is seen, and what we wrote goes with it. */
static inline uint64_t set_flags(struct ni_event_slot *e, uint32_t handle_gen, uint32_t flags) {
  uint64_t old = ni_load_acq(&e->state);
  do {
    if (!ni_state_is(old, handle_gen))
      return 0;
  } while (!ni_cas_acqrel(&e->state, &old, old | NI_STATE_FLAG(flags)));
  return old;
}

/* Ends the bracket; the first to do so hands the slot over. */
static inline void close_slot(struct ni_event_slot *e, uint32_t slot, uint32_t gen) {
  e->ticks_stop = ni_ticks(ni_g.tick_source);
  uint64_t old = set_flags(e, gen & NI_H_GEN_MASK, NI_EVS_CLOSED);
  if (old && !(ni_state_flags(old) & NI_EVS_CLOSED))
    (void)ni_done_push(&ni_g.arena, &store_of(e->comm_page)->done, slot);
}

#endif
