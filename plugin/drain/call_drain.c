#include "call_drain.h"

#include "call_slot.h"
#include "event_of.h"
#include "plugin/slots/user_group.h"

#define QUIET_CALL_MS 1000u
#define LAUNCH_MS 60000u /* of a communicator that may launch after its group's stop: it connects first */

/* ---- from cells to slots ---- */

static const void *group_of(uint64_t handle) { return (const void *)(uintptr_t)handle; }

/*
 * Copies a call that waits, and has returned, to an event slot whose group is over. The slot, or 0: there is none, or the
 * call is of no interest (any more). The cell may be written anew meanwhile, but only once it was settled; whoever reads a
 * field of the next call sees that, by the fence that pairs with the one in ni_cb_call_note.
 */
static uint32_t copy(struct ni_comm *c, struct ni_call_cell *x, uint64_t number) {
  uint64_t group = ni_load_rlx(&x->group), stop = ni_load_acq(&x->ticks_stop); /* pairs with ni_call_noted_stop */
  atomic_thread_fence(memory_order_acquire);
  /* The group first, then the call: its Coll comes before the group's stop, so who sees the group over sees the call settled. */
  if (!stop || ni_user_group_open(group_of(group)) || !ni_call_waits(x, number)) return 0;
  int why;
  NI_TESTPOINT();
  uint32_t slot = ni_pool_get(&ni_g.arena, &c->events.events, &why);
  if (!slot) { /* it would be missing: said as a loss */
    ni_add_rlx(&c->events.started[NI_EVENT_COLL_API], 1);
    ni_add_rlx(&c->events.dropped[NI_EVENT_COLL_API], 1);
    ni_call_judged(x, number);
    return 0;
  }
  struct ni_event_slot *e = event_at(slot);
  e->comm_page = c->page;
  e->kind = NI_EVENT_COLL_API;
  ni_store_rlx(&e->flags, NI_EVF_EXPECT);
  e->number = number;
  e->group = 0;
  e->ticks_start = ni_load_rlx(&x->ticks_start);
  e->ticks_stop = stop;
  e->count = ni_load_rlx(&x->count);
  e->func = ni_load_rlx(&x->func);
  e->datatype = ni_load_rlx(&x->datatype);
  e->api = (struct ni_ev_api){.group = group, .root = ni_load_rlx(&x->root), .noted = 1};
  atomic_thread_fence(memory_order_acquire);
  if (ni_call_waits(x, number)) {
    ni_store_rlx(&e->state, ni_state_make(ni_state_gen(ni_load_rlx(&e->state)), NI_EVS_LIVE | NI_EVS_CLOSED, 0));
    return slot;
  }
  ni_pool_give(&ni_g.arena, &c->events.events, slot); /* its Coll came just now */
  return 0;
}

int ni_calls_take(struct ni_comm_writer *s) {
  struct ni_comm *c = s->comm;
  struct ni_event_writer *ev = &s->ev;
  uint64_t noted = ni_load_acq(&c->events.noted); /* pairs with ni_cb_call_note */
  uint32_t look = ev->open_cells, before = ev->todo.n;
  if (noted - ev->noted >= NI_CALL_CELLS) look = UINT32_MAX;
  else for (uint64_t n = ev->noted; n < noted; n++) look |= 1u << n % NI_CALL_CELLS;
  ev->noted = noted;
  ev->open_cells = 0;
  look &= ~ev->taken_cells;
  for (uint32_t i; look; look &= look - 1) {
    i = (uint32_t)__builtin_ctz(look);
    struct ni_call_cell *x = &c->call[i];
    uint64_t number = ni_load_acq(&x->noted) - 1; /* pairs with ni_cb_call_note: the call is there */
    if (!ni_call_waits(x, number)) continue;
    uint32_t slot = copy(c, x, number);
    if (slot) {
      ni_chain_append(&ev->todo, slot);
      ev->taken_cells |= 1u << i;
    } else {
      ev->open_cells |= 1u << i;
    }
  }
  return ev->todo.n != before;
}

void ni_call_wait(struct ni_event_writer *ev, uint32_t slot) {
  struct ni_chain later = {0};
  uint64_t number = event_at(slot)->number;
  if (ev->wait.n && event_at(ev->wait.last)->number > number) { /* rare: one that found its cell taken, and a later one not */
    later = ev->wait;
    ev->wait = (struct ni_chain){0};
    while (event_at(later.first)->number < number) ni_chain_append(&ev->wait, ni_chain_take(&later));
  }
  ni_chain_append(&ev->wait, slot);
  while (later.n) ni_chain_append(&ev->wait, ni_chain_take(&later));
}

/* ---- judgement ---- */

int ni_call_record(struct ni_drain *d, struct ni_comm_writer *s, const struct ni_event_slot *e, enum ni_src src, uint32_t slot) {
  uint64_t bracket = ni_clock_span_ns(&ni_g.clock, ni_ticks_between(e->ticks_start, e->ticks_stop));
  struct ni_record r = {.kind = NI_KIND_COLL,
                        .func = ni_intern_text(&ni_g.intern, e->func),
                        .datatype = ni_intern_text(&ni_g.intern, e->datatype),
                        .root = e->api.root,
                        .msg_bytes = e->count * ni_intern_elem_bytes(&ni_g.intern, e->datatype),
                        .enqueue_ns = ni_clock_unix_ns(&ni_g.clock, e->ticks_start),
                        .src = src,
                        .has = NI_HAS_REC_SN | NI_HAS_ROOT | NI_HAS_ENQUEUE | NI_HAS_EXEC_NS | NI_HAS_TESTS_SIZE};
  if (src == NI_SRC_API || e->group) {
    r.has |= NI_HAS_CALL_SN;
    r.call_sn = src == NI_SRC_API ? e->number : ni_call_sn(&s->comm->events, 0, (uint32_t)(e->group - 1));
  }
  enum ni_func func = ni_func_from_name(r.func);
  ni_timing_fill(&r, func, s->ident.n_ranks, &(struct ni_timing_in){.bracket_ns = bracket});
  uint32_t taken = slot ? slot : ni_call_slot_take(s, e, src);
  int rc = ni_drain_record(d, s, &r, e->func, &s->comm->events.api_sn[func], taken);
  if (rc && !slot) ni_call_slot_drop(s, taken);
  return rc;
}

/*
 * How long a call may stay without its Coll after its group's stop. NCCL takes no call on a communicator before it has
 * launched the one before, so with a later one it is certain; the newest may still be on its way where that is not ruled out.
 */
static uint32_t patience_ms(const struct ni_comm_writer *s, const struct ni_event_slot *e) {
  const struct ni_event_store *st = &s->comm->events;
  if (!e->api.group || ni_load_rlx(&st->launches) == NI_LAUNCHES_IN_GROUP || ni_load_rlx(&st->last_group) != e->api.group)
    return QUIET_CALL_MS;
  return LAUNCH_MS;
}

/* Has no operation named the call yet, although one should? */
static int is_missing(const struct ni_comm_writer *s, struct ni_event_slot *e) {
  if (!s || !(ni_load_rlx(&e->flags) & NI_EVF_EXPECT)) return 0;
  if (e->api.noted) return ni_call_waits(&s->comm->call[e->number % NI_CALL_CELLS], e->number);
  return !(ni_state_flags(ni_load_acq(&e->state)) & (NI_EVS_SEEN_KERNEL | NI_EVS_SEEN_CE)); /* pairs with ni_call_seen */
}

static void leave_cell(struct ni_comm_writer *s, struct ni_event_slot *e) {
  uint32_t i = e->number % NI_CALL_CELLS;
  ni_call_judged(&s->comm->call[i], e->number);
  s->ev.taken_cells &= ~(1u << i);
  s->ev.open_cells |= 1u << i; /* perhaps it has another call by now */
  e->api.noted = 0;
}

int ni_call_judge(struct ni_drain *d, struct ni_comm_writer *s, struct ni_event_slot *e, enum ni_end end) {
  int open = ni_user_group_open(group_of(e->api.group)), rc; /* before the call is looked at, as in copy() */
  int missing = is_missing(s, e);
  if (!e->api.seen_ms) e->api.op_slot = 0;
  if (missing && !end) {
    if (!e->api.seen_ms || open) e->api.seen_ms = d->judge_ms;
    uint32_t patience = patience_ms(s, e);
    /* A call that may still be launched is not in the black box: recover would have it finished (docs/blackbox.md). */
    if (!open && patience != LAUNCH_MS && !e->api.op_slot && e->ticks_stop)
      e->api.op_slot = ni_call_slot_take(s, e, NI_SRC_API);
    if (open || d->judge_ms - e->api.seen_ms < patience) return 0;
  }
  /* At the end a call whose group never closed was never launched. */
  if (missing && !open && e->ticks_stop) {
    if ((rc = ni_call_record(d, s, e, NI_SRC_API, e->api.op_slot)) != 0) return rc;
  } else if (s) {
    ni_call_slot_drop(s, e->api.op_slot);
  }
  e->api.op_slot = 0;
  if (e->api.noted) leave_cell(s, e);
  if (missing) ni_store_rlx(&e->flags, (uint8_t)(ni_load_rlx(&e->flags) & ~NI_EVF_EXPECT)); /* recorded once */
  return 1;
}
