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

#include <math.h>
#include <string.h>

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

static double us(int64_t ns) { return ns < 0 ? NAN : (double)ns / 1000; }
/* Of a phase: one of no length was not had. */
static double phase_us(uint64_t ticks) {
  uint64_t ns = ni_clock_span_ns(&ni_g.clock, ticks);
  return ns ? (double)ns / 1000 : NAN;
}

/* The times of an operation and of a step, which have the same members. */
#define FILL_PHASES(to, ticks_of) \
  do { \
    (to)->gpu_produce_us = phase_us(ticks_of(NI_PH_GPU_PRODUCE - 1)); \
    (to)->peer_credit_us = phase_us(ticks_of(NI_PH_PEER_CREDIT - 1)); \
    (to)->wire_us = phase_us(ticks_of(NI_PH_WIRE - 1)); \
    (to)->flush_us = phase_us(ticks_of(NI_PH_FLUSH - 1)); \
    (to)->gpu_consume_us = phase_us(ticks_of(NI_PH_GPU_CONSUME - 1)); \
  } while (0)

static void fill_step(const struct ni_event_slot *e, struct ni_proxy_step *t) {
  int64_t total_ns = ev_span(e->ticks_start, e->ticks_stop);
  *t = (struct ni_proxy_step){NI_NO_STEP,
                              .record_sn = e->sn,
                              .proxy_step_sn = e->step.step_sn,
                              .trans_size_bytes = e->count,
                              .start_ns = ni_clock_unix_ns(&ni_g.clock, e->ticks_start)};
  t->step = e->step.step;
  t->total_us = us(total_ns);
#define STEP_TICKS(i) e->step.phase[i]
  if (total_ns >= 0) FILL_PHASES(t, STEP_TICKS);
}

/* What lines of an operation, of its steps and of one step have in common. */
static struct ni_proxy_line line_of(const char *type, uint8_t flags, uint64_t op_sn, uint64_t parent_sn, int parent_p2p, uint8_t func) {
  struct ni_proxy_line in = {NI_NO_PROXY};
  in.record_type = type;
  in.record_sn = in.proxy_op_sn = op_sn;
  in.parent_type = flags & NI_EVF_PARENT ? ni_kind_names[parent_p2p] : NULL;
  in.parent_sn = flags & NI_EVF_PARENT ? parent_sn : NI_NO_SN;
  in.parent_func = ni_intern_text(&ni_g.intern, func);
  in.direction = flags & NI_EVF_SEND ? "send" : "recv";
  in.timing_source = "proxy_cpu";
  in.state = NULL;
  return in;
}

/* Chained steps into d->steps. */
static void fill_steps(struct ni_drain *d, const struct ni_chain *c) {
  uint32_t slot = c->first;
  for (uint32_t i = 0; i < c->n; i++, slot = ni_load_rlx(&ni_arena_op(&ni_g.arena, slot)->next))
    fill_step(event_at(slot), &d->steps[i]);
}

/* A line about the n steps of d->steps, all of the operation of e, the first; or about that one alone, with its own numbers. */
static int put_steps(struct ni_drain *d, struct ni_comm_writer *s, const struct ni_event_slot *e, const char *type, uint32_t n) {
  struct ni_proxy_line in = line_of(type, ni_load_rlx(&e->flags), e->number, e->group, e->parent_kind == NI_KIND_P2P, e->func);
  in.channel = e->channel;
  in.peer = e->step.peer;
  in.steps.list = d->steps;
  in.steps.n = n;
  if (strcmp(type, NI_PROXY_STEP) == 0) {
    const struct ni_proxy_step *t = d->steps;
    in.steps.list = NULL;
    in.record_sn = t->record_sn;
    in.proxy_step_sn = t->proxy_step_sn;
    in.step = t->step;
    in.trans_size_bytes = t->trans_size_bytes;
    in.start_ns = t->start_ns;
    in.total_us = t->total_us;
    in.gpu_produce_us = t->gpu_produce_us;
    in.peer_credit_us = t->peer_credit_us;
    in.wire_us = t->wire_us;
    in.flush_us = t->flush_us;
    in.gpu_consume_us = t->gpu_consume_us;
  }
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
  struct ni_proxy_line in = line_of(NI_PROXY_OP, flags, x->sn, x->parent_sn, x->parent_kind == NI_KIND_P2P, x->func);
  int64_t total_ns = x->ticks_stop ? ev_span(x->ticks_start, x->ticks_stop) : -1;
  in.is_final = true;
  in.parent_rec_sn = x->parent_rec_sn;
  in.rank = x->rank;
  in.channel = x->channel;
  in.peer = x->peer;
  in.n_steps = x->n_steps > 0 ? (uint64_t)x->n_steps : 0;
  in.chunk_size_bytes = x->chunk > 0 ? (uint64_t)x->chunk : 0;
  in.n_steps_started = ni_load_rlx(&x->n_started);
  in.n_steps_completed = ni_load_rlx(&x->n_completed);
  in.n_steps_dropped = ni_load_rlx(&x->n_dropped);
  if (flags & NI_EVF_FOREIGN) in.origin_pid = x->pid;
  in.trans_size_bytes = ni_load_rlx(&x->bytes);
  in.start_ns = ni_clock_unix_ns(&ni_g.clock, x->ticks_start);
  in.progress_us = us(ev_span(x->ticks_start, progress));
  in.total_us = us(total_ns);
  if (total_ns > 0) in.op_bw_gbs = (double)in.trans_size_bytes / (double)total_ns;
  if (in.op_bw_gbs > NI_BW_MAX_GBS) in.op_bw_gbs = INFINITY; /* written as null */
  if (!x->ticks_stop) in.state = waits_for(x);
  if (in.n_steps_completed) in.max_step_us = us((int64_t)ni_clock_span_ns(&ni_g.clock, ni_load_rlx(&x->max_step)));
#define OP_TICKS(i) ni_load_rlx(&x->sum[i])
  FILL_PHASES(&in, OP_TICKS);
  struct ni_chain *c = &x->kept.steps;
  if (ni_g.config.proxy_nested && x->steps_asked) {
    fill_steps(d, c);
    in.steps.list = d->steps;
    in.steps.n = c->n;
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
