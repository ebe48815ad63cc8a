/*
 * From done lists to lines in the open block, and from a written block to free slots.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "call_slot.h"
#include "plugin/slots/done_ring.h"
#include "plugin/dump/dump.h"
#include "format/apart.h"
#include "sample.h"

/* ---- chains of slots, linked by ni_op.next; owned by the dump role ---- */

static struct ni_op *op_at(uint32_t slot) { return ni_arena_op(&ni_g.arena, slot); }

void ni_chain_append(struct ni_chain *c, uint32_t slot) {
  ni_store_rlx(&op_at(slot)->next, 0);
  if (c->n++) ni_store_rlx(&op_at(c->last)->next, slot);
  else c->first = slot;
  c->last = slot;
}

uint32_t ni_chain_take(struct ni_chain *c) {
  uint32_t slot = c->first;
  if (c->n == 0) return 0;
  c->first = ni_load_rlx(&op_at(slot)->next);
  if (--c->n == 0) c->first = c->last = 0;
  return slot;
}

void ni_side_busy(struct ni_dump *d, struct ni_side *s) {
  if (s->in_busy) return;
  s->in_busy = 1;
  s->next_busy = d->busy;
  d->busy = s;
}

/* ---- collect ---- */

/* Is one of the same hash and rank over, and its last lines are not said yet? Nothing in a line tells the two apart. */
static int last_life_ends(const struct ni_dump *d, const struct ni_side *s) {
  /* Acquire pairs with the release in ni_dump_finalize: who came after that finalize finds it counted. */
  if (!ni_load_acq(&d->closings)) return 0;
  for (const struct ni_side *o = d->sides; o; o = o->next)
    if (o->ident.comm_hash == s->ident.comm_hash && o->ident.rank == s->ident.rank && o->stage == NI_SIDE_LIVE &&
        ni_comm_phase_of(ni_load_acq(&o->comm->state)) == NI_COMM_CLOSING)
      return s->ident.comm_hash != 0; /* v1 to v3 do not know it yet */
  return 0;
}

static struct ni_side *turned(struct ni_side *list) {
  struct ni_side *out = NULL;
  for (struct ni_side *s = list, *next; s; s = next) {
    next = s->next;
    s->next = out;
    out = s;
  }
  return out;
}

/* Takes communicators in that init has announced, in their order. One that has to wait, or that finds no memory, stays
 * announced with all behind it. */
void ni_drain_join(struct ni_dump *d) {
  struct ni_side *s = turned(atomic_exchange_explicit(&d->joining, NULL, memory_order_acquire)), *head = NULL;
  while (s && !last_life_ends(d, s)) {
    struct ni_side *next = s->next;
    if (s->index >= d->cap_index) {
      uint32_t cap = d->cap_index ? d->cap_index : 64;
      while (cap <= s->index) cap *= 2;
      struct ni_side **p = realloc(d->by_index, cap * sizeof *p);
      if (!p) break;
      memset(p + d->cap_index, 0, (cap - d->cap_index) * sizeof *p);
      d->by_index = p;
      d->cap_index = cap;
    }
    d->by_index[s->index] = s;
    s->next = d->sides;
    d->sides = s;
    d->n_sides++;
    d->comms_changed = 1;
    s = next;
  }
  if (!s) return;
  s = turned(s); /* to the old end of the list: others push at its head only, with a release that pairs with this acquire */
  if (atomic_compare_exchange_strong_explicit(&d->joining, &head, s, memory_order_release, memory_order_acquire)) return;
  while (head->next) head = head->next;
  head->next = s;
}

static void append_chain(struct ni_side *s, uint32_t slot) {
  while (slot) {
    struct ni_op *op = op_at(slot);
    uint32_t next = ni_load_rlx(&op->next);
    ni_chain_append(&s->kind[op->kind].todo, slot);
    slot = next;
  }
}

static int collect_side(struct ni_dump *d, struct ni_side *s) {
  uint32_t n = 0;
  if (s->stage != NI_SIDE_LIVE) return 0; /* its final line is out: what finishes at exit after it is in flight there */
  if (ni_g.keep_last) {
    struct ni_done_ring *ring = ni_g.ring[s->index];
    for (uint32_t slot; (slot = ni_done_ring_pop(ring)) != 0; n++) ni_chain_append(&s->kind[op_at(slot)->kind].todo, slot);
  } else {
    append_chain(s, ni_done_drain(&ni_g.arena, &s->comm->done, &n));
  }
  if (n) ni_side_busy(d, s);
  return n != 0;
}

int ni_drain_collect(struct ni_dump *d) {
  int moved = 0;
  ni_drain_join(d);
  if (ni_g.keep_last) { /* only at a flush: what is taken here can no longer be overwritten */
    for (struct ni_side *s = d->sides; s; s = s->next) moved |= collect_side(d, s);
    return moved;
  }
  uint32_t words = (d->cap_index + 63) / 64;
  for (uint32_t w = 0; w < words; w++) {
    if (!ni_load_rlx(&ni_g.dirty[w])) continue;
    /* Acquire pairs with the or in publish_done: the entry that set the bit is on the list. A communicator that is not
     * taken in yet gets its bit back: whoever set it came after the join, so the joining list is not empty. Otherwise the
     * bit is of a communicator that is gone (its entry was drained before the bit came), and kept it would never let an
     * interval of 0 sleep again. */
    uint64_t bits = ni_swap_acqrel(&ni_g.dirty[w], 0);
    while (bits) {
      uint32_t i = w * 64 + (uint32_t)__builtin_ctzll(bits);
      bits &= bits - 1;
      struct ni_side *s = i < d->cap_index ? d->by_index[i] : NULL;
      if (s) moved |= collect_side(d, s);
      else if (atomic_load_explicit(&d->joining, memory_order_acquire)) ni_or_rel(&ni_g.dirty[w], UINT64_C(1) << (i % 64));
    }
  }
  return moved;
}

/* ---- slots ---- */

static void put_free(struct ni_side *s, int kind, struct ni_chain *c) {
  if (!c->n) return;
  ni_pool_put_chain(&ni_g.arena, &s->comm->kind[kind].pool, c->first, c->last);
  *c = (struct ni_chain){0};
}

void ni_drain_rest(struct ni_dump *d, struct ni_side_kind *k, uint32_t slot) {
  struct ni_op *op = op_at(slot);
  op->seen_ms = d->judge_ms;
  op->seen_prog = (uint32_t)d->ticks;
  ni_chain_append(&k->rest, slot);
}

/* A retired operation's record is written, or counted elsewhere: a reader of the black box passes over it. */
static void mark_settled(struct ni_op *op) {
  (void)atomic_fetch_or_explicit(&op->state, NI_STATE_FLAG(NI_OP_SETTLED), memory_order_relaxed);
}

/* A slot whose operation leaves no line. */
static void give_slot(struct ni_dump *d, struct ni_side *s, int kind, uint32_t slot) {
  struct ni_op *op = op_at(slot);
  if (ni_state_flags(ni_load_rlx(&op->state)) & NI_OP_RETIRED) {
    mark_settled(op);
    ni_drain_rest(d, &s->kind[kind], slot);
    return;
  }
  ni_pool_give(&ni_g.arena, &s->comm->kind[kind].pool, slot);
}

/* ---- format ---- */

_Static_assert(NI_BAD_COUNT == NI_FALLBACK_COUNT, "op.h's reasons have the names of ni_schema.h");
_Static_assert(NI_BAD_COUNTERS_APART == NI_APART_REASON, "one number for the plugin and for who reads its black box");
static const uint8_t reason_of[] = {[NI_GPU_ZERO] = NI_BAD_ZERO_STAMP,
                                    [NI_GPU_STOP_BEFORE_START] = NI_BAD_STOP_BEFORE_START,
                                    [NI_GPU_SPAN_TOO_LONG] = NI_BAD_SPAN_TOO_LONG,
                                    [NI_GPU_AFTER_ARRIVAL] = NI_BAD_AFTER_ARRIVAL};

/*
 * When an operation of an earlier plan was started, in ns of the monotonic clock; 0: not known. The kernel of `op` was launched
 * after that, whatever happened to the host's threads in between.
 */
static uint64_t plan_before(struct ni_side *s, const struct ni_op *op) {
  int32_t newer = s->plans ? (int32_t)(op->group_ord - s->plan[0].ord) : 1;
  uint64_t ticks = 0;
  if (newer >= 0 && s->plans > (newer == 0)) ticks = s->plan[newer == 0].ticks;
  else if (newer < 0 && s->plans > 1 && (int32_t)(op->group_ord - s->plan[1].ord) > 0) ticks = s->plan[1].ticks;
  if (newer > 0) {
    s->plan[1] = s->plan[0];
    s->plan[0].ord = op->group_ord;
    s->plan[0].ticks = op->ticks_start;
    if (s->plans < 2) s->plans++;
  }
  return ticks ? ni_clock_monotonic_ns(&ni_g.clock, ticks) : 0;
}

/* Stamps of other work that the callbacks gave no sign of. */
static bool apart(struct ni_side *s, const struct ni_op *op, const struct ni_gpu_stamps *g, uint64_t plan_before_ns) {
  int64_t offset, drift = ni_gpu_tolerance(s->fit.confirmed_at_ns, g->done_arrival_ns) - NI_GPU_TOLERANCE_NS;
  if (!ni_gpu_fit_offset(&s->fit, &offset, NULL)) return false;
  if (!ni_apart_evidence(g->start_ns, offset, drift, plan_before_ns)) return false;
  s->apart_ns = ni_clock_monotonic_ns(&ni_g.clock, op->ticks_start);
  if (s->apart_proofs < NI_APART_PROOFS && ++s->apart_proofs == NI_APART_PROOFS) ni_store_rlx(&s->comm->apart_shown, 1);
  return true;
}

/* Looks again whether they contradict each other: marked operations bring no stamps to see it by. */
static void forget_apart(struct ni_side *s, const struct ni_op *op) {
  if (s->apart_proofs < NI_APART_PROOFS) return;
  if ((int64_t)(ni_clock_monotonic_ns(&ni_g.clock, op->ticks_start) - s->apart_ns) < NI_APART_HOLD_NS) return;
  s->apart_proofs = 0;
  ni_store_rlx(&s->comm->apart_shown, 0);
}

/*
 * Judges the GPU stamps; counts one reason an operation when they cannot be true, so that the counts add up.
 *
 * Stamps that only we can find impossible (they lie in the future, or span hours) have become the measure of the poller's
 * "before the previous work" by then. We make it forget them, and until an operation passes that test again its verdict
 * alone is not believed. *anothers: what came with KernelCh is another work's, its arrivals say nothing either.
 */
static bool gpu_believed(struct ni_side *s, struct ni_op *op, uint32_t prog, struct ni_gpu_stamps *g, bool *anothers) {
  struct ni_side_kind *k = &s->kind[op->kind];
  if (ni_prog_started(prog) == 0) return false;
  if (ni_prog_started(prog) != ni_prog_stopped(prog) && ni_state_want(ni_load_rlx(&op->state)) == NI_WANT_UNKNOWN) {
    k->told->fallback[NI_BAD_NO_STOP_STAMP]++; /* a channel started while we retired it: its line will say late */
    return false;
  }
  uint64_t before_ns = plan_before(s, op);
  uint32_t bad = ni_load_rlx(&op->bad);
  /* With stamps of a channel that nothing is wrong with, those are the operation's. */
  *anothers = ni_apart_only(bad, ni_load_rlx(&op->gpu_start_ns));
  if (*anothers) {
    forget_apart(s, op);
    k->told->fallback[NI_BAD_COUNTERS_APART]++;
    return false;
  }
  bad &= ~(1u << NI_BAD_COUNTERS_APART);
  if (bad == 1u << NI_BAD_BEFORE_PREVIOUS && s->poisoned) bad = 0;
  else if (!bad) s->poisoned = 0;
  if (bad) {
    k->told->fallback[__builtin_ctz(bad)]++;
    return false;
  }
  g->start_ns = ni_load_rlx(&op->gpu_start_ns);
  g->stop_ns = ni_load_rlx(&op->gpu_stop_ns);
  g->first_arrival_ns = ni_clock_monotonic_ns(&ni_g.clock, ni_load_rlx(&op->ticks_first));
  g->done_arrival_ns = ni_clock_monotonic_ns(&ni_g.clock, ni_load_rlx(&op->ticks_done));
  enum ni_gpu_verdict v = ni_gpu_fit_check(&s->fit, g);
  if (v == NI_GPU_OK && (*anothers = apart(s, op, g, before_ns))) {
    k->told->fallback[NI_BAD_COUNTERS_APART]++;
    return false;
  }
  (void)ni_gpu_fit_observe(&s->fit, g, v);
  if (v == NI_GPU_OK) return true;
  k->told->fallback[reason_of[v]]++;
  s->poisoned = 1;
  ni_add_rlx(&s->comm->forget, 1); /* pairs with nothing: the poller's relaxed load may come late, see above */
  return false;
}

static void fill_record(struct ni_side *s, struct ni_op *op, struct ni_record *r) {
  /* Relaxed: the operation is finished, the drain's acquire (or the judge's exchange) came before. */
  uint64_t state = ni_load_rlx(&op->state);
  uint32_t prog = ni_load_acq(&op->prog), want = ni_state_want(state);
  bool self = ni_g.self_is_silent && op->kind == NI_KIND_P2P && op->root == s->ident.rank;
  memset(r, 0, sizeof *r);
  r->kind = (enum ni_kind)op->kind;
  r->func = ni_intern_text(&ni_g.intern, op->func);
  r->datatype = ni_intern_text(&ni_g.intern, op->datatype);
  if (op->kind == NI_KIND_COLL) {
    r->algo = ni_intern_text(&ni_g.intern, op->algo);
    r->proto = ni_intern_text(&ni_g.intern, op->proto);
  }
  r->sn = op->sn;
  r->rec_sn = op->rec_sn;
  r->root = op->root;
  r->msg_bytes = op->count * ni_intern_elem_bytes(&ni_g.intern, op->datatype);
  r->nchannels_observed = want == NI_WANT_UNKNOWN;
  r->nchannels = self ? 0 : r->nchannels_observed ? ni_prog_started(prog) : op->nchannels;
  r->has = NI_HAS_REC_SN | NI_HAS_ROOT | NI_HAS_NCHANNELS | NI_HAS_ENQUEUE | NI_HAS_EXEC_NS | NI_HAS_TESTS_SIZE;
  r->enqueue_ns = ni_clock_unix_ns(&ni_g.clock, op->ticks_start);
  if (op->origin & NI_OP_CALLED) {
    r->has |= NI_HAS_CALL_SN;
    r->call_sn = ni_events_call_sn(s, op->kind == NI_KIND_P2P, op->call_sn);
    r->graph = op->origin & NI_OP_REPLAYED;
  }
  if (ni_load_rlx(&ni_g.kinds) & (NI_KINDS(NI_EVENT_GROUP) | NI_KINDS(NI_EVENT_LAUNCH))) {
    r->has |= NI_HAS_PLAN_SN;
    r->plan_sn = op->group_ord;
  }

  struct ni_gpu_stamps g = {0};
  bool anothers = false;
  struct ni_timing_in t = {.gpu_ok = gpu_believed(s, op, prog, &g, &anothers)};
  t.has_kernel = ni_prog_started(prog) && ni_prog_started(prog) == ni_prog_stopped(prog) && !anothers;
  t.gpu_ns = t.gpu_ok ? g.stop_ns - g.start_ns : 0;
  if (t.has_kernel)
    t.kernel_cpu_ns =
        ni_clock_span_ns(&ni_g.clock, ni_ticks_between(ni_load_rlx(&op->ticks_first), ni_load_rlx(&op->ticks_done)));
  t.bracket_ns = ni_clock_span_ns(&ni_g.clock, ni_ticks_between(op->ticks_start, op->ticks_stop));
  ni_timing_fill(r, ni_func_from_name(r->func), s->ident.n_ranks, &t);
  int64_t offset;
  if (t.gpu_ok && ni_gpu_fit_offset(&s->fit, &offset, NULL)) {
    r->has |= NI_HAS_GPU_DELTA;
    r->gpu_start_delta_ns =
        (int64_t)(g.start_ns + (uint64_t)offset - ni_clock_monotonic_ns(&ni_g.clock, op->ticks_start));
  }
}

/* One writer, the dump role; in the communicator, so that whoever reads its accounts from outside finds it. */
static void count_sampled(struct ni_side *s, enum ni_kind kind) {
  _Atomic uint64_t *sampled = &s->comm->kind[kind].filtered[NI_FILTER_SAMPLED];
  ni_store_rlx(sampled, ni_load_rlx(sampled) + 1);
}

/* One finished operation into the open block. On an error it is as if it had not been tried. */
static int format_one(struct ni_dump *d, struct ni_side *s, struct ni_side_kind *k) {
  struct ni_op *op = op_at(k->todo.first);
  struct ni_gpu_fit fit = s->fit;
  uint8_t poisoned = s->poisoned;
  uint64_t fallback[NI_FALLBACK_COUNT];
  memcpy(fallback, k->told->fallback, sizeof fallback);
  struct ni_record r;
  fill_record(s, op, &r);
  if (ni_g.config.require_kernel_timing && r.timing != NI_TIMING_KERNEL_GPU) {
    give_slot(d, s, op->kind, ni_chain_take(&k->todo)); /* no write to wait for; perhaps none will ever come */
    k->told->judged_out++;
    return 0;
  }
  if (!ni_sample_keeps(d->sample, s->ident.comm_hash, r.sn)) {
    if (ni_roll_counted()) ni_rollup_add(&s->rollup, &d->roll_pool, op->func, &r, d->real_ms * 1000000);
    give_slot(d, s, op->kind, ni_chain_take(&k->todo));
    count_sampled(s, r.kind);
    return 0;
  }
  r.trace = ni_trace_read(k->todo.first, &d->trace);
  int rc = r.has & NI_HAS_GPU_DELTA ? ni_lines_gpu_offset(d, s) : 0;
  if (rc == 0) rc = ni_lines_put(d, d->line, ni_format_op(d->line, sizeof d->line, &s->prefix, d->ts_us, &r));
  if (rc) { /* it will come again: its stamps must not be judged twice */
    s->fit = fit;
    s->poisoned = poisoned;
    memcpy(k->told->fallback, fallback, sizeof fallback);
    return rc;
  }
  if (ni_roll_counted()) ni_rollup_add(&s->rollup, &d->roll_pool, op->func, &r, d->real_ms * 1000000);
  k->in_block++;
  d->block_records++;
  ni_chain_append(&k->held, ni_chain_take(&k->todo));
  /* One writer at a time (the dump role), so load and store: a locked add would cost a record 5 ns. */
  ni_store_rlx(&d->progress, ni_load_rlx(&d->progress) + 1);
  /* A tick with a backlog is long, and callbacks go on taking pages. */
  if (ni_load_rlx(&d->progress) % 512 == 0) ni_arena_touch_ahead(&ni_g.arena);
  return 0;
}

int ni_drain_record(struct ni_dump *d, struct ni_side *s, struct ni_record *r, uint8_t func, uint64_t *sn, uint32_t slot) {
  struct ni_side_kind *k = &s->kind[r->kind];
  struct ni_comm_kind *c = &s->comm->kind[r->kind];
  int rc = ni_lines_room(d);
  if (rc) return rc;
  r->rec_sn = ni_add_rlx(&c->started, 1); /* relaxed: a number */
  r->sn = (*sn)++;
  if (r->msg_bytes < ni_g.min_size_bytes) {
    ni_call_slot_drop(s, slot);
    ni_add_rlx(&c->filtered[NI_FILTER_MIN_SIZE], 1);
  } else if (ni_g.config.require_kernel_timing) {
    ni_call_slot_drop(s, slot);
    k->told->judged_out++;
  } else {
    if (ni_roll_counted()) ni_rollup_add(&s->rollup, &d->roll_pool, func, r, d->real_ms * 1000000);
    if (!ni_sample_keeps(d->sample, s->ident.comm_hash, r->sn)) {
      ni_call_slot_drop(s, slot);
      count_sampled(s, r->kind);
      return 0;
    }
    if (slot) ni_call_slot_done(s, slot, r);
    (void)ni_lines_put(d, d->line, ni_format_op(d->line, sizeof d->line, &s->prefix, d->ts_us, r)); /* there is room */
    k->in_block++;
    d->block_records++;
    ni_side_busy(d, s);
    ni_store_rlx(&d->progress, ni_load_rlx(&d->progress) + 1);
  }
  return 0;
}

/* Is the open block to be written before more goes in? It must fit into a file where files may not grow long. At exit
 * time is short: text goes to disk in pieces, so that the end of the process finds most of it there, and what cannot be
 * formatted in time is given up while there is time to say so. */
int ni_drain_check(const struct ni_dump *d) {
  if (d->text_max && ni_gz_text_bytes(d->gz) >= d->text_max) return -EFBIG;
  if (ni_likely(!ni_load_acq(&d->exiting))) return 0; /* pairs with ni_dump_exit's release: leave_by_ns is there */
  if (ni_gz_text_bytes(d->gz) >= NI_EXIT_TEXT) return -EFBIG;
  return ni_load_rlx(&d->progress) % 64 == 0 && ni_monotonic_ns() >= d->leave_by_ns ? -ETIMEDOUT : 0;
}

void ni_drain_give_up(struct ni_dump *d) {
  for (struct ni_side *s = d->sides; s; s = s->next)
    for (int kind = 0; kind < NI_KIND_COUNT; kind++) {
      struct ni_side_kind *k = &s->kind[kind];
      uint64_t n = k->todo.n, from = UINT64_MAX, to = 0;
      for (uint32_t slot; (slot = ni_chain_take(&k->todo)) != 0;) {
        uint64_t sn = op_at(slot)->rec_sn;
        if (sn < from) from = sn;
        if (sn > to) to = sn;
      }
      d->gave_up |= n != 0;
      k->told->lost_write += n;
      if (n) ni_lines_given_up(d, s, kind, n, from, to);
    }
}

/* Without KernelCh an operation is finished by its bracket, and from 2.31 on by a thread that waits for nobody: often before
 * its network operations begin, which find who they belong to in its slot. NCCL begins them as soon as its progress thread
 * comes to it. Without KernelCh the bracket's end was noted, else the last channel's. */
static int too_young(const struct ni_dump *d, const struct ni_op *op) {
  uint64_t ticks = op->ticks_stop ? op->ticks_stop : ni_load_rlx(&op->ticks_done);
  uint64_t at = ni_clock_monotonic_ns(&ni_g.clock, ticks), ms = UINT64_C(1000000);
  /* No tick is that long: one that ended so much later than it began ended before the counter went back. */
  return ticks && at + NI_PATIENCE_MS * ms > d->now_ns && at < d->now_ns + NI_AWAY_MS * ms;
}

int ni_drain_format(struct ni_dump *d) {
  for (struct ni_side *s = d->busy; s; s = s->next_busy) {
    if (!ni_side_identify(d, s, 0)) continue; /* v1 to v3: its first operation is saying who it is at this moment */
    if (!s->announced) {
      ni_lines_comm(d, s);
      if (!s->announced) return ni_gz_finished(d->gz) ? -EBUSY : -EFBIG;
    }
    for (int kind = 0; kind < NI_KIND_COUNT; kind++)
      while (s->kind[kind].todo.n) {
        int rc = ni_drain_check(d);
        if (rc == 0 && d->patient && too_young(d, op_at(s->kind[kind].todo.first))) {
          d->watching = 1;
          break;
        }
        if (rc == 0) rc = format_one(d, s, &s->kind[kind]);
        if (rc) return rc;
      }
  }
  return 0;
}

/* ---- settle ---- */

void ni_drain_settle(struct ni_dump *d, int ok) {
  struct ni_side *s = d->busy;
  d->busy = NULL;
  ni_events_settle(&d->detached, ok);
  while (s) {
    struct ni_side *next = s->next_busy;
    s->in_busy = 0;
    for (int kind = 0; kind < NI_KIND_COUNT; kind++) {
      struct ni_side_kind *k = &s->kind[kind];
      struct ni_chain free_now = {0};
      for (uint32_t slot; (slot = ni_chain_take(&k->held)) != 0;) {
        struct ni_op *op = op_at(slot);
        if (ni_state_flags(ni_load_rlx(&op->state)) & NI_OP_RETIRED) {
          mark_settled(op);
          ni_drain_rest(d, k, slot);
        } else {
          ni_slot_new_life(op);
          ni_chain_append(&free_now, slot);
        }
      }
      put_free(s, kind, &free_now);
      if (ok) k->told->written += k->in_block;
      else k->told->lost_write += k->in_block;
      k->in_block = 0;
      if (k->todo.n) ni_side_busy(d, s);
    }
    ni_events_settle(&s->ev, ok);
    ni_keep_fit(s);
    s = next;
  }
  for (s = d->closed_in_block ? d->sides : NULL; s; s = s->next)
    if (s->stage == NI_SIDE_CLOSED) s->stage = NI_SIDE_WRITTEN;
  d->closed_in_block = 0;
  d->block_records = 0;
}

/* ---- release ---- */

/* What a callback has filled after the last look at it: whoever gets the page next must not find it alive. */
static void end_life(struct ni_op *op, uint32_t slot, void *arg) {
  (void)slot, (void)arg;
  if (ni_state_flags(ni_load_rlx(&op->state))) ni_slot_new_life(op);
}

/* The accounts did not close: a callback was still on its way when the last lines were said. Or an event was open at the end:
 * one may be inside it. It must not meet another's memory, so the communicator rests as a retired slot does. */
static int may_still_come(const struct ni_dump *d, const struct ni_side *s) {
  int away = s->cut_short || (s->closing_ms && ni_side_any_unsettled(s));
  return away && (d->judge_ms - s->closing_judge_ms < NI_REST_MS || (uint32_t)d->ticks - s->closing_tick < NI_REST_TICKS);
}

static void free_side(struct ni_dump *d, struct ni_side *s) {
  ni_detail_forget_side(d, s);
  struct ni_comm *c = s->comm;
  for (int kind = 0; s->closing_ms && kind < NI_KIND_COUNT; kind++)
    ni_pool_walk(&ni_g.arena, &c->kind[kind].pool, end_life, NULL);
  ni_pool_walk(&ni_g.arena, &c->events.proxies, end_life, NULL);
  ni_pool_walk(&ni_g.arena, &c->events.events, end_life, NULL);
  ni_pool_walk(&ni_g.arena, &c->more, end_life, NULL);
  for (int kind = 0; kind < NI_KIND_COUNT; kind++) {
    ni_trace_leave(&c->kind[kind].pool);
    ni_pool_close(&ni_g.arena, &c->kind[kind].pool);
  }
  ni_pool_close(&ni_g.arena, &c->events.events);
  ni_pool_close(&ni_g.arena, &c->events.proxies);
  ni_pool_close(&ni_g.arena, &c->more);
  d->by_index[s->index] = NULL;
  d->n_sides--;
  d->comms_changed = 1;
  pthread_mutex_lock(&ni_g.lock);
  if (ni_g.ring) {
    ni_done_ring_free(ni_g.ring[s->index]);
    ni_g.ring[s->index] = NULL;
  }
  ni_index_give(s->index);
  pthread_mutex_unlock(&ni_g.lock);
  /* Release: a later init that takes the page sees it as we leave it (through the arena's stack). */
  ni_store_rel(&c->state, ni_comm_state(s->gen + 1, NI_COMM_FREE));
  ni_arena_give(&ni_g.arena, NI_CHUNK_COMM, c->page);
  ni_rollup_free(&s->rollup, &d->roll_pool);
  ni_line_prefix_free(&s->prefix);
  free(s);
}

void ni_drain_release(struct ni_dump *d) {
  for (struct ni_side **p = &d->sides, *s; (s = *p);) {
    uint32_t resting = 0;
    for (int kind = 0; kind < NI_KIND_COUNT; kind++) {
      struct ni_side_kind *k = &s->kind[kind];
      struct ni_chain rested = {0};
      while (k->rest.n) {
        struct ni_op *op = op_at(k->rest.first);
        if (d->judge_ms - op->seen_ms < NI_REST_MS || (uint32_t)d->ticks - op->seen_prog < NI_REST_TICKS) break;
        uint32_t slot = ni_chain_take(&k->rest);
        ni_slot_new_life(op);
        ni_chain_append(&rested, slot);
      }
      put_free(s, kind, &rested);
      resting += k->rest.n;
    }
    /* Exit closes communicators that nobody has finalized: callbacks still run on them, and use their pools. */
    int in_use = ni_comm_phase_of(ni_load_acq(&s->comm->state)) == NI_COMM_LIVE; /* pairs with finalize's release */
    if (s->stage == NI_SIDE_WRITTEN && !in_use && !resting && !s->in_busy && !may_still_come(d, s)) {
      *p = s->next;
      free_side(d, s);
    } else {
      p = &s->next;
    }
  }
}
