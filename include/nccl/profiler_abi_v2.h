/*
 * Version 2 of the profiler interface: NCCL 2.24 and 2.25. What version 1 has as numbers are names. See
 * profiler_abi.h.
 */
#ifndef NI_NCCL_PROFILER_ABI_V2_H
#define NI_NCCL_PROFILER_ABI_V2_H

#include "nccl/profiler_abi_common.h"

#define NI_PROF_COLL_V2(X, of) \
  X(of, const char *, name, 0, 8) \
  X(of, uint64_t, commHash, 8, 8) \
  X(of, uint64_t, seqNumber, 16, 8) \
  X(of, const char *, func, 24, 8) \
  X(of, const void *, sendBuff, 32, 8) \
  X(of, void *, recvBuff, 40, 8) \
  X(of, size_t, count, 48, 8) \
  X(of, int, root, 56, 4) \
  X(of, const char *, datatype, 64, 8) \
  X(of, size_t, trafficBytes, 72, 8) \
  X(of, uint8_t, nMaxChannels, 80, 1) \
  X(of, uint8_t, nWarps, 81, 1) \
  X(of, const char *, algo, 88, 8) \
  X(of, const char *, proto, 96, 8)
NI_PROF_PART(ni_prof_coll_v2, NI_PROF_COLL_V2, 104)

#define NI_PROF_P2P_V2(X, of) \
  X(of, const char *, name, 0, 8) \
  X(of, uint64_t, commHash, 8, 8) \
  X(of, const char *, func, 16, 8) \
  X(of, void *, buff, 24, 8) \
  X(of, const char *, datatype, 32, 8) \
  X(of, size_t, count, 40, 8) \
  X(of, int, peer, 48, 4)
NI_PROF_PART(ni_prof_p2p_v2, NI_PROF_P2P_V2, 56)

struct ni_prof_descr_v2 {
  uint8_t type;
  void *parentObj;
  int rank;
  union {
    struct ni_prof_coll_v2 coll;
    struct ni_prof_p2p_v2 p2p;
    struct ni_prof_proxy_op proxyOp;
    struct ni_prof_proxy_step proxyStep;
  };
};
NI_AT_HEAD(ni_prof_descr_v2, 128, 1)

NI_PROF_VTABLE(v2, union ni_prof_state_v1, void **context, int *eActivationMask)

#endif
