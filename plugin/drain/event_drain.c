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

/*
 * What a line of each kind says beyond what all of them say. A slot has one number, one group and one count
 * for all kinds; here each becomes the field that it is.
 */
struct event_source {
  const struct ni_comm_writer *s; /* NULL: of no communicator */
  const struct ni_event_slot *e;
  char
      type[16]; /* of a network plugin's event, where NCCL has no name for it: text that the line points to */
};
struct event_form {
  void (*fill)(struct event_source *from, struct ni_event_line *in);
  size_t (*format)(char *to, size_t cap, const struct ni_line_prefix *p, uint64_t dump_us,
                   const struct ni_event_line *in);
};

static bool has_flag(const struct ni_event_slot *e, uint8_t flag) { return ni_load_rlx(&e->flags) & flag; }
static uint64_t group_number(const struct ni_event_slot *e) { return e->group ? e->group - 1 : NI_NO_SN; }

static void fill_operation(const struct ni_event_slot *e, struct ni_event_line *in) {
  in->func = ni_intern_text(&ni_g.intern, e->func);
  in->datatype = ni_intern_text(&ni_g.intern, e->datatype);
  in->count = e->count;
  in->root = e->api.root;
  in->stream = e->api.stream;
  ni_split_tag(e->api.user_tag, &in->user_tag, &in->nccl_tag);
}

static void fill_call(struct event_source *from, struct ni_event_line *in) {
  const struct ni_event_slot *e = from->e;
  fill_operation(e, in);
  in->api = ni_kind_names[e->kind == NI_EVENT_P2P_API];
  in->call_sn = e->number;
  in->group_sn = group_number(e);
  in->graph = has_flag(e, NI_EVF_GRAPH);
}

static void fill_group_call(struct event_source *from, struct ni_event_line *in) {
  const struct ni_event_slot *e = from->e;
  in->api = "group";
  in->group_sn = e->number;
  in->depth = e->api.depth;
  in->graph = has_flag(e, NI_EVF_GRAPH);
  in->start_end_ns = ev_span(e->ticks_start, e->api.start_end);
  in->end_begin_ns = ev_span(e->ticks_start, e->api.end_begin);
}

static void fill_launch(struct event_source *from, struct ni_event_line *in) {
  const struct ni_event_slot *e = from->e;
  in->plan_sn = e->number;
  in->group_sn = group_number(e);
  in->stream = e->api.stream;
}

static void fill_plan(struct event_source *from, struct ni_event_line *in) { in->plan_sn = from->e->number; }

static void fill_copy(struct event_source *from, struct ni_event_line *in) {
  const struct ni_event_slot *e = from->e;
  fill_operation(e, in);
  in->ce_sn = e->number;
  in->sync_strategy = ni_intern_text(&ni_g.intern, e->text);
  if (e->group)
    in->call_sn = ni_call_sn(&from->s->comm->events, 0, (uint32_t)(e->group - 1));
}

static void fill_copy_sync(struct event_source *from, struct ni_event_line *in) {
  const struct ni_event_slot *e = from->e;
  in->ce_sn = e->number;
  in->is_complete = has_flag(e, NI_EVF_BOOL);
  in->n_ranks = small(ni_load_rlx(&e->part.n));
}

static void fill_copy_batch(struct event_source *from, struct ni_event_line *in) {
  const struct ni_event_slot *e = from->e;
  in->ce_sn = e->number;
  in->intra_sync = has_flag(e, NI_EVF_BOOL);
  in->n_ops = small(ni_load_rlx(&e->part.n));
  in->bytes = e->count;
}

static void fill_proxy_ctrl(struct event_source *from, struct ni_event_line *in) {
  const struct ni_event_slot *e = from->e;
  int64_t appended = ni_load_rlx(&e->part.n);
  in->what = ctrl_name(e->part.state);
  in->appended = appended > 0 ? (uint64_t)appended : 0;
}

/* The payload of a network plugin's event: v has the numbers of its type. */
static void fill_net(struct event_source *from, struct ni_event_line *in) {
  const struct ni_event_slot *e = from->e;
  const struct ni_ev_net *n = &e->net;
  in->proxy_op_sn = e->number;
  in->type = n->type == 1 ? "ib" : n->type == 2 ? "socket" : from->type;
  if (in->type == from->type)
    snprintf(from->type, sizeof from->type, "0x%x", n->type);
  in->version = small(n->version);
  in->step = n->step;
  in->device = in->fd = n->v[0];
  in->op = n->v[1];
  in->qp = n->v[2];
  in->wr_id = (uint64_t)n->v[3];
  in->bytes = e->count;
  in->updates = n->updates;
}

static const struct event_form event_forms[NI_EVENT_COUNT] = {
    [NI_EVENT_COLL_API] = {fill_call, ni_format_api},
    [NI_EVENT_P2P_API] = {fill_call, ni_format_api},
    [NI_EVENT_GROUP_API] = {fill_group_call, ni_format_api},
    [NI_EVENT_LAUNCH] = {fill_launch, ni_format_launch},
    [NI_EVENT_GROUP] = {fill_plan, ni_format_group},
    [NI_EVENT_CE] = {fill_copy, ni_format_ce},
    [NI_EVENT_SYNC] = {fill_copy_sync, ni_format_sync},
    [NI_EVENT_BATCH] = {fill_copy_batch, ni_format_batch},
    [NI_EVENT_PROXY_CTRL] = {fill_proxy_ctrl, ni_format_proxy_ctrl},
    [NI_EVENT_NET] = {fill_net, ni_format_net},
};

/* seen: of a call, what came of it. 0, or a negative errno: the block takes no more. */
static int put_event(struct ni_drain *d, struct ni_comm_writer *s, const struct ni_event_slot *e,
                     const char *seen) {
  const struct event_form *form = &event_forms[e->kind];
  struct event_source from = {.s = s, .e = e};
  struct ni_event_line in = {NI_NO_EVENT};
  in.ev_sn = e->sn;
  in.start_ns = ni_clock_unix_ns(&ni_g.clock, e->ticks_start);
  in.dur_ns = ev_span(e->ticks_start, e->ticks_stop);
  in.seen = seen;
  form->fill(&from, &in);
  size_t n = form->format(d->w->line, sizeof d->w->line, ev_prefix(d, s), d->w->ts_us, &in);
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
