/*
 * Events that are neither operations nor network operations. Rules of all callbacks: callbacks.h.
 */
#ifndef NI_CALLBACKS_EVENT_H
#define NI_CALLBACKS_EVENT_H

#include "plugin/slots/comm.h"

/* An event of another kind as its descriptor gives it; what the kind does not have is 0. */
struct ni_event_start {
  const void *parent;
  const char *func, *datatype, *text; /* text: copy engine's syncStrategy */
  uint64_t count;                     /* elements; batch: bytes */
  uint64_t number;                    /* CE: its sequence number */
  uint64_t stream;
  uint64_t user_tag; /* 0: untagged */
  int64_t n;         /* sync: ranks; batch: operations */
  int32_t root, depth;
  bool graph, flag; /* flag: isComplete, useIntraSync */
};

/* Group API, Coll API, P2P API, kernel launch, CE collective, sync, batch, proxy control. */
void *ni_cb_event_start(const void *context, enum ni_event kind, const struct ni_event_start *d);
/* data: the network plugin's, read during the call only, and only for payloads whose layout is known. */
void *ni_cb_net_start(const void *parent, int64_t id, const void *data);

/* ---- for callbacks.c ---- */

void *ni_event_group_start(struct ni_comm *c, uint32_t ordinal);
uint32_t ni_event_group_ordinal(const struct ni_comm *c, const void *group);
void ni_event_stop(const void *handle);
void ni_event_state(const void *handle, uint32_t state, const uint64_t *value);

#endif
