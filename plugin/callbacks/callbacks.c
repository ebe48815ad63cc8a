/*
 * Hot path. An 8-channel collective is 28 callbacks; what each may do is counted in nanoseconds
 * (docs/benchmarks.md).
 *
 * Who orders what:
 *   starter: fills the slot, publishes it with the LIVE store (release)      -> poller's load (acquire)
 *   poller:  counts channels in prog, keeps stamps (plain stores)            -> its exchange KDONE (acq_rel)
 *   starter: exchange CLOSED (acq_rel); whichever exchange shows both pushes -> dump thread's drain (acquire)
 */
#include "callbacks.h"

#include "callbacks_call.h"
#include "callbacks_channel.h"
#include "callbacks_event.h"
#include "callbacks_in.h"
#include "callbacks_proxy.h"
#include "chan_trace.h"
#include "format/apart.h"
#include "plugin/slots/beside/annex.h"
#include "want.h"

#include <string.h>

/* ---- start ---- */

void *ni_cb_group_start(const void *context) {
  struct ni_comm *c = comm_of(context);
  if (ni_unlikely(!c))
    return NULL;
  /* relaxed: only the number matters, the handle carries it */
  uint32_t ord = ni_add_rlx(&c->group_ord, 1) + 1;
  if (ni_unlikely(ni_load_rlx(&ni_g.kinds) & NI_KINDS(NI_EVENT_GROUP)))
    return ni_event_group_start(c, ord);
  return ni_handle_pack(NI_H_GROUP, ni_payload_group(c->page, ord), ni_g.nonce);
}

/* The Group's ordinal from its handle; without a usable one, the newest of the communicator. */
HOT uint32_t group_ordinal(struct ni_comm *c, const void *group) {
  if (ni_likely(ni_handle_kind(group) == NI_H_GROUP)) {
    uint64_t p = ni_handle_payload(group, ni_g.nonce);
    if (ni_likely(ni_payload_group_page(p) == c->page))
      return ni_payload_group_ordinal(p);
  }
  if (ni_unlikely(ni_handle_kind(group) == NI_H_EVENT))
    return ni_event_group_ordinal(c, group);
  return ni_load_rlx(&c->group_ord);
}

/* Puts an operation whose channel count is unknown on the list that the dump thread judges. */
static void watch(struct ni_comm *c, struct ni_op *op, uint32_t slot) {
  uint32_t head = ni_load_rlx(&c->watch);
  do
    ni_store_rlx(&op->next, head); /* no other list has it until the dump thread retires it */
  /* release: pairs with the dump thread's exchange of the list */
  while (!ni_cas_rel(&c->watch, &head, slot));
}

/*
 * Is KernelCh on for this communicator? NCCL's mask is one int of the process that anybody may change at any
 * time (callbacks 5); it is read where NCCL reads it. The communicator's libnccl is calling us, so its mask
 * is mapped.
 */
HOT enum ni_mask_doubt mask_doubt(const struct ni_comm *c) {
  const int *mask = ni_g.mask[c->mask_id];
  if (ni_unlikely(mask && !(__atomic_load_n(mask, __ATOMIC_RELAXED) & NI_EV_KERNEL_CH))) {
    if (ni_load_rlx(&ni_g.mask_off[c->mask_id]) == c->mask_off)
      ni_add_rlx(&ni_g.mask_off[c->mask_id], 1);
    return NI_MASK_OFF;
  }
  return ni_unlikely(ni_load_rlx(&ni_g.mask_off[c->mask_id]) != c->mask_off) ? NI_MASK_MAYBE_NONE
                                                                             : NI_MASK_SURE;
}

/*
 * v1 to v3 name the communicator with each operation only. The first one to come writes it down; who comes
 * meanwhile does without, since it is needed by the dump thread alone.
 */
COLD void late_ident(struct ni_comm *c, const struct ni_late_ident *id) {
  uint32_t unknown = NI_IDENT_UNKNOWN;
  if (ni_load_rlx(&c->ident) != NI_IDENT_UNKNOWN ||
      !atomic_compare_exchange_strong_explicit(&c->ident, &unknown, NI_IDENT_WRITING, memory_order_relaxed,
                                               memory_order_relaxed))
    return;
  c->late_hash = id->hash;
  c->late_rank = id->rank > 0 ? id->rank : 0; /* below: no reader takes such a line */
  if (id->name) {                             /* the user's memory, only valid now (callbacks 4.1) */
    size_t n = strnlen(id->name, NI_COMM_NAME_BYTES - 1);
    memcpy(c->name, id->name, n);
    c->has_name = 1;
  }
  ni_store_rel(&c->ident, NI_IDENT_KNOWN); /* pairs with the dump thread's acquire */
}

/*
 * A P2P with the own rank that the device counts and NCCL does not. Before any filter: it happens all the
 * same.
 */
COLD void self_on_device(struct ni_comm *c, uint32_t nchannels) {
  uint64_t now = ni_load_rlx(&c->apart),
           on = ni_apart_of_self(ni_g.nccl_version, ni_g.p2p_channels_valid ? nchannels : 0);
  /* RCCL spreads parts over up to 256 channels there; the first is the same. */
  if (ni_g.library == NI_LIBRARY_RCCL && c->n_nodes > 2 && nchannels != 1)
    on = NI_APART_ALL;
  if (on & ~now)
    (void)atomic_fetch_or_explicit(&c->apart, on, memory_order_relaxed); /* see format/apart.h */
}

/* ---- symmetric kernels (callbacks 3.9) ---- */

/* The first call of this kernel, or NULL. A call of 0 channels joins it: its time is not its own any more. */
COLD struct ni_op *head_joined(struct ni_comm *c, uint32_t group) {
  if (ni_load_rlx(&c->head_group) != group)
    return NULL;
  uint64_t head = ni_load_rlx(&c->head), state;
  struct ni_op *op = op_of(head, &state);
  if (!op || op->group_ord != group)
    return NULL;
  /* its bracket is open, and this thread's: no KernelCh of it has been queued yet */
  op->origin |= NI_OP_FUSED;
  return op;
}

/*
 * Does a call begin or join a kernel that several calls share? group: of the kernel. What is to be added to
 * its origin.
 */
COLD uint32_t join_kernel(struct ni_comm *c, uint32_t group, uint64_t payload, uint32_t nchannels) {
  if (nchannels == 0)
    return head_joined(c, group) ? NI_OP_FUSED | NI_OP_TAIL : 0;
  ni_store_rlx(&c->head, payload);
  ni_store_rlx(&c->head_group, group);
  return 0;
}

static inline bool phases_are_asked(void) {
  return (ni_load_rlx(&ni_g.kinds) & NI_KINDS(NI_EVENT_KERNEL_PHASE)) && ni_g.interface >= 7;
}

/* Through tables up to v6 an empty protocol alone says that it is a symmetric kernel. */
HOT bool proto_is_empty(uint8_t proto) { return proto == ni_load_rlx(&ni_g.intern.empty); }

/*
 * One of the few: symmetric, tagged, or started after KernelCh was off. Its slot is filled as that of any
 * other, and not published yet. Returns the channels to expect. want: as of any other.
 */
COLD uint32_t one_of_few(struct ni_comm *c, struct ni_op *op, const struct ni_start *d,
                         const struct ni_start_v7 *v7, uint64_t payload, uint32_t want) {
  bool symmetric = v7 ? v7->symmetric : ni_g.shows_symmetric && proto_is_empty(op->proto), phases = false;
  bool shifted = ni_g.mask_shifts_counts && op->mask_doubt == NI_MASK_MAYBE_NONE;
  if (symmetric) {
    want = ni_want_channels(&(struct ni_want){.nchannels = d->nchannels,
                                              .most_channels = ni_g.most_channels,
                                              .kernel_ch = op->mask_doubt != NI_MASK_OFF,
                                              .never = !ni_load_rlx(&ni_g.kernel_ch_ever),
                                              .symmetric = true,
                                              .captured = op->origin & NI_OP_REPLAYED,
                                              .call_known = op->origin & NI_OP_CALLED});
    /* perhaps a replay: probably no channel comes */
    if (want == NI_WANT_UNKNOWN)
      op->mask_doubt = NI_MASK_OFF;
    if (want == 0)
      op->mask_doubt = NI_MASK_SURE;
    op->origin |= NI_OP_SYMMETRIC;
    if (!(op->origin & NI_OP_REPLAYED))
      op->origin |= (uint8_t)join_kernel(c, op->group_ord, payload, d->nchannels);
    op->kernel = v7 ? ni_intern_id(&ni_g.intern, v7->kernel) : 0;
    phases = want && phases_are_asked();
    ni_store_rlx(&op->bad, 0); /* its kernels have counts of their own */
  } else if (shifted) {
    want = want ? NI_WANT_UNKNOWN : 0;
    /* its KernelCh may come with works that are long to come, or never */
    op->mask_doubt = NI_MASK_OFF;
    ni_store_rlx(&c->apart, NI_APART_ALL); /* no channel's stamps are to be believed from here on */
    ni_store_rlx(&op->bad, 1u << NI_BAD_COUNTERS_APART);
  }
  uint64_t user_tag = v7 ? v7->user_tag : 0;
  if (user_tag || phases)
    op->annex = ni_annex_take(c, user_tag);
  op->nchannels = want == NI_WANT_UNKNOWN ? 0 : d->nchannels;
  return want;
}

HOT void *start_op(const void *context, enum ni_kind kind, const struct ni_start *d,
                   const struct ni_start_v7 *v7) {
  struct ni_comm *c = comm_of(context);
  if (ni_unlikely(!c))
    return NULL;
  struct ni_comm_kind *k = &c->kind[kind];
  uint64_t ticks = ni_ticks(ni_g.tick_source);
  uint32_t call_sn = 0,
           origin = d->call ? ni_call_seen(c, kind == NI_KIND_P2P, d->call, NI_EVS_SEEN_KERNEL, &call_sn) : 0;
  if (ni_unlikely(d->ident))
    late_ident(c, d->ident);
  uint64_t rec_sn = ni_add_rlx(&k->started, 1); /* relaxed: a number; the record carries it */
  bool self = kind == NI_KIND_P2P && ni_g.self_is_silent && d->root == (d->ident ? d->ident->rank : c->rank);
  if (ni_unlikely(self))
    self_on_device(c, d->nchannels);
  uint8_t datatype = ni_intern_id(&ni_g.intern, d->datatype);
  /* Before any filter: one that has no record joins its kernel all the same. */
  if (v7 && v7->symmetric && d->nchannels == 0 && !(origin & NI_OP_REPLAYED))
    (void)head_joined(c, group_ordinal(c, d->group));

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
  if (ni_unlikely(!slot)) {
    ni_lose(k, why_cap ? NI_DROP_ARENA_FULL : NI_DROP_POOL_FULL, rec_sn);
    return ni_handle_pack(NI_H_DROPPED, 0, ni_g.nonce);
  }

  struct ni_op *op = ni_arena_op(&ni_g.arena, slot);
  /* relaxed: the slot is ours since the pop's acquire */
  uint32_t gen = ni_state_gen(ni_load_rlx(&op->state));
  enum ni_mask_doubt doubt = mask_doubt(c);
  uint32_t want = ni_want_channels(&(struct ni_want){.kind = kind,
                                                     .nchannels = d->nchannels,
                                                     .most_channels = ni_g.most_channels,
                                                     .self = self,
                                                     .p2p_channels_valid = ni_g.p2p_channels_valid,
                                                     .kernel_ch = doubt != NI_MASK_OFF,
                                                     .never = !ni_load_rlx(&ni_g.kernel_ch_ever)});
  ni_store_rlx(&op->prog, 0);
  ni_store_rlx(&op->gpu_start_ns, UINT64_MAX);
  ni_store_rlx(&op->gpu_stop_ns, 0);
  ni_store_rlx(&op->ticks_first, 0);
  ni_store_rlx(&op->ticks_done, 0);
  ni_store_rlx(
      &op->bad,
      ni_unlikely(ni_load_rlx(&c->apart) || ni_load_rlx(&c->apart_shown)) ? 1u << NI_BAD_COUNTERS_APART : 0);
  op->group_ord = group_ordinal(c, d->group);
  op->comm_page = c->page;
  ni_poke(&op->kind, (uint8_t)kind);
  ni_poke(&op->func, ni_intern_id(&ni_g.intern, d->func));
  /* "Recv", callbacks 2.1 */
  op->dir = kind == NI_KIND_P2P && ni_intern_text(&ni_g.intern, op->func)[0] == 'R';
  op->mask_doubt = (uint8_t)doubt;
  op->poller = 0;
  op->call_sn = call_sn;
  op->origin = (uint8_t)origin;
  op->ticks_start = ticks;
  op->ticks_stop = 0;
  ni_poke(&op->sn, kind == NI_KIND_P2P ? rec_sn : d->sn);
  op->count = d->count;
  ni_poke(&op->rec_sn, rec_sn);
  op->root = d->root;
  op->datatype = datatype;
  op->algo = ni_intern_id(&ni_g.intern, d->algo);
  op->proto = ni_intern_id(&ni_g.intern, d->proto);
  op->nchannels = want == NI_WANT_UNKNOWN ? 0 : d->nchannels;
  op->kernel = 0;
  op->annex = 0;
  op->seen_prog = op->seen_ms = 0;
  if (ni_unlikely(v7 || doubt == NI_MASK_MAYBE_NONE || proto_is_empty(op->proto)))
    want = one_of_few(c, op, d, v7, ni_payload_slot(slot, gen), want);
  NI_TESTPOINT();
  ni_store_rel(&op->state, ni_state_make(gen, NI_OP_LIVE, want)); /* publishes; pairs with op_of's acquire */
  if (ni_unlikely(want == NI_WANT_UNKNOWN))
    watch(c, op, slot);
  return ni_handle_pack(NI_H_OP, ni_payload_slot(slot, gen), ni_g.nonce);
}

void *ni_cb_op_start(const void *context, enum ni_kind kind, const struct ni_start *d) {
  return start_op(context, kind, d, NULL);
}

void *ni_cb_op_start_v7(const void *context, enum ni_kind kind, const struct ni_start *d,
                        const struct ni_start_v7 *v7) {
  return start_op(context, kind, d, v7);
}

/* ---- stop ---- */

static __attribute__((noinline)) void op_stop(const void *handle) {
  uint64_t payload = ni_handle_payload(handle, ni_g.nonce), state;
  struct ni_op *op = op_of(payload, &state);
  if (ni_unlikely(!op))
    return;
  uint32_t want = ni_state_want(state);
  /* Only where the bracket may become the finish. */
  if (ni_unlikely(want == 0 || want == NI_WANT_UNKNOWN || op->mask_doubt ||
                  ni_load_rlx(&op->bad) >> NI_BAD_COUNTERS_APART) &&
      !(ni_state_flags(state) & NI_OP_CLOSED))
    op->ticks_stop = ni_ticks(ni_g.tick_source);
  uint64_t now = ni_op_set(op, ni_payload_gen(payload), NI_OP_CLOSED);
  if (ni_unlikely(!now))
    (void)stray_process(NI_STRAY_DOUBLE_STOP);
  else if (ni_state_flags(now) & NI_OP_DONE)
    publish_done(op, ni_payload_index(payload));
}

static __attribute__((noinline)) enum ni_result stop_other(const void *handle) {
  switch (ni_handle_kind(handle)) {
    case NI_H_OP:
      op_stop(handle);
      break;
    case NI_H_MORE:
      ni_channel_beside_stop(handle);
      break;
    case NI_H_STEP:
      ni_step_stop(handle);
      break;
    case NI_H_PROXY:
      ni_proxy_stop(handle);
      break;
    case NI_H_CALL:
      ni_call_stop(handle);
      break;
    case NI_H_NOTED:
      ni_call_noted_stop(handle);
      break;
    case NI_H_USER_GROUP:
      ni_user_group_stop(handle);
      break;
    case NI_H_PHASE:
    case NI_H_PHASE_MORE:
      break; /* its stamp has said all */
    case NI_H_EVENT:
      ni_event_stop(handle);
      break;
    case NI_H_GROUP:
    case NI_H_FILTERED:
    case NI_H_DROPPED:
      break;
    default:
      if (handle)
        ni_stray(NI_STRAY_FOREIGN_HANDLE);
  }
  return NI_RES_SUCCESS;
}

/* Both are jumps: no register is saved twice. */
HOT enum ni_result stop(const void *handle) {
  return ni_handle_kind(handle) == NI_H_CHANNEL ? ni_channel_stop(handle) : stop_other(handle);
}

/* Somebody wants to know what channels do. */
COLD enum ni_result stop_and_note(void *handle, uint32_t armed) {
  if (!armed)
    return NI_RES_SUCCESS;
  ni_trace_stopping(handle); /* before: the stop may hand the operation over */
  (void)stop(handle);
  return NI_RES_SUCCESS;
}

enum ni_result ni_cb_stop(void *handle) {
  uint32_t armed = ni_load_acq(&ni_g.armed); /* pairs with set_up: nonce and arena are there */
  return ni_likely(armed == NI_ARMED) ? stop(handle) : stop_and_note(handle, armed);
}

void ni_cb_state(const void *handle, uint32_t state, const uint64_t *value) {
  if (!handle)
    return;
  switch (ni_handle_kind(handle)) {
    case NI_H_STEP:
      ni_step_state(handle, state, value);
      break;
    case NI_H_PROXY:
      ni_proxy_state(handle, state, value);
      break;
    case NI_H_EVENT:
      ni_event_state(handle, state, value);
      break;
    case NI_H_FILTERED:
    case NI_H_DROPPED:
      break;
    default:
      ni_stray(NI_STRAY_UNKNOWN_STATE);
  }
}

void ni_cb_unknown(void) { ni_stray(NI_STRAY_UNKNOWN_TYPE); }
