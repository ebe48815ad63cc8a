/*
 * Version 1 of the profiler interface: NCCL 2.23. Functions, datatypes, algorithms and protocols are numbers.
 * See profiler_abi.h.
 */
#ifndef NI_NCCL_PROFILER_ABI_V1_H
#define NI_NCCL_PROFILER_ABI_V1_H

#include "nccl/profiler_abi_common.h"

#define NI_PROF_COLL_V1(X, of) \
  X(of, const char *, name, 0, 8) \
  X(of, uint64_t, commHash, 8, 8) \
  X(of, uint64_t, seqNumber, 16, 8) \
  X(of, uint8_t, func, 24, 1) \
  X(of, const void *, sendBuff, 32, 8) \
  X(of, void *, recvBuff, 40, 8) \
  X(of, size_t, count, 48, 8) \
  X(of, int, root, 56, 4) \
  X(of, uint8_t, datatype, 60, 1) \
  X(of, uint32_t, op, 64, 4) \
  X(of, size_t, trafficBytes, 72, 8) \
  X(of, uint8_t, nMaxChannels, 80, 1) \
  X(of, uint8_t, nWarps, 81, 1) \
  X(of, uint8_t, algo, 82, 1) \
  X(of, uint8_t, proto, 83, 1) \
  X(of, int, isCollnet, 84, 4) \
  X(of, int, isNvls, 88, 4)
NI_PROF_PART(ni_prof_coll_v1, NI_PROF_COLL_V1, 96)

#define NI_PROF_P2P_V1(X, of) \
  X(of, const char *, name, 0, 8) \
  X(of, uint64_t, commHash, 8, 8) \
  X(of, uint8_t, func, 16, 1) \
  X(of, void *, buff, 24, 8) \
  X(of, uint8_t, datatype, 32, 1) \
  X(of, size_t, count, 40, 8) \
  X(of, int, peer, 48, 4)
NI_PROF_PART(ni_prof_p2p_v1, NI_PROF_P2P_V1, 56)

struct ni_prof_descr_v1 {
  uint8_t type;
  void *parentObj;
  int rank;
  union {
    struct ni_prof_coll_v1 coll;
    struct ni_prof_p2p_v1 p2p;
    struct ni_prof_proxy_op proxyOp;
    struct ni_prof_proxy_step proxyStep;
  };
};
NI_AT_HEAD(ni_prof_descr_v1, 120, 1)

NI_PROF_VTABLE(v1, union ni_prof_state_v1, void **context, int *eActivationMask)

#endif
