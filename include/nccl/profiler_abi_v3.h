/*
 * Version 3 of the profiler interface: NCCL 2.26. New: kernel channels and the events of network plugins. See
 * profiler_abi.h.
 */
#ifndef NI_NCCL_PROFILER_ABI_V3_H
#define NI_NCCL_PROFILER_ABI_V3_H

#include "nccl/profiler_abi_v2.h"

#define NI_PROF_COLL_V3(X, of) \
  X(of, const char *, name, 0, 8) \
  X(of, uint64_t, commHash, 8, 8) \
  X(of, uint64_t, seqNumber, 16, 8) \
  X(of, const char *, func, 24, 8) \
  X(of, const void *, sendBuff, 32, 8) \
  X(of, void *, recvBuff, 40, 8) \
  X(of, size_t, count, 48, 8) \
  X(of, int, root, 56, 4) \
  X(of, const char *, datatype, 64, 8) \
  X(of, uint8_t, nMaxChannels, 72, 1) \
  X(of, uint8_t, nWarps, 73, 1) \
  X(of, const char *, algo, 80, 8) \
  X(of, const char *, proto, 88, 8)
NI_PROF_PART(ni_prof_coll_v3, NI_PROF_COLL_V3, 96)

#define NI_PROF_KERNEL_CH_V3(X, of) X(of, uint8_t, channelId, 0, 1)
NI_PROF_PART(ni_prof_kernel_ch_v3, NI_PROF_KERNEL_CH_V3, 1)

struct ni_prof_descr_v3 {
  uint8_t type;
  void *parentObj;
  int rank;
  union {
    struct ni_prof_coll_v3 coll;
    struct ni_prof_p2p_v2 p2p;
    struct ni_prof_proxy_op proxyOp;
    struct ni_prof_proxy_step proxyStep;
    struct ni_prof_kernel_ch_v3 kernelCh;
    struct ni_prof_net_plugin netPlugin;
  };
};
NI_AT_HEAD(ni_prof_descr_v3, 120, 1)

NI_PROF_VTABLE(v3, union ni_prof_state_v1, void **context, int *eActivationMask)

#endif
