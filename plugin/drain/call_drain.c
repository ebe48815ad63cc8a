#include "call_drain.h"

#include "event_of.h"
#include "format/apart.h"
#include "plugin/slots/beside/annex.h"
#include "plugin/slots/user_group.h"
#include "plugin/write/block.h"
#include "plugin/write/rollup_lines.h"
#include "sample.h"

#define QUIET_CALL_MS 1000u
/* of a communicator that may launch after its group's stop: it connects first */
#define LAUNCH_MS 60000u

/* ---- from cells to slots ---- */

/*
 * Copies a call that waits, and has returned, to an event slot whose group is over. The slot, or 0: there is
 * none, or the call is of no interest (any more). The cell may be written anew meanwhile, but only once it
 * was settled; whoever reads a field of the next call sees that, by the fence that pairs with the one in
 * ni_cb_call_note.
 */
static uint32_t copy(struct ni_comm *c, struct ni_call_cell *x, uint64_t number) {
  /* pairs with ni_call_noted_stop */
  uint64_t group = ni_load_rlx(&x->group), stop = ni_load_acq(&x->ticks_stop);
  atomic_thread_fence(memory_order_acquire);
  /*
   * The group first, then the call: its Coll comes before the group's stop, so who sees the group over sees
   * the call settled.
   */
  if (!stop || ni_user_group_open(group) || !ni_call_waits(x, number))
    return 0;
  NI_TESTPOINT();
  uint32_t slot = ni_pool_get(&ni_g.arena, &c->events.events, &(int){0});
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
  e->api = (struct ni_ev_api){
      .group = group, .root = ni_load_rlx(&x->root), .user_tag = ni_load_rlx(&x->user_tag), .noted = 1};
  atomic_thread_fence(memory_order_acquire);
  if (ni_call_waits(x, number)) {
    ni_store_rlx(&e->state,
                 ni_state_make(ni_state_gen(ni_load_rlx(&e->state)), NI_EVS_LIVE | NI_EVS_CLOSED, 0));
    return slot;
  }
  ni_pool_give(&ni_g.arena, &c->events.events, slot); /* its Coll came just now */
  return 0;
}

int ni_calls_take(struct ni_comm_writer *s) {
  struct ni_comm *c = s->comm;
  struct ni_event_writer *ev = &s->ev;
  /* Acquire pairs with ni_cb_call_note: those cells are noted. */
  uint64_t noted = ni_load_acq(&c->events.noted),
           n = noted - ev->noted < NI_CALL_CELLS ? ev->noted : noted - NI_CALL_CELLS;
  uint32_t look = ev->open_cells, before = ev->todo.n;
  while (n < noted)
    look |= 1u << n++ % NI_CALL_CELLS;
  ev->noted = noted;
  ev->open_cells = 0;
  look &= ~ev->taken_cells;
  for (; look; look &= look - 1) {
    uint32_t i = (uint32_t)__builtin_ctz(look);
    struct ni_call_cell *x = &c->call[i];
    uint64_t number = ni_load_acq(&x->noted) - 1; /* pairs with ni_cb_call_note: the call is there */
    if (!ni_call_waits(x, number))
      continue;
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
  /* rare: one that found its cell taken, and a later one not */
  if (ev->wait.n && event_at(ev->wait.last)->number > number) {
    later = ev->wait;
    ev->wait = (struct ni_chain){0};
    while (event_at(later.first)->number < number)
      ni_chain_append(&ev->wait, ni_chain_take(&later));
  }
  ni_chain_append(&ev->wait, slot);
  while (later.n)
    ni_chain_append(&ev->wait, ni_chain_take(&later));
}

/* ---- a slot for the black box ---- */

/* e: the call, which has no kernel and will have none, or the copy engine's collective; it has stopped. */
static uint32_t take_slot(const struct ni_comm_writer *s, const struct ni_event_slot *e, enum ni_src src) {
  const struct ni_arena *a = &ni_g.arena;
  int why;
  if (!ni_g.config.pool_grow || ni_arena_used_bytes(a) > a->cap_bytes / 2)
    return 0;
  if (ni_g.config.require_kernel_timing)
    return 0; /* it will leave no line */
  if (e->count * ni_intern_elem_bytes(&ni_g.intern, e->datatype) < ni_g.min_size_bytes)
    return 0;
  uint32_t slot = ni_pool_get(&ni_g.arena, &s->comm->kind[NI_KIND_COLL].pool, &why);
  if (!slot)
    return 0;
  struct ni_op *op = ni_arena_op(a, slot);
  /* relaxed: the slot is ours since the pop's acquire */
  uint32_t gen = ni_state_gen(ni_load_rlx(&op->state));
  uint64_t call = src == NI_SRC_API ? e->number + 1 : e->group;
  ni_store_rlx(&op->prog, 0);
  ni_store_rlx(&op->gpu_start_ns, UINT64_MAX);
  ni_store_rlx(&op->gpu_stop_ns, 0);
  ni_store_rlx(&op->ticks_first, 0);
  ni_store_rlx(&op->ticks_done, 0);
  ni_store_rlx(&op->bad, 0);
  op->group_ord = 0;
  op->comm_page = s->comm->page;
  ni_poke(&op->kind, NI_KIND_COLL);
  op->dir = op->mask_doubt = op->poller = 0;
  op->call_sn = call ? (uint32_t)(call - 1) : 0;
  op->origin = (uint8_t)((call ? NI_OP_CALLED : 0) | (src == NI_SRC_API ? NI_OP_API : NI_OP_CE));
  op->ticks_start = e->ticks_start;
  op->ticks_stop = e->ticks_stop;
  ni_poke(&op->sn, 0);
  ni_poke(&op->rec_sn, 0);
  op->count = e->count;
  op->root = e->api.root;
  ni_poke(&op->func, e->func);
  op->datatype = e->datatype;
  op->algo = op->proto = op->nchannels = op->kernel = 0;
  op->annex = e->api.user_tag ? ni_annex_take(s->comm, e->api.user_tag) : 0;
  op->seen_prog = op->seen_ms = 0;
  /* for a reader of the box: whole from here on */
  ni_store_rel(&op->state, ni_state_make(gen, NI_OP_CLOSED, 0));
  return slot;
}

static void slot_done(struct ni_comm_writer *s, uint32_t slot, const struct ni_record *r) {
  struct ni_op *op = ni_arena_op(&ni_g.arena, slot);
  ni_poke(&op->sn, r->sn);
  ni_poke(&op->rec_sn, r->rec_sn);
  /* Release: a reader of the box that sees it finished sees its numbers. Nobody else writes this state. */
  ni_store_rel(&op->state, ni_load_rlx(&op->state) | NI_STATE_FLAG(NI_OP_LIVE | NI_OP_KDONE | NI_OP_DONE));
  ni_chain_append(&s->kind[NI_KIND_COLL].held, slot);
}

static void drop_slot(struct ni_comm_writer *s, uint32_t slot) {
  if (!slot)
    return;
  ni_annex_give(s->comm, ni_arena_op(&ni_g.arena, slot));
  ni_pool_give(&ni_g.arena, &s->comm->kind[NI_KIND_COLL].pool, slot);
}

/* ---- judgement ---- */

/* Takes its rec_sn, and its coll_sn from *sn. slot: taken over; 0: none. 0, or as ni_block_room; nothing is
 * counted then, and the slot is as it was. func: its name's number in the intern table. */
static int put(struct ni_drain *d, struct ni_comm_writer *s, struct ni_record *r, uint8_t func, uint64_t *sn,
               uint32_t slot) {
  struct ni_kind_writer *k = &s->kind[r->kind];
  struct ni_comm_kind *c = &s->comm->kind[r->kind];
  int rc = ni_block_room(d->w);
  if (rc)
    return rc;
  r->rec_sn = ni_add_rlx(&c->started, 1); /* relaxed: a number */
  r->sn = (*sn)++;
  if (r->msg_bytes < ni_g.min_size_bytes) {
    drop_slot(s, slot);
    ni_add_rlx(&c->filtered[NI_FILTER_MIN_SIZE], 1);
  } else if (ni_g.config.require_kernel_timing) {
    drop_slot(s, slot);
    k->account->judged_out++;
  } else {
    if (ni_roll_counted())
      ni_rollup_add(&s->rollup, &d->w->roll_pool, func, r, d->w->real_ms * 1000000);
    if (!ni_sample_keeps(d->sample, s->ident.comm_hash, r->sn)) {
      drop_slot(s, slot);
      ni_drain_sampled(s, r->kind);
      return 0;
    }
    if (slot)
      slot_done(s, slot, r);
    /* there is room */
    (void)ni_block_put(d->w, d->w->line,
                       ni_format_op(d->w->line, sizeof d->w->line, &s->prefix, d->w->ts_us, r));
    k->in_block++;
    d->w->block_records++;
    ni_drain_busy(d, s);
    ni_store_rlx(&d->w->progress, ni_load_rlx(&d->w->progress) + 1);
  }
  return 0;
}

/*
 * A Broadcast without a Coll is one that the device counts and NCCL 2.31 and later does not (format/apart.h).
 */
static void broadcast_on_device(struct ni_comm *c) {
  if (ni_g.mask_shifts_counts && ni_load_rlx(&ni_g.kernel_ch_ever))
    ni_store_rlx(&c->apart, NI_APART_ALL);
}

int ni_call_record(struct ni_drain *d, struct ni_comm_writer *s, const struct ni_event_slot *e,
                   enum ni_src src, uint32_t slot) {
  uint64_t bracket = ni_clock_span_ns(&ni_g.clock, ni_ticks_between(e->ticks_start, e->ticks_stop));
  struct ni_record r = {
      .kind = NI_KIND_COLL,
      .func = ni_intern_text(&ni_g.intern, e->func),
      .datatype = ni_intern_text(&ni_g.intern, e->datatype),
      .root = e->api.root,
      .msg_bytes = e->count * ni_intern_elem_bytes(&ni_g.intern, e->datatype),
      .enqueue_ns = ni_clock_unix_ns(&ni_g.clock, e->ticks_start),
      .src = src,
      .has = NI_HAS_REC_SN | NI_HAS_ROOT | NI_HAS_ENQUEUE | NI_HAS_EXEC_NS | NI_HAS_TESTS_SIZE};
  ni_split_tag(e->api.user_tag, &r.user_tag, &r.nccl_tag);
  if (src == NI_SRC_API || e->group) {
    r.has |= NI_HAS_CALL_SN;
    r.call_sn = src == NI_SRC_API ? e->number : ni_call_sn(&s->comm->events, 0, (uint32_t)(e->group - 1));
  }
  enum ni_func func = ni_func_from_name(r.func);
  if (src == NI_SRC_API && func == NI_FUNC_BROADCAST)
    broadcast_on_device(s->comm);
  ni_timing_fill(&r, func, s->ident.n_ranks, &(struct ni_timing_in){.bracket_ns = bracket});
  uint32_t taken = slot ? slot : take_slot(s, e, src);
  int rc = put(d, s, &r, e->func, &s->comm->events.api_sn[func], taken);
  if (rc && !slot)
    drop_slot(s, taken);
  return rc;
}

/*
 * How long a call may stay without its Coll after its group's stop. NCCL takes no call on a communicator
 * before it has launched the one before, so with a later one it is certain; the newest may still be on its
 * way where that is not ruled out.
 */
static uint32_t patience_ms(const struct ni_comm_writer *s, const struct ni_event_slot *e) {
  const struct ni_event_store *st = &s->comm->events;
  if (!e->api.group || ni_load_rlx(&st->launches) == NI_LAUNCHES_IN_GROUP ||
      ni_load_rlx(&st->last_group) != e->api.group)
    return QUIET_CALL_MS;
  return LAUNCH_MS;
}

/* Has no operation named the call yet, although one should? */
static int is_missing(const struct ni_comm_writer *s, struct ni_event_slot *e) {
  if (!s || !(ni_load_rlx(&e->flags) & NI_EVF_EXPECT))
    return 0;
  if (e->api.noted)
    return ni_call_waits(&s->comm->call[e->number % NI_CALL_CELLS], e->number);
  /* pairs with ni_call_seen */
  return !(ni_state_flags(ni_load_acq(&e->state)) & (NI_EVS_SEEN_KERNEL | NI_EVS_SEEN_CE));
}

static void leave_cell(struct ni_comm_writer *s, struct ni_event_slot *e) {
  uint32_t i = e->number % NI_CALL_CELLS;
  ni_call_judged(&s->comm->call[i], e->number);
  s->ev.taken_cells &= ~(1u << i);
  s->ev.open_cells |= 1u << i; /* perhaps it has another call by now */
  e->api.noted = 0;
}

int ni_call_judge(struct ni_drain *d, struct ni_comm_writer *s, struct ni_event_slot *e, enum ni_end end) {
  int open = ni_user_group_open(e->api.group), rc; /* before the call is looked at, as in copy() */
  int missing = is_missing(s, e);
  if (!e->api.seen_ms)
    e->api.op_slot = 0;
  if (missing && !end) {
    if (!e->api.seen_ms || open)
      e->api.seen_ms = d->judge_ms;
    uint32_t patience = patience_ms(s, e);
    /*
     * A call that may still be launched is not in the black box: recover would have it finished
     * (docs/blackbox.md).
     */
    if (!open && patience != LAUNCH_MS && !e->api.op_slot && e->ticks_stop)
      e->api.op_slot = take_slot(s, e, NI_SRC_API);
    if (open || d->judge_ms - e->api.seen_ms < patience)
      return 0;
  }
  /* At the end a call whose group never closed was never launched. */
  if (missing && !open && e->ticks_stop) {
    if ((rc = ni_call_record(d, s, e, NI_SRC_API, e->api.op_slot)) != 0)
      return rc;
  } else if (s) {
    drop_slot(s, e->api.op_slot);
  }
  e->api.op_slot = 0;
  if (e->api.noted)
    leave_cell(s, e);
  /* recorded once */
  if (missing)
    ni_store_rlx(&e->flags, (uint8_t)(ni_load_rlx(&e->flags) & ~NI_EVF_EXPECT));
  return 1;
}
