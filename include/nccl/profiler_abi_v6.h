/* Version 6 of the profiler interface: NCCL 2.29 to 2.32. New: collectives of the copy engine. See profiler_abi.h. */
#ifndef NI_NCCL_PROFILER_ABI_V6_H
#define NI_NCCL_PROFILER_ABI_V6_H

#include "nccl/profiler_abi_common.h"

/* parentObj of Coll and P2p is the CollApi's or P2pApi's handle; the Group's is parentGroup. */
struct ni_prof_descr_v6 {
  uint64_t type;
  void *parentObj;
  int rank;
  union {
    struct {
      uint8_t graphCaptured;
      int groupDepth;
    } groupApi;
    struct {
      const char *func;
      size_t count;
      const char *datatype;
      int root;
      void *stream;
      uint8_t graphCaptured;
    } collApi;
    struct {
      const char *func;
      size_t count;
      const char *datatype;
      void *stream;
      uint8_t graphCaptured;
    } p2pApi;
    struct {
      void *stream;
    } kernelLaunch;
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
      void *parentGroup;
    } coll;
    struct {
      const char *func;
      void *buff;
      const char *datatype;
      size_t count;
      int peer;
      uint8_t nChannels;
      void *parentGroup;
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
    struct {
      uint64_t seqNumber;
      const char *func;
      const void *sendBuff;
      void *recvBuff;
      size_t count;
      int root;
      const char *datatype;
      const char *syncStrategy;
      uint8_t intraBatchSync;
      uint32_t batchSize;
      uint32_t numBatches;
      uint32_t ceSeqNum;
      void *stream;
    } ceColl;
    struct {
      uint8_t isComplete;
      int nRanks;
    } ceCollSync;
    struct {
      int numOps;
      size_t totalBytes;
      uint8_t useIntraSync;
    } ceCollBatch;
  };
};

struct ni_prof_vtable_v6 {
  const char *name;
  enum ni_result (*init)(void **context, uint64_t commId, int *eActivationMask, const char *commName, int nNodes,
                         int nRanks, int rank, ni_logger_fn logFn);
  NI_PROF_VTABLE_TAIL(struct ni_prof_descr_v6, union ni_prof_state_v4)
};

NI_AT_HEAD(ni_prof_descr_v6, 112, 8);
NI_AT(ni_prof_descr_v6, groupApi, 24, 8);
NI_AT(ni_prof_descr_v6, groupApi.graphCaptured, 24, 1);
NI_AT(ni_prof_descr_v6, groupApi.groupDepth, 28, 4);
NI_AT(ni_prof_descr_v6, collApi, 24, 48);
NI_AT(ni_prof_descr_v6, collApi.func, 24, 8);
NI_AT(ni_prof_descr_v6, collApi.count, 32, 8);
NI_AT(ni_prof_descr_v6, collApi.datatype, 40, 8);
NI_AT(ni_prof_descr_v6, collApi.root, 48, 4);
NI_AT(ni_prof_descr_v6, collApi.stream, 56, 8);
NI_AT(ni_prof_descr_v6, collApi.graphCaptured, 64, 1);
NI_AT(ni_prof_descr_v6, p2pApi, 24, 40);
NI_AT(ni_prof_descr_v6, p2pApi.func, 24, 8);
NI_AT(ni_prof_descr_v6, p2pApi.count, 32, 8);
NI_AT(ni_prof_descr_v6, p2pApi.datatype, 40, 8);
NI_AT(ni_prof_descr_v6, p2pApi.stream, 48, 8);
NI_AT(ni_prof_descr_v6, p2pApi.graphCaptured, 56, 1);
NI_AT(ni_prof_descr_v6, kernelLaunch, 24, 8);
NI_AT(ni_prof_descr_v6, kernelLaunch.stream, 24, 8);
NI_AT(ni_prof_descr_v6, coll, 24, 88);
NI_AT(ni_prof_descr_v6, coll.seqNumber, 24, 8);
NI_AT(ni_prof_descr_v6, coll.func, 32, 8);
NI_AT(ni_prof_descr_v6, coll.sendBuff, 40, 8);
NI_AT(ni_prof_descr_v6, coll.recvBuff, 48, 8);
NI_AT(ni_prof_descr_v6, coll.count, 56, 8);
NI_AT(ni_prof_descr_v6, coll.root, 64, 4);
NI_AT(ni_prof_descr_v6, coll.datatype, 72, 8);
NI_AT(ni_prof_descr_v6, coll.nChannels, 80, 1);
NI_AT(ni_prof_descr_v6, coll.nWarps, 81, 1);
NI_AT(ni_prof_descr_v6, coll.algo, 88, 8);
NI_AT(ni_prof_descr_v6, coll.proto, 96, 8);
NI_AT(ni_prof_descr_v6, coll.parentGroup, 104, 8);
NI_AT(ni_prof_descr_v6, p2p, 24, 48);
NI_AT(ni_prof_descr_v6, p2p.func, 24, 8);
NI_AT(ni_prof_descr_v6, p2p.buff, 32, 8);
NI_AT(ni_prof_descr_v6, p2p.datatype, 40, 8);
NI_AT(ni_prof_descr_v6, p2p.count, 48, 8);
NI_AT(ni_prof_descr_v6, p2p.peer, 56, 4);
NI_AT(ni_prof_descr_v6, p2p.nChannels, 60, 1);
NI_AT(ni_prof_descr_v6, p2p.parentGroup, 64, 8);
NI_AT_PROXY(ni_prof_descr_v6);
NI_AT(ni_prof_descr_v6, kernelCh, 24, 16);
NI_AT(ni_prof_descr_v6, kernelCh.channelId, 24, 1);
NI_AT(ni_prof_descr_v6, kernelCh.pTimer, 32, 8);
NI_AT(ni_prof_descr_v6, netPlugin, 24, 16);
NI_AT(ni_prof_descr_v6, netPlugin.id, 24, 8);
NI_AT(ni_prof_descr_v6, netPlugin.data, 32, 8);
NI_AT(ni_prof_descr_v6, ceColl, 24, 88);
NI_AT(ni_prof_descr_v6, ceColl.seqNumber, 24, 8);
NI_AT(ni_prof_descr_v6, ceColl.func, 32, 8);
NI_AT(ni_prof_descr_v6, ceColl.sendBuff, 40, 8);
NI_AT(ni_prof_descr_v6, ceColl.recvBuff, 48, 8);
NI_AT(ni_prof_descr_v6, ceColl.count, 56, 8);
NI_AT(ni_prof_descr_v6, ceColl.root, 64, 4);
NI_AT(ni_prof_descr_v6, ceColl.datatype, 72, 8);
NI_AT(ni_prof_descr_v6, ceColl.syncStrategy, 80, 8);
NI_AT(ni_prof_descr_v6, ceColl.intraBatchSync, 88, 1);
NI_AT(ni_prof_descr_v6, ceColl.batchSize, 92, 4);
NI_AT(ni_prof_descr_v6, ceColl.numBatches, 96, 4);
NI_AT(ni_prof_descr_v6, ceColl.ceSeqNum, 100, 4);
NI_AT(ni_prof_descr_v6, ceColl.stream, 104, 8);
NI_AT(ni_prof_descr_v6, ceCollSync, 24, 8);
NI_AT(ni_prof_descr_v6, ceCollSync.isComplete, 24, 1);
NI_AT(ni_prof_descr_v6, ceCollSync.nRanks, 28, 4);
NI_AT(ni_prof_descr_v6, ceCollBatch, 24, 24);
NI_AT(ni_prof_descr_v6, ceCollBatch.numOps, 24, 4);
NI_AT(ni_prof_descr_v6, ceCollBatch.totalBytes, 32, 8);
NI_AT(ni_prof_descr_v6, ceCollBatch.useIntraSync, 40, 1);
NI_AT_VTABLE(v6);

#endif
