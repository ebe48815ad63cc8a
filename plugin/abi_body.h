/*
 * One interface version: descriptor -> struct ni_start, then callbacks.c. Included once by each abi_vN.c, which sets
 * NI_ABI; what differs between versions stands here side by side.
 *
 *   4    init has the mask before the hash; parentObj of Coll and P2p is the Group; p2p.nChannels is stack garbage
 *        unless the core is a 2.27
 *   5, 6 parentObj is the API event, the Group is parentGroup. API, launch and copy-engine events arrive although
 *        they are not asked for (parents of what is, contract 4.2): they get no handle, so the core skips their stops
 */
#include "callbacks.h"
#include "lifecycle.h"

#define NI_CAT_(a, b) a##b
#define NI_CAT(a, b) NI_CAT_(a, b)
#define NI_DESCR struct NI_CAT(ni_prof_descr_v, NI_ABI)
#define NI_VTABLE struct NI_CAT(ni_prof_vtable_v, NI_ABI)
#define NI_SYMBOL NI_CAT(ncclProfiler_v, NI_ABI)

#if NI_ABI == 4
static enum ni_result init(void **context, int *mask, const char *name, uint64_t hash, int n_nodes, int n_ranks, int rank,
                           ni_logger_fn logger) {
#else
static enum ni_result init(void **context, uint64_t hash, int *mask, const char *name, int n_nodes, int n_ranks, int rank,
                           ni_logger_fn logger) {
#endif
  return ni_init(NI_ABI, context, mask, &(struct ni_init_args){hash, name, n_nodes, n_ranks, rank, logger});
}

static enum ni_result start(void *context, void **handle, NI_DESCR *d) {
  if (ni_unlikely(!handle)) return NI_RES_SUCCESS;
  *handle = NULL; /* first of all: the core reads it whatever we do (contract 4.5) */
  if (ni_unlikely(!d)) return NI_RES_SUCCESS;
  switch (d->type) {
    case NI_EV_KERNEL_CH:
      *handle = ni_cb_channel_start(d->parentObj, d->kernelCh.channelId, d->kernelCh.pTimer);
      break;
    case NI_EV_COLL:
      *handle = ni_cb_op_start(context, NI_KIND_COLL,
                               &(struct ni_start){.sn = d->coll.seqNumber,
                                                  .func = d->coll.func,
                                                  .datatype = d->coll.datatype,
                                                  .algo = d->coll.algo,
                                                  .proto = d->coll.proto,
                                                  .count = d->coll.count,
                                                  .root = d->coll.root,
                                                  .nchannels = d->coll.nChannels,
                                                  .nwarps = d->coll.nWarps,
#if NI_ABI == 4
                                                  .group = d->parentObj});
#else
                                                  .group = d->coll.parentGroup});
#endif
      break;
    case NI_EV_P2P:
      *handle = ni_cb_op_start(context, NI_KIND_P2P,
                               &(struct ni_start){.func = d->p2p.func,
                                                  .datatype = d->p2p.datatype,
                                                  .count = d->p2p.count,
                                                  .root = d->p2p.peer,
#if NI_ABI == 4
                                                  .nchannels = ni_g.p2p_channels_valid ? d->p2p.nChannels : 0,
                                                  .group = d->parentObj});
#else
                                                  .nchannels = d->p2p.nChannels,
                                                  .group = d->p2p.parentGroup});
#endif
      break;
    case NI_EV_GROUP: *handle = ni_cb_group_start(context); break;
#if NI_ABI >= 5
    case NI_EV_GROUP_API:
    case NI_EV_COLL_API:
    case NI_EV_P2P_API:
    case NI_EV_KERNEL_LAUNCH: break;
#endif
#if NI_ABI >= 6
    case NI_EV_CE_COLL:
    case NI_EV_CE_SYNC:
    case NI_EV_CE_BATCH: break;
#endif
    default: ni_cb_unknown();
  }
  return NI_RES_SUCCESS;
}

static enum ni_result state(void *handle, enum ni_prof_state st, union ni_prof_state_v4 *args) {
  if (ni_likely(st == NI_ST_KERNEL_CH_STOP && args)) ni_cb_channel_stamp(handle, args->kernelCh.pTimer);
  else if (handle) ni_cb_unknown(); /* states of kinds that were not asked for, or of releases to come */
  return NI_RES_SUCCESS;
}

extern const NI_VTABLE NI_SYMBOL;
__attribute__((visibility("default"))) const NI_VTABLE NI_SYMBOL = {"NCCL Inspector C", init,  start,
                                                                    ni_cb_stop,         state, ni_finalize};
