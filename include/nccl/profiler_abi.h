/*
 * The binary interface between NCCL's core and a profiler plugin, versions 1 to 6, as C structs of our own.
 *
 * Sizes and offsets were measured on x86_64 Linux against NCCL 2.23.4 to 2.30.7; the same LP64 layout holds on aarch64.
 * Every one of them is asserted below, so a change that breaks the interface does not compile. A plugin exports one
 * data object per version it speaks, `ncclProfiler_v1` .. `ncclProfiler_v6` (the vtable itself, not a pointer to it);
 * NCCL takes the newest it knows. Order by release:
 *   2.23: v1   2.24, 2.25: v2 v1   2.26: v3 v2 v1   2.27: v4 v3 v2 v1   2.28: v5 .. v1   2.29, 2.30: v6 .. v1
 *
 * Threads: callbacks of one communicator come from its application thread, its CUDA host-function thread and its proxy
 * progress thread at the same time. Ownership: a descriptor and its state arguments live for the call only; strings in
 * it are NCCL's constants, except the communicator name, which belongs to the user. Failure: results other than those
 * of init are ignored by the core. Not promised: fields that a core's translation to an older version leaves unfilled
 * hold stack garbage (p2p.nChannels and all padding through the v4 translation of 2.28 to 2.30). What NCCL declares as
 * bool is a byte here: a bool that holds anything but 0 and 1 is undefined to read, and this comes from elsewhere.
 */
#ifndef NI_NCCL_PROFILER_ABI_H
#define NI_NCCL_PROFILER_ABI_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Value of a descriptor's `type`, and bit of the activation mask. */
enum {
  NI_EV_GROUP = 1 << 0,
  NI_EV_COLL = 1 << 1,
  NI_EV_P2P = 1 << 2,
  NI_EV_PROXY_OP = 1 << 3,
  NI_EV_PROXY_STEP = 1 << 4,
  NI_EV_PROXY_CTRL = 1 << 5,
  NI_EV_KERNEL_CH = 1 << 6,     /* v3 and later */
  NI_EV_NET_PLUGIN = 1 << 7,    /* v3 */
  NI_EV_GROUP_API = 1 << 8,     /* v5 */
  NI_EV_COLL_API = 1 << 9,      /* v5 */
  NI_EV_P2P_API = 1 << 10,      /* v5 */
  NI_EV_KERNEL_LAUNCH = 1 << 11, /* v5 */
  NI_EV_CE_COLL = 1 << 12,      /* v6 */
  NI_EV_CE_SYNC = 1 << 13,      /* v6 */
  NI_EV_CE_BATCH = 1 << 14,     /* v6 */
  NI_EV_ALL = (1 << 15) - 1
};

/* Event states of recordEventState; 4 bytes. */
enum ni_prof_state {
  NI_ST_PROXY_OP_SEND_POSTED = 0, /* 0 to 7: cores of 2.23 to 2.26 only */
  NI_ST_PROXY_OP_SEND_REM_FIFO_WAIT = 1,
  NI_ST_PROXY_OP_SEND_TRANSMITTED = 2,
  NI_ST_PROXY_OP_SEND_DONE = 3,
  NI_ST_PROXY_OP_RECV_POSTED = 4,
  NI_ST_PROXY_OP_RECV_RECEIVED = 5,
  NI_ST_PROXY_OP_RECV_TRANSMITTED = 6,
  NI_ST_PROXY_OP_RECV_DONE = 7,
  NI_ST_PROXY_STEP_SEND_GPU_WAIT = 8,
  NI_ST_PROXY_STEP_SEND_WAIT = 9, /* transSize valid */
  NI_ST_PROXY_STEP_RECV_WAIT = 10,
  NI_ST_PROXY_STEP_RECV_FLUSH_WAIT = 11, /* transSize valid */
  NI_ST_PROXY_STEP_RECV_GPU_WAIT = 12,
  NI_ST_PROXY_CTRL_IDLE = 13,
  NI_ST_PROXY_CTRL_ACTIVE = 14,
  NI_ST_PROXY_CTRL_SLEEP = 15,
  NI_ST_PROXY_CTRL_WAKEUP = 16,
  NI_ST_PROXY_CTRL_APPEND = 17,
  NI_ST_PROXY_CTRL_APPEND_END = 18,
  NI_ST_PROXY_OP_IN_PROGRESS = 19,         /* v4 */
  NI_ST_PROXY_STEP_SEND_PEER_WAIT = 20,    /* v4 */
  NI_ST_NET_PLUGIN_UPDATE = 21,            /* v4 */
  NI_ST_KERNEL_CH_STOP = 22,               /* v4; kernelCh.pTimer valid */
  NI_ST_GROUP_API_START_END = 23,          /* v5; arguments NULL or garbage */
  NI_ST_GROUP_API_END_BEGIN = 24,          /* v5; arguments NULL or garbage */
  NI_ST_CE_COLL_START = 25,                /* 25 to 30: v6, defined but not emitted up to 2.30.7 */
  NI_ST_CE_COLL_COMPLETE = 26,
  NI_ST_CE_SYNC_START = 27,
  NI_ST_CE_SYNC_COMPLETE = 28,
  NI_ST_CE_BATCH_START = 29,
  NI_ST_CE_BATCH_COMPLETE = 30
};
_Static_assert(sizeof(enum ni_prof_state) == 4, "NCCL passes the state as an int");

/* Result of every callback. */
enum ni_result {
  NI_RES_SUCCESS = 0,
  NI_RES_UNHANDLED_CUDA_ERROR = 1,
  NI_RES_SYSTEM_ERROR = 2,
  NI_RES_INTERNAL_ERROR = 3,
  NI_RES_INVALID_ARGUMENT = 4,
  NI_RES_INVALID_USAGE = 5,
  NI_RES_REMOTE_ERROR = 6,
  NI_RES_IN_PROGRESS = 7
};
_Static_assert(sizeof(enum ni_result) == 4, "NCCL's result type is an int");

enum ni_log_level {
  NI_LOG_NONE = 0,
  NI_LOG_VERSION = 1,
  NI_LOG_WARN = 2,
  NI_LOG_INFO = 3,
  NI_LOG_ABORT = 4,
  NI_LOG_TRACE = 5
};

/* Subsystem bits of the logger's `flags`. */
#define NI_SUB_INIT 0x1ul
#define NI_SUB_COLL 0x2ul
#define NI_SUB_P2P 0x4ul
#define NI_SUB_SHM 0x8ul
#define NI_SUB_NET 0x10ul
#define NI_SUB_GRAPH 0x20ul
#define NI_SUB_TUNING 0x40ul
#define NI_SUB_ENV 0x80ul
#define NI_SUB_ALLOC 0x100ul
#define NI_SUB_CALL 0x200ul
#define NI_SUB_PROXY 0x400ul
#define NI_SUB_NVLS 0x800ul
#define NI_SUB_BOOTSTRAP 0x1000ul
#define NI_SUB_REG 0x2000ul
#define NI_SUB_PROFILE 0x4000ul
#define NI_SUB_RAS 0x8000ul
#define NI_SUB_ALL (~0ul)

/* printf style; `where` is a file or a function name. The core gives it to init; it may be NULL. */
typedef void (*ni_logger_fn)(enum ni_log_level level, unsigned long flags, const char *where, int line,
                             const char *fmt, ...);

#define NI_MAX_CHANNELS 64

/* ---- descriptors -------------------------------------------------------------------------------------------- */

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

/* parentObj of Coll and P2p is the CollApi's or P2pApi's handle; the Group's is parentGroup. */
struct ni_prof_descr_v5 {
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
  };
};

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

/* ---- arguments of recordEventState; the pointer to them may be NULL ------------------------------------------ */

union ni_prof_state_v1 { /* v1 to v3 */
  struct {
    size_t transSize;
    int steps;
  } proxyOp;
  struct {
    int appendedProxyOps;
  } proxyCtrl;
};

union ni_prof_state_v4 { /* v4 to v6 */
  struct {
    size_t transSize;
  } proxyStep;
  struct {
    int appendedProxyOps;
  } proxyCtrl;
  struct {
    void *data;
  } netPlugin;
  struct {
    uint64_t pTimer;
  } kernelCh;
};

/* ---- vtables ------------------------------------------------------------------------------------------------- */

#define NI_PROF_VTABLE_TAIL(descr, state)                                                 \
  enum ni_result (*startEvent)(void *context, void **eHandle, descr *eDescr);             \
  enum ni_result (*stopEvent)(void *eHandle);                                             \
  enum ni_result (*recordEventState)(void *eHandle, enum ni_prof_state eState, state *eStateArgs); \
  enum ni_result (*finalize)(void *context);

struct ni_prof_vtable_v1 {
  const char *name;
  enum ni_result (*init)(void **context, int *eActivationMask);
  NI_PROF_VTABLE_TAIL(struct ni_prof_descr_v1, union ni_prof_state_v1)
};
struct ni_prof_vtable_v2 {
  const char *name;
  enum ni_result (*init)(void **context, int *eActivationMask);
  NI_PROF_VTABLE_TAIL(struct ni_prof_descr_v2, union ni_prof_state_v1)
};
struct ni_prof_vtable_v3 {
  const char *name;
  enum ni_result (*init)(void **context, int *eActivationMask);
  NI_PROF_VTABLE_TAIL(struct ni_prof_descr_v3, union ni_prof_state_v1)
};
struct ni_prof_vtable_v4 {
  const char *name;
  enum ni_result (*init)(void **context, int *eActivationMask, const char *commName, uint64_t commHash, int nNodes,
                         int nRanks, int rank, ni_logger_fn logFn);
  NI_PROF_VTABLE_TAIL(struct ni_prof_descr_v4, union ni_prof_state_v4)
};
/* The argument order of init changed here. */
struct ni_prof_vtable_v5 {
  const char *name;
  enum ni_result (*init)(void **context, uint64_t commId, int *eActivationMask, const char *commName, int nNodes,
                         int nRanks, int rank, ni_logger_fn logFn);
  NI_PROF_VTABLE_TAIL(struct ni_prof_descr_v5, union ni_prof_state_v4)
};
struct ni_prof_vtable_v6 {
  const char *name;
  enum ni_result (*init)(void **context, uint64_t commId, int *eActivationMask, const char *commName, int nNodes,
                         int nRanks, int rank, ni_logger_fn logFn);
  NI_PROF_VTABLE_TAIL(struct ni_prof_descr_v6, union ni_prof_state_v4)
};

/* ---- the measured layout, asserted --------------------------------------------------------------------------- */

#define NI_AT(type_, member, offset_, size_)                                                       \
  _Static_assert(offsetof(struct type_, member) == (offset_), #type_ "." #member ": wrong offset"); \
  _Static_assert(sizeof(((struct type_ *)0)->member) == (size_), #type_ "." #member ": wrong size")

#define NI_AT_HEAD(type_, size_, type_bytes_)                                    \
  _Static_assert(sizeof(struct type_) == (size_), "struct " #type_ ": wrong size"); \
  _Static_assert(_Alignof(struct type_) == 8, "struct " #type_ ": wrong alignment"); \
  NI_AT(type_, type, 0, type_bytes_);                                            \
  NI_AT(type_, parentObj, 8, 8);                                                 \
  NI_AT(type_, rank, 16, 4)

#define NI_AT_PROXY(type_)               \
  NI_AT(type_, proxyOp, 24, 24);         \
  NI_AT(type_, proxyOp.pid, 24, 4);      \
  NI_AT(type_, proxyOp.channelId, 28, 1); \
  NI_AT(type_, proxyOp.peer, 32, 4);     \
  NI_AT(type_, proxyOp.nSteps, 36, 4);   \
  NI_AT(type_, proxyOp.chunkSize, 40, 4); \
  NI_AT(type_, proxyOp.isSend, 44, 4);   \
  NI_AT(type_, proxyStep, 24, 4);        \
  NI_AT(type_, proxyStep.step, 24, 4)

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

#define NI_AT_V2_V3(type_)               \
  NI_AT(type_, coll.name, 24, 8);        \
  NI_AT(type_, coll.commHash, 32, 8);    \
  NI_AT(type_, coll.seqNumber, 40, 8);   \
  NI_AT(type_, coll.func, 48, 8);        \
  NI_AT(type_, coll.sendBuff, 56, 8);    \
  NI_AT(type_, coll.recvBuff, 64, 8);    \
  NI_AT(type_, coll.count, 72, 8);       \
  NI_AT(type_, coll.root, 80, 4);        \
  NI_AT(type_, coll.datatype, 88, 8);    \
  NI_AT(type_, p2p, 24, 56);             \
  NI_AT(type_, p2p.name, 24, 8);         \
  NI_AT(type_, p2p.commHash, 32, 8);     \
  NI_AT(type_, p2p.func, 40, 8);         \
  NI_AT(type_, p2p.buff, 48, 8);         \
  NI_AT(type_, p2p.datatype, 56, 8);     \
  NI_AT(type_, p2p.count, 64, 8);        \
  NI_AT(type_, p2p.peer, 72, 4);         \
  NI_AT_PROXY(type_)

NI_AT_HEAD(ni_prof_descr_v2, 128, 1);
NI_AT_V2_V3(ni_prof_descr_v2);
NI_AT(ni_prof_descr_v2, coll, 24, 104);
NI_AT(ni_prof_descr_v2, coll.trafficBytes, 96, 8);
NI_AT(ni_prof_descr_v2, coll.nMaxChannels, 104, 1);
NI_AT(ni_prof_descr_v2, coll.nWarps, 105, 1);
NI_AT(ni_prof_descr_v2, coll.algo, 112, 8);
NI_AT(ni_prof_descr_v2, coll.proto, 120, 8);

NI_AT_HEAD(ni_prof_descr_v3, 120, 1);
NI_AT_V2_V3(ni_prof_descr_v3);
NI_AT(ni_prof_descr_v3, coll, 24, 96);
NI_AT(ni_prof_descr_v3, coll.nMaxChannels, 96, 1);
NI_AT(ni_prof_descr_v3, coll.nWarps, 97, 1);
NI_AT(ni_prof_descr_v3, coll.algo, 104, 8);
NI_AT(ni_prof_descr_v3, coll.proto, 112, 8);
NI_AT(ni_prof_descr_v3, kernelCh, 24, 1);
NI_AT(ni_prof_descr_v3, kernelCh.channelId, 24, 1);
NI_AT(ni_prof_descr_v3, netPlugin, 24, 16);
NI_AT(ni_prof_descr_v3, netPlugin.id, 24, 8);
NI_AT(ni_prof_descr_v3, netPlugin.data, 32, 8);

#define NI_AT_V4_UP(type_)               \
  NI_AT(type_, coll.seqNumber, 24, 8);   \
  NI_AT(type_, coll.func, 32, 8);        \
  NI_AT(type_, coll.sendBuff, 40, 8);    \
  NI_AT(type_, coll.recvBuff, 48, 8);    \
  NI_AT(type_, coll.count, 56, 8);       \
  NI_AT(type_, coll.root, 64, 4);        \
  NI_AT(type_, coll.datatype, 72, 8);    \
  NI_AT(type_, coll.nChannels, 80, 1);   \
  NI_AT(type_, coll.nWarps, 81, 1);      \
  NI_AT(type_, coll.algo, 88, 8);        \
  NI_AT(type_, coll.proto, 96, 8);       \
  NI_AT(type_, p2p.func, 24, 8);         \
  NI_AT(type_, p2p.buff, 32, 8);         \
  NI_AT(type_, p2p.datatype, 40, 8);     \
  NI_AT(type_, p2p.count, 48, 8);        \
  NI_AT(type_, p2p.peer, 56, 4);         \
  NI_AT(type_, p2p.nChannels, 60, 1);    \
  NI_AT_PROXY(type_);                    \
  NI_AT(type_, kernelCh, 24, 16);        \
  NI_AT(type_, kernelCh.channelId, 24, 1); \
  NI_AT(type_, kernelCh.pTimer, 32, 8);  \
  NI_AT(type_, netPlugin, 24, 16);       \
  NI_AT(type_, netPlugin.id, 24, 8);     \
  NI_AT(type_, netPlugin.data, 32, 8)

NI_AT_HEAD(ni_prof_descr_v4, 104, 1);
NI_AT_V4_UP(ni_prof_descr_v4);
NI_AT(ni_prof_descr_v4, coll, 24, 80);
NI_AT(ni_prof_descr_v4, p2p, 24, 40);

#define NI_AT_V5_UP(type_)                   \
  NI_AT_V4_UP(type_);                        \
  NI_AT(type_, coll, 24, 88);                \
  NI_AT(type_, coll.parentGroup, 104, 8);    \
  NI_AT(type_, p2p, 24, 48);                 \
  NI_AT(type_, p2p.parentGroup, 64, 8);      \
  NI_AT(type_, groupApi, 24, 8);             \
  NI_AT(type_, groupApi.graphCaptured, 24, 1); \
  NI_AT(type_, groupApi.groupDepth, 28, 4);  \
  NI_AT(type_, collApi, 24, 48);             \
  NI_AT(type_, collApi.func, 24, 8);         \
  NI_AT(type_, collApi.count, 32, 8);        \
  NI_AT(type_, collApi.datatype, 40, 8);     \
  NI_AT(type_, collApi.root, 48, 4);         \
  NI_AT(type_, collApi.stream, 56, 8);       \
  NI_AT(type_, collApi.graphCaptured, 64, 1); \
  NI_AT(type_, p2pApi, 24, 40);              \
  NI_AT(type_, p2pApi.func, 24, 8);          \
  NI_AT(type_, p2pApi.count, 32, 8);         \
  NI_AT(type_, p2pApi.datatype, 40, 8);      \
  NI_AT(type_, p2pApi.stream, 48, 8);        \
  NI_AT(type_, p2pApi.graphCaptured, 56, 1); \
  NI_AT(type_, kernelLaunch, 24, 8);         \
  NI_AT(type_, kernelLaunch.stream, 24, 8)

NI_AT_HEAD(ni_prof_descr_v5, 112, 8);
NI_AT_V5_UP(ni_prof_descr_v5);

NI_AT_HEAD(ni_prof_descr_v6, 112, 8);
NI_AT_V5_UP(ni_prof_descr_v6);
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

_Static_assert(sizeof(union ni_prof_state_v1) == 16, "state arguments of v1 to v3: wrong size");
_Static_assert(offsetof(union ni_prof_state_v1, proxyOp.transSize) == 0, "proxyOp.transSize: wrong offset");
_Static_assert(offsetof(union ni_prof_state_v1, proxyOp.steps) == 8, "proxyOp.steps: wrong offset");
_Static_assert(offsetof(union ni_prof_state_v1, proxyCtrl.appendedProxyOps) == 0, "appendedProxyOps: wrong offset");
_Static_assert(sizeof(union ni_prof_state_v4) == 8, "state arguments of v4 to v6: wrong size");
_Static_assert(offsetof(union ni_prof_state_v4, proxyStep.transSize) == 0, "proxyStep.transSize: wrong offset");
_Static_assert(offsetof(union ni_prof_state_v4, proxyCtrl.appendedProxyOps) == 0, "appendedProxyOps: wrong offset");
_Static_assert(offsetof(union ni_prof_state_v4, netPlugin.data) == 0, "netPlugin.data: wrong offset");
_Static_assert(offsetof(union ni_prof_state_v4, kernelCh.pTimer) == 0, "kernelCh.pTimer: wrong offset");

#define NI_AT_VTABLE(version_)                                                                            \
  _Static_assert(sizeof(struct ni_prof_vtable_##version_) == 48, "vtable " #version_ ": wrong size");     \
  _Static_assert(offsetof(struct ni_prof_vtable_##version_, name) == 0 &&                                 \
                     offsetof(struct ni_prof_vtable_##version_, init) == 8 &&                             \
                     offsetof(struct ni_prof_vtable_##version_, startEvent) == 16 &&                      \
                     offsetof(struct ni_prof_vtable_##version_, stopEvent) == 24 &&                       \
                     offsetof(struct ni_prof_vtable_##version_, recordEventState) == 32 &&                \
                     offsetof(struct ni_prof_vtable_##version_, finalize) == 40,                          \
                 "vtable " #version_ ": wrong offset")
NI_AT_VTABLE(v1);
NI_AT_VTABLE(v2);
NI_AT_VTABLE(v3);
NI_AT_VTABLE(v4);
NI_AT_VTABLE(v5);
NI_AT_VTABLE(v6);

#endif
