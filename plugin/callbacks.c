/*
 * Hot path. An 8-channel collective is 28 callbacks; what each may do is counted in nanoseconds (docs/benchmarks.md).
 *
 * Who orders what:
 *   starter: fills the slot, publishes it with the LIVE store (release)         -> poller's load of the state (acquire)
 *   poller:  counts channels in prog, keeps stamps (plain stores)               -> its exchange KDONE (acq_rel)
 *   starter: exchange CLOSED (acq_rel); whichever exchange shows both pushes    -> dump thread's drain (acquire)
 */
#include "callbacks_in.h"

#include "done_ring.h"
#include "futex.h"
#include "ni_apart.h"
#include "want.h"

#include <string.h>

__attribute__((noinline, cold)) void ni_stray(enum ni_stray why) { ni_add_rlx(&ni_g.stray[why], 1); }

COLD void *stray_comm(struct ni_comm *c, enum ni_stray why) {
  ni_add_rlx(&c->stray[why], 1);
  return NULL;
}

/* ---- loss ---- */

COLD void note_drop(struct ni_comm_kind *k, enum ni_drop why, uint64_t rec_sn) {
  struct ni_gap_mark *m = &k->gap[why];
  uint64_t none = 0, last = ni_load_rlx(&m->last);
  /* The range first, then the count (release, pairs with ni_lines_gaps' acquire), so that a range reported with a count
   * covers it; and the mark last (release, pairs with the exchange of `first`), so that a mark has its count. */
  while (last < rec_sn + 1 && !ni_cas_rlx(&m->last, &last, rec_sn + 1)) {
  }
  (void)atomic_fetch_add_explicit(&k->dropped[why], 1, memory_order_release);
  (void)atomic_compare_exchange_strong_explicit(&m->first, &none, rec_sn + 1, memory_order_release, memory_order_relaxed);
}

/* POOL_KEEP=last: takes the oldest finished record's slot for the new operation. */
COLD uint32_t overwrite_oldest(struct ni_comm *c, struct ni_comm_kind *k, enum ni_kind kind) {
  struct ni_done_ring *ring = ni_g.ring[c->index];
  for (uint32_t i = 0; ring && i <= ring->mask; i++) {
    uint32_t slot = ni_done_ring_pop(ring);
    if (!slot) return 0;
    struct ni_op *op = ni_arena_op(&ni_g.arena, slot);
    if (op->kind != kind) { /* one queue serves both pools: put the other kind back, at the young end */
      (void)ni_done_ring_push(ring, slot);
      continue;
    }
    note_drop(k, NI_DROP_OVERWRITTEN, op->rec_sn);
    /* The slot begins a new life, as it does when the dump thread frees it. Relaxed: the caller publishes. */
    ni_store_rlx(&op->state, ni_state_gen(ni_load_rlx(&op->state)) + 1);
    return slot;
  }
  return 0;
}

/* ---- completion ---- */

/*
 * Hands a finished operation to the dump thread. The caller's exchange added DONE, so this runs once per operation.
 * At interval 0 only: the push that makes a list non-empty while the dump thread has published that it sleeps does one
 * futex wake, the only system call of the hot path. Dekker's pattern, hence seq_cst on both sides: here the dirty bit
 * is set, then `sleeping` is read; ni_dump_wait sets `sleeping`, then reads the dirty bits. One of the two sees the
 * other, so no record waits for a timer.
 */
HOT void publish_done(struct ni_op *op, uint32_t slot) {
  struct ni_comm *c = ni_arena_comm(&ni_g.arena, op->comm_page);
  if (ni_unlikely(ni_g.keep_last)) {
    (void)ni_done_ring_push(ni_g.ring[c->index], slot);
  } else if (ni_done_push(&ni_g.arena, &c->done, slot)) {
    NI_TESTPOINT();
    _Atomic uint64_t *word = &ni_g.dirty[c->index / 64];
    uint64_t bit = UINT64_C(1) << (c->index % 64);
    if (ni_likely(!ni_g.wake_on_push)) {
      ni_or_rel(word, bit); /* pairs with the dump thread's exchange of the word: it then finds the entry */
      return;
    }
    ni_or_sc(word, bit);
    if (ni_load_sc(&ni_g.sleeping) && ni_swap_acqrel(&ni_g.sleeping, 0)) ni_futex_wake_one(&ni_g.wake_word);
  }
}

/* ---- start ---- */

void *ni_cb_group_start(const void *context) {
  struct ni_comm *c = comm_of(context);
  if (ni_unlikely(!c)) return NULL;
  uint32_t ord = ni_add_rlx(&c->group_ord, 1) + 1; /* relaxed: only the number matters, the handle carries it */
  if (ni_unlikely(ni_load_rlx(&ni_g.kinds) & NI_KINDS(NI_EVENT_GROUP))) return ni_events_group_start(c, ord);
  return ni_handle_pack(NI_H_GROUP, ni_payload_group(c->page, ord), ni_g.nonce);
}

/* The Group's ordinal from its handle; without a usable one, the newest of the communicator. */
HOT uint32_t group_ordinal(struct ni_comm *c, const void *group) {
  if (ni_likely(ni_handle_kind(group) == NI_H_GROUP)) {
    uint64_t p = ni_handle_payload(group, ni_g.nonce);
    if (ni_likely(ni_payload_group_page(p) == c->page)) return ni_payload_group_ordinal(p);
  }
  if (ni_unlikely(ni_handle_kind(group) == NI_H_EVENT)) return ni_events_group_ordinal(c, group);
  return ni_load_rlx(&c->group_ord);
}

/* Puts an operation whose channel count is unknown on the list that the dump thread judges. */
static void watch(struct ni_comm *c, struct ni_op *op, uint32_t slot) {
  uint32_t head = ni_load_rlx(&c->watch);
  do op->watch_next = head;
  while (!ni_cas_rel(&c->watch, &head, slot)); /* release: pairs with the dump thread's exchange of the list */
}

/*
 * Is KernelCh on for this communicator? NCCL's mask is one int of the process that anybody may change at any time
 * (contract 6); it is read where NCCL reads it. The communicator's libnccl is calling us, so its mask is mapped.
 */
HOT enum ni_mask_doubt mask_doubt(const struct ni_comm *c) {
  const int *mask = ni_g.mask[c->mask_id];
  if (ni_unlikely(mask && !(__atomic_load_n(mask, __ATOMIC_RELAXED) & NI_EV_KERNEL_CH))) {
    ni_store_rlx(&ni_g.mask_was_off, 1); /* relaxed: a hint; who misses it judges as before the change */
    return NI_MASK_OFF;
  }
  return ni_unlikely(ni_load_rlx(&ni_g.mask_was_off)) ? NI_MASK_MAYBE_NONE : NI_MASK_SURE;
}

/*
 * v1 to v3 name the communicator with each operation only. The first one to come writes it down; who comes meanwhile
 * does without, since it is needed by the dump thread alone.
 */
COLD void late_ident(struct ni_comm *c, const struct ni_late_ident *id) {
  uint32_t unknown = NI_IDENT_UNKNOWN;
  if (ni_load_rlx(&c->ident) != NI_IDENT_UNKNOWN ||
      !atomic_compare_exchange_strong_explicit(&c->ident, &unknown, NI_IDENT_WRITING, memory_order_relaxed,
                                               memory_order_relaxed))
    return;
  c->late_hash = id->hash;
  c->late_rank = id->rank;
  if (id->name) { /* the user's memory, only valid now (contract 4.1) */
    size_t n = strnlen(id->name, NI_COMM_NAME_BYTES - 1);
    memcpy(c->name, id->name, n);
    c->has_name = 1;
  }
  ni_store_rel(&c->ident, NI_IDENT_KNOWN); /* pairs with the dump thread's acquire */
}

/* A P2P with the own rank that the device counts and NCCL does not. Before any filter: it happens all the same. */
COLD void self_on_device(struct ni_comm *c, uint32_t nchannels) {
  uint64_t now = ni_load_rlx(&c->apart), on = ni_apart_of_self(ni_g.nccl_version, ni_g.p2p_channels_valid ? nchannels : 0);
  if (on & ~now) (void)atomic_fetch_or_explicit(&c->apart, on, memory_order_relaxed); /* see ni_apart.h */
}

void *ni_cb_op_start(const void *context, enum ni_kind kind, const struct ni_start *d) {
  struct ni_comm *c = comm_of(context);
  if (ni_unlikely(!c)) return NULL;
  struct ni_comm_kind *k = &c->kind[kind];
  uint64_t ticks = ni_ticks(ni_g.tick_source);
  uint32_t call_sn = 0, origin = d->call ? ni_events_seen(c, kind == NI_KIND_P2P, d->call, NI_EVS_SEEN_KERNEL, &call_sn) : 0;
  if (ni_unlikely(d->ident)) late_ident(c, d->ident);
  uint64_t rec_sn = ni_add_rlx(&k->started, 1); /* relaxed: a number; the record carries it */
  bool self = kind == NI_KIND_P2P && ni_g.self_is_silent && d->root == (d->ident ? d->ident->rank : c->rank);
  if (ni_unlikely(self)) self_on_device(c, d->nchannels);
  uint8_t datatype = ni_intern_id(&ni_g.intern, d->datatype);

  if (ni_unlikely(kind == NI_KIND_P2P && !ni_g.enable_p2p)) {
    ni_add_rlx(&k->filtered[NI_FILTER_P2P_DISABLED], 1);
    return ni_handle_pack(NI_H_FILTERED, 0, ni_g.nonce);
  }
  if (ni_unlikely(ni_g.min_size_bytes) &&
      d->count * ni_intern_elem_bytes(&ni_g.intern, datatype) < ni_g.min_size_bytes) {
    ni_add_rlx(&k->filtered[NI_FILTER_MIN_SIZE], 1);
    return ni_handle_pack(NI_H_FILTERED, 0, ni_g.nonce);
  }

  int why_cap = 0;
  uint32_t slot = ni_pool_get(&ni_g.arena, &k->pool, &why_cap);
  if (ni_unlikely(!slot) && ni_g.keep_last) slot = overwrite_oldest(c, k, kind);
  if (ni_unlikely(!slot)) {
    note_drop(k, why_cap ? NI_DROP_ARENA_FULL : NI_DROP_POOL_FULL, rec_sn);
    return ni_handle_pack(NI_H_DROPPED, 0, ni_g.nonce);
  }

  struct ni_op *op = ni_arena_op(&ni_g.arena, slot);
  uint32_t gen = ni_state_gen(ni_load_rlx(&op->state)); /* relaxed: the slot is ours since the pop's acquire */
  enum ni_mask_doubt doubt = mask_doubt(c);
  uint32_t want = ni_want_channels(&(struct ni_want){.kind = kind,
                                                     .nchannels = d->nchannels,
                                                     .self = self,
                                                     .p2p_channels_valid = ni_g.p2p_channels_valid,
                                                     .kernel_ch = doubt != NI_MASK_OFF,
                                                     .never = !ni_load_rlx(&ni_g.kernel_ch_ever)});
  ni_store_rlx(&op->prog, 0);
  ni_store_rlx(&op->gpu_start_ns, UINT64_MAX);
  ni_store_rlx(&op->gpu_stop_ns, 0);
  ni_store_rlx(&op->ticks_first, 0);
  ni_store_rlx(&op->ticks_done, 0);
  ni_store_rlx(&op->bad, ni_unlikely(ni_load_rlx(&c->apart) != 0) ? 1u << NI_BAD_COUNTERS_APART : 0);
  op->group_ord = group_ordinal(c, d->group);
  op->comm_page = c->page;
  op->kind = (uint8_t)kind;
  op->func = ni_intern_id(&ni_g.intern, d->func);
  op->dir = kind == NI_KIND_P2P && ni_intern_text(&ni_g.intern, op->func)[0] == 'R'; /* "Recv", contract 5.1 */
  op->mask_doubt = (uint8_t)doubt;
  op->poller = 0;
  op->call_sn = call_sn;
  op->origin = (uint8_t)origin;
  op->ticks_start = ticks;
  op->ticks_stop = 0;
  op->sn = kind == NI_KIND_P2P ? rec_sn : d->sn;
  op->count = d->count;
  op->rec_sn = rec_sn;
  op->root = d->root;
  op->datatype = datatype;
  op->algo = ni_intern_id(&ni_g.intern, d->algo);
  op->proto = ni_intern_id(&ni_g.intern, d->proto);
  op->nchannels = want == NI_WANT_UNKNOWN ? 0 : d->nchannels;
  op->nwarps = d->nwarps;
  op->seen_prog = op->seen_ms = 0;
  NI_TESTPOINT();
  ni_store_rel(&op->state, ni_state_make(gen, NI_OP_LIVE, want)); /* publishes; pairs with op_of's acquire */
  if (ni_unlikely(want == NI_WANT_UNKNOWN)) watch(c, op, slot);
  return ni_handle_pack(NI_H_OP, ni_payload_slot(slot, gen), ni_g.nonce);
}

/* ---- channels: poller only ---- */

/* Debug builds: one thread serves all channels of an operation, which the plain counters below rest on. */
HOT void check_poller(struct ni_op *op) {
#ifdef NI_DEBUG
  static _Thread_local char here;
  uintptr_t at = (uintptr_t)&here >> 12;
  uint8_t me = (uint8_t)((at ^ at >> 8 ^ at >> 16) | 1); /* two threads may share a number; most do not */
  if (op->poller && op->poller != me) __builtin_trap();
  op->poller = me;
#else
  (void)op;
#endif
}

COLD void mark_bad(struct ni_op *op, enum ni_bad why) {
  ni_store_rlx(&op->bad, (uint8_t)(ni_load_rlx(&op->bad) | 1u << why));
}

/* Raises the newest Group seen on the device. Relaxed: a hint for the dump thread's judgement, written by the poller. */
HOT void saw_group(struct ni_comm *c, uint32_t ord) {
  if ((int32_t)(ord - ni_load_rlx(&c->newest_group)) > 0) ni_store_rlx(&c->newest_group, ord);
}

/* The dump thread found stamps impossible that later ones would be measured by. */
COLD void forget_previous(struct ni_chan_cell *cell, uint32_t forget) {
  ni_store_rlx(&cell->prev_start_ns, 0);
  ni_store_rlx(&cell->prev_stop_ns, 0);
  ni_store_rlx(&cell->forgot, forget);
}

COLD void *start_without_parent(const void *parent) {
  enum ni_handle_kind k = ni_handle_kind(parent);
  if (!parent) return stray_process(NI_STRAY_NULL_PARENT);
  if (k != NI_H_FILTERED && k != NI_H_DROPPED) return stray_process(NI_STRAY_FOREIGN_HANDLE);
  return NULL; /* its operation was counted when it started */
}

/* Are the stamps of this channel perhaps those of another work (ni_apart.h)? */
HOT bool anothers_stamps(struct ni_comm *c, struct ni_op *op, uint32_t channel) {
  return ni_unlikely(ni_load_rlx(&op->bad) >> NI_BAD_COUNTERS_APART & 1) && (ni_load_rlx(&c->apart) >> channel & 1);
}

void *ni_cb_channel_start(const void *parent, uint32_t channel, uint64_t ptimer_ns) {
  if (ni_unlikely(!ni_load_acq(&ni_g.armed))) return NULL;
  if (ni_unlikely(ni_handle_kind(parent) != NI_H_OP)) return start_without_parent(parent);
  uint64_t payload = ni_handle_payload(parent, ni_g.nonce), state;
  struct ni_op *op = op_of(payload, &state);
  if (ni_unlikely(!op)) return NULL;
  uint32_t comm_page = op->comm_page, index = 2 * channel + op->dir;
  struct ni_comm *c = ni_arena_comm(&ni_g.arena, comm_page);
  if (ni_unlikely(channel >= NI_CHANNELS)) return stray_comm(c, NI_STRAY_BAD_CHANNEL);
  struct ni_chan_cell *cell = &c->cell[index];
  uint32_t number = ni_load_rlx(&cell->number) + 1;
  ni_store_rlx(&cell->number, number);
  ni_store_rlx(&cell->open, payload);
  ni_store_rlx(&cell->start_ns, ptimer_ns);
  ni_store_rlx(&cell->stop_ns, 0);
  if (ni_likely(!(ni_state_flags(state) & (NI_OP_DONE | NI_OP_RETIRED)))) { /* else: late, its stop says so */
    check_poller(op);
    uint32_t prog = ni_load_rlx(&op->prog);
    if (ni_prog_started(prog) == 0) saw_group(c, op->group_ord);
    uint32_t anothers = anothers_stamps(c, op, channel);
    ni_store_rlx(&cell->anothers, anothers);
    if (ni_unlikely(anothers)) { /* nor is the time of its arrival of any use */
      ni_store_rel(&op->prog, prog + (1u << 16));        /* as below */
      return ni_handle_pack(NI_H_CHANNEL, ni_payload_cell(channel, index & 1, comm_page, number), ni_g.nonce);
    }
    if (ni_load_rlx(&op->ticks_first) == 0) ni_store_rlx(&op->ticks_first, ni_ticks(ni_g.tick_source));
    uint32_t forget = ni_load_rlx(&c->forget); /* relaxed: a hint; being late costs an operation its GPU time, stated */
    if (ni_unlikely(ni_load_rlx(&cell->forgot) != forget)) forget_previous(cell, forget);
    if (ni_unlikely(ptimer_ns == 0)) mark_bad(op, NI_BAD_ZERO_STAMP);
    /* Works fused into one batch of a kernel all start before the first of them stops (data recorded on H100, contract
     * 3.4), so within a Group a start may lie before the previous stop on the channel; never before its start. */
    else if (ni_unlikely(ptimer_ns < ni_load_rlx(&cell->prev_stop_ns)) &&
             (ptimer_ns < ni_load_rlx(&cell->prev_start_ns) || ni_load_rlx(&cell->prev_group) != op->group_ord))
      mark_bad(op, NI_BAD_BEFORE_PREVIOUS);
    if (ptimer_ns < ni_load_rlx(&op->gpu_start_ns)) ni_store_rlx(&op->gpu_start_ns, ptimer_ns);
    /* Release pairs with the dump thread's acquire of prog when it judges an unknown channel count. */
    ni_store_rel(&op->prog, prog + (1u << 16));
  }
  return ni_handle_pack(NI_H_CHANNEL, ni_payload_cell(channel, index & 1, comm_page, number), ni_g.nonce);
}

/* The cell in which a KernelCh is open, or NULL (counted): foreign, never started, stopped before, or recycled. */
HOT struct ni_chan_cell *open_cell(uint64_t payload, struct ni_comm **comm) {
  uint32_t page = ni_payload_cell_page(payload);
  if (ni_unlikely(ni_arena_page_class(&ni_g.arena, page) != NI_CHUNK_COMM))
    return stray_process(NI_STRAY_FOREIGN_HANDLE);
  struct ni_comm *c = *comm = ni_arena_comm(&ni_g.arena, page);
  struct ni_chan_cell *cell = &c->cell[ni_payload_cell_index(payload)];
  if (ni_unlikely((ni_load_rlx(&cell->number) & NI_H_NUMBER_MASK) != ni_payload_cell_number(payload) ||
                  ni_load_rlx(&cell->open) == 0))
    return stray_comm(c, NI_STRAY_DOUBLE_STOP);
  return cell;
}

void ni_cb_channel_stamp(const void *handle, uint64_t ptimer_ns) {
  if (ni_unlikely(!ni_load_acq(&ni_g.armed) || ni_handle_kind(handle) != NI_H_CHANNEL)) return;
  struct ni_comm *c;
  struct ni_chan_cell *cell = open_cell(ni_handle_payload(handle, ni_g.nonce), &c);
  /* A stamp of 0 is kept apart from "no stamp came", which is 0. */
  if (ni_likely(cell != NULL)) ni_store_rlx(&cell->stop_ns, ni_likely(ptimer_ns) ? ptimer_ns : UINT64_MAX);
}

COLD void late_child(struct ni_op *op, uint64_t payload, uint64_t stop_ns) {
  struct ni_comm *c = ni_arena_comm(&ni_g.arena, op->comm_page);
  ni_add_rlx(&c->kind[op->kind].late, 1);
  struct ni_late l = {.comm_page = op->comm_page,
                      .sn = op->sn,
                      .rec_sn = op->rec_sn,
                      .stop_gpu_ns = stop_ns == UINT64_MAX ? 0 : stop_ns,
                      .kind = op->kind,
                      .func = op->func,
                      .channel = (uint8_t)(ni_payload_cell_index(payload) / 2)};
  ni_late_push(&ni_g.late, &l);
}

/* A stop stamp that cannot be true. */
COLD void bad_stop(struct ni_op *op, uint64_t start, uint64_t stop) {
  if (stop == 0) mark_bad(op, NI_BAD_NO_STOP_STAMP);
  else if (stop == UINT64_MAX) mark_bad(op, NI_BAD_ZERO_STAMP); /* the stamp came and was 0 */
  else mark_bad(op, stop < start ? NI_BAD_STOP_BEFORE_START : NI_BAD_BEFORE_PREVIOUS);
}

/* The stamps of a channel into the operation's, and the measure of the channel's next. */
HOT void take_stop(struct ni_op *op, struct ni_chan_cell *cell, uint64_t start, uint64_t stop) {
  /* A stamp that is only older than its predecessor counts all the same: perhaps the predecessor was wrong, and the
   * dump thread believes this one. 0 and UINT64_MAX (no stamp, stamp 0) fail the comparisons. */
  if (ni_likely(start && stop >= start && stop != UINT64_MAX && stop > ni_load_rlx(&op->gpu_stop_ns)))
    ni_store_rlx(&op->gpu_stop_ns, stop);
  if (ni_likely(start && stop >= start && stop >= ni_load_rlx(&cell->prev_stop_ns) && stop != UINT64_MAX)) {
    ni_store_rlx(&cell->prev_start_ns, start); /* an impossible pair does not become the measure of the next */
    ni_store_rlx(&cell->prev_stop_ns, stop);
    ni_store_rlx(&cell->prev_group, op->group_ord);
  } else {
    bad_stop(op, start, stop);
  }
}

/*
 * Did the dump thread retire the operation while this stop was on its way? Then its record may or may not have this
 * channel, and the late line says so. Dekker's pattern with retire() in judge.c: prog stored, fence, state read here; state
 * exchanged, fence, prog read there.
 */
COLD void check_retired(struct ni_op *op, uint64_t parent, uint64_t payload, uint64_t stop_ns) {
  atomic_thread_fence(memory_order_seq_cst);
  uint64_t state = ni_load_acq(&op->state);
  if (ni_state_is(state, ni_payload_gen(parent)) && (ni_state_flags(state) & NI_OP_RETIRED)) late_child(op, payload, stop_ns);
}

HOT void channel_stop(const void *handle) {
  uint64_t payload = ni_handle_payload(handle, ni_g.nonce), state;
  struct ni_comm *c;
  struct ni_chan_cell *cell = open_cell(payload, &c);
  if (ni_unlikely(!cell)) return;
  uint64_t parent = ni_load_rlx(&cell->open), start = ni_load_rlx(&cell->start_ns), stop = ni_load_rlx(&cell->stop_ns);
  ni_store_rlx(&cell->open, 0);
  struct ni_op *op = op_of(parent, &state);
  if (ni_unlikely(!op)) return;
  if (ni_unlikely(ni_state_flags(state) & (NI_OP_DONE | NI_OP_RETIRED))) {
    late_child(op, payload, stop);
    return;
  }
  if (ni_likely(!ni_load_rlx(&cell->anothers))) take_stop(op, cell, start, stop);
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
    ni_store_rlx(&op->ticks_done, ni_ticks(ni_g.tick_source)); /* perhaps the last: only the dump thread will judge */
  NI_TESTPOINT();
  ni_store_rel(&op->prog, prog); /* pairs with the dump thread's acquire of prog */
  if (ni_unlikely(want == NI_WANT_UNKNOWN)) check_retired(op, parent, payload, stop);
}

/* ---- stop ---- */

HOT void op_stop(const void *handle) {
  uint64_t payload = ni_handle_payload(handle, ni_g.nonce), state;
  struct ni_op *op = op_of(payload, &state);
  if (ni_unlikely(!op)) return;
  uint32_t want = ni_state_want(state);
  /* Only where the bracket may become the finish. */
  if (ni_unlikely(want == 0 || want == NI_WANT_UNKNOWN || op->mask_doubt || ni_load_rlx(&op->bad) >> NI_BAD_COUNTERS_APART) &&
      !(ni_state_flags(state) & NI_OP_CLOSED))
    op->ticks_stop = ni_ticks(ni_g.tick_source);
  uint64_t now = ni_op_set(op, ni_payload_gen(payload), NI_OP_CLOSED);
  if (ni_unlikely(!now)) (void)stray_process(NI_STRAY_DOUBLE_STOP);
  else if (ni_state_flags(now) & NI_OP_DONE) publish_done(op, ni_payload_index(payload));
}

HOT void stop(void *handle) {
  enum ni_handle_kind kind = ni_handle_kind(handle);
  if (kind == NI_H_CHANNEL) {
    channel_stop(handle);
    return;
  }
  switch (kind) {
    case NI_H_OP: op_stop(handle); break;
    case NI_H_STEP: ni_step_stop(handle); break;
    case NI_H_PROXY: ni_proxy_stop(handle); break;
    case NI_H_CALL: ni_event_call_stop(handle); break;
    case NI_H_EVENT: ni_event_stop(handle); break;
    case NI_H_GROUP:
    case NI_H_FILTERED:
    case NI_H_DROPPED: break;
    default:
      if (handle) ni_stray(NI_STRAY_FOREIGN_HANDLE);
  }
}

/* Somebody wants to know what callbacks cost, or what channels do. */
COLD enum ni_result stop_and_note(void *handle) {
  uint64_t began = ni_meter_begin();
  ni_trace_stopping(handle); /* before: the stop may hand the operation over */
  stop(handle);
  if (began) ni_meter_end(began);
  return NI_RES_SUCCESS;
}

enum ni_result ni_cb_stop(void *handle) {
  if (ni_unlikely(!ni_load_acq(&ni_g.armed))) return NI_RES_SUCCESS;
  if (ni_unlikely(ni_load_rlx(&ni_g.extra))) return stop_and_note(handle);
  stop(handle);
  return NI_RES_SUCCESS;
}

void ni_cb_state(const void *handle, uint32_t state, const uint64_t *value) {
  if (!handle || ni_unlikely(!ni_load_acq(&ni_g.armed))) return;
  switch (ni_handle_kind(handle)) {
    case NI_H_STEP: ni_step_state(handle, state, value); break;
    case NI_H_PROXY: ni_proxy_state(handle, state, value); break;
    case NI_H_EVENT: ni_event_state(handle, state, value); break;
    case NI_H_FILTERED:
    case NI_H_DROPPED: break;
    default: ni_stray(NI_STRAY_UNKNOWN_STATE);
  }
}

void ni_cb_unknown(void) {
  if (ni_load_acq(&ni_g.armed)) ni_stray(NI_STRAY_UNKNOWN_TYPE);
}
