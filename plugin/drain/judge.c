/*
 * What no callback will complete.
 *
 * Unknown channel count (CollNet, P2P through the v4 translation): retired when its bracket is closed, every
 * channel that started has stopped, and it is overtaken (an operation of a later Group has started on the
 * device) and quiet for 50 ms, or quiet for 1 s, or the communicator or the process is over. With no channel
 * at all: only when overtaken and quiet for 1 s, or at the end; it is then timed by its bracket.
 * (docs/architecture.md gives the argument.) When KernelCh was off at its start, nothing will ever overtake
 * it: quiet for 1 s is enough, and so is the end of the process.
 *
 * Known count, but KernelCh was off at some time before: perhaps the task was made, or the graph captured,
 * then. If no channel has started, it is overtaken and quiet for 1 s, it is a record timed by its bracket.
 *
 * Known count, children missing: incomplete when overtaken and quiet for 10 s, or when the communicator is
 * finalized. Otherwise it stays in flight, because that is the evidence of a hang.
 *
 * Race with the poller. It counts in prog by plain stores, so a child may start and stop while we retire. We
 * exchange the state to RETIRED, then read prog for the record; where the count is unknown, a stop stores
 * prog, then reads the state again, with a full fence between on both sides. So a stop that is not in the
 * record finds RETIRED, and is counted and written as late: a record that is short is known to be short
 * (test/model/retire.pml).
 */
#include "judge.h"

#include "plugin/slots/state.h"
#include "format/apart.h"
#include "fused.h"
#include "plugin/write/block.h"
#include "settle.h"
#include "unfinished.h"

/* how often the slots of a communicator are searched for missing children */
#define SCAN_MS 1000u
#define QUIET_OVERTAKEN_MS 50u
#define QUIET_MS 1000u
#define QUIET_MISSING_MS 10000u

/* Sets RETIRED by compare-exchange on the unchanged word; 0 when a callback was faster. acq_rel: the
 * starter's stores (its CLOSED exchange) are seen, and a callback that reads RETIRED sees that the slot is
 * ours. */
static int retire(struct ni_op *op, uint64_t state, uint32_t flags) {
  uint64_t now = state | NI_STATE_FLAG(NI_OP_RETIRED | flags);
  if (!atomic_compare_exchange_strong_explicit(&op->state, &state, now, memory_order_acq_rel,
                                               memory_order_acquire))
    return 0;
  /* pairs with check_retired in callbacks_channel.c: prog is read after this */
  atomic_thread_fence(memory_order_seq_cst);
  return 1;
}

static int overtaken(const struct ni_comm_writer *s, const struct ni_op *op) {
  return (int32_t)(ni_load_rlx(&s->comm->newest_group) - op->group_ord) > 0;
}

/* How long prog has not moved, by our own looks. The first look starts the time. */
static uint32_t quiet_ms(struct ni_drain *d, struct ni_op *op, uint32_t prog) {
  if (op->seen_ms == 0 || op->seen_prog != prog) {
    op->seen_prog = prog;
    op->seen_ms = d->judge_ms;
  }
  return d->judge_ms - op->seen_ms;
}

/*
 * Gives an operation up, with its line. 0: not yet, because the line does not fit or a callback was faster.
 */
static int incomplete(struct ni_drain *d, struct ni_comm_writer *s, struct ni_op *op, uint32_t slot,
                      uint64_t state, const char *why) {
  if (ni_block_room(d->w) || !retire(op, state, NI_OP_GIVEN_UP))
    return 0;
  struct ni_kind_writer *k = &s->kind[op->kind];
  struct ni_unfinished_line in;
  ni_unfinished_fill(d, op, state, ni_load_acq(&op->prog), &in);
  in.why = why;
  k->account->incomplete++;
  if (op->origin & NI_OP_FUSED)
    ni_fused_give_up(d, s, op->group_ord);
  (void)ni_block_put(d->w, d->w->line,
                     ni_format_incomplete(d->w->line, sizeof d->w->line, &s->prefix, d->w->ts_us, &in));
  ni_settle_rest(d, k, slot);
  return 1;
}

/* One operation with an unknown channel count. 1: it is off the list. */
static int judge_unknown(struct ni_drain *d, struct ni_comm_writer *s, struct ni_op *op, uint32_t slot,
                         enum ni_end end) {
  uint64_t state = ni_load_acq(&op->state); /* pairs with the starter's CLOSED exchange */
  uint32_t prog = ni_load_acq(&op->prog);   /* pairs with the poller's release: its stamps are there */
  uint32_t started = ni_prog_started(prog), stopped = ni_prog_stopped(prog), quiet = quiet_ms(d, op, prog);
  int closed = (ni_state_flags(state) & NI_OP_CLOSED) != 0, done;
  if (started > 0)
    done = closed && started == stopped &&
        (end || quiet >= QUIET_MS || (quiet >= QUIET_OVERTAKEN_MS && overtaken(s, op)));
  else
    done = closed &&
        (end == NI_END_DESTROY || (end && op->mask_doubt == NI_MASK_OFF) ||
         (quiet >= QUIET_MS && (op->mask_doubt == NI_MASK_OFF || overtaken(s, op))));
  if (done && retire(op, state, 0)) {
    ni_chain_append(&s->kind[op->kind].todo, slot);
    ni_drain_busy(d, s);
    return 1;
  }
  if (!done && !end)
    (void)ni_unfinished_stuck(d, s, op, slot);
  return end == NI_END_DESTROY && !done && incomplete(d, s, op, slot, state, "finalize");
}

static void judge_watch(struct ni_drain *d, struct ni_comm_writer *s, enum ni_end end) {
  /* Acquire pairs with the release of watch() in callbacks.c: the links are there. */
  uint32_t fresh = ni_load_rlx(&s->comm->watch) ? ni_swap_acq(&s->comm->watch, 0) : 0;
  while (fresh) {
    struct ni_op *op = ni_arena_op(&ni_g.arena, fresh);
    uint32_t next = ni_load_rlx(&op->next);
    ni_store_rlx(&op->next, s->watch);
    s->watch = fresh;
    fresh = next;
  }
  uint32_t kept = 0, kept_last = 0;
  for (uint32_t slot = s->watch, next; slot; slot = next) {
    struct ni_op *op = ni_arena_op(&ni_g.arena, slot);
    next = ni_load_rlx(&op->next);
    if (judge_unknown(d, s, op, slot, end))
      continue;
    ni_store_rlx(&op->next, 0);
    if (kept)
      ni_store_rlx(&ni_arena_op(&ni_g.arena, kept_last)->next, slot);
    else
      kept = slot;
    kept_last = slot;
  }
  s->watch = kept;
}

struct scan {
  struct ni_drain *d;
  struct ni_comm_writer *s;
  enum ni_end end;
};

/*
 * Has the device counted works before it that NCCL has not, so that its KernelCh may come with works that are
 * long to come, or never (format/apart.h)? Symmetric kernels have counts of their own.
 */
static bool counts_shifted(const struct ni_comm_writer *s, const struct ni_op *op) {
  return ni_g.mask_shifts_counts && !(op->origin & NI_OP_SYMMETRIC) &&
      ni_load_rlx(&s->comm->apart) == NI_APART_ALL;
}

static void scan_one(struct ni_op *op, uint32_t slot, void *arg) {
  struct scan *x = arg;
  uint64_t state = ni_load_acq(&op->state); /* pairs with the LIVE store: the descriptor is there */
  if (!ni_op_in_flight(state) || ni_state_want(state) == NI_WANT_UNKNOWN)
    return;
  uint32_t prog = ni_load_acq(&op->prog), quiet = quiet_ms(x->d, op, prog);
  /* from here on its origin does not change any more */
  bool closed = (ni_state_flags(state) & NI_OP_CLOSED) != 0;
  bool shifted = closed && counts_shifted(x->s, op);
  bool silent = closed && ni_prog_started(prog) == 0 && (op->mask_doubt || shifted);
  if (silent && (x->end == NI_END_DESTROY || (quiet >= QUIET_MS && (shifted || overtaken(x->s, op))))) {
    if (!retire(op, state, 0))
      return;
    ni_chain_append(&x->s->kind[op->kind].todo, slot);
    ni_drain_busy(x->d, x->s);
  } else if (x->end == NI_END_DESTROY) {
    (void)incomplete(x->d, x->s, op, slot, state, "finalize");
  } else if (closed && quiet >= QUIET_MISSING_MS && overtaken(x->s, op)) {
    (void)incomplete(x->d, x->s, op, slot, state, "overtaken");
  } else if (!x->end && !silent) {
    (void)ni_unfinished_stuck(x->d, x->s, op, slot);
  }
}

void ni_judge(struct ni_drain *d, struct ni_comm_writer *s, enum ni_end end) {
  if (s->watch || ni_load_rlx(&s->comm->watch))
    judge_watch(d, s, end);
  int scan = end == NI_END_DESTROY;
  if (!scan && d->w->now_ms - s->last_scan_ms >= SCAN_MS) {
    s->last_scan_ms = d->w->now_ms;
    for (int kind = 0; kind < NI_KIND_COUNT; kind++) {
      struct ni_kind_writer *k = &s->kind[kind];
      uint64_t settled = k->account->written + k->in_block + k->account->judged_out + k->account->incomplete +
          k->todo.n + ni_load_rlx(&s->comm->kind[kind].filtered[NI_FILTER_SAMPLED]);
      /* Drops and other filters left out: at worst a scan too many. */
      scan |= ni_load_rlx(&s->comm->kind[kind].started) != settled;
    }
  }
  struct scan x = {d, s, end};
  for (int kind = 0; scan && kind < NI_KIND_COUNT; kind++)
    ni_pool_walk(&ni_g.arena, &s->comm->kind[kind].pool, scan_one, &x);
  if (end && s->fused.waiting.n)
    ni_drain_busy(d, s); /* they go behind their heads (drain.c) */
}
