#include "op_record.h"

#include <stdlib.h>
#include <string.h>

#include "format/apart.h"
#include "fused.h"
#include "plugin/slots/beside/annex.h"
#include "plugin/slots/state.h"

_Static_assert(NI_BAD_COUNT == NI_FALLBACK_COUNT, "op.h's reasons have the names of format/names.h");
_Static_assert(NI_BAD_COUNTERS_APART == NI_APART_REASON,
               "one number for the plugin and for who reads its black box");
static const uint8_t reason_of[] = {[NI_GPU_ZERO] = NI_BAD_ZERO_STAMP,
                                    [NI_GPU_STOP_BEFORE_START] = NI_BAD_STOP_BEFORE_START,
                                    [NI_GPU_SPAN_TOO_LONG] = NI_BAD_SPAN_TOO_LONG,
                                    [NI_GPU_AFTER_ARRIVAL] = NI_BAD_AFTER_ARRIVAL};

/*
 * When an operation of an earlier plan was started, in ns of the monotonic clock; 0: not known. The kernel of
 * `op` was launched after that, whatever happened to the host's threads in between.
 */
static uint64_t plan_before(struct ni_comm_writer *s, const struct ni_op *op) {
  int32_t newer = s->plans ? (int32_t)(op->group_ord - s->plan[0].ord) : 1;
  uint64_t ticks = 0;
  if (newer >= 0 && s->plans > (newer == 0))
    ticks = s->plan[newer == 0].ticks;
  else if (newer < 0 && s->plans > 1 && (int32_t)(op->group_ord - s->plan[1].ord) > 0)
    ticks = s->plan[1].ticks;
  if (newer > 0) {
    s->plan[1] = s->plan[0];
    s->plan[0].ord = op->group_ord;
    s->plan[0].ticks = op->ticks_start;
    if (s->plans < 2)
      s->plans++;
  }
  return ticks ? ni_clock_monotonic_ns(&ni_g.clock, ticks) : 0;
}

/* Stamps of other work that the callbacks gave no sign of. */
static bool apart(struct ni_comm_writer *s, const struct ni_op *op, const struct ni_gpu_stamps *g,
                  uint64_t plan_before_ns) {
  int64_t offset, drift = ni_gpu_tolerance(s->fit.confirmed_at_ns, g->done_arrival_ns) - NI_GPU_TOLERANCE_NS;
  if (!ni_gpu_fit_offset(&s->fit, &offset, NULL))
    return false;
  uint64_t started_ns = ni_g.mask_shifts_counts ? ni_clock_monotonic_ns(&ni_g.clock, op->ticks_start) : 0;
  if (!ni_apart_evidence(g->start_ns, offset, drift, plan_before_ns) &&
      !ni_apart_before_call(g->stop_ns, offset, drift, started_ns))
    return false;
  s->apart_ns = ni_clock_monotonic_ns(&ni_g.clock, op->ticks_start);
  if (s->apart_proofs < NI_APART_PROOFS && ++s->apart_proofs == NI_APART_PROOFS)
    ni_store_rlx(&s->comm->apart_shown, 1);
  return true;
}

/*
 * After a minute without proof, trusts the communicator's stamps again: marked operations cannot give proof.
 */
static void forget_apart(struct ni_comm_writer *s, const struct ni_op *op) {
  if (s->apart_proofs < NI_APART_PROOFS)
    return;
  if ((int64_t)(ni_clock_monotonic_ns(&ni_g.clock, op->ticks_start) - s->apart_ns) < NI_APART_HOLD_NS)
    return;
  s->apart_proofs = 0;
  ni_store_rlx(&s->comm->apart_shown, 0);
}

/* Are ticks of the GPU's clock what they are taken for? g: stamps that nothing else is wrong with. */
static bool rate_believed(struct ni_comm_writer *s, const struct ni_gpu_stamps *g) {
  if (ni_g.gpu_clock == NI_GPU_CLOCK_SURE)
    return true;
  int agrees = ni_gpu_rate_check(&s->rate, g);
  return ni_g.gpu_clock == NI_GPU_CLOCK_ASSUMED ? agrees >= 0 : agrees > 0;
}

/*
 * Judges the GPU stamps; counts one reason an operation when they cannot be true, so that the counts add up.
 *
 * Stamps that only we can find impossible (they lie in the future, or span hours) have become the measure of
 * the poller's "before the previous work" by then. We make it forget them, and until an operation passes that
 * test again its verdict alone is not believed. *anothers: what came with KernelCh is another work's, its
 * arrivals say nothing either.
 */
static bool gpu_believed(struct ni_comm_writer *s, struct ni_op *op, uint32_t prog, struct ni_gpu_stamps *g,
                         bool *anothers) {
  struct ni_kind_writer *k = &s->kind[op->kind];
  if (ni_prog_started(prog) == 0)
    return false;
  if (ni_prog_started(prog) != ni_prog_stopped(prog) &&
      ni_state_want(ni_load_rlx(&op->state)) == NI_WANT_UNKNOWN) {
    /* a channel started while we retired it: its line will say late */
    k->account->fallback[NI_BAD_NO_STOP_STAMP]++;
    return false;
  }
  uint64_t before_ns = plan_before(s, op);
  uint32_t bad = ni_load_rlx(&op->bad);
  /* With stamps of a channel that nothing is wrong with, those are the operation's. */
  *anothers = ni_apart_only(bad, ni_load_rlx(&op->gpu_start_ns));
  if (*anothers) {
    forget_apart(s, op);
    k->account->fallback[NI_BAD_COUNTERS_APART]++;
    return false;
  }
  bad &= ~(1u << NI_BAD_COUNTERS_APART);
  if (bad == 1u << NI_BAD_BEFORE_PREVIOUS && s->poisoned)
    bad = 0;
  else if (!bad)
    s->poisoned = 0;
  if (bad) {
    k->account->fallback[__builtin_ctz(bad)]++;
    return false;
  }
  g->start_ns = ni_gpu_ns(ni_load_rlx(&op->gpu_start_ns), ni_g.gpu_khz);
  g->stop_ns = ni_gpu_ns(ni_load_rlx(&op->gpu_stop_ns), ni_g.gpu_khz);
  g->first_arrival_ns = ni_clock_monotonic_ns(&ni_g.clock, ni_load_rlx(&op->ticks_first));
  g->done_arrival_ns = ni_clock_monotonic_ns(&ni_g.clock, ni_load_rlx(&op->ticks_done));
  enum ni_gpu_verdict v = ni_gpu_fit_check(&s->fit, g);
  if (v == NI_GPU_OK && (*anothers = apart(s, op, g, before_ns))) {
    k->account->fallback[NI_BAD_COUNTERS_APART]++;
    return false;
  }
  if (v == NI_GPU_OK && !rate_believed(s, g)) {
    k->account->fallback[NI_BAD_CLOCK_RATE]++;
    return false;
  }
  (void)ni_gpu_fit_observe(&s->fit, g, v);
  if (v == NI_GPU_OK)
    return true;
  k->account->fallback[reason_of[v]]++;
  s->poisoned = 1;
  /* pairs with nothing: the poller's relaxed load may come late, see above */
  ni_add_rlx(&s->comm->forget, 1);
  return false;
}

/* Since the replay before of the same call began; 0: not known. Formatted again, it says the same again. */
static uint64_t since_replay(struct ni_comm_writer *s, uint64_t call_sn, uint64_t ticks) {
  if (!s->replays)
    s->replays = calloc(NI_REPLAYS, sizeof *s->replays);
  if (!s->replays)
    return 0;
  struct ni_graph_replay *x = &s->replays[call_sn % NI_REPLAYS];
  if (x->call != call_sn + 1)
    *x = (struct ni_graph_replay){.call = call_sn + 1};
  if (x->ticks != ticks) {
    x->ticks_before = x->ticks;
    x->ticks = ticks;
  }
  return x->ticks_before ? ni_clock_span_ns(&ni_g.clock, ni_ticks_between(x->ticks_before, ticks)) : 0;
}

/* What a symmetric kernel's record has beside. */
static void symmetric(struct ni_comm_writer *s, const struct ni_op *op, struct ni_record *r) {
  r->symmetric = true;
  r->kernel = op->kernel ? ni_intern_text(&ni_g.intern, op->kernel) : NULL;
  if (!r->graph)
    return;
  r->prev_replay_ns = since_replay(s, r->call_sn, op->ticks_start);
  if (r->prev_replay_ns)
    r->has |= NI_HAS_PREV_REPLAY;
}

/*
 * A tail takes its head's time over, a head leaves it to its tails. The time of all is no measure of one's
 * bandwidth.
 */
static void share_span(struct ni_drain *d, struct ni_comm_writer *s, const struct ni_op *op,
                       struct ni_timing_in *t, int64_t *gpu_start_ns) {
  if (!(op->origin & NI_OP_TAIL)) {
    ni_fused_head(d, s, op->group_ord, t, *gpu_start_ns);
    return;
  }
  const struct ni_fused_span *span = ni_fused_span_of(s, op->group_ord);
  if (!span)
    return;
  t->gpu_ok = span->gpu_ok;
  t->has_kernel = span->has_kernel;
  t->gpu_ns = span->gpu_ns;
  t->kernel_cpu_ns = span->kernel_cpu_ns;
  *gpu_start_ns = span->gpu_start_ns;
}

void ni_op_record(struct ni_drain *d, struct ni_comm_writer *s, struct ni_op *op, struct ni_record *r) {
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
  r->has =
      NI_HAS_REC_SN | NI_HAS_ROOT | NI_HAS_NCHANNELS | NI_HAS_ENQUEUE | NI_HAS_EXEC_NS | NI_HAS_TESTS_SIZE;
  r->enqueue_ns = ni_clock_unix_ns(&ni_g.clock, op->ticks_start);
  if (op->origin & NI_OP_CALLED) {
    r->has |= NI_HAS_CALL_SN;
    r->call_sn = ni_call_sn(&s->comm->events, op->kind == NI_KIND_P2P, op->call_sn);
    r->graph = op->origin & NI_OP_REPLAYED;
  }
  if (op->origin & NI_OP_SYMMETRIC)
    symmetric(s, op, r);
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
    t.kernel_cpu_ns = ni_clock_span_ns(
        &ni_g.clock, ni_ticks_between(ni_load_rlx(&op->ticks_first), ni_load_rlx(&op->ticks_done)));
  t.bracket_ns = ni_clock_span_ns(&ni_g.clock, ni_ticks_between(op->ticks_start, op->ticks_stop));
  int64_t offset, gpu_start_ns = 0; /* of the kernel, by the host's clock */
  if (t.gpu_ok && ni_gpu_fit_offset(&s->fit, &offset, NULL))
    gpu_start_ns = (int64_t)(g.start_ns + (uint64_t)offset);
  if (op->origin & NI_OP_FUSED)
    share_span(d, s, op, &t, &gpu_start_ns);
  ni_timing_fill(r, ni_func_from_name(r->func), s->ident.n_ranks, &t);
  if (op->origin & NI_OP_FUSED)
    ni_timing_shared(r);
  if (t.gpu_ok && gpu_start_ns) {
    r->has |= NI_HAS_GPU_DELTA;
    r->gpu_start_delta_ns =
        (int64_t)((uint64_t)gpu_start_ns - ni_clock_monotonic_ns(&ni_g.clock, op->ticks_start));
  }
  const struct ni_annex *x = ni_annex_of(op);
  if (!x)
    return;
  ni_split_tag(x->user_tag, &r->user_tag, &r->nccl_tag);
  struct ni_phases phases;
  uint64_t from_ns = ni_gpu_ns(ni_load_rlx(&x->compute_from_ns), ni_g.gpu_khz);
  uint64_t to_ns = ni_gpu_ns(ni_load_rlx(&x->compute_to_ns), ni_g.gpu_khz);
  /* a tail has none of its own */
  if (t.gpu_ok && g.stop_ns && ni_phases_of(from_ns, to_ns, g.start_ns, g.stop_ns, &phases))
    ni_record_phases(r, &phases);
}
