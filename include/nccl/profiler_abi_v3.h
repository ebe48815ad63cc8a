/* Version 3 of the profiler interface: NCCL 2.26. New: kernel channels and the events of network plugins. See profiler_abi.h. */
#ifndef NI_NCCL_PROFILER_ABI_V3_H
#define NI_NCCL_PROFILER_ABI_V3_H

#include "nccl/profiler_abi_common.h"

struct ni_prof_descr_v3 {
  uint8_t type;
  void *parentObj;
  int rank;
  union {
    struct {
      const char *name;
      uint64_t commHash;
      uint64_t seqNumber;
      const char *func;
      const void *sendBuff;
      void *recvBuff;
      size_t count;
      int root;
      const char *datatype;
      uint8_t nMaxChannels;
      uint8_t nWarps;
      const char *algo;
      const char *proto;
    } coll;
    struct {
      const char *name;
      uint64_t commHash;
      const char *func;
      void *buff;
      const char *datatype;
      size_t count;
      int peer;
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
    } kernelCh;
    struct {
      int64_t id;
      void *data;
    } netPlugin;
  };
};

struct ni_prof_vtable_v3 {
  const char *name;
  enum ni_result (*init)(void **context, int *eActivationMask);
  NI_PROF_VTABLE_TAIL(struct ni_prof_descr_v3, union ni_prof_state_v1)
};

NI_AT_HEAD(ni_prof_descr_v3, 120, 1);
NI_AT(ni_prof_descr_v3, coll, 24, 96);
NI_AT(ni_prof_descr_v3, coll.name, 24, 8);
NI_AT(ni_prof_descr_v3, coll.commHash, 32, 8);
NI_AT(ni_prof_descr_v3, coll.seqNumber, 40, 8);
NI_AT(ni_prof_descr_v3, coll.func, 48, 8);
NI_AT(ni_prof_descr_v3, coll.sendBuff, 56, 8);
NI_AT(ni_prof_descr_v3, coll.recvBuff, 64, 8);
NI_AT(ni_prof_descr_v3, coll.count, 72, 8);
NI_AT(ni_prof_descr_v3, coll.root, 80, 4);
NI_AT(ni_prof_descr_v3, coll.datatype, 88, 8);
NI_AT(ni_prof_descr_v3, coll.nMaxChannels, 96, 1);
NI_AT(ni_prof_descr_v3, coll.nWarps, 97, 1);
NI_AT(ni_prof_descr_v3, coll.algo, 104, 8);
NI_AT(ni_prof_descr_v3, coll.proto, 112, 8);
NI_AT(ni_prof_descr_v3, p2p, 24, 56);
NI_AT(ni_prof_descr_v3, p2p.name, 24, 8);
NI_AT(ni_prof_descr_v3, p2p.commHash, 32, 8);
NI_AT(ni_prof_descr_v3, p2p.func, 40, 8);
NI_AT(ni_prof_descr_v3, p2p.buff, 48, 8);
NI_AT(ni_prof_descr_v3, p2p.datatype, 56, 8);
NI_AT(ni_prof_descr_v3, p2p.count, 64, 8);
NI_AT(ni_prof_descr_v3, p2p.peer, 72, 4);
NI_AT_PROXY(ni_prof_descr_v3);
NI_AT(ni_prof_descr_v3, kernelCh, 24, 1);
NI_AT(ni_prof_descr_v3, kernelCh.channelId, 24, 1);
NI_AT(ni_prof_descr_v3, netPlugin, 24, 16);
NI_AT(ni_prof_descr_v3, netPlugin.id, 24, 8);
NI_AT(ni_prof_descr_v3, netPlugin.data, 32, 8);
NI_AT_VTABLE(v3);

#endif
