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
#include "state.h"

/* A collective or P2P as its descriptor gives it. */
struct ni_start {
  uint64_t sn;          /* collectives: NCCL's sequence number; P2P: not read */
  const char *func, *datatype, *algo, *proto;
  uint64_t count;
  int32_t root;         /* or peer */
  uint8_t nchannels, nwarps;
  const void *group;    /* handle of the Group, may be NULL */
};

void *ni_cb_group_start(const void *context);
void *ni_cb_op_start(const void *context, enum ni_kind kind, const struct ni_start *d);

/* parent: handle of the operation. channel: as NCCL gives it, unchecked. ptimer_ns: GPU clock, 0 if none came. */
void *ni_cb_channel_start(const void *parent, uint32_t channel, uint64_t ptimer_ns);
void ni_cb_channel_stamp(const void *handle, uint64_t ptimer_ns);

/* stopEvent of every interface version. NULL is accepted (contract 4.5). */
enum ni_result ni_cb_stop(void *handle);

/* An event or state that is not handled: counted, never dereferenced. */
void ni_cb_unknown(void);

#endif
