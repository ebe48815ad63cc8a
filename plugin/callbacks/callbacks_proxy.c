/*
 * Proxy operations and their steps: what the network does for a collective or P2P, per channel and peer.
 *
 * Steps fold into the sums of their operation: time in each phase, bytes, number, the longest. An operation
 * holds at most eight open steps, found by step modulo 8 as NCCL does, so its memory does not grow with its
 * transfers, and a receive that is started again at every poll until it is accepted (callbacks 3.3) finds its
 * own entry. Only where single steps are asked for does a step have a slot of its own.
 *
 * All calls for one operation and its steps come from its progress thread (callbacks 4.6), so there is no
 * read-modify-write between an operation's start and its stop. Each callback reads the counter at most once,
 * and not when nothing changes.
 *
 * phases   send: GPU_PRODUCE ──20──▶ PEER_CREDIT ──9──▶ WIRE ──stop
 *                (without state 20, before 2.27: 8 ──9──▶ WIRE)
 *          recv: PEER_CREDIT ──10──▶ WIRE ──11──▶ FLUSH ──12──▶ GPU_CONSUME ──stop
 */
#include "callbacks_proxy.h"

#include "callbacks_in.h"

#include "format/timing.h"

#define STEP_MASK (NI_STEPS_IN_FLIGHT - 1)

/*
 * The open operation that a payload's slot and generation name, with its state in *seen; or NULL (counted).
 */
HOT struct ni_proxy_slot *proxy_of(uint64_t payload, uint64_t *seen) {
  uint32_t slot = ni_payload_index(payload);
  if (ni_unlikely(ni_arena_page_class(&ni_g.arena, slot / NI_SLOTS_PER_PAGE) != NI_CHUNK_PROXY)) {
    ni_stray(NI_STRAY_FOREIGN_HANDLE);
    return NULL;
  }
  struct ni_proxy_slot *x = ni_arena_proxy(&ni_g.arena, slot);
  /* pairs with the LIVE store in ni_cb_proxy_start: the descriptor is there */
  uint64_t state = ni_load_acq(&x->state);
  if (ni_unlikely((state & NI_H_GEN_MASK) != ni_payload_gen(payload) ||
                  (ni_state_flags(state) & (NI_EVS_LIVE | NI_EVS_CLOSED)) != NI_EVS_LIVE)) {
    ni_stray(NI_STRAY_STALE_HANDLE);
    return NULL;
  }
  *seen = state;
  return x;
}

/* ---- operations ---- */

static void take_parent(struct ni_proxy_slot *x, const void *parent) {
  uint64_t state;
  if (ni_handle_kind(parent) != NI_H_OP)
    return;
  struct ni_op *op = op_of(ni_handle_payload(parent, ni_g.nonce), &state);
  if (!op)
    return; /* finished and written before its network operation began: its slot is another's */
  NI_TESTPOINT();
  x->func = ni_peek(&op->func);
  x->parent_kind = ni_peek(&op->kind);
  x->parent_sn = ni_peek(&op->sn);
  x->parent_rec_sn = ni_peek(&op->rec_sn);
  /* It may be written, and its slot taken again, while we read: its state is read again after that. The fence
   * pairs with the release stores of the slot's next starter, who has the new generation from the free list.
   */
  atomic_thread_fence(memory_order_acquire);
  if (ni_state_gen(ni_load_rlx(&op->state)) != ni_state_gen(state)) {
    x->func = 0;
    return;
  }
  ni_store_rlx(&x->flags, (uint8_t)(ni_load_rlx(&x->flags) | NI_EVF_PARENT));
}

void *ni_cb_proxy_start(const void *context, const struct ni_proxy_start *d) {
  uint32_t kinds = ni_load_rlx(&ni_g.kinds);
  if (!(kinds & NI_KINDS_PROXY))
    return NULL;
  /* Another process's context and parent are noise here, perhaps addresses (callbacks 4.3): nothing is
   * touched before the tag has decoded to a communicator of ours. Not the pid decides: two pid namespaces can
   * give two processes one number, and a forked child may hand over its parent's (callbacks 1.3). */
  struct ni_comm *c = comm_named(context);
  enum ni_handle_kind pk = c ? ni_handle_kind(d->parent) : NI_H_NONE;
  /* the settings leave its operation out, and with it its network part */
  if (pk == NI_H_FILTERED)
    return NULL;
  struct ni_event_store *st = c ? &c->events : &ni_g.detached;
  uint64_t ticks = ni_ticks(ni_g.tick_source), sn = ni_add_rlx(&st->started[NI_EVENT_PROXY_OP], 1);
  int why;
  uint32_t slot = ni_pool_get(&ni_g.arena, &st->proxies, &why);
  if (ni_unlikely(!slot)) {
    ni_add_rlx(&st->dropped[NI_EVENT_PROXY_OP], 1);
    return NULL;
  }
  struct ni_proxy_slot *x = ni_arena_proxy(&ni_g.arena, slot);
  uint32_t gen = ni_state_gen(ni_load_rlx(&x->state)); /* relaxed: the slot is ours since the pop's acquire */
  x->comm_page = c ? c->page : 0;
  x->kind = NI_EVENT_PROXY_OP;
  ni_store_rlx(&x->flags, (uint8_t)(NI_EVF_ASKED | (d->send ? NI_EVF_SEND : 0) | (c ? 0 : NI_EVF_FOREIGN)));
  x->channel = d->channel;
  x->steps_asked = (kinds & NI_KINDS(NI_EVENT_STEPS)) != 0;
  x->peer = d->peer;
  x->n_steps = d->n_steps;
  x->chunk = d->chunk;
  x->pid = d->pid;
  x->rank = d->rank;
  ni_store_rlx(&x->n_started, 0);
  ni_store_rlx(&x->n_completed, 0);
  ni_store_rlx(&x->n_dropped, 0);
  x->sn = sn;
  x->ticks_start = ticks;
  x->ticks_stop = 0;
  ni_store_rlx(&x->ticks_progress, 0);
  ni_store_rlx(&x->bytes, 0);
  ni_store_rlx(&x->max_step, 0);
  for (uint32_t i = 0; i < NI_PH_COUNT - 1; i++)
    ni_store_rlx(&x->sum[i], 0);
  for (uint32_t i = 0; i < NI_STEPS_IN_FLIGHT; i++) {
    ni_store_rlx(&x->phase[i], NI_PH_NONE);
    x->step_slot[i] = 0;
  }
  if (c)
    take_parent(x, d->parent);
  NI_TESTPOINT();
  ni_store_rel(&x->state, ni_state_make(gen, NI_EVS_LIVE, 0)); /* pairs with proxy_of */
  return ni_handle_pack(NI_H_PROXY, ni_payload_slot(slot, gen), ni_g.nonce);
}

static void step_line_stop(struct ni_proxy_slot *x, uint32_t i, uint64_t ticks);

void ni_proxy_stop(const void *handle) {
  uint64_t p = ni_handle_payload(handle, ni_g.nonce), state;
  struct ni_proxy_slot *x = proxy_of(p, &state);
  if (!x)
    return;
  NI_TESTPOINT();
  /* steps that never stopped say so in their lines */
  for (uint32_t i = 0; x->steps_asked && i < NI_STEPS_IN_FLIGHT; i++)
    if (ni_load_rlx(&x->phase[i]) && x->step_slot[i])
      step_line_stop(x, i, 0);
  x->ticks_stop = ni_ticks(ni_g.tick_source);
  /* By exchange, on the open state that was seen: its communicator may be closing the slot at this moment (a
   * shared progress thread), and then it is on a chain of the dump thread. */
  if (!atomic_compare_exchange_strong_explicit(&x->state, &state, state | NI_STATE_FLAG(NI_EVS_CLOSED),
                                               memory_order_acq_rel, memory_order_relaxed))
    return;
  (void)ni_done_push(&ni_g.arena, &store_of(x->comm_page)->done, ni_payload_index(p));
}

void ni_proxy_state(const void *handle, uint32_t state, const uint64_t *value) {
  uint64_t seen;
  struct ni_proxy_slot *x = proxy_of(ni_handle_payload(handle, ni_g.nonce), &seen);
  if (!x)
    return;
  if (state != NI_ST_PROXY_OP_IN_PROGRESS && state > NI_ST_PROXY_OP_RECV_DONE) {
    ni_stray(NI_STRAY_UNKNOWN_STATE);
    return;
  }
  /* 2.23 to 2.26 repeat states 0 to 7 with the bytes so far; 2.27 and later raise 19 once. */
  if (!ni_load_rlx(&x->ticks_progress))
    ni_store_rlx(&x->ticks_progress, ni_ticks(ni_g.tick_source));
  if (state <= NI_ST_PROXY_OP_RECV_DONE && value && *value > ni_load_rlx(&x->bytes))
    ni_store_rlx(&x->bytes, *value);
}

/* ---- steps ---- */

/* The slot of a step's own line: only where they are asked for. Out of the short way. */
COLD void step_line_start(struct ni_proxy_slot *x, uint32_t i, uint64_t ticks, uint32_t number) {
  uint32_t slot = x->step_slot[i] = take_slot(store_of(x->comm_page), x->comm_page, NI_EVENT_STEPS, true);
  if (!slot)
    return;
  struct ni_event_slot *e = ni_arena_event(&ni_g.arena, slot);
  ni_store_rlx(&e->flags, ni_load_rlx(&x->flags));
  e->channel = x->channel;
  e->func = x->func;
  e->parent_kind = x->parent_kind;
  e->ticks_start = ticks;
  e->number = x->sn;
  e->group = x->parent_sn;
  for (int k = 0; k < NI_PH_COUNT - 1; k++)
    e->step.phase[k] = 0;
  e->step.step = x->step_no[i];
  e->step.peer = x->peer;
  e->step.step_sn = number;
  (void)publish(e); /* for the last walk */
}

__attribute__((noinline, cold)) static void step_line_stop(struct ni_proxy_slot *x, uint32_t i,
                                                           uint64_t ticks) {
  uint32_t slot = x->step_slot[i];
  struct ni_event_slot *e = ni_arena_event(&ni_g.arena, slot);
  uint64_t state = ni_load_rlx(&e->state);
  x->step_slot[i] = 0;
  /* its communicator is being closed: on a chain of the dump thread */
  if (ni_state_flags(state) & NI_EVS_CLOSED)
    return;
  e->ticks_stop = ticks;
  if (atomic_compare_exchange_strong_explicit(&e->state, &state, state | NI_STATE_FLAG(NI_EVS_CLOSED),
                                              memory_order_acq_rel, memory_order_relaxed))
    (void)ni_done_push(&ni_g.arena, &store_of(x->comm_page)->done, slot);
}

HOT void add_to(_Atomic uint64_t *sum, uint64_t n) { ni_store_rlx(sum, ni_load_rlx(sum) + n); }

/* The time since the phase began goes to its sum. */
HOT void leave_phase(struct ni_proxy_slot *x, uint32_t i, uint8_t phase, uint64_t ticks) {
  uint64_t in_it = ni_ticks_between(x->step_last[i], ticks);
  add_to(&x->sum[phase - 1], in_it);
  if (ni_unlikely(x->step_slot[i]))
    ni_arena_event(&ni_g.arena, x->step_slot[i])->step.phase[phase - 1] += in_it;
}

void *ni_cb_step_start(const void *parent, int32_t step) {
  if (ni_unlikely(ni_handle_kind(parent) != NI_H_PROXY))
    return NULL;
  uint64_t p = ni_handle_payload(parent, ni_g.nonce), state;
  struct ni_proxy_slot *x = proxy_of(p, &state);
  if (ni_unlikely(!x))
    return NULL;
  uint32_t i = (uint32_t)step & STEP_MASK;
  uint8_t open = ni_load_rlx(&x->phase[i]);
  if (ni_likely(!open) || x->step_no[i] != step) { /* else: started before and not yet begun */
    uint64_t ticks = ni_ticks(ni_g.tick_source);
    uint32_t number = ni_load_rlx(&x->n_started);
    if (ni_unlikely(open)) { /* eight transfers later and never stopped: it makes place */
      ni_store_rlx(&x->n_dropped, ni_load_rlx(&x->n_dropped) + 1);
      if (x->step_slot[i])
        step_line_stop(x, i, 0); /* its line says so */
    }
    x->step_no[i] = step;
    x->step_last[i] = ticks;
    ni_store_rlx(&x->step_start[i], ticks);
    ni_store_rlx(&x->n_started, number + 1);
    ni_store_rlx(&x->phase[i], ni_load_rlx(&x->flags) & NI_EVF_SEND ? NI_PH_GPU_PRODUCE : NI_PH_PEER_CREDIT);
    if (ni_unlikely(x->steps_asked))
      step_line_start(x, i, ticks, number);
  }
  return ni_handle_pack(NI_H_STEP, ni_payload_step((uint32_t)step, ni_payload_index(p), ni_payload_gen(p)),
                        ni_g.nonce);
}

/* The open step that a handle names: its operation and place, or NULL (counted). */
HOT struct ni_proxy_slot *step_of(const void *handle, uint32_t *i) {
  uint64_t p = ni_handle_payload(handle, ni_g.nonce), state;
  struct ni_proxy_slot *x = proxy_of(p, &state);
  if (ni_unlikely(!x))
    return NULL;
  *i = ni_payload_step_low(p) & STEP_MASK;
  if (ni_unlikely(!ni_load_rlx(&x->phase[*i]) || ((uint32_t)x->step_no[*i] & 63) != ni_payload_step_low(p))) {
    ni_stray(NI_STRAY_DOUBLE_STOP);
    return NULL;
  }
  return x;
}

void ni_step_state(const void *handle, uint32_t state, const uint64_t *value) {
  static const uint8_t phase_of[] = {[NI_ST_PROXY_STEP_SEND_GPU_WAIT] = NI_PH_GPU_PRODUCE,
                                     [NI_ST_PROXY_STEP_SEND_PEER_WAIT] = NI_PH_PEER_CREDIT,
                                     [NI_ST_PROXY_STEP_SEND_WAIT] = NI_PH_WIRE,
                                     [NI_ST_PROXY_STEP_RECV_WAIT] = NI_PH_WIRE,
                                     [NI_ST_PROXY_STEP_RECV_FLUSH_WAIT] = NI_PH_FLUSH,
                                     [NI_ST_PROXY_STEP_RECV_GPU_WAIT] = NI_PH_GPU_CONSUME};
  uint32_t i;
  struct ni_proxy_slot *x = step_of(handle, &i);
  if (ni_unlikely(!x))
    return;
  uint8_t next = state < sizeof phase_of ? phase_of[state] : NI_PH_NONE, now = ni_load_rlx(&x->phase[i]);
  if (ni_unlikely(next == NI_PH_NONE)) {
    ni_stray(NI_STRAY_UNKNOWN_STATE);
    return;
  }
  if (next == now)
    return; /* the phase its start has opened, or one that is told again at each poll (Q3) */
  uint64_t ticks = ni_ticks(ni_g.tick_source);
  leave_phase(x, i, now, ticks);
  x->step_last[i] = ticks;
  ni_store_rlx(&x->phase[i], next);
  /* The size is the step's own only here (callbacks 3.3). */
  if ((state == NI_ST_PROXY_STEP_SEND_WAIT || state == NI_ST_PROXY_STEP_RECV_FLUSH_WAIT) && value) {
    add_to(&x->bytes, *value);
    if (ni_unlikely(x->step_slot[i]))
      ni_arena_event(&ni_g.arena, x->step_slot[i])->count = *value;
  }
}

void ni_step_stop(const void *handle) {
  uint32_t i;
  struct ni_proxy_slot *x = step_of(handle, &i);
  if (ni_unlikely(!x))
    return;
  uint64_t ticks = ni_ticks(ni_g.tick_source),
           total = ni_ticks_between(ni_load_rlx(&x->step_start[i]), ticks);
  leave_phase(x, i, ni_load_rlx(&x->phase[i]), ticks);
  if (total > ni_load_rlx(&x->max_step))
    ni_store_rlx(&x->max_step, total);
  ni_store_rlx(&x->n_completed, ni_load_rlx(&x->n_completed) + 1);
  ni_store_rlx(&x->phase[i], NI_PH_NONE);
  if (ni_unlikely(x->step_slot[i]))
    step_line_stop(x, i, ticks);
}

int ni_proxy_of_step(const void *handle, uint32_t *comm_page, uint64_t *op_sn, uint32_t *step) {
  uint32_t i;
  if (ni_handle_kind(handle) != NI_H_STEP)
    return 0;
  struct ni_proxy_slot *x = step_of(handle, &i);
  if (!x)
    return 0;
  *comm_page = x->comm_page;
  *op_sn = x->sn;
  *step = (uint32_t)x->step_no[i];
  return 1;
}
