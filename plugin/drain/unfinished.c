/*
 * Lines about operations that have not finished: incomplete (given up), stuck (in flight for long), in_flight
 * (at exit).
 *
 * Stuck means in flight for NCCL_INSPECTOR_STUCK_SECONDS of a process that ran: a process that was stopped (a
 * debugger, a checkpoint) does not wake up to find its operations stuck, because the time begins anew when
 * the dump thread was away for more than NI_AWAY_MS. Not stuck, whatever their age: operations without a
 * channel while it is in doubt whether channel events were on when their task was made. A captured collective
 * that was never launched has no line: nothing tells whether it waits (callbacks 3.6).
 */
#include "unfinished.h"

#include "plugin/slots/beside/annex.h"
#include "plugin/slots/beside/chan_more.h"
#include "plugin/slots/state.h"
#include "plugin/write/accounts.h"
#include "plugin/write/block.h"

/* in_flight lines of one communicator and kind: hints, and the process leaves */
#define EXIT_LINES 16u

void ni_unfinished_fill(struct ni_drain *d, struct ni_op *op, uint64_t state, uint32_t prog,
                        struct ni_unfinished_line *in) {
  uint32_t want = ni_state_want(state);
  uint64_t enqueue_ns = ni_clock_monotonic_ns(&ni_g.clock, op->ticks_start);
  *in = (struct ni_unfinished_line){
      .kind = ni_kind_names[op->kind == NI_KIND_P2P],
      .func = ni_intern_text(&ni_g.intern, op->func),
      .sn = op->sn,
      .rec_sn = op->rec_sn,
      .msg_bytes = op->count * ni_intern_elem_bytes(&ni_g.intern, op->datatype),
      .channels_expected = want == NI_WANT_UNKNOWN ? -1 : (int32_t)want,
      .channels_started = (int32_t)ni_prog_started(prog),
      .channels_stopped = (int32_t)ni_prog_stopped(prog),
      .enqueue_ns = ni_clock_unix_ns(&ni_g.clock, op->ticks_start),
      .age_ms = d->w->now_ns > enqueue_ns ? (d->w->now_ns - enqueue_ns) / 1000000 : 0,
      .datatype = ni_intern_text(&ni_g.intern, op->datatype),
      .root = op->root,
      .peer = op->root,
  };
  const struct ni_annex *x = ni_annex_of(op);
  uint64_t nccl_tag;
  if (x)
    ni_split_tag(x->user_tag, &in->user_tag, &nccl_tag);
}

/*
 * Channels of the operation that are between start and stop now. Relaxed: a snapshot of what the poller does.
 */
static uint64_t channels_open(struct ni_comm *c, uint32_t slot, uint64_t state, int32_t *above) {
  uint64_t me = ni_payload_slot(slot, ni_state_gen(state)), bits = ni_more_channels(c, me, above);
  for (uint32_t i = 0; i < 2 * NI_CHANNELS; i++)
    if (ni_load_rlx(&c->cell[i].open) == me)
      bits |= UINT64_C(1) << (i / 2);
  return bits;
}

/* Where it stands, in the words of docs/format.md. */
static void describe(struct ni_comm_writer *s, uint32_t slot, uint64_t state, struct ni_unfinished_line *in) {
  in->channels_open = channels_open(s->comm, slot, state, &in->channels_open_above);
  if (in->channels_started == 0)
    in->state = "launched";
  else if ((uint32_t)in->channels_stopped == ni_state_want(state))
    in->state = "finishing";
  else
    in->state = "kernel";
}

int ni_unfinished_stuck(struct ni_drain *d, struct ni_comm_writer *s, struct ni_op *op, uint32_t slot) {
  uint64_t state = ni_load_acq(&op->state), limit_ns = ni_g.config.stuck_seconds * UINT64_C(1000000000);
  uint32_t prog = ni_load_acq(&op->prog);
  if (!limit_ns || !ni_g.config.control_lines || (ni_state_flags(state) & NI_OP_TOLD))
    return 0;
  if (op->mask_doubt && ni_prog_started(prog) == 0)
    return 0;
  uint64_t since = ni_clock_monotonic_ns(&ni_g.clock, op->ticks_start);
  if (since < d->awake_ns)
    since = d->awake_ns;
  if (d->w->now_ns < since || d->w->now_ns - since < limit_ns || ni_block_room(d->w))
    return 0;
  struct ni_unfinished_line in;
  ni_unfinished_fill(d, op, state, prog, &in);
  /* On the unchanged word: what moves while we look is not stuck. Relaxed: nothing goes with the mark. */
  uint64_t told = state | NI_STATE_FLAG(NI_OP_TOLD);
  if (!atomic_compare_exchange_strong_explicit(&op->state, &state, told, memory_order_relaxed,
                                               memory_order_relaxed))
    return 0;
  in.why = "stuck";
  describe(s, slot, state, &in);
  (void)ni_block_put(d->w, d->w->line,
                     ni_format_stuck(d->w->line, sizeof d->w->line, &s->prefix, d->w->ts_us, &in));
  d->w->urgent = s->stuck_told = 1;
  ni_log_warn_limited(
      &ni_g.log, NI_LOG_CAUSE_STUCK, d->w->now_ns,
      "%s %llu of communicator 0x%llx has been in flight for %llu s on rank %d (%s); nccl-inspector hang on "
      "the logs of all ranks says who is missing",
      in.func, (unsigned long long)in.sn, (unsigned long long)s->ident.comm_hash,
      (unsigned long long)(in.age_ms / 1000), s->ident.rank, in.state);
  return 1;
}

struct at_exit {
  struct ni_drain *d;
  struct ni_comm_writer *s;
  uint32_t left;
};

static void at_exit_one(struct ni_op *op, uint32_t slot, void *arg) {
  struct at_exit *x = arg;
  uint64_t state = ni_load_acq(&op->state);
  if (!x->left || !ni_op_in_flight(state) || ni_block_room(x->d->w))
    return;
  struct ni_unfinished_line in;
  ni_unfinished_fill(x->d, op, state, ni_load_acq(&op->prog), &in);
  in.why = "exit";
  describe(x->s, slot, state, &in);
  if (ni_block_put(
          x->d->w, x->d->w->line,
          ni_format_in_flight(x->d->w->line, sizeof x->d->w->line, &x->s->prefix, x->d->w->ts_us, &in)) == 0)
    x->left--;
}

void ni_unfinished_at_exit(struct ni_drain *d, struct ni_comm_writer *s) {
  for (int kind = 0; ni_g.config.control_lines && kind < NI_KIND_COUNT; kind++) {
    struct at_exit x = {d, s, EXIT_LINES};
    if (ni_accounts_unsettled(s, kind) > 0)
      ni_pool_walk(&ni_g.arena, &s->comm->kind[kind].pool, at_exit_one, &x);
  }
}
