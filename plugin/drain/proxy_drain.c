/*
 *   flat     step ─▶ line, slot free                             operation ─▶ line, slot free
 *   nested   step ─▶ kept in its operation ──its end──▶ the operation's line has it, both slots free
 *                       └─ 64 of one operation, a second, too many in all ─▶ segment line, slots free
 *
 * An operation's steps are pushed before it by the same thread, so they are kept when its turn comes. A step whose
 * operation is gone all the same (its communicator was being closed) has a segment line of its own.
 *
 * Why steps do not wait longer: they take slots that newer events need, and of an operation that hangs the last steps
 * are what one wants to see. A process that is killed loses those of its last second, as it loses flat lines that are
 * not written.
 */
#include "proxy_drain.h"

#include "event_of.h"
#include "plugin/write/block.h"

#define KEEP_MS 1000u /* a step waits at most so long for its operation's end */

/* ---- which operations have steps ---- */

static struct ni_proxy_slot *proxy_at(uint32_t slot) { return ni_arena_proxy(&ni_g.arena, slot); }

static void hold(struct ni_event_writer *ev, uint32_t slot, uint64_t now_ms) {
  struct ni_kept_steps *k = &proxy_at(slot)->kept;
  k->since_ms = now_ms;
  k->next = 0;
  k->prev = ev->hold_last;
  if (ev->hold_last) proxy_at(ev->hold_last)->kept.next = slot;
  else ev->hold_first = slot;
  ev->hold_last = slot;
}

static void let_go(struct ni_event_writer *ev, const struct ni_kept_steps *k) {
  if (k->prev) proxy_at(k->prev)->kept.next = k->next;
  else ev->hold_first = k->next;
  if (k->next) proxy_at(k->next)->kept.prev = k->prev;
  else ev->hold_last = k->prev;
}

/* The operation of a step, if it lives. Acquire pairs with the LIVE store of its start. Only we free it, so what lives
 * now does so until we are done; sn tells it from the next one in its slot. */
static struct ni_proxy_slot *op_of_step(const struct ni_event_slot *e) {
  struct ni_proxy_slot *x = proxy_at(e->step.op_slot);
  if (!(ni_state_flags(ni_load_acq(&x->state)) & NI_EVS_LIVE)) return NULL;
  return x->sn == e->number && x->comm_page == e->comm_page ? x : NULL;
}

/* ---- lines ---- */

static void fill_step(const struct ni_event_slot *e, struct ni_step_text *t) {
  *t = (struct ni_step_text){.record_sn = e->sn,
                             .step_sn = e->step.step_sn,
                             .step = e->step.step,
                             .bytes = e->count,
                             .start_ns = ni_clock_unix_ns(&ni_g.clock, e->ticks_start),
                             .total_ns = ev_span(e->ticks_start, e->ticks_stop)};
  for (int i = 0; i < NI_PH_COUNT - 1 && t->total_ns >= 0; i++)
    t->phase_ns[i] = ni_clock_span_ns(&ni_g.clock, e->step.phase[i]);
}

/* Chained steps into d->steps. */
static void fill_steps(struct ni_drain *d, const struct ni_chain *c) {
  uint32_t slot = c->first;
  for (uint32_t i = 0; i < c->n; i++, slot = ni_load_rlx(&ni_arena_op(&ni_g.arena, slot)->next))
    fill_step(event_at(slot), &d->steps[i]);
}

/* A line about steps, all of the operation of the first. */
static int put_steps(struct ni_drain *d, struct ni_comm_writer *s, const struct ni_event_slot *e, enum ni_proxy_what what, uint32_t n) {
  uint8_t flags = ni_load_rlx(&e->flags);
  struct ni_proxy_line in = {.what = what,
                             .has_parent = flags & NI_EVF_PARENT,
                             .send = flags & NI_EVF_SEND,
                             .record_sn = e->number,
                             .op_sn = e->number,
                             .parent_sn = e->group,
                             .parent_kind = (enum ni_kind)e->parent_kind,
                             .parent_func = ni_intern_text(&ni_g.intern, e->func),
                             .channel = e->channel,
                             .peer = e->step.peer,
                             .steps = d->steps,
                             .n_listed = n};
  int rc = ni_block_put(d->w, d->w->line, ni_format_proxy(d->w->line, sizeof d->w->line, ev_prefix(d, s), d->w->ts_us, &in));
  if (rc) return rc;
  ev_count(d, s, NI_EVENT_STEPS, n);
  ev_of(d, s)->proxy_lines++;
  return 0;
}

/* The steps of a chain have their line: their slots go. */
static void free_steps(const struct ni_comm_writer *s, struct ni_chain *c) {
  for (uint32_t slot; (slot = ni_chain_take(c)) != 0;) ev_free_slot(s, slot);
}

/* What an operation has kept so far, as a line of its own. 0 or negative errno, and nothing has changed. */
static int put_segment(struct ni_drain *d, struct ni_comm_writer *s, struct ni_proxy_slot *x) {
  struct ni_event_writer *ev = ev_of(d, s);
  struct ni_chain *c = &x->kept.steps;
  fill_steps(d, c);
  int rc = put_steps(d, s, event_at(c->first), NI_PROXY_SEGMENT, c->n);
  if (rc) return rc;
  d->n_kept -= c->n;
  ev->n_kept -= c->n;
  let_go(ev, &x->kept);
  free_steps(s, c);
  return 0;
}

/* What the oldest open step of an operation waits for. */
static const char *waits_for(const struct ni_proxy_slot *x) {
  static const char *const names[NI_PH_COUNT] = {"none", "gpu_produce", "peer_credit", "wire", "flush", "gpu_consume"};
  uint8_t phase = NI_PH_NONE;
  uint64_t oldest = UINT64_MAX;
  for (uint32_t i = 0; i < NI_STEPS_IN_FLIGHT; i++) {
    uint8_t p = ni_load_rlx(&x->phase[i]);
    uint64_t start = ni_load_rlx(&x->step_start[i]);
    if (!p || p >= NI_PH_COUNT || start >= oldest) continue;
    oldest = start;
    phase = p;
  }
  return names[phase];
}

int ni_proxy_finish(struct ni_drain *d, struct ni_comm_writer *s, uint32_t slot) {
  struct ni_proxy_slot *x = proxy_at(slot);
  struct ni_event_writer *ev = ev_of(d, s);
  uint8_t flags = ni_load_rlx(&x->flags);
  uint64_t progress = ni_load_rlx(&x->ticks_progress);
  struct ni_proxy_line in = {.what = NI_PROXY_OP,
                             .has_parent = flags & NI_EVF_PARENT,
                             .send = flags & NI_EVF_SEND,
                             .foreign = flags & NI_EVF_FOREIGN,
                             .record_sn = x->sn,
                             .op_sn = x->sn,
                             .parent_sn = x->parent_sn,
                             .parent_rec_sn = x->parent_rec_sn,
                             .parent_kind = (enum ni_kind)x->parent_kind,
                             .parent_func = ni_intern_text(&ni_g.intern, x->func),
                             .rank = x->rank,
                             .channel = x->channel,
                             .peer = x->peer,
                             .n_steps = x->n_steps,
                             .chunk = x->chunk,
                             .n_started = ni_load_rlx(&x->n_started),
                             .n_completed = ni_load_rlx(&x->n_completed),
                             .n_dropped = ni_load_rlx(&x->n_dropped),
                             .pid = x->pid,
                             .bytes = ni_load_rlx(&x->bytes),
                             .start_ns = ni_clock_unix_ns(&ni_g.clock, x->ticks_start),
                             .progress_ns = ev_span(x->ticks_start, progress),
                             .max_step_ns = -1};
  in.total_ns = x->ticks_stop ? ev_span(x->ticks_start, x->ticks_stop) : -1;
  if (!x->ticks_stop) in.state = waits_for(x);
  if (in.n_completed) in.max_step_ns = (int64_t)ni_clock_span_ns(&ni_g.clock, ni_load_rlx(&x->max_step));
  for (int i = 0; i < NI_PH_COUNT - 1; i++) in.phase_ns[i] = ni_clock_span_ns(&ni_g.clock, ni_load_rlx(&x->sum[i]));
  struct ni_chain *c = &x->kept.steps;
  if (ni_g.config.proxy_nested && x->steps_asked) {
    fill_steps(d, c);
    in.steps = d->steps;
    in.n_listed = c->n;
  }
  int rc = ni_block_put(d->w, d->w->line, ni_format_proxy(d->w->line, sizeof d->w->line, ev_prefix(d, s), d->w->ts_us, &in));
  if (rc) return rc;
  ev_count(d, s, NI_EVENT_PROXY_OP, 1);
  ev->proxy_lines++;
  if (c->n) {
    ev_count(d, s, NI_EVENT_STEPS, c->n);
    d->n_kept -= c->n;
    ev->n_kept -= c->n;
    let_go(ev, &x->kept);
    free_steps(s, c);
  }
  return 1;
}

/* ---- steps ---- */

/* Half of what a limited pool holds; and in all a sixteenth of the arena: the rest is for events that come. */
static int too_many(struct ni_drain *d, struct ni_comm_writer *s) {
  uint32_t limit = ev_store(s)->events.limit;
  if (limit && ev_of(d, s)->n_kept >= ((uint64_t)limit + 127) / 128 * 64) return 1;
  return d->n_kept >= ni_g.arena.cap_bytes / 16 / NI_SLOT_BYTES;
}

int ni_step_finish(struct ni_drain *d, struct ni_comm_writer *s, uint32_t slot) {
  struct ni_event_slot *e = event_at(slot);
  struct ni_event_writer *ev = ev_of(d, s);
  struct ni_proxy_slot *x = ni_g.config.proxy_nested ? op_of_step(e) : NULL;
  int rc = 0;
  if (!x) {
    fill_step(e, d->steps);
    rc = put_steps(d, s, e, ni_g.config.proxy_nested ? NI_PROXY_SEGMENT : NI_PROXY_STEP, 1);
    return rc ? rc : 1;
  }
  if (x->kept.steps.n == NI_STEPS_A_LINE) rc = put_segment(d, s, x);
  while (rc == 0 && ev->hold_first && too_many(d, s)) rc = put_segment(d, s, proxy_at(ev->hold_first));
  return rc;
}

void ni_step_keep(struct ni_drain *d, struct ni_comm_writer *s, uint32_t slot) {
  struct ni_event_slot *e = event_at(slot);
  struct ni_event_writer *ev = ev_of(d, s);
  struct ni_chain *c = &proxy_at(e->step.op_slot)->kept.steps;
  if (!c->n) hold(ev, e->step.op_slot, d->w->now_ms);
  ni_chain_append(c, slot);
  d->n_kept++;
  ev->n_kept++;
}

int ni_steps_release(struct ni_drain *d, struct ni_comm_writer *s, int all) {
  struct ni_event_writer *ev = ev_of(d, s);
  int rc = 0;
  while (rc == 0 && ev->hold_first) {
    struct ni_proxy_slot *x = proxy_at(ev->hold_first);
    if (!all && d->w->now_ms - x->kept.since_ms < KEEP_MS) break;
    rc = ni_drain_check(d);
    if (rc == 0) rc = put_segment(d, s, x);
  }
  return rc;
}

void ni_steps_give_up(struct ni_drain *d, struct ni_event_writer *ev) {
  ev->lost[NI_EVENT_STEPS] += ev->n_kept;
  d->n_kept -= ev->n_kept;
  ev->n_kept = 0;
  ev->hold_first = ev->hold_last = 0; /* the process leaves: the slots are not used again */
}
