/*
 * Version 7 of the profiler interface: NCCL 2.31 and 2.32. New: the phases of symmetric kernels, the
 * application's tag, which kernel runs. No field of v6 has moved: what is new stands at the end of each part.
 * See profiler_abi.h.
 */
#ifndef NI_NCCL_PROFILER_ABI_V7_H
#define NI_NCCL_PROFILER_ABI_V7_H

#include "nccl/profiler_abi_v6.h"

#define NI_PROF_COLL_API_V7(X, of) \
  NI_PROF_COLL_API(X, of) \
  X(of, uint64_t, userTag, 48, 8)
NI_PROF_PART(ni_prof_coll_api_v7, NI_PROF_COLL_API_V7, 56)

#define NI_PROF_P2P_API_V7(X, of) \
  NI_PROF_P2P_API(X, of) \
  X(of, uint64_t, userTag, 40, 8)
NI_PROF_PART(ni_prof_p2p_api_v7, NI_PROF_P2P_API_V7, 48)

#define NI_PROF_COLL_V7(X, of) \
  NI_PROF_COLL_V5(X, of) \
  X(of, const char *, kernelVariant, 88, 8) \
  X(of, uint8_t, isSymColl, 96, 1) \
  X(of, uint64_t, userTag, 104, 8)
NI_PROF_PART(ni_prof_coll_v7, NI_PROF_COLL_V7, 112)

#define NI_PROF_P2P_V7(X, of) \
  NI_PROF_P2P_V5(X, of) \
  X(of, uint64_t, userTag, 48, 8)
NI_PROF_PART(ni_prof_p2p_v7, NI_PROF_P2P_V7, 56)

#define NI_PROF_CE_COLL_V7(X, of) \
  NI_PROF_CE_COLL(X, of) \
  X(of, uint64_t, userTag, 88, 8)
NI_PROF_PART(ni_prof_ce_coll_v7, NI_PROF_CE_COLL_V7, 96)

/* parentObj: the KernelCh's handle. phaseId: 0 initial_sync, 1 compute, 2 final_sync, as phaseName says. */
#define NI_PROF_KERNEL_PHASE(X, of) \
  X(of, uint8_t, channelId, 0, 1) \
  X(of, uint8_t, phaseId, 1, 1) \
  X(of, const char *, phaseName, 8, 8) \
  X(of, uint64_t, pTimer, 16, 8)
NI_PROF_PART(ni_prof_kernel_phase, NI_PROF_KERNEL_PHASE, 24)

/* parentObj of Coll and P2p is the CollApi's or P2pApi's handle; the Group's is parentGroup. */
struct ni_prof_descr_v7 {
  uint64_t type;
  void *parentObj;
  int rank;
  union {
    struct ni_prof_group_api groupApi;
    struct ni_prof_coll_api_v7 collApi;
    struct ni_prof_p2p_api_v7 p2pApi;
    struct ni_prof_kernel_launch kernelLaunch;
    struct ni_prof_coll_v7 coll;
    struct ni_prof_p2p_v7 p2p;
    struct ni_prof_proxy_op proxyOp;
    struct ni_prof_proxy_step proxyStep;
    struct ni_prof_kernel_ch_v4 kernelCh;
    struct ni_prof_net_plugin netPlugin;
    struct ni_prof_ce_coll_v7 ceColl;
    struct ni_prof_ce_coll_sync ceCollSync;
    struct ni_prof_ce_coll_batch ceCollBatch;
    struct ni_prof_kernel_phase kernelPhase;
  };
};
NI_AT_HEAD(ni_prof_descr_v7, 136, 8)

NI_PROF_VTABLE(v7, union ni_prof_state_v4, void **context, uint64_t commId, int *eActivationMask,
               const char *commName, int nNodes, int nRanks, int rank, ni_logger_fn logFn)

#endif
