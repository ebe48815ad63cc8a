/*
 * What happens at a callback, whatever the interface version: the abi_vN.c files translate descriptors and
 * call what is here and in callbacks_{channel,event,proxy}.h.
 *
 * All are lock-free and bounded: no lock, no allocation, no formatting, no logging, no string compare, no
 * system call, with one exception that publish_done names (callbacks_in.h). They accept NULL, foreign and
 * outdated handles and contexts, count what they cannot place, and never touch memory that such a handle
 * points at. Any thread may call any of them; KernelCh calls of one operation come from one thread (op.h).
 * Those with a handle, a context or a parent look first whether the plugin is on (ni_g.armed): ni_cb_stop
 * itself, the others in their only callers, the entries of abi_body.h.
 */
#ifndef NI_CALLBACKS_H
#define NI_CALLBACKS_H

#include "nccl/profiler_abi.h"
#include "plugin/slots/state.h"

/* A collective or P2P as its descriptor gives it. */
struct ni_start {
  uint64_t sn; /* collectives: NCCL's sequence number; P2P: not read */
  const char *func, *datatype, *algo, *proto;
  uint64_t count;
  int32_t root; /* or peer */
  uint8_t nchannels;
  const void *group; /* handle of the Group, may be NULL */
  const void *call;  /* handle of the CollApi or P2pApi (v5 and later), else NULL */
  /* v1 to v3: who the communicator is, which init does not say; else NULL */
  const struct ni_late_ident *ident;
};

/* What v7 adds, of the few operations that have some of it. */
struct ni_start_v7 {
  bool symmetric;     /* a symmetric kernel. Older interfaces do not say; an empty protocol does */
  const char *kernel; /* NCCL's name of it, or NULL */
  uint64_t user_tag;  /* 0: untagged */
};

/* What v1 to v3 say with each operation instead of once at init. */
struct ni_late_ident {
  const char *name; /* may be NULL, as with hash 0 through the translations of 2.27 and later */
  uint64_t hash;
  int32_t rank;
};

void *ni_cb_group_start(const void *context);
void *ni_cb_op_start(const void *context, enum ni_kind kind, const struct ni_start *d);
void *ni_cb_op_start_v7(const void *context, enum ni_kind kind, const struct ni_start *d,
                        const struct ni_start_v7 *v7);

/*
 * recordEventState of everything but a KernelCh's stop stamp. value: first 8 bytes of the arguments, NULL
 * without.
 */
void ni_cb_state(const void *handle, uint32_t state, const uint64_t *value);

/* stopEvent of every interface version. NULL is accepted (callbacks 4.5). */
enum ni_result ni_cb_stop(void *handle);

/* An event that is not handled: counted, never dereferenced. */
void ni_cb_unknown(void);

#endif
