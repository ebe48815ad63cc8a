/*
 * KernelCh: the channels of an operation. Rules of all callbacks: callbacks.h.
 */
#ifndef NI_CALLBACKS_CHANNEL_H
#define NI_CALLBACKS_CHANNEL_H

#include <stdint.h>

#include "nccl/profiler_abi.h"

/*
 * parent: handle of the operation. channel: as NCCL gives it, unchecked. ptimer_ns: GPU clock, 0 if none
 * came.
 */
void *ni_cb_channel_start(const void *parent, uint32_t channel, uint64_t ptimer_ns);
void ni_cb_channel_stamp(const void *handle, uint64_t ptimer_ns);

/* KernelPhase: a part of a KernelCh, which parent names. phase: 0 initial_sync, 1 compute, 2 final_sync;
 * others are not recorded. NULL: not recorded, because nobody asked or the kernel is not a symmetric one. Its
 * end comes with the stamp. */
void *ni_cb_phase_start(const void *parent, uint32_t phase, uint64_t ptimer_ns);
void ni_cb_phase_stamp(const void *handle, uint64_t ptimer_ns);

/* For ni_cb_stop. Always success: it jumps here. */
enum ni_result ni_channel_stop(const void *handle);
void ni_channel_beside_stop(const void *handle); /* of chan_more.h */

#endif
