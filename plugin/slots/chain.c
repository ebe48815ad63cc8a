#include "chain.h"

#include "state.h"

static struct ni_op *op_at(uint32_t slot) { return ni_arena_op(&ni_g.arena, slot); }

void ni_chain_append(struct ni_chain *c, uint32_t slot) {
  ni_store_rlx(&op_at(slot)->next, 0);
  if (c->n++)
    ni_store_rlx(&op_at(c->last)->next, slot);
  else
    c->first = slot;
  c->last = slot;
}

uint32_t ni_chain_take(struct ni_chain *c) {
  uint32_t slot = c->first;
  if (c->n == 0)
    return 0;
  c->first = ni_load_rlx(&op_at(slot)->next);
  if (--c->n == 0)
    c->first = c->last = 0;
  return slot;
}
