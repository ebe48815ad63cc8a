/*
 * KernelCh: the channels of an operation, as the poller raises them (docs/architecture.md). The hottest path:
 * start, stamp, stop of each channel. Threads and what orders them: op.h, callbacks.c.
 */
#include "callbacks_channel.h"

#include "callbacks_in.h"

#include "format/apart.h"
#include "plugin/slots/beside/annex.h"
#include "plugin/slots/beside/chan_more.h"

COLD void *stray_comm(struct ni_comm *c, enum ni_stray why) {
  ni_add_rlx(&c->stray[why], 1);
  return NULL;
}

/* Debug builds: one thread serves all channels of an operation, which the plain counters below rest on. */
HOT void check_poller(struct ni_op *op) {
#ifdef NI_DEBUG
  static _Thread_local char here;
  uintptr_t at = (uintptr_t)&here >> 12;
  uint8_t me = (uint8_t)((at ^ at >> 8 ^ at >> 16) | 1); /* two threads may share a number; most do not */
  if (op->poller && op->poller != me)
    __builtin_trap();
  op->poller = me;
#else
#endif
}

COLD void mark_bad(struct ni_op *op, enum ni_bad why) {
  ni_store_rlx(&op->bad, (uint8_t)(ni_load_rlx(&op->bad) | 1u << why));
}

/*
 * Raises the newest Group seen on the device. Relaxed: a hint for the dump thread's judgement, written by the
 * poller.
 */
HOT void saw_group(struct ni_comm *c, uint32_t ord) {
  if ((int32_t)(ord - ni_load_rlx(&c->newest_group)) > 0)
    ni_store_rlx(&c->newest_group, ord);
}

/* The dump thread found stamps impossible that later ones would be measured by. */
COLD void forget_previous(struct ni_chan_cell *cell, uint32_t forget) {
  ni_store_rlx(&cell->prev_start_ns, 0);
  ni_store_rlx(&cell->prev_stop_ns, 0);
  ni_store_rlx(&cell->forgot, forget);
}

/* ---- the end of a KernelCh ---- */

COLD void late_child(struct ni_op *op, uint32_t channel, uint64_t stop_ns) {
  struct ni_comm *c = ni_arena_comm(&ni_g.arena, op->comm_page);
  ni_add_rlx(&c->kind[op->kind].late, 1);
  struct ni_late_stop l = {.comm_page = op->comm_page,
                           .sn = op->sn,
                           .rec_sn = op->rec_sn,
                           .stop_gpu_ns = stop_ns == UINT64_MAX ? 0 : stop_ns,
                           .kind = op->kind,
                           .func = op->func,
                           .channel = (uint8_t)channel};
  ni_late_push(&ni_g.late, &l);
}

/* A stop stamp that cannot be true. */
COLD void bad_stop(struct ni_op *op, uint64_t start, uint64_t stop) {
  if (stop == 0)
    mark_bad(op, NI_BAD_NO_STOP_STAMP);
  else if (stop == UINT64_MAX)
    mark_bad(op, NI_BAD_ZERO_STAMP); /* the stamp came and was 0 */
  else
    mark_bad(op, stop < start ? NI_BAD_STOP_BEFORE_START : NI_BAD_BEFORE_PREVIOUS);
}

/*
 * Did the dump thread retire the operation while this stop was on its way? Then its record may or may not
 * have this channel, and the late line says so. Dekker's pattern with retire() in judge.c: prog stored,
 * fence, state read here; state exchanged, fence, prog read there.
 */
COLD void check_retired(struct ni_op *op, uint64_t parent, uint32_t channel, uint64_t stop_ns) {
  atomic_thread_fence(memory_order_seq_cst);
  uint64_t state = ni_load_acq(&op->state);
  if (ni_state_is(state, ni_payload_gen(parent)) && (ni_state_flags(state) & NI_OP_RETIRED))
    late_child(op, channel, stop_ns);
}

/*
 * Is what a channel measures by of a later work than this operation's? Then this one is rightly older
 * (callbacks 3.2).
 */
HOT bool measure_is_later(const struct ni_op *op, const struct ni_chan_cell *cell) {
  return cell && ni_g.polls_in_any_order && (int32_t)(op->group_ord - ni_load_rlx(&cell->prev_group)) <= 0;
}

/* The stamps of a channel into the operation's, and, with a cell, the measure of the channel's next. */
HOT void take_stop(struct ni_op *op, struct ni_chan_cell *cell, uint64_t start, uint64_t stop) {
  /* A stamp that is only older than its predecessor counts all the same: perhaps the predecessor was wrong,
   * and the dump thread believes this one. 0 and UINT64_MAX (no stamp, stamp 0) fail the comparisons. */
  if (ni_likely(start && stop >= start && stop != UINT64_MAX && stop > ni_load_rlx(&op->gpu_stop_ns)))
    ni_store_rlx(&op->gpu_stop_ns, stop);
  if (ni_likely(start && stop >= start && (!cell || stop >= ni_load_rlx(&cell->prev_stop_ns)) &&
                stop != UINT64_MAX)) {
    if (!cell)
      return;
    /* an impossible pair does not become the measure of the next */
    ni_store_rlx(&cell->prev_start_ns, start);
    ni_store_rlx(&cell->prev_stop_ns, stop);
    ni_store_rlx(&cell->prev_group, op->group_ord);
  } else if (!(start && stop >= start && stop != UINT64_MAX && measure_is_later(op, cell))) {
    bad_stop(op, start, stop);
  }
}

/* A KernelCh of the operation that parent names is over. cell: its chain's, which then measures the next by
 * it; NULL where it was open beside another, whose stamps are nearly its own and may come after it. anothers:
 * its stamps are another work's. */
HOT void channel_over(uint64_t parent, uint64_t start, uint64_t stop, uint32_t channel,
                      struct ni_chan_cell *cell, uint32_t anothers) {
  uint64_t state;
  struct ni_op *op = op_kept(parent, &state);
  if (ni_unlikely(!op))
    return;
  if (ni_unlikely(ni_state_flags(state) & (NI_OP_DONE | NI_OP_RETIRED))) {
    late_child(op, channel, stop);
    return;
  }
  if (ni_likely(!anothers))
    take_stop(op, cell, start, stop);
  uint32_t prog = ni_load_rlx(&op->prog) + 1, want = ni_state_want(state);
  if (ni_prog_stopped(prog) == want && ni_likely(want != NI_WANT_UNKNOWN)) {
    ni_store_rlx(&op->ticks_done, ni_ticks(ni_g.tick_source));
    ni_store_rel(&op->prog, prog);
    NI_TESTPOINT();
    if (ni_state_flags(ni_op_set(op, ni_payload_gen(parent), NI_OP_KDONE)) & NI_OP_DONE)
      publish_done(op, ni_payload_index(parent));
    return;
  }
  if (ni_unlikely(want == NI_WANT_UNKNOWN) && ni_prog_stopped(prog) == ni_prog_started(prog))
    /* perhaps the last: only the dump thread will judge */
    ni_store_rlx(&op->ticks_done, ni_ticks(ni_g.tick_source));
  NI_TESTPOINT();
  ni_store_rel(&op->prog, prog); /* pairs with the dump thread's acquire of prog */
  if (ni_unlikely(want == NI_WANT_UNKNOWN))
    check_retired(op, parent, channel, stop);
}

/*
 * The cell in which a KernelCh is open, or NULL (counted): foreign, never started, stopped before, or
 * recycled.
 */
HOT struct ni_chan_cell *open_cell(uint64_t payload) {
  uint32_t page = ni_payload_cell_page(payload);
  if (ni_unlikely(ni_arena_page_class(&ni_g.arena, page) != NI_CHUNK_COMM))
    return stray_process(NI_STRAY_FOREIGN_HANDLE);
  struct ni_comm *c = ni_arena_comm(&ni_g.arena, page);
  struct ni_chan_cell *cell = &c->cell[ni_payload_cell_index(payload)];
  if (ni_unlikely((ni_load_rlx(&cell->number) & NI_H_NUMBER_MASK) != ni_payload_cell_number(payload) ||
                  ni_load_rlx(&cell->open) == 0))
    return stray_comm(c, NI_STRAY_DOUBLE_STOP);
  return cell;
}

enum ni_result ni_channel_stop(const void *handle) {
  uint64_t payload = ni_handle_payload(handle, ni_g.nonce);
  struct ni_chan_cell *cell = open_cell(payload);
  if (ni_unlikely(!cell))
    return NI_RES_SUCCESS;
  uint64_t parent = ni_load_rlx(&cell->open), start = ni_load_rlx(&cell->start_ns),
           stop = ni_load_rlx(&cell->stop_ns);
  ni_store_rlx(&cell->open, 0);
  channel_over(parent, start, stop, ni_payload_cell_index(payload) / 2, cell, ni_load_rlx(&cell->anothers));
  return NI_RES_SUCCESS;
}

/* ---- a KernelCh that is open beside another of its chain (chan_more.h) ---- */

/* The chain has a KernelCh open. Will it never stop, because its operation's slot lives another life? */
COLD int abandoned(const struct ni_chan_cell *cell) {
  uint64_t open = ni_load_rlx(&cell->open);
  const struct ni_op *op = ni_arena_op_checked(&ni_g.arena, ni_payload_index(open));
  return !op || !ni_state_is(ni_load_rlx(&op->state), ni_payload_gen(open)); /* relaxed: no field is read */
}

static __attribute__((noinline)) void beside_stamp(const void *handle, uint64_t ptimer_ns) {
  struct ni_event_slot *e = ni_more_of(ni_handle_payload(handle, ni_g.nonce));
  if (e)
    ni_store_rlx(&e->chan.stop_ns, ptimer_ns ? ptimer_ns : UINT64_MAX); /* as in ni_cb_channel_stamp */
  else
    ni_stray(NI_STRAY_DOUBLE_STOP);
}

void ni_channel_beside_stop(const void *handle) {
  uint64_t payload = ni_handle_payload(handle, ni_g.nonce);
  struct ni_event_slot *e = ni_more_of(payload);
  if (!e) {
    ni_stray(NI_STRAY_DOUBLE_STOP);
    return;
  }
  uint64_t parent = ni_load_rlx(&e->chan.parent), start = ni_load_rlx(&e->chan.start_ns),
           stop = ni_load_rlx(&e->chan.stop_ns);
  uint32_t channel = ni_load_rlx(&e->chan.channel), anothers = ni_load_rlx(&e->chan.anothers);
  ni_more_close(e, payload);
  channel_over(parent, start, stop, channel, NULL, anothers);
}

/* ---- the start of a KernelCh ---- */

COLD void *start_without_parent(const void *parent) {
  enum ni_handle_kind k = ni_handle_kind(parent);
  if (!parent)
    return stray_process(NI_STRAY_NULL_PARENT);
  if (k != NI_H_FILTERED && k != NI_H_DROPPED)
    return stray_process(NI_STRAY_FOREIGN_HANDLE);
  return NULL; /* its operation was counted when it started */
}

/* Are the stamps of this channel perhaps those of another work (format/apart.h)? */
HOT bool anothers_stamps(struct ni_comm *c, struct ni_op *op, uint32_t channel) {
  return ni_unlikely(ni_load_rlx(&op->bad) >> NI_BAD_COUNTERS_APART & 1) &&
      (ni_apart_has(ni_load_rlx(&c->apart), channel) || ni_load_rlx(&c->apart_shown));
}

/* One that is not late: its operation has a channel more. 1: with another work's stamps. cell: its chain's;
 * NULL: it has none, and its stamp is measured by nothing. */
HOT uint32_t count_start(struct ni_comm *c, struct ni_op *op, struct ni_chan_cell *cell, uint32_t channel,
                         uint64_t ptimer_ns) {
  check_poller(op);
  uint32_t prog = ni_load_rlx(&op->prog);
  if (ni_prog_started(prog) == 0)
    saw_group(c, op->group_ord);
  if (ni_unlikely(anothers_stamps(c, op, channel))) { /* nor is the time of its arrival of any use */
    ni_store_rel(&op->prog, prog + (1u << 16));       /* as below */
    return 1;
  }
  if (ni_load_rlx(&op->ticks_first) == 0)
    ni_store_rlx(&op->ticks_first, ni_ticks(ni_g.tick_source));
  /* relaxed: a hint; being late costs an operation its GPU time, stated */
  uint32_t forget = ni_load_rlx(&c->forget);
  if (cell && ni_unlikely(ni_load_rlx(&cell->forgot) != forget))
    forget_previous(cell, forget);
  if (ni_unlikely(ptimer_ns == 0))
    mark_bad(op, NI_BAD_ZERO_STAMP);
  /* Works fused into one batch of a kernel all start before the first of them stops (data recorded on H100,
   * callbacks 3.2), so within a Group a start may lie before the previous stop on the channel; never before
   * its start. */
  else if (cell && ni_unlikely(ptimer_ns < ni_load_rlx(&cell->prev_stop_ns)) &&
           (ptimer_ns < ni_load_rlx(&cell->prev_start_ns) ||
            ni_load_rlx(&cell->prev_group) != op->group_ord) &&
           !measure_is_later(op, cell))
    mark_bad(op, NI_BAD_BEFORE_PREVIOUS);
  if (ptimer_ns < ni_load_rlx(&op->gpu_start_ns))
    ni_store_rlx(&op->gpu_start_ns, ptimer_ns);
  /* Release pairs with the dump thread's acquire of prog when it judges an unknown channel count. */
  ni_store_rel(&op->prog, prog + (1u << 16));
  return 0;
}

/* One beside the cells: another one is open in its own, or its channel has none, as those of RCCL from
 * NI_CHANNELS on. Without a slot nobody will know its stop: it counts as over at once, without a stamp, so
 * that its operation has an end. */
static __attribute__((noinline)) void *start_beside(struct ni_comm *c, uint32_t index, uint64_t parent,
                                                    uint64_t state, uint64_t ptimer_ns) {
  uint64_t payload = ni_more_open(c, index, parent, ptimer_ns);
  if (!(ni_state_flags(state) & (NI_OP_DONE | NI_OP_RETIRED))) {
    struct ni_chan_cell *cell = index < 2 * NI_CHANNELS ? &c->cell[index] : NULL;
    uint32_t anothers =
        count_start(c, ni_arena_op(&ni_g.arena, ni_payload_index(parent)), cell, index / 2, ptimer_ns);
    if (!payload)
      channel_over(parent, ptimer_ns, 0, index / 2, NULL, anothers);
    else
      ni_store_rlx(&ni_more_of(payload)->chan.anothers, (uint8_t)anothers);
  }
  return ni_handle_pack(payload ? NI_H_MORE : NI_H_DROPPED, payload, ni_g.nonce);
}

void *ni_cb_channel_start(const void *parent, uint32_t channel, uint64_t ptimer_ns) {
  if (ni_unlikely(ni_handle_kind(parent) != NI_H_OP))
    return start_without_parent(parent);
  uint64_t payload = ni_handle_payload(parent, ni_g.nonce), state;
  struct ni_op *op = op_of(payload, &state);
  if (ni_unlikely(!op))
    return NULL;
  uint32_t comm_page = op->comm_page, index = 2 * channel + op->dir;
  struct ni_comm *c = ni_arena_comm(&ni_g.arena, comm_page);
  if (ni_unlikely(channel >= NI_CHANNELS)) {
    if (ni_g.most_channels <= NI_CHANNELS)
      return stray_comm(c, NI_STRAY_BAD_CHANNEL);
    return start_beside(c, index, payload, state, ptimer_ns);
  }
  struct ni_chan_cell *cell = &c->cell[index];
  if (ni_unlikely(ni_load_rlx(&cell->open)) && !abandoned(cell))
    return start_beside(c, index, payload, state, ptimer_ns);
  uint32_t number = ni_load_rlx(&cell->number) + 1;
  ni_store_rlx(&cell->number, number);
  ni_store_rlx(&cell->open, payload);
  ni_store_rlx(&cell->start_ns, ptimer_ns);
  ni_store_rlx(&cell->stop_ns, 0);
  if (ni_likely(!(ni_state_flags(state) & (NI_OP_DONE | NI_OP_RETIRED)))) /* else: late, its stop says so */
    ni_store_rlx(&cell->anothers, count_start(c, op, cell, channel, ptimer_ns));
  return ni_handle_pack(NI_H_CHANNEL, ni_payload_cell(channel, index & 1, comm_page, number), ni_g.nonce);
}

void ni_cb_channel_stamp(const void *handle, uint64_t ptimer_ns) {
  if (ni_unlikely(ni_handle_kind(handle) != NI_H_CHANNEL)) {
    if (ni_handle_kind(handle) == NI_H_MORE)
      beside_stamp(handle, ptimer_ns);
    return;
  }
  struct ni_chan_cell *cell = open_cell(ni_handle_payload(handle, ni_g.nonce));
  /* A stamp of 0 is kept apart from "no stamp came", which is 0. */
  if (ni_likely(cell != NULL))
    ni_store_rlx(&cell->stop_ns, ni_likely(ptimer_ns) ? ptimer_ns : UINT64_MAX);
}

/* ---- phases of a KernelCh: into the operation's annex (annex.h) ---- */

/* The annex of the living operation that a KernelCh is part of, if it is to have phases. */
HOT struct ni_annex *annex_of_open(uint64_t parent) {
  uint64_t state;
  struct ni_op *op = op_kept(parent, &state);
  if (!op || (ni_state_flags(state) & (NI_OP_DONE | NI_OP_RETIRED)) || !(op->origin & NI_OP_SYMMETRIC))
    return NULL;
  return ni_annex_of(op);
}

/* One beside another of its chain. */
static __attribute__((noinline)) void *phase_start_beside(uint64_t more, uint32_t phase, uint64_t ptimer_ns) {
  struct ni_event_slot *e = ni_more_of(more);
  struct ni_annex *x = e ? annex_of_open(ni_load_rlx(&e->chan.parent)) : NULL;
  if (!x)
    return NULL;
  ni_annex_begin(x, phase, ni_load_rlx(&e->chan.start_ns), ptimer_ns);
  return ni_handle_pack(NI_H_PHASE_MORE, ni_payload_phase_more(more, phase), ni_g.nonce);
}

static __attribute__((noinline)) void phase_stamp_beside(uint64_t payload, uint64_t ptimer_ns) {
  struct ni_event_slot *e = ni_more_of(payload);
  struct ni_annex *x = e ? annex_of_open(ni_load_rlx(&e->chan.parent)) : NULL;
  if (x)
    ni_annex_end(x, ni_payload_phase_more_of(payload), ni_load_rlx(&e->chan.start_ns), ptimer_ns);
}

void *ni_cb_phase_start(const void *parent, uint32_t phase, uint64_t ptimer_ns) {
  enum ni_handle_kind kind = ni_handle_kind(parent);
  uint64_t payload = ni_handle_payload(parent, ni_g.nonce);
  if (phase >= NI_PHASE_COUNT)
    return NULL;
  if (kind == NI_H_MORE)
    return phase_start_beside(payload, phase, ptimer_ns);
  struct ni_chan_cell *cell = kind == NI_H_CHANNEL ? open_cell(payload) : NULL;
  struct ni_annex *x = cell ? annex_of_open(ni_load_rlx(&cell->open)) : NULL;
  if (!x)
    return NULL;
  ni_annex_begin(x, phase, ni_load_rlx(&cell->start_ns), ptimer_ns);
  return ni_handle_pack(NI_H_PHASE, ni_payload_phase(payload, phase), ni_g.nonce);
}

void ni_cb_phase_stamp(const void *handle, uint64_t ptimer_ns) {
  enum ni_handle_kind kind = ni_handle_kind(handle);
  uint64_t payload = ni_handle_payload(handle, ni_g.nonce);
  if (kind == NI_H_PHASE_MORE)
    phase_stamp_beside(payload, ptimer_ns);
  if (kind != NI_H_PHASE)
    return;
  /* The cell's number without the bits in whose place the phase stands. */
  uint32_t page = ni_payload_cell_page(payload);
  if (ni_arena_page_class(&ni_g.arena, page) != NI_CHUNK_COMM)
    return;
  struct ni_comm *c = ni_arena_comm(&ni_g.arena, page);
  struct ni_chan_cell *cell = &c->cell[ni_payload_cell_index(payload)];
  uint32_t number = ni_payload_cell_number(payload) & NI_H_PHASE_NUMBER_MASK;
  if (!ni_load_rlx(&cell->open) || (ni_load_rlx(&cell->number) & NI_H_PHASE_NUMBER_MASK) != number)
    return;
  struct ni_annex *x = annex_of_open(ni_load_rlx(&cell->open));
  if (x)
    ni_annex_end(x, ni_payload_phase_of(payload), ni_load_rlx(&cell->start_ns), ptimer_ns);
}
