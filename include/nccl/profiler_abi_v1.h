/* Version 1 of the profiler interface: NCCL 2.23. Functions, datatypes, algorithms and protocols are numbers. See profiler_abi.h. */
#ifndef NI_NCCL_PROFILER_ABI_V1_H
#define NI_NCCL_PROFILER_ABI_V1_H

#include "nccl/profiler_abi_common.h"

struct ni_prof_descr_v1 {
  uint8_t type;
  void *parentObj;
  int rank;
  union {
    struct {
      const char *name;
      uint64_t commHash;
      uint64_t seqNumber;
      uint8_t func;
      const void *sendBuff;
      void *recvBuff;
      size_t count;
      int root;
      uint8_t datatype;
      uint32_t op;
      size_t trafficBytes;
      uint8_t nMaxChannels;
      uint8_t nWarps;
      uint8_t algo;
      uint8_t proto;
      int isCollnet;
      int isNvls;
    } coll;
    struct {
      const char *name;
      uint64_t commHash;
      uint8_t func;
      void *buff;
      uint8_t datatype;
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

struct ni_prof_vtable_v1 {
  const char *name;
  enum ni_result (*init)(void **context, int *eActivationMask);
  NI_PROF_VTABLE_TAIL(struct ni_prof_descr_v1, union ni_prof_state_v1)
};

NI_AT_HEAD(ni_prof_descr_v1, 120, 1);
NI_AT(ni_prof_descr_v1, coll, 24, 96);
NI_AT(ni_prof_descr_v1, coll.name, 24, 8);
NI_AT(ni_prof_descr_v1, coll.commHash, 32, 8);
NI_AT(ni_prof_descr_v1, coll.seqNumber, 40, 8);
NI_AT(ni_prof_descr_v1, coll.func, 48, 1);
NI_AT(ni_prof_descr_v1, coll.sendBuff, 56, 8);
NI_AT(ni_prof_descr_v1, coll.recvBuff, 64, 8);
NI_AT(ni_prof_descr_v1, coll.count, 72, 8);
NI_AT(ni_prof_descr_v1, coll.root, 80, 4);
NI_AT(ni_prof_descr_v1, coll.datatype, 84, 1);
NI_AT(ni_prof_descr_v1, coll.op, 88, 4);
NI_AT(ni_prof_descr_v1, coll.trafficBytes, 96, 8);
NI_AT(ni_prof_descr_v1, coll.nMaxChannels, 104, 1);
NI_AT(ni_prof_descr_v1, coll.nWarps, 105, 1);
NI_AT(ni_prof_descr_v1, coll.algo, 106, 1);
NI_AT(ni_prof_descr_v1, coll.proto, 107, 1);
NI_AT(ni_prof_descr_v1, coll.isCollnet, 108, 4);
NI_AT(ni_prof_descr_v1, coll.isNvls, 112, 4);
NI_AT(ni_prof_descr_v1, p2p, 24, 56);
NI_AT(ni_prof_descr_v1, p2p.name, 24, 8);
NI_AT(ni_prof_descr_v1, p2p.commHash, 32, 8);
NI_AT(ni_prof_descr_v1, p2p.func, 40, 1);
NI_AT(ni_prof_descr_v1, p2p.buff, 48, 8);
NI_AT(ni_prof_descr_v1, p2p.datatype, 56, 1);
NI_AT(ni_prof_descr_v1, p2p.count, 64, 8);
NI_AT(ni_prof_descr_v1, p2p.peer, 72, 4);
NI_AT_PROXY(ni_prof_descr_v1);
NI_AT_VTABLE(v1);

#endif
