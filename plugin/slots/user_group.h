/*
 * Is the group of an application still open, ncclGroupEnd not over? Asked of a call that has no Coll yet.
 *
 * Where lines of the API are asked for a GroupApi has an event slot. Where not it has a number of its
 * communicator, the first of the group: ni_comm.user_group holds the newest one, twice that + 1 while it is
 * open. Handles are tags: nothing is followed before it is checked. Any thread.
 */
#ifndef NI_USER_GROUP_H
#define NI_USER_GROUP_H

#include "state.h"

/* tag: the GroupApi's handle, as given to NCCL. */
static inline bool ni_user_group_open(uint64_t tag) {
  const void *group = (const void *)(uintptr_t)tag;
  uint64_t p = ni_handle_payload(group, ni_g.nonce), open = (uint64_t)ni_payload_group_ordinal(p) << 1 | 1;
  uint32_t page = ni_payload_group_page(p), slot = ni_payload_index(p);
  /* Acquire pairs with its stop: a Coll came before that. Of a communicator that has gone it is not open. */
  if (ni_handle_kind(group) == NI_H_USER_GROUP)
    return ni_arena_page_class(&ni_g.arena, page) == NI_CHUNK_COMM &&
        (ni_load_acq(&ni_arena_comm(&ni_g.arena, page)->user_group) & NI_USER_GROUP_MASK) == open;
  if (ni_handle_kind(group) != NI_H_EVENT ||
      ni_arena_page_class(&ni_g.arena, slot / NI_SLOTS_PER_PAGE) != NI_CHUNK_EVENT)
    return false;
  /* pairs with close_slot, as above */
  uint64_t state = ni_load_acq(&ni_arena_event(&ni_g.arena, slot)->state);
  return ni_state_is(state, ni_payload_gen(p)) && !(ni_state_flags(state) & NI_EVS_CLOSED);
}

#endif
