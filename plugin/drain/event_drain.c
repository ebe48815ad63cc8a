/*
 * Events from the stores' done lists to lines in the open block. Dump role; states in event_slot.h.
 *
 *   done list ─▶ todo ─▶ line in the block, slot free
 *                  └─ call without an operation yet ─▶ wait ─▶ its Coll came ─▶ line
 *                                                       └─ its group is over and 1 s was quiet
 *                                                           ─▶ record, coll_src "api"
 *
 * A slot is freed when its line is in the block, not when that is written: the block keeps the text until
 * then. What a black box has to show beyond that are operations, which have rules of their own (drain.h,
 * call_drain.h).
 */
#include "event_drain.h"

#include <errno.h>
#include <stdio.h>

#include "call_drain.h"
#include "event_of.h"
#include "plugin/write/block.h"
#include "plugin/write/lines.h"
#include "proxy_drain.h"

/* ---- collect ---- */

static int collect(struct ni_event_store *st, struct ni_event_writer *ev) {
  uint32_t n = 0;
  if (!ni_load_rlx(&st->done.head))
    return 0; /* relaxed: a hint; the drain acquires */
  for (uint32_t slot = ni_done_drain(&ni_g.arena, &st->done, &n), next; slot; slot = next) {
    next = ni_load_rlx(&ni_arena_op(&ni_g.arena, slot)->next);
    ni_chain_append(&ev->todo, slot);
  }
  return n != 0;
}

int ni_events_collect(struct ni_drain *d) {
  int moved = collect(&ni_g.detached, &d->w->detached);
  for (struct ni_comm_writer *s = d->w->comms; s; s = s->next)
    if (s->stage == NI_STAGE_LIVE)
      moved |= collect(&s->comm->events, &s->ev) | ni_calls_take(s);
  return moved;
}

/* ---- lines ---- */

static const char *ctrl_name(uint32_t state) {
  switch (state) {
    case NI_ST_PROXY_CTRL_IDLE:
      return "idle";
    case NI_ST_PROXY_CTRL_ACTIVE:
      return "active";
    case NI_ST_PROXY_CTRL_APPEND:
    case NI_ST_PROXY_CTRL_APPEND_END:
      return "append";
    default:
      return "sleep";
  }
}

static int32_t small(int64_t n) { return n < -1 || n > INT32_MAX ? -1 : (int32_t)n; }

/* The payload of a network plugin's event: v has the numbers of its type. */
static void fill_net(const struct ni_ev_net *n, struct ni_event_line *in, char type[16]) {
  in->type = n->type == 1 ? "ib" : n->type == 2 ? "socket" : type;
  if (in->type == type)
    snprintf(type, 16, "0x%x", n->type);
  in->version = small(n->version);
  in->step = n->step;
  in->device = in->fd = n->v[0];
  in->op = n->v[1];
  in->qp = n->v[2];
  in->wr_id = (uint64_t)n->v[3];
  in->updates = n->updates;
}

#define PUT(name) ni_format_##name(d->w->line, sizeof d->w->line, p, d->w->ts_us, &in)

static int put_event(struct ni_drain *d, struct ni_comm_writer *s, const struct ni_event_slot *e,
                     const char *seen) {
  const struct ni_line_prefix *p = ev_prefix(d, s);
  uint8_t flags = ni_load_rlx(&e->flags);
  char type[16];
  size_t n = 0;
  struct ni_event_line in = {.ev_sn = e->sn,
                             .start_ns = ni_clock_unix_ns(&ni_g.clock, e->ticks_start),
                             .dur_ns = ev_span(e->ticks_start, e->ticks_stop),
                             .call_sn = e->number,
                             .plan_sn = e->number,
                             .ce_sn = e->number,
                             .proxy_op_sn = e->number,
                             .group_sn = e->group ? e->group - 1 : NI_NO_SN,
                             .count = e->count,
                             .bytes = e->count,
                             .seen = seen,
                             .graph = flags & NI_EVF_GRAPH,
                             .is_complete = flags & NI_EVF_BOOL,
                             .intra_sync = flags & NI_EVF_BOOL};
  switch (e->kind) {
    case NI_EVENT_COLL_API:
    case NI_EVENT_P2P_API:
    case NI_EVENT_CE:
      in.func = ni_intern_text(&ni_g.intern, e->func);
      in.datatype = ni_intern_text(&ni_g.intern, e->datatype);
      in.stream = e->api.stream;
      in.root = e->api.root;
      ni_split_tag(e->api.user_tag, &in.user_tag, &in.nccl_tag);
      if (e->kind != NI_EVENT_CE) {
        in.api = ni_kind_names[e->kind == NI_EVENT_P2P_API];
        n = PUT(api);
        break;
      }
      in.sync_strategy = ni_intern_text(&ni_g.intern, e->text);
      in.call_sn = e->group ? ni_call_sn(&s->comm->events, 0, (uint32_t)(e->group - 1)) : NI_NO_SN;
      n = PUT(ce);
      break;
    case NI_EVENT_GROUP_API:
      in.api = "group";
      in.group_sn = e->number;
      in.depth = e->api.depth;
      in.start_end_ns = ev_span(e->ticks_start, e->api.start_end);
      in.end_begin_ns = ev_span(e->ticks_start, e->api.end_begin);
      n = PUT(api);
      break;
    case NI_EVENT_LAUNCH:
      in.stream = e->api.stream;
      n = PUT(launch);
      break;
    case NI_EVENT_GROUP:
      n = PUT(group);
      break;
    case NI_EVENT_NET:
      fill_net(&e->net, &in, type);
      n = PUT(net);
      break;
    case NI_EVENT_SYNC:
      in.n_ranks = small(ni_load_rlx(&e->part.n));
      n = PUT(sync);
      break;
    case NI_EVENT_BATCH:
      in.n_ops = small(ni_load_rlx(&e->part.n));
      n = PUT(batch);
      break;
    case NI_EVENT_PROXY_CTRL: {
      int64_t appended = ni_load_rlx(&e->part.n);
      in.what = ctrl_name(e->part.state);
      in.appended = appended > 0 ? (uint64_t)appended : 0;
      n = PUT(proxy_ctrl);
      break;
    }
    default:
      break;
  }
  int rc = ni_block_put(d->w, d->w->line, n);
  if (rc == 0)
    ev_count(d, s, (enum ni_event)e->kind, 1);
  return rc;
}

/* ---- format ---- */

static const char *seen_as(struct ni_event_slot *e) {
  uint32_t flags = ni_state_flags(ni_load_acq(&e->state)); /* pairs with ni_call_seen */
  if (ni_load_rlx(&e->flags) & NI_EVF_GRAPH)
    return "graph";
  return flags & NI_EVS_SEEN_KERNEL ? "kernel" : flags & NI_EVS_SEEN_CE ? "ce" : "none";
}

/* A call: 1 its slot can go, 0 it waits, negative errno the block takes no more. */
static int finish_call(struct ni_drain *d, struct ni_comm_writer *s, struct ni_event_slot *e,
                       enum ni_end end) {
  int rc = ni_call_judge(d, s, e, end);
  if (rc > 0 && (ni_load_rlx(&e->flags) & NI_EVF_ASKED) && (rc = put_event(d, s, e, seen_as(e))) == 0)
    rc = 1;
  return rc;
}

/* One slot of todo. As finish_call. */
static int finish(struct ni_drain *d, struct ni_comm_writer *s, uint32_t slot) {
  if (is_proxy(slot))
    return ni_proxy_finish(d, s, slot);
  struct ni_event_slot *e = event_at(slot);
  if (e->kind == NI_EVENT_STEPS)
    return ni_step_finish(d, s, slot);
  if (e->kind == NI_EVENT_COLL_API || e->kind == NI_EVENT_P2P_API)
    return finish_call(d, s, e, NI_END_NONE);
  /* pairs with ctrl_state: the walk may have closed the slot right before it */
  uint8_t flags = ni_load_acq(&e->flags);
  int rc = 0;
  /* always has one: its context is a communicator */
  if (s && e->kind == NI_EVENT_CE && (flags & NI_EVF_EXPECT)) {
    if (e->ticks_stop && (rc = ni_call_record(d, s, e, NI_SRC_CE, 0)) != 0)
      return rc;
    ni_store_rlx(&e->flags, (uint8_t)(flags & ~NI_EVF_EXPECT)); /* recorded once */
  }
  if (flags & NI_EVF_ASKED)
    rc = put_event(d, s, e, NULL);
  return rc ? rc : 1;
}

static int format_store(struct ni_drain *d, struct ni_comm_writer *s) {
  struct ni_event_writer *ev = ev_of(d, s);
  if (!ev->todo.n)
    return 0;
  if (s && !s->announced) {
    ni_lines_comm(d->w, s);
    if (!s->announced)
      return s->identified ? (ni_gz_finished(d->w->gz) ? -EBUSY : -EFBIG) : 0;
  }
  while (ev->todo.n) {
    uint32_t slot = ev->todo.first;
    int rc = ni_drain_check(d);
    if (rc == 0)
      rc = finish(d, s, slot);
    if (rc < 0)
      return rc;
    (void)ni_chain_take(&ev->todo);
    if (rc)
      ev_free_slot(s, slot);
    else
      ni_call_wait(ev, slot);
  }
  return 0;
}

int ni_events_format(struct ni_drain *d) {
  int rc = format_store(d, NULL);
  for (struct ni_comm_writer *s = d->w->comms; s && rc == 0; s = s->next)
    if (s->stage == NI_STAGE_LIVE)
      rc = format_store(d, s);
  return rc;
}

static void give_up(struct ni_event_writer *ev) {
  struct ni_chain *chains[] = {&ev->todo, &ev->wait};
  for (int i = 0; i < 2; i++)
    for (uint32_t slot; (slot = ni_chain_take(chains[i])) != 0;) {
      struct ni_event_slot *e = event_at(slot); /* kind and flags are at the same place in both sizes */
      if (ni_load_rlx(&e->flags) & NI_EVF_ASKED)
        ev->lost[e->kind]++;
    }
}

void ni_events_give_up(struct ni_drain *d) {
  give_up(&d->w->detached);
  for (struct ni_comm_writer *s = d->w->comms; s; s = s->next)
    give_up(&s->ev);
}

void ni_events_judge(struct ni_drain *d, struct ni_comm_writer *s, enum ni_end end) {
  struct ni_chain keep = {0};
  int blocked = 0;
  if (!s->ev.wait.n)
    return;
  d->watching = 1;
  for (uint32_t slot; (slot = ni_chain_take(&s->ev.wait)) != 0;) {
    int rc = blocked ? 0 : finish_call(d, s, event_at(slot), end);
    blocked |= rc < 0;
    if (rc > 0)
      ev_free_slot(s, slot);
    else
      ni_chain_append(&keep, slot);
  }
  s->ev.wait = keep;
}

/* ---- the end of a communicator ---- */

/* What never stopped is closed here, so that a stop that comes all the same finds it so. */
static void close_one(struct ni_op *any, uint32_t slot, void *arg) {
  uint64_t state = ni_load_acq(&any->state); /* pairs with the LIVE store: the descriptor is there */
  /* again when an operation has named its call meanwhile; when its stop was faster, it is on the done list */
  do {
    if ((ni_state_flags(state) & (NI_EVS_LIVE | NI_EVS_CLOSED)) != NI_EVS_LIVE)
      return;
    NI_TESTPOINT();
  } while (!ni_cas_acqrel(&any->state, &state, state | NI_STATE_FLAG(NI_EVS_CLOSED)));
  if (is_proxy(slot))
    ni_arena_proxy(&ni_g.arena, slot)->ticks_stop = 0;
  else
    event_at(slot)->ticks_stop = 0;
  ni_chain_append(arg, slot);
}

int ni_events_close(struct ni_event_store *st, struct ni_event_writer *ev) {
  struct ni_chain ops = {0};
  uint32_t before = ev->todo.n;
  /* Proxy operations first: of one that is closed no step begins or ends, so its steps' slots are ours alone.
   * Its line comes after theirs all the same. */
  ni_pool_walk(&ni_g.arena, &st->proxies, close_one, &ops);
  ni_pool_walk(&ni_g.arena, &st->events, close_one, &ev->todo);
  for (uint32_t slot; (slot = ni_chain_take(&ops)) != 0;)
    ni_chain_append(&ev->todo, slot);
  return ev->todo.n != before;
}

int ni_events_in_flight(const struct ni_event_store *st, const struct ni_event_writer *ev) {
  uint64_t settled =
      ev->written[NI_EVENT_PROXY_OP] + ev->in_block[NI_EVENT_PROXY_OP] + ev->lost[NI_EVENT_PROXY_OP];
  return ni_load_rlx(&st->started[NI_EVENT_PROXY_OP]) !=
      settled + ni_load_rlx(&st->dropped[NI_EVENT_PROXY_OP]);
}
