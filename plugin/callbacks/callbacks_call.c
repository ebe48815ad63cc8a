/*
 * API calls are followed whenever they come, asked for or not: they give the order of an operation's call,
 * and a collective that NCCL never shows otherwise is known by its call alone.
 *
 *   asked for     GroupApi, calls: an event slot each, which becomes a line
 *   not asked for GroupApi: a number of its communicator   collective: a cell (call_cell.h)
 *                 Send, Recv: their number
 */
#include "callbacks_call.h"

#include "callbacks_in.h"
#include "plugin/slots/user_group.h"

/* ---- groups ---- */

void *ni_cb_user_group_start(const void *context) {
  struct ni_comm *c = comm_of(context);
  if (ni_unlikely(!c))
    return NULL;
  /* open, whether or not the last one was ever closed */
  uint64_t now = (ni_load_rlx(&c->user_group) | 1) + 2;
  ni_store_rlx(&c->user_group, now);
  return ni_handle_pack(NI_H_USER_GROUP, ni_payload_group(c->page, (uint32_t)(now >> 1)), ni_g.nonce);
}

/* The communicator, alive or not, whose page a handle names; NULL (counted). */
HOT struct ni_comm *comm_at(uint64_t payload) {
  uint32_t page = ni_payload_group_page(payload);
  if (ni_likely(ni_arena_page_class(&ni_g.arena, page) == NI_CHUNK_COMM))
    return ni_arena_comm(&ni_g.arena, page);
  return stray_process(NI_STRAY_FOREIGN_HANDLE);
}

void ni_user_group_stop(const void *handle) {
  uint64_t p = ni_handle_payload(handle, ni_g.nonce);
  struct ni_comm *c = comm_at(p);
  if (ni_unlikely(!c))
    return;
  uint64_t now = ni_load_rlx(&c->user_group);
  if (ni_unlikely((uint32_t)(now >> 1) != ni_payload_group_ordinal(p)))
    ni_stray(NI_STRAY_STALE_HANDLE);
  else if (ni_unlikely(!(now & 1)))
    ni_stray(NI_STRAY_DOUBLE_STOP);
  /* pairs with ni_user_group_open: the Colls of its calls came before */
  else
    ni_store_rel(&c->user_group, now - 1);
}

/* ---- calls ---- */

uint64_t ni_call_group_number(const void *group) {
  const struct ni_event_slot *e = event_of(group, NI_EVENT_GROUP_API);
  return e ? e->number + 1 : 0;
}

/* A call with a slot: it is to have a line, or found its cell taken. The slot, or 0. */
static uint32_t with_slot(struct ni_comm *c, enum ni_event kind, const struct ni_event_start *d,
                          uint64_t number, uint64_t group, bool expect) {
  uint64_t ticks = ni_ticks(ni_g.tick_source);
  bool asked = is_asked(kind);
  uint32_t slot = take_slot(&c->events, c->page, kind, asked);
  if (ni_unlikely(!slot)) {
    /* Were this a collective that has no Coll event, it would be missing: said as a loss, whatever it was. */
    ni_add_rlx(&c->events.started[kind], expect && !asked);
    ni_add_rlx(&c->events.dropped[kind], expect && !asked);
    return 0;
  }
  struct ni_event_slot *e = ni_arena_event(&ni_g.arena, slot);
  if (d->graph)
    add_flag(e, NI_EVF_GRAPH);
  else if (expect)
    add_flag(e, NI_EVF_EXPECT);
  e->ticks_start = ticks;
  e->number = number;
  e->count = d->count;
  e->func = ni_intern_id(&ni_g.intern, d->func);
  e->datatype = ni_intern_id(&ni_g.intern, d->datatype);
  e->group = ni_call_group_number(d->parent);
  e->api.group = group;
  e->api.stream = d->stream;
  e->api.root = d->root;
  e->api.user_tag = d->user_tag;
  e->api.seen_ms = e->api.noted = 0;
  (void)publish(e);
  return slot;
}

/* The group that a call is in, for ni_user_group_open; the communicator's newest from now on. */
HOT uint64_t enter_group(struct ni_comm *c, const void *group) {
  if (ni_unlikely(ni_handle_kind(group) != NI_H_USER_GROUP && ni_handle_kind(group) != NI_H_EVENT))
    return 0;
  ni_store_rlx(&c->events.last_group, (uintptr_t)group);
  return (uintptr_t)group;
}

void *ni_call_start(struct ni_comm *c, enum ni_event kind, const struct ni_event_start *d) {
  bool p2p = kind == NI_EVENT_P2P_API, expect = !p2p && !d->graph && is_asked(NI_EVENT_COLL);
  /* relaxed: a number */
  uint64_t number = ni_add_rlx(&c->events.calls[p2p], 1), group = enter_group(c, d->parent);
  uint32_t slot = expect || is_asked(kind) ? with_slot(c, kind, d, number, group, expect) : 0;
  return ni_handle_pack(NI_H_CALL, ni_payload_call(slot, d->graph, p2p, (uint32_t)number), ni_g.nonce);
}

void *ni_cb_call_note(const void *context, const void *group, const char *func, const char *datatype,
                      uint64_t count, int32_t root, uint64_t user_tag) {
  struct ni_comm *c = comm_of(context);
  if (ni_unlikely(!c))
    return NULL;
  uint64_t number = ni_load_rlx(&c->events.calls[0]);
  struct ni_call_cell *x = &c->call[number % NI_CALL_CELLS];
  if (ni_unlikely(ni_load_acq(&x->settled) != ni_load_rlx(&x->noted))) /* pairs with ni_call_settle */
    return ni_call_start(c, NI_EVENT_COLL_API,
                         &(struct ni_event_start){.parent = group,
                                                  .func = func,
                                                  .datatype = datatype,
                                                  .count = count,
                                                  .root = root,
                                                  .user_tag = user_tag});
  ni_store_rlx(&c->events.calls[0], number + 1); /* by plain stores: call_cell.h */
  /* pairs with copy() of call_drain.c: who reads what follows sees it settled */
  atomic_thread_fence(memory_order_release);
  ni_store_rlx(&x->ticks_start, ni_ticks(ni_g.tick_source));
  ni_store_rlx(&x->ticks_stop, 0);
  ni_store_rlx(&x->count, count);
  ni_store_rlx(&x->group, enter_group(c, group));
  ni_store_rlx(&x->user_tag, user_tag);
  ni_store_rlx(&x->root, root);
  ni_store_rlx(&x->func, ni_intern_id(&ni_g.intern, func));
  ni_store_rlx(&x->datatype, ni_intern_id(&ni_g.intern, datatype));
  ni_store_rel(&x->noted, number + 1); /* pairs with ni_call_waits */
  NI_TESTPOINT();
  ni_store_rel(&c->events.noted, number + 1); /* pairs with ni_calls_take: the cell is noted */
  return ni_handle_pack(NI_H_NOTED, ni_payload_group(c->page, (uint32_t)number), ni_g.nonce);
}

/* ---- their operation comes ---- */

/* The first Coll or P2p of a communicator shows whether they come before their group's stop. */
static void learn_launch(struct ni_comm *c) {
  uint64_t group = ni_load_rlx(&c->events.last_group);
  if (group)
    ni_store_rlx(&c->events.launches, ni_user_group_open(group) ? NI_LAUNCHES_IN_GROUP : NI_LAUNCHES_LATER);
}

/* The call in its cell has its operation. false: it was judged before, or its cell is long another's. */
static bool settle(struct ni_comm *c, uint32_t low) {
  struct ni_call_cell *x = &c->call[low % NI_CALL_CELLS];
  /* relaxed: this thread's, or NCCL has ordered the two (call_cell.h) */
  uint64_t noted = ni_load_rlx(&x->noted);
  if (ni_unlikely((uint32_t)noted != low + 1 || ni_load_rlx(&x->settled) == noted))
    return false;
  ni_call_settle(x, noted - 1);
  return true;
}

/*
 * A call with a slot is named by its number; the slot is its own while it lives there. A captured call's slot
 * is long another's when its graph is replayed, so only an eager one that has no slot any more is out of
 * order: its collective was recorded as known by its call alone, and now it comes.
 */
static bool mark(struct ni_comm *c, bool p2p, uint64_t payload, uint32_t flag) {
  uint32_t slot = ni_payload_call_slot(payload);
  struct ni_event_slot *e = slot ? event_checked(slot) : NULL;
  if (!e)
    return true;                           /* it needed none, or the arena had none */
  uint64_t state = ni_load_acq(&e->state); /* pairs with publish: kind, number and page are there */
  return (ni_state_flags(state) & NI_EVS_LIVE) && e->kind == (p2p ? NI_EVENT_P2P_API : NI_EVENT_COLL_API) &&
      e->comm_page == c->page && (uint32_t)e->number == (uint32_t)payload &&
      set_flags(e, ni_state_gen(state) & NI_H_GEN_MASK, flag);
}

uint32_t ni_call_seen(struct ni_comm *c, int p2p, const void *call, uint32_t flag, uint32_t *number) {
  enum ni_handle_kind k = ni_handle_kind(call);
  uint64_t p = ni_handle_payload(call, ni_g.nonce);
  uint32_t n = (uint32_t)p;
  bool noted = k == NI_H_NOTED;
  if (number)
    *number = 0;
  if (ni_unlikely(!noted && k != NI_H_CALL))
    return 0;
  bool ours = noted ? !p2p && ni_payload_group_page(p) == c->page : ni_payload_call_p2p(p) == (uint32_t)p2p;
  if (ni_unlikely(!ours || (int32_t)((uint32_t)ni_load_rlx(&c->events.calls[p2p]) - n) <= 0)) {
    ni_stray(NI_STRAY_FOREIGN_HANDLE);
    return 0;
  }
  if (number)
    *number = n;
  if (ni_unlikely(!noted && ni_payload_call_captured(p)))
    return NI_OP_CALLED | NI_OP_REPLAYED;
  if (ni_unlikely(!(noted ? settle(c, n) : mark(c, p2p, p, flag)))) {
    if (!p2p)
      ni_add_rlx(&c->stray[NI_STRAY_LATE_CALL], 1);
    ni_store_rlx(&c->events.launches, NI_LAUNCHES_LATER);
  } else if (ni_unlikely(ni_load_rlx(&c->events.launches) == NI_LAUNCHES_UNKNOWN)) {
    learn_launch(c);
  }
  return NI_OP_CALLED;
}

/*
 * ---- stops: NCCL stops the last call's handle again when its mask was cleared meanwhile (callbacks 3.5)
 * ----
 */

void ni_call_stop(const void *handle) {
  uint64_t p = ni_handle_payload(handle, ni_g.nonce);
  uint32_t slot = ni_payload_call_slot(p);
  struct ni_event_slot *e = slot ? event_checked(slot) : NULL;
  uint64_t state = e ? ni_load_acq(&e->state) : 0;
  if (!e || (ni_state_flags(state) & (NI_EVS_LIVE | NI_EVS_CLOSED)) != NI_EVS_LIVE ||
      (uint32_t)e->number != (uint32_t)p ||
      e->kind != (ni_payload_call_p2p(p) ? NI_EVENT_P2P_API : NI_EVENT_COLL_API))
    return;
  close_slot(e, slot, ni_state_gen(state));
}

void ni_call_noted_stop(const void *handle) {
  uint64_t p = ni_handle_payload(handle, ni_g.nonce);
  uint32_t low = ni_payload_group_ordinal(p);
  struct ni_comm *c = comm_at(p);
  if (ni_unlikely(!c))
    return;
  struct ni_call_cell *x = &c->call[low % NI_CALL_CELLS];
  if ((uint32_t)ni_load_rlx(&x->noted) == low + 1 && !ni_load_rlx(&x->ticks_stop))
    ni_store_rel(&x->ticks_stop, ni_ticks(ni_g.tick_source)); /* pairs with copy() of call_drain.c */
}
