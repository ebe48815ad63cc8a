/*
 * The application's calls: its groups (GroupApi) and what they hold (CollApi, P2pApi). Rules of all callbacks: callbacks.h.
 */
#ifndef NI_CALLBACKS_CALL_H
#define NI_CALLBACKS_CALL_H

#include "callbacks_event.h"

/* For ni_cb_event_start. Where no line of the API is asked for, else a GroupApi has an event slot. */
void *ni_user_group_start(struct ni_comm *c);
/* Number of a GroupApi that has a slot + 1; 0: the handle names none. */
uint64_t ni_call_group_number(const void *group);
/* CollApi or P2pApi. */
void *ni_call_start(struct ni_comm *c, enum ni_event kind, const struct ni_event_start *d);

/* An operation names its API call: marks the call as seen, *number = its call_sn (low half; may be NULL). Returns
 * NI_OP_CALLED, NI_OP_REPLAYED or 0. */
uint32_t ni_call_seen(struct ni_comm *c, int p2p, const void *call, uint32_t flag, uint32_t *number);

/* For ni_cb_stop and ni_cb_state. */
void ni_call_stop(const void *handle);
void ni_call_noted_stop(const void *handle);
void ni_user_group_state(uint32_t state);
void ni_user_group_stop(const void *handle);

#endif
