/*
 * One interface version: descriptor -> the structs of callbacks.h. Included once by each abi_vN.c, which sets
 * NI_ABI; what differs between versions stands here side by side.
 *
 *   1, 2, 3 init has the mask alone; who the communicator is comes with each operation; the number of
 *           channels that a Coll will use is not known (nMaxChannels is a bound). 1: numbers for names.
 *           3: KernelCh without stamps
 *   4       init has the mask before the hash; parentObj of Coll and P2p is the Group; p2p.nChannels is stack
 *           garbage unless the core is a 2.27
 *   5, 6    parentObj is the API event, the Group is parentGroup. API, launch and copy-engine events arrive
 *           although they are not asked for (parents of what is, callbacks 4.2)
 *   7       the application's tag, symmetric kernels and their phases. In tables up to v6 bit 15 and states
 *           from 31 on are not NCCL's: another library of the same interface has others there
 *
 * Unknown types are counted. Strings are NCCL's constants, NULL allowed; state arguments may be NULL. What
 * "callbacks 4.2" means here and elsewhere is section 4.2 of docs/nccl-callbacks.md.
 */
#include "plugin/callbacks/callbacks.h"
#include "plugin/callbacks/callbacks_call.h"
#include "plugin/callbacks/callbacks_channel.h"
#include "plugin/callbacks/callbacks_event.h"
#include "plugin/callbacks/callbacks_proxy.h"
#include "plugin/callbacks/chan_trace.h"
#include "lifecycle.h"
#if NI_ABI == 1
#include "abi_v1_names.h"
#endif

#if NI_ABI >= 7
#define NI_TAG(part) (part).userTag
#define NI_START_OP(context, kind, ...) \
  (ni_unlikely(v7.symmetric || v7.user_tag) ? ni_cb_op_start_v7(context, kind, __VA_ARGS__, &v7) \
                                            : ni_cb_op_start(context, kind, __VA_ARGS__))
#else
#define NI_TAG(part) 0
#define NI_START_OP ni_cb_op_start
#endif

#define NI_CAT_(a, b) a##b
#define NI_CAT(a, b) NI_CAT_(a, b)
#define NI_DESCR struct NI_CAT(ni_prof_descr_v, NI_ABI)
#define NI_VTABLE struct NI_CAT(ni_prof_vtable_v, NI_ABI)
#define NI_SYMBOL NI_CAT(ncclProfiler_v, NI_ABI)
#if NI_ABI >= 4
#define NI_STATE union ni_prof_state_v4
#else
#define NI_STATE union ni_prof_state_v1
#endif
#if NI_ABI == 1
#define NI_NAME(table, value) NI_V1_NAME(table, value)
#else
#define NI_NAME(table, value) (value)
#endif

#if NI_ABI <= 3
static enum ni_result init(void **context, int *mask) {
  return ni_init(NI_ABI, context, mask, &(struct ni_init_args){.rank = -1, .ident_follows = true});
}
#elif NI_ABI == 4
static enum ni_result init(void **context, int *mask, const char *name, uint64_t hash, int n_nodes,
                           int n_ranks, int rank, ni_logger_fn logger) {
  return ni_init(NI_ABI, context, mask,
                 &(struct ni_init_args){.comm_hash = hash,
                                        .comm_name = name,
                                        .n_nodes = n_nodes,
                                        .n_ranks = n_ranks,
                                        .rank = rank,
                                        .logger = logger});
}
#else
static enum ni_result init(void **context, uint64_t hash, int *mask, const char *name, int n_nodes,
                           int n_ranks, int rank, ni_logger_fn logger) {
  return ni_init(NI_ABI, context, mask,
                 &(struct ni_init_args){.comm_hash = hash,
                                        .comm_name = name,
                                        .n_nodes = n_nodes,
                                        .n_ranks = n_ranks,
                                        .rank = rank,
                                        .logger = logger});
}
#endif

static void *start_coll(void *context, const NI_DESCR *d) {
#if NI_ABI >= 7
  const struct ni_start_v7 v7 = {d->coll.isSymColl != 0, d->coll.kernelVariant, d->coll.userTag};
#endif
  const struct ni_start start = {.sn = d->coll.seqNumber,
                                 .func = NI_NAME(func, d->coll.func),
                                 .datatype = NI_NAME(datatype, d->coll.datatype),
                                 .algo = NI_NAME(algo, d->coll.algo),
                                 .proto = NI_NAME(proto, d->coll.proto),
                                 .count = d->coll.count,
                                 .root = d->coll.root,
#if NI_ABI <= 3
                                 .ident = &(struct ni_late_ident){d->coll.name, d->coll.commHash, d->rank},
#else
                                 .nchannels = d->coll.nChannels,
#endif
#if NI_ABI >= 5
                                 .call = d->parentObj,
                                 .group = d->coll.parentGroup};
#else
                                 .group = d->parentObj};
#endif
  return NI_START_OP(context, NI_KIND_COLL, &start);
}

static void *start_p2p(void *context, const NI_DESCR *d) {
#if NI_ABI >= 7
  const struct ni_start_v7 v7 = {.user_tag = d->p2p.userTag};
#endif
  const struct ni_start start = {.func = NI_NAME(func, d->p2p.func),
                                 .datatype = NI_NAME(datatype, d->p2p.datatype),
                                 .count = d->p2p.count,
                                 .root = d->p2p.peer,
#if NI_ABI <= 3
                                 .ident = &(struct ni_late_ident){d->p2p.name, d->p2p.commHash, d->rank},
#elif NI_ABI == 4
                                 .nchannels = ni_g.p2p_channels_valid ? d->p2p.nChannels : 0,
#else
                                 .nchannels = d->p2p.nChannels,
#endif
#if NI_ABI >= 5
                                 .call = d->parentObj,
                                 .group = d->p2p.parentGroup};
#else
                                 .group = d->parentObj};
#endif
  return NI_START_OP(context, NI_KIND_P2P, &start);
}

static void *start_proxy_op(void *context, const NI_DESCR *d) {
  return ni_cb_proxy_start(context,
                           &(struct ni_proxy_start){.parent = d->parentObj,
                                                    .pid = d->proxyOp.pid,
                                                    .rank = d->rank,
                                                    .peer = d->proxyOp.peer,
                                                    .n_steps = d->proxyOp.nSteps,
                                                    .chunk = d->proxyOp.chunkSize,
                                                    .channel = d->proxyOp.channelId,
                                                    .send = d->proxyOp.isSend != 0});
}

/* Everything that is neither an operation nor a network step. NULL: not recorded. */
static void *start_other(void *context, const NI_DESCR *d) {
  struct ni_event_start s = {.parent = d->parentObj};
  enum ni_event kind;
  switch (d->type) {
    case NI_EV_PROXY_CTRL:
      kind = NI_EVENT_PROXY_CTRL;
      break;
#if NI_ABI >= 5
    case NI_EV_GROUP_API:
      kind = NI_EVENT_GROUP_API;
      s.graph = d->groupApi.graphCaptured;
      s.depth = d->groupApi.groupDepth;
      break;
    case NI_EV_COLL_API:
      kind = NI_EVENT_COLL_API;
      s.func = d->collApi.func;
      s.datatype = d->collApi.datatype;
      s.count = d->collApi.count;
      s.root = d->collApi.root;
      s.stream = (uintptr_t)d->collApi.stream;
      s.graph = d->collApi.graphCaptured;
      s.user_tag = NI_TAG(d->collApi);
      break;
    case NI_EV_P2P_API:
      kind = NI_EVENT_P2P_API;
      s.func = d->p2pApi.func;
      s.datatype = d->p2pApi.datatype;
      s.count = d->p2pApi.count;
      s.stream = (uintptr_t)d->p2pApi.stream;
      s.graph = d->p2pApi.graphCaptured;
      s.user_tag = NI_TAG(d->p2pApi);
      break;
    case NI_EV_KERNEL_LAUNCH:
      kind = NI_EVENT_LAUNCH;
      s.stream = (uintptr_t)d->kernelLaunch.stream;
      break;
#endif
#if NI_ABI >= 6
    case NI_EV_CE_COLL:
      kind = NI_EVENT_CE;
      s.number = d->ceColl.ceSeqNum;
      s.func = d->ceColl.func;
      s.datatype = d->ceColl.datatype;
      s.text = d->ceColl.syncStrategy;
      s.count = d->ceColl.count;
      s.root = d->ceColl.root;
      s.stream = (uintptr_t)d->ceColl.stream;
      s.user_tag = NI_TAG(d->ceColl);
      break;
    case NI_EV_CE_SYNC:
      kind = NI_EVENT_SYNC;
      s.n = d->ceCollSync.nRanks;
      s.flag = d->ceCollSync.isComplete;
      break;
    case NI_EV_CE_BATCH:
      kind = NI_EVENT_BATCH;
      s.n = d->ceCollBatch.numOps;
      s.count = d->ceCollBatch.totalBytes;
      s.flag = d->ceCollBatch.useIntraSync;
      break;
#endif
    default:
      ni_cb_unknown();
      return NULL;
  }
  return ni_cb_event_start(context, kind, &s);
}

static inline __attribute__((always_inline)) enum ni_result take_start(void *context, void **handle,
                                                                       NI_DESCR *d) {
  if (ni_unlikely(!handle))
    return NI_RES_SUCCESS;
  *handle = NULL; /* first of all: the core reads it whatever we do (callbacks 4.5) */
  if (ni_unlikely(!d))
    return NI_RES_SUCCESS;
  switch (d->type) {
#if NI_ABI >= 5
    case NI_EV_GROUP_API:
      *handle = ni_likely(ni_calls_are_noted()) ? ni_cb_user_group_start(context) : start_other(context, d);
      break;
    case NI_EV_COLL_API:
      if (ni_likely(ni_calls_are_noted() && !d->collApi.graphCaptured))
        *handle = ni_cb_call_note(context, d->parentObj, d->collApi.func, d->collApi.datatype,
                                  d->collApi.count, d->collApi.root, NI_TAG(d->collApi));
      else
        *handle = start_other(context, d);
      break;
#endif
#if NI_ABI >= 3
    case NI_EV_KERNEL_CH:
#if NI_ABI == 3
      *handle = ni_cb_channel_start(d->parentObj, d->kernelCh.channelId, 0);
#else
      *handle = ni_cb_channel_start(d->parentObj, d->kernelCh.channelId, d->kernelCh.pTimer);
#endif
      break;
    case NI_EV_NET_PLUGIN:
      *handle = ni_cb_net_start(d->parentObj, d->netPlugin.id, d->netPlugin.data);
      break;
#endif
#if NI_ABI >= 7
    case NI_EV_KERNEL_PHASE:
      *handle = ni_cb_phase_start(d->parentObj, d->kernelPhase.phaseId, d->kernelPhase.pTimer);
      break;
#endif
    case NI_EV_PROXY_STEP:
      *handle = ni_cb_step_start(d->parentObj, d->proxyStep.step);
      break;
    case NI_EV_COLL:
      *handle = start_coll(context, d);
      break;
    case NI_EV_P2P:
      *handle = start_p2p(context, d);
      break;
    case NI_EV_GROUP:
      *handle = ni_cb_group_start(context);
      break;
    case NI_EV_PROXY_OP:
      *handle = start_proxy_op(context, d);
      break;
    default:
      *handle = start_other(context, d);
  }
  return NI_RES_SUCCESS;
}

static inline __attribute__((always_inline)) enum ni_result take_state(void *handle, enum ni_prof_state st,
                                                                       NI_STATE *args) {
#if NI_ABI >= 4
  if (ni_likely(st == NI_ST_KERNEL_CH_STOP && args)) {
    ni_cb_channel_stamp(handle, args->kernelCh.pTimer);
    return NI_RES_SUCCESS;
  }
#if NI_ABI >= 7
  if (st == NI_ST_KERNEL_PHASE_STOP) {
    if (args)
      ni_cb_phase_stamp(handle, args->kernelCh.pTimer);
    return NI_RES_SUCCESS;
  }
#else
  if (ni_unlikely((uint32_t)st > NI_ST_CE_BATCH_COMPLETE))
    return NI_RES_SUCCESS; /* another library's */
#endif
#if NI_ABI >= 5
  if (ni_handle_kind(handle) == NI_H_USER_GROUP) {
    ni_cb_user_group_state(st);
    return NI_RES_SUCCESS;
  }
#endif
  /*
   * Every member of the union begins at its first byte. An int's other half may be anything: who wants an int
   * cuts it.
   */
  uint64_t value = args ? args->proxyStep.transSize : 0;
#else /* below 4 */
  uint64_t value = args ? args->proxyOp.transSize : 0;
#endif
  ni_cb_state(handle, (uint32_t)st, args ? &value : NULL);
  return NI_RES_SUCCESS;
}

/* Before the first init and in a forked child nothing is recorded. Or channels are traced (chan_trace.h): out
 * of line, so that the usual way pays a load and a branch. No child of an operation can come before its start
 * has returned to NCCL. armed: acquire pairs with set_up of lifecycle.c: all that callbacks read is there. */
__attribute__((noinline, cold)) static enum ni_result start_and_note(void *context, void **handle,
                                                                     NI_DESCR *d, uint32_t armed) {
  if (handle)
    *handle = NULL;
  if (!armed)
    return NI_RES_SUCCESS;
  enum ni_result rc = take_start(context, handle, d);
  if (handle)
    ni_trace_started(*handle);
  return rc;
}
static enum ni_result start_event(void *context, void **handle, NI_DESCR *d) {
  uint32_t armed = ni_load_acq(&ni_g.armed);
  return ni_likely(armed == NI_ARMED) ? take_start(context, handle, d)
                                      : start_and_note(context, handle, d, armed);
}
__attribute__((noinline, cold)) static enum ni_result state_and_note(void *handle, enum ni_prof_state st,
                                                                     NI_STATE *args, uint32_t armed) {
  if (!armed)
    return NI_RES_SUCCESS;
  enum ni_result rc = take_state(handle, st, args);
  if (st == NI_ST_KERNEL_CH_STOP)
    ni_trace_stamped(handle);
  return rc;
}
static enum ni_result record_state(void *handle, enum ni_prof_state st, NI_STATE *args) {
  uint32_t armed = ni_load_acq(&ni_g.armed);
  return ni_likely(armed == NI_ARMED) ? take_state(handle, st, args)
                                      : state_and_note(handle, st, args, armed);
}

extern const NI_VTABLE NI_SYMBOL;
__attribute__((visibility("default")))
const NI_VTABLE NI_SYMBOL = {"NCCL Inspector C", init, start_event, ni_cb_stop, record_state, ni_finalize};
