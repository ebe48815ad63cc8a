#include "annex.h"

#include "plugin/slots/state.h"

struct ni_annex *ni_annex_of(const struct ni_op *op) {
  return op->annex ? (struct ni_annex *)(void *)ni_arena_op(&ni_g.arena, op->annex) : NULL;
}

uint32_t ni_annex_take(struct ni_comm *c, uint64_t user_tag) {
  int why;
  uint32_t slot = ni_pool_get(&ni_g.arena, &c->annexes, &why);
  if (!slot) {
    ni_add_rlx(&c->stray[NI_STRAY_NO_ANNEX], 1);
    return 0;
  }
  struct ni_annex *x = (struct ni_annex *)(void *)ni_arena_op(&ni_g.arena, slot);
  x->user_tag = user_tag;
  ni_store_rlx(&x->compute_from_ns, 0);
  ni_store_rlx(&x->compute_to_ns, 0);
  return slot;
}

void ni_annex_give(struct ni_comm *c, struct ni_op *op) {
  if (ni_likely(!op->annex))
    return;
  ni_pool_give(&ni_g.arena, &c->annexes, op->annex);
  op->annex = 0;
}

static void raise_to(_Atomic uint64_t *word, uint64_t ns) {
  if (ns > ni_load_rlx(word))
    ni_store_rlx(word, ns);
}

/*
 * Stamps of an earlier work may be left where NCCL was not asked for phases then: they are older than the
 * channel's begin.
 */
static bool is_this_works(struct ni_annex *x, uint64_t channel_ns, uint64_t ns) {
  if (ns >= channel_ns)
    return true;
  ni_store_rlx(&x->compute_from_ns, UINT64_MAX);
  return false;
}

void ni_annex_begin(struct ni_annex *x, uint32_t phase, uint64_t channel_ns, uint64_t ns) {
  if (!is_this_works(x, channel_ns, ns))
    return;
  if (phase == NI_PHASE_COMPUTE)
    raise_to(&x->compute_from_ns, ns);
  if (phase == NI_PHASE_FINAL_SYNC)
    raise_to(&x->compute_to_ns, ns);
}

void ni_annex_end(struct ni_annex *x, uint32_t phase, uint64_t channel_ns, uint64_t ns) {
  if (!is_this_works(x, channel_ns, ns))
    return;
  if (phase == NI_PHASE_INITIAL_SYNC)
    raise_to(&x->compute_from_ns, ns);
  if (phase == NI_PHASE_COMPUTE)
    raise_to(&x->compute_to_ns, ns);
}
