/*
 * A network operation has a line when it ends, a single step one of its own, where such are asked for: an
 * operation's steps are pushed before it by the same thread, so their lines stand before its line.
 */
#include "proxy_drain.h"

#include "event_of.h"
#include "plugin/write/block.h"

#include <math.h>

static struct ni_proxy_slot *proxy_at(uint32_t slot) { return ni_arena_proxy(&ni_g.arena, slot); }

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

/* What lines of an operation and of a step have in common. */
static struct ni_proxy_line line_of(const char *type, uint8_t flags, uint64_t op_sn, uint64_t parent_sn,
                                    int parent_p2p, uint8_t func) {
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

/*
 * 1: the line is in the block, and accounted for; negative errno: the block takes no more, and nothing has
 * changed.
 */
static int put_line(struct ni_drain *d, struct ni_comm_writer *s, const struct ni_proxy_line *in,
                    enum ni_event kind) {
  size_t n = ni_format_proxy(d->w->line, sizeof d->w->line, ev_prefix(d, s), d->w->ts_us, in);
  int rc = ni_block_put(d->w, d->w->line, n);
  if (rc)
    return rc;
  ev_count(d, s, kind, 1);
  ev_of(d, s)->proxy_lines++;
  return 1;
}

/* What the oldest open step of an operation waits for. */
static const char *waits_for(const struct ni_proxy_slot *x) {
  static const char *const names[NI_PH_COUNT] = {"none", "gpu_produce", "peer_credit",
                                                 "wire", "flush",       "gpu_consume"};
  uint8_t phase = NI_PH_NONE;
  uint64_t oldest = UINT64_MAX;
  for (uint32_t i = 0; i < NI_STEPS_IN_FLIGHT; i++) {
    uint8_t p = ni_load_rlx(&x->phase[i]);
    uint64_t start = ni_load_rlx(&x->step_start[i]);
    if (!p || p >= NI_PH_COUNT || start >= oldest)
      continue;
    oldest = start;
    phase = p;
  }
  return names[phase];
}

int ni_proxy_finish(struct ni_drain *d, struct ni_comm_writer *s, uint32_t slot) {
  struct ni_proxy_slot *x = proxy_at(slot);
  uint8_t flags = ni_load_rlx(&x->flags);
  uint64_t progress = ni_load_rlx(&x->ticks_progress);
  struct ni_proxy_line in =
      line_of(NI_PROXY_OP, flags, x->sn, x->parent_sn, x->parent_kind == NI_KIND_P2P, x->func);
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
  if (flags & NI_EVF_FOREIGN)
    in.origin_pid = x->pid;
  in.trans_size_bytes = ni_load_rlx(&x->bytes);
  in.start_ns = ni_clock_unix_ns(&ni_g.clock, x->ticks_start);
  in.progress_us = us(ev_span(x->ticks_start, progress));
  in.total_us = us(total_ns);
  if (total_ns > 0)
    in.op_bw_gbs = (double)in.trans_size_bytes / (double)total_ns;
  if (in.op_bw_gbs > NI_BW_MAX_GBS)
    in.op_bw_gbs = INFINITY; /* written as null */
  if (!x->ticks_stop)
    in.state = waits_for(x);
  if (in.n_steps_completed)
    in.max_step_us = us((int64_t)ni_clock_span_ns(&ni_g.clock, ni_load_rlx(&x->max_step)));
#define OP_TICKS(i) ni_load_rlx(&x->sum[i])
  FILL_PHASES(&in, OP_TICKS);
  return put_line(d, s, &in, NI_EVENT_PROXY_OP);
}

int ni_step_finish(struct ni_drain *d, struct ni_comm_writer *s, uint32_t slot) {
  const struct ni_event_slot *e = event_at(slot);
  uint8_t flags = ni_load_rlx(&e->flags);
  int64_t total_ns = ev_span(e->ticks_start, e->ticks_stop);
  struct ni_proxy_line in =
      line_of(NI_PROXY_STEP, flags, e->number, e->group, e->parent_kind == NI_KIND_P2P, e->func);
  in.record_sn = e->sn;
  in.channel = e->channel;
  in.peer = e->step.peer;
  in.proxy_step_sn = e->step.step_sn;
  in.step = e->step.step;
  in.trans_size_bytes = e->count;
  in.start_ns = ni_clock_unix_ns(&ni_g.clock, e->ticks_start);
  in.total_us = us(total_ns);
#define STEP_TICKS(i) e->step.phase[i]
  if (total_ns >= 0)
    FILL_PHASES(&in, STEP_TICKS);
  return put_line(d, s, &in, NI_EVENT_STEPS);
}
