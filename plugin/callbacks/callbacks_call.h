/*
 * The application's calls: its groups (GroupApi) and what they hold (CollApi, P2pApi). Rules of all
 * callbacks: callbacks.h.
 */
#ifndef NI_CALLBACKS_CALL_H
#define NI_CALLBACKS_CALL_H

#include "callbacks_event.h"
#include "loss.h"
#include "nccl/profiler_abi.h"
#include "plugin/slots/state.h"

/*
 * Are collectives asked for, but no line of their calls? Then the first two of these serve, else
 * ni_cb_event_start.
 */
static inline bool ni_calls_are_noted(void) {
  return (ni_load_rlx(&ni_g.kinds) & (NI_KINDS_API | NI_KINDS(NI_EVENT_COLL))) == NI_KINDS(NI_EVENT_COLL);
}
/* GroupApi. */
void *ni_cb_user_group_start(const void *context);
/* Its states say nothing that is kept. */
static inline void ni_cb_user_group_state(uint32_t state) {
  if (ni_unlikely(state != NI_ST_GROUP_API_START_END && state != NI_ST_GROUP_API_END_BEGIN))
    ni_stray(NI_STRAY_UNKNOWN_STATE);
}
/* CollApi, not under capture. group: the GroupApi's handle. */
void *ni_cb_call_note(const void *context, const void *group, const char *func, const char *datatype,
                      uint64_t count, int32_t root, uint64_t user_tag);

/* ---- for ni_cb_event_start ---- */

/* Number of a GroupApi that has a slot + 1; 0: the handle names none. */
uint64_t ni_call_group_number(const void *group);
/* CollApi or P2pApi. */
void *ni_call_start(struct ni_comm *c, enum ni_event kind, const struct ni_event_start *d);

/* An operation names its API call: marks the call as seen, *number = its call_sn (low half; may be NULL).
 * Returns NI_OP_CALLED, NI_OP_REPLAYED or 0. */
uint32_t ni_call_seen(struct ni_comm *c, int p2p, const void *call, uint32_t flag, uint32_t *number);

/* ---- for ni_cb_stop ---- */
void ni_call_stop(const void *handle);
void ni_call_noted_stop(const void *handle);
void ni_user_group_stop(const void *handle);

#endif
