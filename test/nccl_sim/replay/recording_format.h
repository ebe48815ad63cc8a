/*
 * The file that test/plugins/recorder.c writes and nccl-sim --replay reads: every callback of a run.
 *
 * Layout, little endian: 8 bytes NI_REC_MAGIC, then records, each a struct ni_rec_head followed by head.size
 * bytes in all minus the head: for INIT a struct ni_rec_init and the name; for START a struct ni_rec_start,
 * the descriptor's member (ni_rec_member_bytes() bytes: as in interface v7 where head.version is 7, else as
 * in v6) and its strings, each with a final NUL; for RECORD a struct ni_rec_state. Handles and contexts are
 * the recorder's own numbers: they count from 1 and are never used again. A file that ends inside a record
 * was cut by the end of the process; what is before it is valid.
 */
#ifndef NI_SIM_RECORDING_FORMAT_H
#define NI_SIM_RECORDING_FORMAT_H

#include <nccl/profiler_abi.h>
#include <stdbool.h>

#define NI_REC_MAGIC "NIREC01\n"

enum ni_rec_kind { NI_REC_INIT = 1, NI_REC_START, NI_REC_STOP, NI_REC_STATE, NI_REC_FINALIZE };

struct ni_rec_head {
  uint16_t size;    /* of the whole record */
  uint8_t kind;     /* enum ni_rec_kind */
  uint8_t version;  /* interface through which the call came */
  uint32_t thread;  /* system thread id */
  uint64_t unix_ns; /* when the call came in */
  uint64_t handle;  /* START: given out; STOP, STATE: passed in; INIT, FINALIZE: the context */
};

struct ni_rec_init {
  uint64_t hash;
  int32_t n_nodes, n_ranks, rank;
  int32_t named; /* 0: the name was NULL */
};

struct ni_rec_start {
  uint64_t type;
  uint64_t context, parent; /* parent: parentObj as passed */
  int32_t rank;
  int32_t strings; /* how many follow the member */
};

struct ni_rec_state {
  int32_t state;
  int32_t has_args; /* 0: the pointer was NULL */
  uint64_t args;
};

_Static_assert(sizeof(struct ni_rec_head) == 24 && sizeof(struct ni_rec_init) == 24 &&
                   sizeof(struct ni_rec_start) == 32 && sizeof(struct ni_rec_state) == 16,
               "the file format has no padding");

/* Bytes of a descriptor's member that belong to this type, in a call that came through this version. */
static inline size_t ni_rec_member_bytes(uint64_t type, int version) {
  const struct ni_prof_descr_v7 *d = NULL;
  const struct ni_prof_descr_v6 *e = NULL;
  bool tagged = version >= 7;
  switch (type) {
    case NI_EV_COLL:
      return tagged ? sizeof d->coll : sizeof e->coll;
    case NI_EV_P2P:
      return tagged ? sizeof d->p2p : sizeof e->p2p;
    case NI_EV_PROXY_OP:
      return sizeof d->proxyOp;
    case NI_EV_PROXY_STEP:
      return sizeof d->proxyStep;
    case NI_EV_KERNEL_CH:
      return sizeof d->kernelCh;
    case NI_EV_NET_PLUGIN:
      return sizeof d->netPlugin;
    case NI_EV_GROUP_API:
      return sizeof d->groupApi;
    case NI_EV_COLL_API:
      return tagged ? sizeof d->collApi : sizeof e->collApi;
    case NI_EV_P2P_API:
      return tagged ? sizeof d->p2pApi : sizeof e->p2pApi;
    case NI_EV_KERNEL_LAUNCH:
      return sizeof d->kernelLaunch;
    case NI_EV_CE_COLL:
      return tagged ? sizeof d->ceColl : sizeof e->ceColl;
    case NI_EV_CE_SYNC:
      return sizeof d->ceCollSync;
    case NI_EV_CE_BATCH:
      return sizeof d->ceCollBatch;
    case NI_EV_KERNEL_PHASE:
      return tagged ? sizeof d->kernelPhase : 0;
    default:
      return 0;
  }
}

enum { NI_REC_STRINGS = 5 }; /* most of any type */

/* The string members of a type, in the order in which the file has them. Returns their number. An empty
 * kernelVariant was NULL. */
static inline int ni_rec_strings(struct ni_prof_descr_v7 *d, int version, const char **out[NI_REC_STRINGS]) {
  switch (d->type) {
    case NI_EV_COLL:
      out[0] = &d->coll.func;
      out[1] = &d->coll.datatype;
      out[2] = &d->coll.algo;
      out[3] = &d->coll.proto;
      out[4] = &d->coll.kernelVariant;
      return version >= 7 ? 5 : 4;
    case NI_EV_P2P:
      out[0] = &d->p2p.func;
      out[1] = &d->p2p.datatype;
      return 2;
    case NI_EV_COLL_API:
      out[0] = &d->collApi.func;
      out[1] = &d->collApi.datatype;
      return 2;
    case NI_EV_P2P_API:
      out[0] = &d->p2pApi.func;
      out[1] = &d->p2pApi.datatype;
      return 2;
    case NI_EV_CE_COLL:
      out[0] = &d->ceColl.func;
      out[1] = &d->ceColl.datatype;
      out[2] = &d->ceColl.syncStrategy;
      return 3;
    case NI_EV_KERNEL_PHASE:
      out[0] = &d->kernelPhase.phaseName;
      return version >= 7;
    default:
      return 0;
  }
}

#endif
