/*
 * Version 5 of the profiler interface: NCCL 2.28. New: the events of the API, whose calls are the parents
 * now. See profiler_abi.h.
 */
#ifndef NI_NCCL_PROFILER_ABI_V5_H
#define NI_NCCL_PROFILER_ABI_V5_H

#include "nccl/profiler_abi_v4.h"

#define NI_PROF_GROUP_API(X, of) \
  X(of, uint8_t, graphCaptured, 0, 1) \
  X(of, int, groupDepth, 4, 4)
NI_PROF_PART(ni_prof_group_api, NI_PROF_GROUP_API, 8)

#define NI_PROF_COLL_API(X, of) \
  X(of, const char *, func, 0, 8) \
  X(of, size_t, count, 8, 8) \
  X(of, const char *, datatype, 16, 8) \
  X(of, int, root, 24, 4) \
  X(of, void *, stream, 32, 8) \
  X(of, uint8_t, graphCaptured, 40, 1)
NI_PROF_PART(ni_prof_coll_api, NI_PROF_COLL_API, 48)

#define NI_PROF_P2P_API(X, of) \
  X(of, const char *, func, 0, 8) \
  X(of, size_t, count, 8, 8) \
  X(of, const char *, datatype, 16, 8) \
  X(of, void *, stream, 24, 8) \
  X(of, uint8_t, graphCaptured, 32, 1)
NI_PROF_PART(ni_prof_p2p_api, NI_PROF_P2P_API, 40)

#define NI_PROF_KERNEL_LAUNCH(X, of) X(of, void *, stream, 0, 8)
NI_PROF_PART(ni_prof_kernel_launch, NI_PROF_KERNEL_LAUNCH, 8)

#define NI_PROF_COLL_V5(X, of) \
  NI_PROF_COLL_V4(X, of) \
  X(of, void *, parentGroup, 80, 8)
NI_PROF_PART(ni_prof_coll_v5, NI_PROF_COLL_V5, 88)

#define NI_PROF_P2P_V5(X, of) \
  NI_PROF_P2P_V4(X, of) \
  X(of, void *, parentGroup, 40, 8)
NI_PROF_PART(ni_prof_p2p_v5, NI_PROF_P2P_V5, 48)

/* parentObj of Coll and P2p is the CollApi's or P2pApi's handle; the Group's is parentGroup. */
struct ni_prof_descr_v5 {
  uint64_t type;
  void *parentObj;
  int rank;
  union {
    struct ni_prof_group_api groupApi;
    struct ni_prof_coll_api collApi;
    struct ni_prof_p2p_api p2pApi;
    struct ni_prof_kernel_launch kernelLaunch;
    struct ni_prof_coll_v5 coll;
    struct ni_prof_p2p_v5 p2p;
    struct ni_prof_proxy_op proxyOp;
    struct ni_prof_proxy_step proxyStep;
    struct ni_prof_kernel_ch_v4 kernelCh;
    struct ni_prof_net_plugin netPlugin;
  };
};
NI_AT_HEAD(ni_prof_descr_v5, 112, 8)

/* The argument order of init changed here. */
NI_PROF_VTABLE(v5, union ni_prof_state_v4, void **context, uint64_t commId, int *eActivationMask,
               const char *commName, int nNodes, int nRanks, int rank, ni_logger_fn logFn)

#endif
