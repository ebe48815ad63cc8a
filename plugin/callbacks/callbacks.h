/*
 * What happens at a callback, whatever the interface version: the abi_vN.c files translate descriptors and call these.
 *
 * All are lock-free and bounded: no lock, no allocation, no formatting, no logging, no string compare, no system call,
 * with one exception that ni_cb_complete names. They accept NULL, foreign and outdated handles and contexts, count
 * what they cannot place, and never touch memory that such a handle points at. Any thread may call any of them;
 * KernelCh calls of one operation come from one thread (op.h).
 */
#ifndef NI_CALLBACKS_H
#define NI_CALLBACKS_H

#include "nccl/profiler_abi.h"
#include "plugin/slots/state.h"

/* A collective or P2P as its descriptor gives it. */
struct ni_start {
  uint64_t sn;          /* collectives: NCCL's sequence number; P2P: not read */
  const char *func, *datatype, *algo, *proto;
  uint64_t count;
  int32_t root;         /* or peer */
  uint8_t nchannels, nwarps;
  const void *group;    /* handle of the Group, may be NULL */
  const void *call;     /* handle of the CollApi or P2pApi (v5 and later), else NULL */
  const struct ni_late_ident *ident; /* v1 to v3: who the communicator is, which init does not say; else NULL */
};

/* What v1 to v3 say with each operation instead of once at init. */
struct ni_late_ident {
  const char *name; /* may be NULL, as with hash 0 through the translations of 2.27 and later */
  uint64_t hash;
  int32_t rank;
};

/* An event of another kind as its descriptor gives it; what the kind does not have is 0. */
struct ni_event_start {
  const void *parent;
  const char *func, *datatype, *text; /* text: copy engine's syncStrategy */
  uint64_t count;   /* elements; batch: bytes */
  uint64_t number;  /* CE: its sequence number */
  uint64_t stream;
  int64_t n;        /* sync: ranks; batch: operations */
  int32_t root, depth;
  bool graph, flag; /* flag: isComplete, useIntraSync */
};

struct ni_proxy_start {
  const void *parent;
  int32_t pid, rank, peer, n_steps, chunk;
  uint8_t channel;
  bool send;
};

void *ni_cb_group_start(const void *context);
void *ni_cb_op_start(const void *context, enum ni_kind kind, const struct ni_start *d);

/* parent: handle of the operation. channel: as NCCL gives it, unchecked. ptimer_ns: GPU clock, 0 if none came. */
void *ni_cb_channel_start(const void *parent, uint32_t channel, uint64_t ptimer_ns);
void ni_cb_channel_stamp(const void *handle, uint64_t ptimer_ns);

/* Group API, Coll API, P2P API, kernel launch, CE collective, sync, batch, proxy control. */
void *ni_cb_event_start(const void *context, enum ni_event kind, const struct ni_event_start *d);
/* A proxy operation of another process (its pid, or a context that is none of ours) is told apart before anything that
 * its context or parent names is touched. */
void *ni_cb_proxy_start(const void *context, const struct ni_proxy_start *d);
/* Called again for a transfer that has not begun (contract Q1) it returns the same handle. */
void *ni_cb_step_start(const void *parent, int32_t step);
/* data: the network plugin's, read during the call only, and only for payloads whose layout is known. */
void *ni_cb_net_start(const void *parent, int64_t id, const void *data);
/* recordEventState of everything but a KernelCh's stop stamp. value: first 8 bytes of the arguments, NULL without. */
void ni_cb_state(const void *handle, uint32_t state, const uint64_t *value);

/* stopEvent of every interface version. NULL is accepted (contract 4.5). */
enum ni_result ni_cb_stop(void *handle);

/* An event that is not handled: counted, never dereferenced. */
void ni_cb_unknown(void);

/* ---- between callbacks*.c ---- */

void ni_stray(enum ni_stray why); /* counts one that belongs to no communicator */
void *ni_events_group_start(struct ni_comm *c, uint32_t ordinal);
uint32_t ni_events_group_ordinal(const struct ni_comm *c, const void *group);
/* An operation names its API call: marks the call as seen, *number = its call_sn (low half; may be NULL). Returns
 * NI_OP_CALLED, NI_OP_REPLAYED or 0. */
uint32_t ni_events_seen(struct ni_comm *c, int p2p, const void *call, uint32_t flag, uint32_t *number);
enum ni_result ni_channel_stop(const void *handle); /* always success: ni_cb_stop jumps here */
void ni_channel_beside_stop(const void *handle);
void ni_event_stop(const void *handle);
void ni_event_call_stop(const void *handle);
void ni_event_state(const void *handle, uint32_t state, const uint64_t *value);
void ni_proxy_stop(const void *handle);
void ni_step_stop(const void *handle);
void ni_proxy_state(const void *handle, uint32_t state, const uint64_t *value);
void ni_step_state(const void *handle, uint32_t state, const uint64_t *value);
/* The operation that a step's handle belongs to: 1 with its communicator's page (0: none), number and NCCL's step. */
int ni_proxy_of_step(const void *step_handle, uint32_t *comm_page, uint64_t *op_sn, uint32_t *step);

#endif
