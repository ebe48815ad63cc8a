/* Version 2 of the profiler interface: NCCL 2.24 and 2.25. What version 1 has as numbers are names. See profiler_abi.h. */
#ifndef NI_NCCL_PROFILER_ABI_V2_H
#define NI_NCCL_PROFILER_ABI_V2_H

#include "nccl/profiler_abi_common.h"

struct ni_prof_descr_v2 {
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
      size_t trafficBytes;
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
  };
};

struct ni_prof_vtable_v2 {
  const char *name;
  enum ni_result (*init)(void **context, int *eActivationMask);
  NI_PROF_VTABLE_TAIL(struct ni_prof_descr_v2, union ni_prof_state_v1)
};

NI_AT_HEAD(ni_prof_descr_v2, 128, 1);
NI_AT(ni_prof_descr_v2, coll, 24, 104);
NI_AT(ni_prof_descr_v2, coll.name, 24, 8);
NI_AT(ni_prof_descr_v2, coll.commHash, 32, 8);
NI_AT(ni_prof_descr_v2, coll.seqNumber, 40, 8);
NI_AT(ni_prof_descr_v2, coll.func, 48, 8);
NI_AT(ni_prof_descr_v2, coll.sendBuff, 56, 8);
NI_AT(ni_prof_descr_v2, coll.recvBuff, 64, 8);
NI_AT(ni_prof_descr_v2, coll.count, 72, 8);
NI_AT(ni_prof_descr_v2, coll.root, 80, 4);
NI_AT(ni_prof_descr_v2, coll.datatype, 88, 8);
NI_AT(ni_prof_descr_v2, coll.trafficBytes, 96, 8);
NI_AT(ni_prof_descr_v2, coll.nMaxChannels, 104, 1);
NI_AT(ni_prof_descr_v2, coll.nWarps, 105, 1);
NI_AT(ni_prof_descr_v2, coll.algo, 112, 8);
NI_AT(ni_prof_descr_v2, coll.proto, 120, 8);
NI_AT(ni_prof_descr_v2, p2p, 24, 56);
NI_AT(ni_prof_descr_v2, p2p.name, 24, 8);
NI_AT(ni_prof_descr_v2, p2p.commHash, 32, 8);
NI_AT(ni_prof_descr_v2, p2p.func, 40, 8);
NI_AT(ni_prof_descr_v2, p2p.buff, 48, 8);
NI_AT(ni_prof_descr_v2, p2p.datatype, 56, 8);
NI_AT(ni_prof_descr_v2, p2p.count, 64, 8);
NI_AT(ni_prof_descr_v2, p2p.peer, 72, 4);
NI_AT_PROXY(ni_prof_descr_v2);
NI_AT_VTABLE(v2);

#endif
