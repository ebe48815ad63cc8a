/*
 * The events of one communicator that are not operations (event_slot.h): their pools, their list, their
 * counts.
 *
 * One store per communicator, in the arena, and one in ni_g for what belongs to none: proxy operations served
 * for another process (PXN), and proxies whose communicator is gone. Callbacks take slots and push; the dump
 * thread drains, writes and gives back (plugin/drain/event_drain.c). Events never take more than half of the
 * arena, so they cannot cost an operation its slot.
 */
#ifndef NI_EVENT_STORE_H
#define NI_EVENT_STORE_H

#include "done_list.h"
#include "event_slot.h"
#include "slot_pool.h"
#include "format/names.h"

/*
 * When a communicator's Colls come. A non-blocking one launches in a thread of NCCL's, after its group's
 * stop.
 */
enum ni_launches { NI_LAUNCHES_UNKNOWN = 0, NI_LAUNCHES_IN_GROUP, NI_LAUNCHES_LATER };

struct ni_event_store {
  struct ni_pool events, proxies;
  _Alignas(NI_CACHE_LINE) struct ni_done_list done; /* both sizes; the kind tells */
  /* API calls: collectives; Send and Recv. The next call_sn */
  _Atomic uint64_t calls[2];
  /* number + 1 of the newest call in a cell (call_cell.h): release, acquire in ni_calls_take */
  _Atomic uint64_t noted;
  /* handle of the user group of the newest call; relaxed: a number */
  _Atomic uint64_t last_group;
  /* enum ni_launches; relaxed: what was seen holds for all calls of the communicator */
  _Atomic uint8_t launches;
  _Atomic uint64_t started[NI_EVENT_COUNT]; /* asked for and announced; the next ev_sn */
  _Atomic uint64_t dropped[NI_EVENT_COUNT]; /* of these, found no slot */
  /* dump role: the next coll_sn of collectives without a Coll event */
  uint64_t api_sn[NI_FUNC_COUNT];
};

/* A call's number from its low half: the newest that has it. */
static inline uint64_t ni_call_sn(const struct ni_event_store *s, int p2p, uint32_t low) {
  uint64_t all = ni_load_rlx(&s->calls[p2p]);
  return all - (uint32_t)((uint32_t)all - low);
}

/* limits: NCCL_INSPECTOR_PROXY_{OP,STEP}_POOL_SIZE. The rest of the store is zero. Init only. */
static inline void ni_event_store_open(struct ni_event_store *s, uint64_t event_limit, uint64_t proxy_limit) {
  ni_pool_open_empty(&s->events, NI_CHUNK_EVENT, 1, (uint32_t)event_limit);
  ni_pool_open_empty(&s->proxies, NI_CHUNK_PROXY, NI_PROXY_SLOTS, (uint32_t)proxy_limit);
}

#endif
