/*
 * What versions of the profiler interface share: kinds of events, states, results, the logger, the arguments
 * of recordEventState, and the forms in which each version asserts its layout. See profiler_abi.h.
 */
#ifndef NI_NCCL_PROFILER_ABI_COMMON_H
#define NI_NCCL_PROFILER_ABI_COMMON_H

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
  NI_EV_KERNEL_CH = 1 << 6,      /* v3 and later */
  NI_EV_NET_PLUGIN = 1 << 7,     /* v3 */
  NI_EV_GROUP_API = 1 << 8,      /* v5 */
  NI_EV_COLL_API = 1 << 9,       /* v5 */
  NI_EV_P2P_API = 1 << 10,       /* v5 */
  NI_EV_KERNEL_LAUNCH = 1 << 11, /* v5 */
  NI_EV_CE_COLL = 1 << 12,       /* v6 */
  NI_EV_CE_SYNC = 1 << 13,       /* v6 */
  NI_EV_CE_BATCH = 1 << 14,      /* v6 */
  NI_EV_KERNEL_PHASE = 1 << 15,  /* v7. In tables up to v6 another library means something else by this bit */
  NI_EV_ALL = (1 << 16) - 1
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
  NI_ST_PROXY_OP_IN_PROGRESS = 19,      /* v4 */
  NI_ST_PROXY_STEP_SEND_PEER_WAIT = 20, /* v4 */
  NI_ST_NET_PLUGIN_UPDATE = 21,         /* v4 */
  NI_ST_KERNEL_CH_STOP = 22,            /* v4; kernelCh.pTimer valid */
  NI_ST_GROUP_API_START_END = 23,       /* v5; arguments NULL or garbage */
  NI_ST_GROUP_API_END_BEGIN = 24,       /* v5; arguments NULL or garbage */
  NI_ST_CE_COLL_START = 25,             /* 25 to 30: v6, defined but not emitted up to 2.30.7 */
  NI_ST_CE_COLL_COMPLETE = 26,
  NI_ST_CE_SYNC_START = 27,
  NI_ST_CE_SYNC_COMPLETE = 28,
  NI_ST_CE_BATCH_START = 29,
  NI_ST_CE_BATCH_COMPLETE = 30,
  NI_ST_KERNEL_PHASE_STOP = 31 /* v7; kernelCh.pTimer valid. Up to v6 another library's */
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

/* Subsystem bits of the logger's `flags`: those that we set. */
#define NI_SUB_INIT 0x1ul
#define NI_SUB_PROFILE 0x4000ul

/* printf style; `where` is a file or a function name. The core gives it to init; it may be NULL. */
typedef void (*ni_logger_fn)(enum ni_log_level level, unsigned long flags, const char *where, int line,
                             const char *fmt, ...);

/* ---- arguments of recordEventState; the pointer to them may be NULL ------------------------------------ */

union ni_prof_state_v1 { /* v1 to v3 */
  struct {
    size_t transSize;
    int steps;
  } proxyOp;
  struct {
    int appendedProxyOps;
  } proxyCtrl;
};

union ni_prof_state_v4 { /* v4 to v7 */
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

_Static_assert(sizeof(union ni_prof_state_v1) == 16, "state arguments of v1 to v3: wrong size");
_Static_assert(offsetof(union ni_prof_state_v1, proxyOp.transSize) == 0, "proxyOp.transSize: wrong offset");
_Static_assert(offsetof(union ni_prof_state_v1, proxyOp.steps) == 8, "proxyOp.steps: wrong offset");
_Static_assert(offsetof(union ni_prof_state_v1, proxyCtrl.appendedProxyOps) == 0,
               "appendedProxyOps: wrong offset");
_Static_assert(sizeof(union ni_prof_state_v4) == 8, "state arguments of v4 to v7: wrong size");
_Static_assert(offsetof(union ni_prof_state_v4, proxyStep.transSize) == 0,
               "proxyStep.transSize: wrong offset");
_Static_assert(offsetof(union ni_prof_state_v4, proxyCtrl.appendedProxyOps) == 0,
               "appendedProxyOps: wrong offset");
_Static_assert(offsetof(union ni_prof_state_v4, netPlugin.data) == 0, "netPlugin.data: wrong offset");
_Static_assert(offsetof(union ni_prof_state_v4, kernelCh.pTimer) == 0, "kernelCh.pTimer: wrong offset");

/* ---- forms of structs and their assertions ------------------------------------------------------------- */

#define NI_AT(type_, member, offset_, size_) \
  _Static_assert(offsetof(struct type_, member) == (offset_), #type_ "." #member ": wrong offset"); \
  _Static_assert(sizeof(((struct type_ *)0)->member) == (size_), #type_ "." #member ": wrong size");

/*
 * What a descriptor says of one kind of event. members: a table whose rows are X(of, type, name, offset,
 * size); those of another table may come first. offset: in this part; all parts begin at byte 24 of the
 * descriptor. bytes_: of all.
 */
#define NI_PROF_PART(tag_, members, bytes_) \
  struct tag_ { \
    members(NI_PROF_MEMBER, tag_) \
  }; \
  members(NI_PROF_MEMBER_AT, tag_) _Static_assert(sizeof(struct tag_) == (bytes_), \
                                                  "struct " #tag_ ": wrong size");
#define NI_PROF_MEMBER(of, type_, member, offset_, size_) type_ member;
#define NI_PROF_MEMBER_AT(of, type_, member, offset_, size_) NI_AT(of, member, offset_, size_)

/* The descriptor itself: what stands before the union, which `coll` is in as all parts are. */
#define NI_AT_HEAD(type_, size_, type_bytes_) \
  _Static_assert(sizeof(struct type_) == (size_), "struct " #type_ ": wrong size"); \
  _Static_assert(_Alignof(struct type_) == 8, "struct " #type_ ": wrong alignment"); \
  _Static_assert(offsetof(struct type_, coll) == 24, #type_ ".coll: wrong offset"); \
  NI_AT(type_, type, 0, type_bytes_) \
  NI_AT(type_, parentObj, 8, 8) \
  NI_AT(type_, rank, 16, 4)

/* ...: the arguments of init */
#define NI_PROF_VTABLE(version_, state_, ...) \
  struct ni_prof_vtable_##version_ { \
    const char *name; \
    enum ni_result (*init)(__VA_ARGS__); \
    enum ni_result (*startEvent)(void *context, void **eHandle, struct ni_prof_descr_##version_ *eDescr); \
    enum ni_result (*stopEvent)(void *eHandle); \
    enum ni_result (*recordEventState)(void *eHandle, enum ni_prof_state eState, state_ *eStateArgs); \
    enum ni_result (*finalize)(void *context); \
  }; \
  _Static_assert(sizeof(struct ni_prof_vtable_##version_) == 48, "vtable " #version_ ": wrong size"); \
  NI_AT(ni_prof_vtable_##version_, name, 0, 8) \
  NI_AT(ni_prof_vtable_##version_, init, 8, 8) \
  NI_AT(ni_prof_vtable_##version_, startEvent, 16, 8) \
  NI_AT(ni_prof_vtable_##version_, stopEvent, 24, 8) \
  NI_AT(ni_prof_vtable_##version_, recordEventState, 32, 8) \
  NI_AT(ni_prof_vtable_##version_, finalize, 40, 8)

/* ---- what events say in all versions that have them ---------------------------------------------------- */

#define NI_PROF_PROXY_OP(X, of) \
  X(of, pid_t, pid, 0, 4) \
  X(of, uint8_t, channelId, 4, 1) \
  X(of, int, peer, 8, 4) \
  X(of, int, nSteps, 12, 4) \
  X(of, int, chunkSize, 16, 4) \
  X(of, int, isSend, 20, 4)
NI_PROF_PART(ni_prof_proxy_op, NI_PROF_PROXY_OP, 24)

#define NI_PROF_PROXY_STEP(X, of) X(of, int, step, 0, 4)
NI_PROF_PART(ni_prof_proxy_step, NI_PROF_PROXY_STEP, 4)

/* v3 and later */
#define NI_PROF_NET_PLUGIN(X, of) \
  X(of, int64_t, id, 0, 8) \
  X(of, void *, data, 8, 8)
NI_PROF_PART(ni_prof_net_plugin, NI_PROF_NET_PLUGIN, 16)

#endif
