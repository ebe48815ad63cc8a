/* Version 4 of the profiler interface: NCCL 2.27. Init says who the communicator is, so that events need not; a kernel
 * channel carries the device's clock. See profiler_abi.h. */
#ifndef NI_NCCL_PROFILER_ABI_V4_H
#define NI_NCCL_PROFILER_ABI_V4_H

#include "nccl/profiler_abi_common.h"

/* parentObj of Coll and P2p is the Group's handle. */
struct ni_prof_descr_v4 {
  uint8_t type;
  void *parentObj;
  int rank;
  union {
    struct {
      uint64_t seqNumber;
      const char *func;
      const void *sendBuff;
      void *recvBuff;
      size_t count;
      int root;
      const char *datatype;
      uint8_t nChannels;
      uint8_t nWarps;
      const char *algo;
      const char *proto;
    } coll;
    struct {
      const char *func;
      void *buff;
      const char *datatype;
      size_t count;
      int peer;
      uint8_t nChannels; /* garbage unless the core is a 2.27 */
    } p2p;
    struct {
      pid_t pid;
      uint8_t channelId;
      int peer;
      int nSteps;
      int chunkSize;
      int isSend;
    } proxyOp;
    struct {
      int step;
    } proxyStep;
    struct {
      uint8_t channelId;
      uint64_t pTimer;
    } kernelCh;
    struct {
      int64_t id;
      void *data;
    } netPlugin;
  };
};

struct ni_prof_vtable_v4 {
  const char *name;
  enum ni_result (*init)(void **context, int *eActivationMask, const char *commName, uint64_t commHash, int nNodes,
                         int nRanks, int rank, ni_logger_fn logFn);
  NI_PROF_VTABLE_TAIL(struct ni_prof_descr_v4, union ni_prof_state_v4)
};

NI_AT_HEAD(ni_prof_descr_v4, 104, 1);
NI_AT(ni_prof_descr_v4, coll, 24, 80);
NI_AT(ni_prof_descr_v4, coll.seqNumber, 24, 8);
NI_AT(ni_prof_descr_v4, coll.func, 32, 8);
NI_AT(ni_prof_descr_v4, coll.sendBuff, 40, 8);
NI_AT(ni_prof_descr_v4, coll.recvBuff, 48, 8);
NI_AT(ni_prof_descr_v4, coll.count, 56, 8);
NI_AT(ni_prof_descr_v4, coll.root, 64, 4);
NI_AT(ni_prof_descr_v4, coll.datatype, 72, 8);
NI_AT(ni_prof_descr_v4, coll.nChannels, 80, 1);
NI_AT(ni_prof_descr_v4, coll.nWarps, 81, 1);
NI_AT(ni_prof_descr_v4, coll.algo, 88, 8);
NI_AT(ni_prof_descr_v4, coll.proto, 96, 8);
NI_AT(ni_prof_descr_v4, p2p, 24, 40);
NI_AT(ni_prof_descr_v4, p2p.func, 24, 8);
NI_AT(ni_prof_descr_v4, p2p.buff, 32, 8);
NI_AT(ni_prof_descr_v4, p2p.datatype, 40, 8);
NI_AT(ni_prof_descr_v4, p2p.count, 48, 8);
NI_AT(ni_prof_descr_v4, p2p.peer, 56, 4);
NI_AT(ni_prof_descr_v4, p2p.nChannels, 60, 1);
NI_AT_PROXY(ni_prof_descr_v4);
NI_AT(ni_prof_descr_v4, kernelCh, 24, 16);
NI_AT(ni_prof_descr_v4, kernelCh.channelId, 24, 1);
NI_AT(ni_prof_descr_v4, kernelCh.pTimer, 32, 8);
NI_AT(ni_prof_descr_v4, netPlugin, 24, 16);
NI_AT(ni_prof_descr_v4, netPlugin.id, 24, 8);
NI_AT(ni_prof_descr_v4, netPlugin.data, 32, 8);
NI_AT_VTABLE(v4);

#endif
