/*
 * Version 6 of the profiler interface: NCCL 2.29 and 2.30. New: collectives of the copy engine. See
 * profiler_abi.h.
 */
#ifndef NI_NCCL_PROFILER_ABI_V6_H
#define NI_NCCL_PROFILER_ABI_V6_H

#include "nccl/profiler_abi_v5.h"

#define NI_PROF_CE_COLL(X, of) \
  X(of, uint64_t, seqNumber, 0, 8) \
  X(of, const char *, func, 8, 8) \
  X(of, const void *, sendBuff, 16, 8) \
  X(of, void *, recvBuff, 24, 8) \
  X(of, size_t, count, 32, 8) \
  X(of, int, root, 40, 4) \
  X(of, const char *, datatype, 48, 8) \
  X(of, const char *, syncStrategy, 56, 8) \
  X(of, uint8_t, intraBatchSync, 64, 1) \
  X(of, uint32_t, batchSize, 68, 4) \
  X(of, uint32_t, numBatches, 72, 4) \
  X(of, uint32_t, ceSeqNum, 76, 4) \
  X(of, void *, stream, 80, 8)
NI_PROF_PART(ni_prof_ce_coll, NI_PROF_CE_COLL, 88)

#define NI_PROF_CE_COLL_SYNC(X, of) \
  X(of, uint8_t, isComplete, 0, 1) \
  X(of, int, nRanks, 4, 4)
NI_PROF_PART(ni_prof_ce_coll_sync, NI_PROF_CE_COLL_SYNC, 8)

#define NI_PROF_CE_COLL_BATCH(X, of) \
  X(of, int, numOps, 0, 4) \
  X(of, size_t, totalBytes, 8, 8) \
  X(of, uint8_t, useIntraSync, 16, 1)
NI_PROF_PART(ni_prof_ce_coll_batch, NI_PROF_CE_COLL_BATCH, 24)

/* parentObj of Coll and P2p is the CollApi's or P2pApi's handle; the Group's is parentGroup. */
struct ni_prof_descr_v6 {
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
    struct ni_prof_ce_coll ceColl;
    struct ni_prof_ce_coll_sync ceCollSync;
    struct ni_prof_ce_coll_batch ceCollBatch;
  };
};
NI_AT_HEAD(ni_prof_descr_v6, 112, 8)

NI_PROF_VTABLE(v6, union ni_prof_state_v4, void **context, uint64_t commId, int *eActivationMask,
               const char *commName, int nNodes, int nRanks, int rank, ni_logger_fn logFn)

#endif
