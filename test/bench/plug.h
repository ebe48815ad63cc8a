/*
 * Drives a profiler plugin callback by callback, for benchmarks and small host programs: any .so, the newest
 * interface both sides know. No NCCL, no threads of its own. The descriptors of v4, v5 and v6 agree in every
 * field used here (the type is one byte in v4, the first of eight in v5 and v6), so one struct serves all.
 */
#ifndef NI_TEST_PLUG_H
#define NI_TEST_PLUG_H

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nccl/profiler_abi.h"

struct plug {
  int version;
  void *lib, *vtable;
  int mask;
  enum ni_result (*start)(void *ctx, void **handle, struct ni_prof_descr_v6 *d);
  enum ni_result (*stop)(void *handle);
  enum ni_result (*record)(void *handle, enum ni_prof_state st, union ni_prof_state_v4 *args);
  enum ni_result (*finalize)(void *ctx);
};

/*
 * A program with this symbol has NCCL linked in (plugin/os/nccl_library.h); of which release, it does not
 * tell.
 */
int ncclGetVersion(int *version);
int ncclGetVersion(int *version) {
  *version = 0;
  return 1;
}

static inline uint64_t plug_now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* want: 1 to 6, or 0 for the newest from v4 on that the plugin has. Proxy descriptors are the same in all
 * six; those of Coll and P2p only from v4 on. Exits with a message when it cannot be loaded. */
static inline struct plug plug_open(const char *path, int want) {
  struct plug p = {0};
  p.lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!p.lib) {
    fprintf(stderr, "cannot load %s: %s\n", path, dlerror());
    exit(1);
  }
  for (int v = want ? want : 6; v >= (want ? want : 4); v--) {
    char name[32];
    snprintf(name, sizeof name, "ncclProfiler_v%d", v);
    if ((p.vtable = dlsym(p.lib, name)) != NULL) {
      p.version = v;
      break;
    }
  }
  if (!p.vtable) {
    fprintf(stderr, "%s has no interface v4 to v6 that was asked for\n", path);
    exit(1);
  }
  void *const *slot = p.vtable;
  memcpy(&p.start, &slot[2], sizeof p.start);
  memcpy(&p.stop, &slot[3], sizeof p.stop);
  memcpy(&p.record, &slot[4], sizeof p.record);
  memcpy(&p.finalize, &slot[5], sizeof p.finalize);
  return p;
}

/* A logger that says nothing: some plugins call it without looking whether there is one. */
static inline void plug_quiet(enum ni_log_level level, unsigned long flags, const char *where, int line,
                              const char *fmt, ...) {
  (void)level;
  (void)flags;
  (void)where;
  (void)line;
  (void)fmt;
}

static inline void *plug_init(struct plug *p, uint64_t hash, const char *name, int n_nodes, int n_ranks,
                              int rank, ni_logger_fn logger) {
  void *ctx = NULL;
  if (p->version < 4) {
    const struct ni_prof_vtable_v1 *v = p->vtable;
    v->init(&ctx, &p->mask);
  } else if (p->version == 4) {
    const struct ni_prof_vtable_v4 *v = p->vtable;
    v->init(&ctx, &p->mask, name, hash, n_nodes, n_ranks, rank, logger);
  } else {
    const struct ni_prof_vtable_v5 *v = p->vtable; /* v6 has the same init */
    v->init(&ctx, hash, &p->mask, name, n_nodes, n_ranks, rank, logger);
  }
  return ctx;
}

/* The callbacks of an operation by their kind, for who measures them apart: PLUG_CALL, defined before this
 * header is included, gets the kind and the call. */
enum plug_call {
  PLUG_GROUP_API_START,
  PLUG_GROUP_API_STATE,
  PLUG_COLL_API_START,
  PLUG_COLL_API_STOP,
  PLUG_GROUP_API_STOP,
  PLUG_GROUP_START,
  PLUG_COLL_START,
  PLUG_COLL_STOP,
  PLUG_GROUP_STOP,
  PLUG_CH_START,
  PLUG_CH_STATE,
  PLUG_CH_STOP,
  PLUG_CH_STOP_LAST,
  PLUG_CALLS
};
#ifndef PLUG_CALL
#define PLUG_CALL(kind, call) call
#endif

/* A prepared AllReduce (or P2P): descriptors that an operation only has to fill its numbers into. */
struct plug_op {
  struct ni_prof_descr_v6 group_api, coll_api, group, op, ch;
  union ni_prof_state_v4 st;
  uint64_t sn, gpu_ns;
};

static inline void plug_op_init(struct plug_op *o, size_t count, int channels) {
  memset(o, 0, sizeof *o);
  o->group_api.type = NI_EV_GROUP_API;
  o->group_api.groupApi.groupDepth = 1;
  o->coll_api.type = NI_EV_COLL_API;
  o->group.type = NI_EV_GROUP;
  o->op.type = NI_EV_COLL;
  o->op.coll.func = "AllReduce";
  o->op.coll.datatype = "ncclFloat32";
  o->op.coll.algo = "RING";
  o->op.coll.proto = "SIMPLE";
  o->op.coll.count = count;
  o->op.coll.nChannels = (uint8_t)channels;
  o->op.coll.nWarps = 16;
  o->ch.type = NI_EV_KERNEL_CH;
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  o->gpu_ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec - 60000000000u;
}

/*
 * Group and Coll, the work handed to the poller: inside the API call, or without one. Returns the Coll's
 * handle.
 */
static inline void *plug_bracket(const struct plug *p, void *ctx, struct plug_op *o, void *coll_api) {
  void *group = NULL, *op = NULL;
  PLUG_CALL(PLUG_GROUP_START, p->start(ctx, &group, &o->group));
  o->op.parentObj = p->version == 4 ? group : coll_api;
  if (p->version > 4)
    o->op.coll.parentGroup = group;
  o->op.coll.seqNumber = o->sn++;
  PLUG_CALL(PLUG_COLL_START, p->start(ctx, &op, &o->op));
  if (op)
    PLUG_CALL(PLUG_COLL_STOP, p->stop(op));
  if (group)
    PLUG_CALL(PLUG_GROUP_STOP, p->stop(group));
  return op;
}

/* What the application's thread raises for one call outside of any group. From v5 on the API events come with
 * it, asked for or not (callbacks 3.5, 4.2); KernelLaunch is nobody's parent and comes only when asked for.
 * What has no handle has neither states nor a stop, but has children. Returns the Coll's handle. */
static inline void *plug_launch(const struct plug *p, void *ctx, struct plug_op *o) {
  void *group_api = NULL, *coll_api = NULL;
  if (p->version < 5)
    return plug_bracket(p, ctx, o, NULL);
  PLUG_CALL(PLUG_GROUP_API_START, p->start(ctx, &group_api, &o->group_api));
  if (group_api)
    PLUG_CALL(PLUG_GROUP_API_STATE, p->record(group_api, NI_ST_GROUP_API_START_END, NULL));
  o->coll_api.parentObj = group_api;
  o->coll_api.collApi.func = o->op.coll.func;
  o->coll_api.collApi.count = o->op.coll.count;
  o->coll_api.collApi.datatype = o->op.coll.datatype;
  PLUG_CALL(PLUG_COLL_API_START, p->start(ctx, &coll_api, &o->coll_api));
  if (coll_api)
    PLUG_CALL(PLUG_COLL_API_STOP, p->stop(coll_api));
  if (group_api)
    PLUG_CALL(PLUG_GROUP_API_STATE, p->record(group_api, NI_ST_GROUP_API_END_BEGIN, NULL));
  void *op = plug_bracket(p, ctx, o, coll_api);
  if (group_api)
    PLUG_CALL(PLUG_GROUP_API_STOP, p->stop(group_api));
  return op;
}

/* All channels of one operation: every start, then each stamp and stop, as the progress thread does. */
static inline void plug_channels(const struct plug *p, void *ctx, struct plug_op *o, void *op, int channels,
                                 uint64_t exec_ns) {
  void *ch[64];
  o->ch.parentObj = op;
  o->gpu_ns += exec_ns + 2000;
  for (int c = 0; c < channels; c++) {
    o->ch.kernelCh.channelId = (uint8_t)c;
    o->ch.kernelCh.pTimer = o->gpu_ns + (uint64_t)c * 32;
    ch[c] = NULL;
    PLUG_CALL(PLUG_CH_START, p->start(ctx, &ch[c], &o->ch));
  }
  for (int c = 0; c < channels; c++) {
    if (!ch[c])
      continue;
    o->st.kernelCh.pTimer = o->gpu_ns + exec_ns + (uint64_t)c * 32;
    PLUG_CALL(PLUG_CH_STATE, p->record(ch[c], NI_ST_KERNEL_CH_STOP, &o->st));
    PLUG_CALL(c == channels - 1 ? PLUG_CH_STOP_LAST : PLUG_CH_STOP, p->stop(ch[c]));
  }
}

#endif
