#include "chan_more.h"

#include "plugin/slots/state.h"

uint64_t ni_more_open(struct ni_comm *c, uint32_t index, uint64_t parent, uint64_t start_ns) {
  int why;
  uint32_t slot = ni_pool_get(&ni_g.arena, &c->more, &why);
  if (!slot)
    return 0;
  struct ni_event_slot *e = ni_arena_event(&ni_g.arena, slot);
  uint32_t gen = ni_state_gen(ni_load_rlx(&e->state)); /* relaxed: the slot is ours since the pop's acquire */
  e->comm_page = c->page;
  e->kind = NI_EVENT_KERNEL_CH;
  ni_store_rlx(&e->chan.channel, (uint8_t)(index / 2));
  ni_store_rlx(&e->chan.parent, parent);
  ni_store_rlx(&e->chan.start_ns, start_ns);
  ni_store_rlx(&e->chan.stop_ns, 0);
  ni_store_rlx(&e->chan.anothers, 0);
  ni_store_rel(&e->state, ni_state_make(gen, NI_EVS_LIVE, 0)); /* pairs with ni_more_channels */
  return ni_payload_slot(slot, gen);
}

struct ni_event_slot *ni_more_of(uint64_t payload) {
  uint32_t slot = ni_payload_index(payload);
  if (ni_arena_page_class(&ni_g.arena, slot / NI_SLOTS_PER_PAGE) != NI_CHUNK_EVENT)
    return NULL;
  struct ni_event_slot *e = ni_arena_event(&ni_g.arena, slot);
  /* Relaxed: opened by this thread. */
  return ni_state_is(ni_load_rlx(&e->state), ni_payload_gen(payload)) && e->kind == NI_EVENT_KERNEL_CH ? e
                                                                                                       : NULL;
}

void ni_more_close(struct ni_event_slot *e, uint64_t payload) {
  ni_pool_give(&ni_g.arena, &ni_arena_comm(&ni_g.arena, e->comm_page)->more, ni_payload_index(payload));
}

struct look {
  uint64_t parent, bits;
  int32_t above;
};

static void look_at(struct ni_op *any, uint32_t slot, void *arg) {
  struct look *l = arg;
  struct ni_event_slot *e = ni_arena_event(&ni_g.arena, slot);
  /*
   * Acquire pairs with ni_more_open's release: parent and place are there, or those of the slot's next life.
   */
  if (!(ni_state_flags(ni_load_acq(&any->state)) & NI_EVS_LIVE) || ni_load_rlx(&e->chan.parent) != l->parent)
    return;
  uint32_t channel = ni_load_rlx(&e->chan.channel);
  if (channel < NI_CHANNELS)
    l->bits |= UINT64_C(1) << channel;
  else
    l->above++;
}

uint64_t ni_more_channels(struct ni_comm *c, uint64_t parent, int32_t *above) {
  struct look l = {.parent = parent};
  ni_pool_walk(&ni_g.arena, &c->more, look_at, &l);
  *above = l.above;
  return l.bits;
}
