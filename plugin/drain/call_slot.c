#include "call_slot.h"

#include "plugin/slots/state.h"

uint32_t ni_call_slot_take(const struct ni_comm_writer *s, const struct ni_event_slot *e, enum ni_src src) {
  const struct ni_arena *a = &ni_g.arena;
  int why;
  if (!ni_g.config.pool_grow || ni_arena_used_bytes(a) > a->cap_bytes / 2) return 0;
  if (ni_g.config.require_kernel_timing) return 0; /* it will leave no line */
  if (e->count * ni_intern_elem_bytes(&ni_g.intern, e->datatype) < ni_g.min_size_bytes) return 0;
  uint32_t slot = ni_pool_get(&ni_g.arena, &s->comm->kind[NI_KIND_COLL].pool, &why);
  if (!slot) return 0;
  struct ni_op *op = ni_arena_op(a, slot);
  uint32_t gen = ni_state_gen(ni_load_rlx(&op->state)); /* relaxed: the slot is ours since the pop's acquire */
  uint64_t call = src == NI_SRC_API ? e->number + 1 : e->group;
  ni_store_rlx(&op->prog, 0);
  ni_store_rlx(&op->gpu_start_ns, UINT64_MAX);
  ni_store_rlx(&op->gpu_stop_ns, 0);
  ni_store_rlx(&op->ticks_first, 0);
  ni_store_rlx(&op->ticks_done, 0);
  ni_store_rlx(&op->bad, 0);
  op->group_ord = 0;
  op->comm_page = s->comm->page;
  ni_poke(&op->kind, NI_KIND_COLL);
  op->dir = op->mask_doubt = op->poller = 0;
  op->call_sn = call ? (uint32_t)(call - 1) : 0;
  op->origin = (uint8_t)((call ? NI_OP_CALLED : 0) | (src == NI_SRC_API ? NI_OP_API : NI_OP_CE));
  op->ticks_start = e->ticks_start;
  op->ticks_stop = e->ticks_stop;
  ni_poke(&op->sn, 0);
  ni_poke(&op->rec_sn, 0);
  op->count = e->count;
  op->root = e->api.root;
  ni_poke(&op->func, e->func);
  op->datatype = e->datatype;
  op->algo = op->proto = op->nchannels = op->nwarps = 0;
  op->seen_prog = op->seen_ms = 0;
  ni_store_rel(&op->state, ni_state_make(gen, NI_OP_CLOSED, 0)); /* for a reader of the box: whole from here on */
  return slot;
}

void ni_call_slot_done(struct ni_comm_writer *s, uint32_t slot, const struct ni_record *r) {
  struct ni_op *op = ni_arena_op(&ni_g.arena, slot);
  ni_poke(&op->sn, r->sn);
  ni_poke(&op->rec_sn, r->rec_sn);
  /* Release: a reader of the box that sees it finished sees its numbers. Nobody else writes this state. */
  ni_store_rel(&op->state, ni_load_rlx(&op->state) | NI_STATE_FLAG(NI_OP_LIVE | NI_OP_KDONE | NI_OP_DONE));
  ni_chain_append(&s->kind[NI_KIND_COLL].held, slot);
}

void ni_call_slot_drop(struct ni_comm_writer *s, uint32_t slot) {
  if (slot) ni_pool_give(&ni_g.arena, &s->comm->kind[NI_KIND_COLL].pool, slot);
}
