/*
 * Callbacks of the kinds beyond operations and proxies: API calls, groups, launches, brackets, copy engine,
 * progress thread, network plugin. States, threads and ownership: event_slot.h.
 *
 * API calls are followed whenever they come, asked for or not: they give the order of an operation's call,
 * and a collective that NCCL never shows otherwise is known by its call alone. Everything else has a slot
 * only when its kind is asked for.
 */
#include "callbacks_event.h"

#include "callbacks_call.h"
#include "callbacks_proxy.h"
#include "callbacks_in.h"

#include <string.h>

/* ---- starts ---- */

static void fill(struct ni_event_slot *e, enum ni_event kind, const struct ni_event_start *d) {
  if (d->graph)
    add_flag(e, NI_EVF_GRAPH);
  if (d->flag)
    add_flag(e, NI_EVF_BOOL);
  e->number = d->number;
  e->count = d->count;
  switch (kind) {
    case NI_EVENT_GROUP_API:
      e->number = ni_add_rlx(&ni_g.group_sn, 1);
      e->api.depth = d->depth;
      e->api.start_end = e->api.end_begin = 0;
      break;
    case NI_EVENT_LAUNCH:
      e->group = ni_call_group_number(d->parent);
      e->api.stream = d->stream;
      break;
    case NI_EVENT_CE:
      e->func = ni_intern_id(&ni_g.intern, d->func);
      e->datatype = ni_intern_id(&ni_g.intern, d->datatype);
      e->text = ni_intern_id(&ni_g.intern, d->text);
      e->api.stream = d->stream;
      e->api.root = d->root;
      e->api.user_tag = d->user_tag;
      break;
    default:
      ni_store_rlx(&e->part.n, d->n);
      break;
  }
}

void *ni_cb_event_start(const void *context, enum ni_event kind, const struct ni_event_start *d) {
  /* The progress thread's own events carry the context of the communicator that made it, also after its
   * finalize (callbacks 4.4): such a one belongs to the process. */
  struct ni_comm *c = kind == NI_EVENT_PROXY_CTRL ? comm_named(context) : comm_of(context);
  if (ni_unlikely(!c && kind != NI_EVENT_PROXY_CTRL))
    return NULL;
  if (kind == NI_EVENT_COLL_API || kind == NI_EVENT_P2P_API)
    return ni_call_start(c, kind, d);
  uint64_t ticks = ni_ticks(ni_g.tick_source), number = d->number;
  int asked = is_asked(kind);
  /*
   * A copy-engine collective is an operation: it has a slot when either its own lines or collectives are
   * asked for.
   */
  int needed = asked || kind == NI_EVENT_GROUP_API || (kind == NI_EVENT_CE && is_asked(NI_EVENT_COLL));
  if (!needed)
    return NULL;
  if (kind == NI_EVENT_SYNC || kind == NI_EVENT_BATCH) {
    const struct ni_event_slot *ce = event_of(d->parent, NI_EVENT_CE);
    if (!ce)
      return NULL;
    number = ce->number;
  }
  if (kind == NI_EVENT_LAUNCH)
    number = ni_load_rlx(&c->group_ord) + 1u;
  struct ni_event_store *st = c ? &c->events : &ni_g.detached;
  /* A ProxyCtrl gets its number with its state: 2.26 raises them without one, on every pass. */
  uint32_t slot = take_slot(st, c ? c->page : 0, kind, asked && kind != NI_EVENT_PROXY_CTRL);
  if (ni_unlikely(!slot)) {
    if (kind == NI_EVENT_PROXY_CTRL) {
      ni_add_rlx(&st->started[kind], 1);
      ni_add_rlx(&st->dropped[kind], 1);
    }
    if (kind == NI_EVENT_CE && c)
      ni_call_seen(c, 0, d->parent, NI_EVS_SEEN_CE, NULL);
    return NULL;
  }
  struct ni_event_slot *e = ni_arena_event(&ni_g.arena, slot);
  e->ticks_start = ticks;
  fill(e, kind, d);
  e->number = kind == NI_EVENT_GROUP_API ? e->number : number;
  if (kind == NI_EVENT_PROXY_CTRL)
    e->part.state = 0;
  if (kind == NI_EVENT_CE) {
    uint32_t call;
    if (ni_call_seen(c, 0, d->parent, NI_EVS_SEEN_CE, &call) & NI_OP_CALLED)
      e->group = (uint64_t)call + 1;
    if (is_asked(NI_EVENT_COLL))
      add_flag(e, NI_EVF_EXPECT);
  }
  return ni_handle_pack(NI_H_EVENT, ni_payload_slot(slot, publish(e)), ni_g.nonce);
}

void *ni_event_group_start(struct ni_comm *c, uint32_t ordinal) {
  uint32_t slot = take_slot(&c->events, c->page, NI_EVENT_GROUP, 1);
  if (!slot)
    return ni_handle_pack(NI_H_GROUP, ni_payload_group(c->page, ordinal), ni_g.nonce);
  struct ni_event_slot *e = ni_arena_event(&ni_g.arena, slot);
  e->ticks_start = ni_ticks(ni_g.tick_source);
  e->number = ordinal;
  return ni_handle_pack(NI_H_EVENT, ni_payload_slot(slot, publish(e)), ni_g.nonce);
}

uint32_t ni_event_group_ordinal(const struct ni_comm *c, const void *group) {
  const struct ni_event_slot *e = event_of(group, NI_EVENT_GROUP);
  return e && e->comm_page == c->page ? (uint32_t)e->number : ni_load_rlx(&c->group_ord);
}

/*
 * ---- network plugin: the payload belongs to it and may be reused at once, so it is copied here (callbacks
 * 2.4) ----
 */

static void copy_payload(struct ni_event_slot *e, int64_t id, const void *data) {
  const unsigned char *d = data;
  int32_t x;
  uint64_t bytes;
  e->net.version = (uint32_t)(id & 0xffff);
  e->net.type = (uint32_t)(id >> 16 & 0xffff);
  memset(e->net.v, 0, sizeof e->net.v);
  /* not read: nobody knows how long it is */
  if (!d || e->net.version != 1 || (id & ~INT64_C(0xffffffff)))
    return;
  /* IB: device @8, wr_id @16, opcode @24, qp @28, length @32 */
  if (e->net.type == 1) {
    memcpy(&x, d + 8, 4);
    e->net.v[0] = x;
    memcpy(&e->net.v[3], d + 16, 8);
    memcpy(&x, d + 24, 4);
    e->net.v[1] = x;
    memcpy(&x, d + 28, 4);
    e->net.v[2] = x;
    memcpy(&bytes, d + 32, 8);
    e->count = bytes;
  } else if (e->net.type == 2) { /* socket: fd @8, op @12, length @16 */
    memcpy(&x, d + 8, 4);
    e->net.v[0] = x;
    memcpy(&x, d + 12, 4);
    e->net.v[1] = x;
    memcpy(&bytes, d + 16, 8);
    e->count = bytes;
  }
}

void *ni_cb_net_start(const void *parent, int64_t id, const void *data) {
  if (!is_asked(NI_EVENT_NET))
    return NULL;
  uint32_t page, step;
  uint64_t op_sn;
  if (!ni_proxy_of_step(parent, &page, &op_sn, &step))
    return NULL;
  uint32_t slot = take_slot(store_of(page), page, NI_EVENT_NET, 1);
  if (!slot)
    return NULL;
  struct ni_event_slot *e = ni_arena_event(&ni_g.arena, slot);
  e->ticks_start = ni_ticks(ni_g.tick_source);
  e->number = op_sn;
  e->net.step = (int32_t)step;
  e->net.updates = 0;
  copy_payload(e, id, data);
  return ni_handle_pack(NI_H_EVENT, ni_payload_slot(slot, publish(e)), ni_g.nonce);
}

/* ---- states and stops ---- */

static int ctrl_state(struct ni_event_slot *e, uint32_t state, uint64_t value) {
  if (state < NI_ST_PROXY_CTRL_IDLE || state > NI_ST_PROXY_CTRL_APPEND_END)
    return 0;
  if (!e->part.state) {
    struct ni_event_store *st = store_of(e->comm_page);
    e->sn = ni_add_rlx(&st->started[NI_EVENT_PROXY_CTRL], 1);
    e->part.state = state;
    ni_store_rlx(&e->part.n, 0);
    /* pairs with the walk at the end of its communicator: sn and state are there */
    ni_store_rel(&e->flags, NI_EVF_ASKED);
  }
  if (state == NI_ST_PROXY_CTRL_APPEND_END)
    ni_store_rlx(&e->part.n, (int32_t)value);
  return 1;
}

void ni_event_state(const void *handle, uint32_t state, const uint64_t *value) {
  uint64_t p = ni_handle_payload(handle, ni_g.nonce);
  struct ni_event_slot *e = event_checked(ni_payload_index(p));
  uint64_t now = e ? ni_load_acq(&e->state) : 0;
  if (!e || !ni_state_is(now, ni_payload_gen(p)) || (ni_state_flags(now) & NI_EVS_CLOSED)) {
    ni_stray(e ? NI_STRAY_STALE_HANDLE : NI_STRAY_FOREIGN_HANDLE);
    return;
  }
  int known = 0;
  switch (e->kind) {
    case NI_EVENT_GROUP_API:
      known = state == NI_ST_GROUP_API_START_END || state == NI_ST_GROUP_API_END_BEGIN;
      if (state == NI_ST_GROUP_API_START_END && !e->api.start_end)
        e->api.start_end = ni_ticks(ni_g.tick_source);
      if (state == NI_ST_GROUP_API_END_BEGIN)
        e->api.end_begin = ni_ticks(ni_g.tick_source);
      break;
    case NI_EVENT_PROXY_CTRL:
      known = ctrl_state(e, state, value ? *value : 0);
      break;
    case NI_EVENT_NET:
      known = state == NI_ST_NET_PLUGIN_UPDATE;
      e->net.updates += (uint32_t)known;
      break;
    case NI_EVENT_CE: /* defined by v6, raised by no release up to 2.30.7; nothing to add to start and stop */
    case NI_EVENT_SYNC:
    case NI_EVENT_BATCH:
      known = state >= NI_ST_CE_COLL_START && state <= NI_ST_CE_BATCH_COMPLETE;
      break;
    default:
      break;
  }
  if (!known)
    ni_stray(NI_STRAY_UNKNOWN_STATE);
}

void ni_event_stop(const void *handle) {
  uint64_t p = ni_handle_payload(handle, ni_g.nonce);
  uint32_t slot = ni_payload_index(p);
  struct ni_event_slot *e = event_checked(slot);
  uint64_t state = e ? ni_load_acq(&e->state) : 0;
  if (ni_unlikely(!e || !ni_state_is(state, ni_payload_gen(p)))) {
    ni_stray(e ? NI_STRAY_STALE_HANDLE : NI_STRAY_FOREIGN_HANDLE);
  } else if (ni_unlikely(ni_state_flags(state) & NI_EVS_CLOSED)) {
    ni_stray(NI_STRAY_DOUBLE_STOP);
  } else {
    close_slot(e, slot, ni_payload_gen(p));
  }
}
