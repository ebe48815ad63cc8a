/* Version 4 of the profiler interface: NCCL 2.27. Init says who the communicator is, so that events need not;
 * a kernel channel carries the device's clock. See profiler_abi.h. */
#ifndef NI_NCCL_PROFILER_ABI_V4_H
#define NI_NCCL_PROFILER_ABI_V4_H

#include "nccl/profiler_abi_v3.h"

#define NI_PROF_COLL_V4(X, of) \
  X(of, uint64_t, seqNumber, 0, 8) \
  X(of, const char *, func, 8, 8) \
  X(of, const void *, sendBuff, 16, 8) \
  X(of, void *, recvBuff, 24, 8) \
  X(of, size_t, count, 32, 8) \
  X(of, int, root, 40, 4) \
  X(of, const char *, datatype, 48, 8) \
  X(of, uint8_t, nChannels, 56, 1) \
  X(of, uint8_t, nWarps, 57, 1) \
  X(of, const char *, algo, 64, 8) \
  X(of, const char *, proto, 72, 8)
NI_PROF_PART(ni_prof_coll_v4, NI_PROF_COLL_V4, 80)

#define NI_PROF_P2P_V4(X, of) \
  X(of, const char *, func, 0, 8) \
  X(of, void *, buff, 8, 8) \
  X(of, const char *, datatype, 16, 8) \
  X(of, size_t, count, 24, 8) \
  X(of, int, peer, 32, 4) \
  X(of, uint8_t, nChannels, 36, 1)
NI_PROF_PART(ni_prof_p2p_v4, NI_PROF_P2P_V4, 40)

#define NI_PROF_KERNEL_CH_V4(X, of) \
  NI_PROF_KERNEL_CH_V3(X, of) \
  X(of, uint64_t, pTimer, 8, 8)
NI_PROF_PART(ni_prof_kernel_ch_v4, NI_PROF_KERNEL_CH_V4, 16)

/* parentObj of Coll and P2p is the Group's handle. */
struct ni_prof_descr_v4 {
  uint8_t type;
  void *parentObj;
  int rank;
  union {
    struct ni_prof_coll_v4 coll;
    struct ni_prof_p2p_v4 p2p; /* nChannels: garbage unless the core is a 2.27 */
    struct ni_prof_proxy_op proxyOp;
    struct ni_prof_proxy_step proxyStep;
    struct ni_prof_kernel_ch_v4 kernelCh;
    struct ni_prof_net_plugin netPlugin;
  };
};
NI_AT_HEAD(ni_prof_descr_v4, 104, 1)

NI_PROF_VTABLE(v4, union ni_prof_state_v4, void **context, int *eActivationMask, const char *commName,
               uint64_t commHash, int nNodes, int nRanks, int rank, ni_logger_fn logFn)

#endif
