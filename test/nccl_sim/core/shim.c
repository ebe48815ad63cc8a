/*
 * Calling the plugin: v7 descriptors in, the plugin's version out (callbacks 1.4). States and threads:
 * core.h.
 *
 * Each version is one `struct face`: which events and states pass, and how a descriptor is narrowed. NCCL's
 * translations to v4 and v5 build the narrower descriptor on the stack without clearing it, so everything not
 * copied is garbage here too: 0xAA, and in p2p.nChannels of v4, where a careless plugin would believe it, on
 * request a number that looks right.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core.h"
#include "format/release.h"

struct face {
  int events;     /* forwarded */
  int last_state; /* of translations; native cores raise what their release has */
  int (*init)(void **ctx, const struct ni_comm_ident *id);
  void (*start)(void *ctx, void **handle, struct ni_prof_descr_v7 *d);
};

static _Thread_local struct {
  uint64_t calls[NI_CALL_COUNT], starts[16], nulls[16];
} counts;
static _Thread_local uint64_t poison_state;
static _Thread_local struct ni_comm_ident old_ident; /* of the communicator whose operation is raised next */

__attribute__((format(printf, 5, 6))) static void log_line(enum ni_log_level level, unsigned long flags,
                                                           const char *where, int line, const char *fmt,
                                                           ...) {
  if (ni_core.quiet && level != NI_LOG_WARN)
    return;
  char text[1024];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  ni_sim_say("%s %s:%d [0x%lx] %s", level == NI_LOG_WARN ? "WARN" : "INFO", where ? where : "?", line, flags,
             text);
}

static int init_v6(void **ctx, const struct ni_comm_ident *id) {
  const struct ni_prof_vtable_v6 *v = ni_core.vtable; /* v5 and v7 have the same init */
  return v->init(ctx, id->hash, (int *)ni_core.mask, id->name, id->n_nodes, id->n_ranks, id->rank, log_line);
}

/* v1 to v3: who it is comes with each operation */
static int init_v1(void **ctx, const struct ni_comm_ident *id) {
  const struct ni_prof_vtable_v1 *v = ni_core.vtable;
  (void)id;
  return v->init(ctx, (int *)ni_core.mask);
}

static int init_v4(void **ctx, const struct ni_comm_ident *id) {
  const struct ni_prof_vtable_v4 *v = ni_core.vtable;
  return v->init(ctx, (int *)ni_core.mask, id->name, id->hash, id->n_nodes, id->n_ranks, id->rank, log_line);
}

static void start_v7(void *ctx, void **handle, struct ni_prof_descr_v7 *d) {
  ((const struct ni_prof_vtable_v7 *)ni_core.vtable)->startEvent(ctx, handle, d);
}

/* Bytes of the member that this type has in v5 and v6; v7 has appended to some. */
static size_t member_v6(uint64_t type) {
  const struct ni_prof_descr_v6 *e = NULL;
  switch (type) {
    case NI_EV_COLL:
      return sizeof e->coll;
    case NI_EV_P2P:
      return sizeof e->p2p;
    case NI_EV_PROXY_OP:
      return sizeof e->proxyOp;
    case NI_EV_PROXY_STEP:
      return sizeof e->proxyStep;
    case NI_EV_KERNEL_CH:
      return sizeof e->kernelCh;
    case NI_EV_NET_PLUGIN:
      return sizeof e->netPlugin;
    case NI_EV_GROUP_API:
      return sizeof e->groupApi;
    case NI_EV_COLL_API:
      return sizeof e->collApi;
    case NI_EV_P2P_API:
      return sizeof e->p2pApi;
    case NI_EV_KERNEL_LAUNCH:
      return sizeof e->kernelLaunch;
    case NI_EV_CE_COLL:
      return sizeof e->ceColl;
    case NI_EV_CE_SYNC:
      return sizeof e->ceCollSync;
    case NI_EV_CE_BATCH:
      return sizeof e->ceCollBatch;
    default:
      return 0;
  }
}

/*
 * RCCL's descriptor of a proxy operation goes on where NCCL's ends, and its other members are larger than
 * NCCL's, too. What lies behind NCCL's is not there at all: who reads it ends by SIGSEGV.
 */
static struct ni_prof_descr_v6 *guarded(const struct ni_prof_descr_v7 *d) {
  static _Thread_local char *page;
  size_t bytes = offsetof(struct ni_prof_descr_v6, proxyOp.isSend) + sizeof d->proxyOp.isSend,
         size = (size_t)sysconf(_SC_PAGESIZE);
  if (!page) {
    page = mmap(NULL, 2 * size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || mprotect(page + size, size, PROT_NONE))
      ni_die(NI_SIM_FAILED, "no guard page for descriptors");
  }
  return memcpy(page + size - bytes, d, bytes);
}

static void start_v6(void *ctx, void **handle, struct ni_prof_descr_v7 *d) {
  const struct ni_prof_vtable_v6 *v = ni_core.vtable;
  if (ni_core.rccl && d->type == NI_EV_PROXY_OP) {
    v->startEvent(ctx, handle, guarded(d));
    return;
  }
  if (ni_core_native(ni_core.release, 6)) { /* no field of v6 lies elsewhere in v7 */
    v->startEvent(ctx, handle, (struct ni_prof_descr_v6 *)(void *)d);
    return;
  }
  struct ni_prof_descr_v6 e;
  memset(&e, 0, sizeof e);
  e.type = d->type;
  e.parentObj = d->parentObj;
  e.rank = d->rank;
  memcpy(&e.coll, &d->coll, member_v6(d->type));
  v->startEvent(ctx, handle, &e);
}

static void start_v5(void *ctx, void **handle, struct ni_prof_descr_v7 *d) {
  struct ni_prof_descr_v5 e;
  memset(&e, ni_core_native(ni_core.release, 5) ? 0 : 0xAA, sizeof e);
  e.type = d->type;
  e.parentObj = d->parentObj;
  e.rank = d->rank;
  memcpy(&e.coll, &d->coll, member_v6(d->type));
  ((const struct ni_prof_vtable_v5 *)ni_core.vtable)->startEvent(ctx, handle, &e);
}

static void start_v4(void *ctx, void **handle, struct ni_prof_descr_v7 *d) {
  bool native = ni_core_native(ni_core.release, 4);
  struct ni_prof_descr_v4 e;
  memset(&e, native ? 0 : 0xAA, sizeof e);
  e.type = (uint8_t)d->type;
  e.parentObj = d->parentObj;
  e.rank = d->rank;
  switch (d->type) {
    case NI_EV_COLL:
      e.parentObj = d->coll.parentGroup;
      e.coll.seqNumber = d->coll.seqNumber;
      e.coll.func = d->coll.func;
      e.coll.sendBuff = d->coll.sendBuff;
      e.coll.recvBuff = d->coll.recvBuff;
      e.coll.count = d->coll.count;
      e.coll.root = d->coll.root;
      e.coll.datatype = d->coll.datatype;
      e.coll.nChannels = d->coll.nChannels;
      e.coll.nWarps = d->coll.nWarps;
      e.coll.algo = d->coll.algo;
      e.coll.proto = d->coll.proto;
      break;
    case NI_EV_P2P:
      e.parentObj = d->p2p.parentGroup;
      e.p2p.func = d->p2p.func;
      e.p2p.buff = d->p2p.buff;
      e.p2p.datatype = d->p2p.datatype;
      e.p2p.count = d->p2p.count;
      e.p2p.peer = d->p2p.peer;
      if (native)
        e.p2p.nChannels = d->p2p.nChannels;
      else if (ni_core.poison == NI_POISON_PLAUSIBLE)
        e.p2p.nChannels = (uint8_t)(1 + ni_rand(&poison_state) % 8);
      break;
    case NI_EV_PROXY_OP:
      memcpy(&e.proxyOp, &d->proxyOp, sizeof e.proxyOp);
      break;
    case NI_EV_PROXY_STEP:
      e.proxyStep.step = d->proxyStep.step;
      break;
    case NI_EV_KERNEL_CH:
      e.kernelCh.channelId = d->kernelCh.channelId;
      e.kernelCh.pTimer = d->kernelCh.pTimer;
      break;
    case NI_EV_NET_PLUGIN:
      e.netPlugin.id = d->netPlugin.id;
      e.netPlugin.data = d->netPlugin.data;
      break;
    default:
      break;
  }
  ((const struct ni_prof_vtable_v4 *)ni_core.vtable)->startEvent(ctx, handle, &e);
}

/*
 * NCCL's own numbers, as its translation to v1 finds them; what it does not know becomes the last one named.
 */
static uint8_t code(const char *text, const char *const *names, int n, int other) {
  for (int i = 0; text && i < n; i++)
    if (strcmp(text, names[i]) == 0)
      return (uint8_t)i;
  return (uint8_t)other;
}
static uint8_t func_code(const char *s) {
  static const char *const names[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                      "AllReduce", "SendRecv", "Send",      "Recv"};
  return code(s, names, 8, 6);
}
static uint8_t type_code(const char *s) {
  static const char *const names[] = {"ncclInt8",    "ncclUint8",    "ncclInt32",      "ncclUint32",
                                      "ncclInt64",   "ncclUint64",   "ncclFloat16",    "ncclFloat32",
                                      "ncclFloat64", "ncclBfloat16", "ncclFloat8e4m3", "ncclFloat8e5m2"};
  return code(s, names, 12, 8);
}
static uint8_t algo_code(const char *s) {
  static const char *const names[] = {"TREE",      "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS",
                                      "NVLS_TREE", "PAT"};
  return code(s, names, 7, 6);
}
static uint8_t proto_code(const char *s) {
  static const char *const names[] = {"LL", "LL128", "SIMPLE"};
  return code(s, names, 3, 2);
}

#define AS_IS(x) (x)
/* What v1, v2 and v3 have in common, by the name of each field: the head, Coll, P2p and the proxy.
 * Translations clear the descriptor and know neither name nor hash (callbacks 1.4). */
#define OLD_START(version, FUNC, TYPE, ALGO, PROTO, MORE) \
  static void start_v##version(void *ctx, void **handle, struct ni_prof_descr_v7 *d) { \
    struct ni_prof_descr_v##version e; \
    bool native = ni_core_native(ni_core.release, version); \
    memset(&e, 0, sizeof e); \
    e.type = (uint8_t)d->type; \
    e.parentObj = d->parentObj; \
    e.rank = d->rank; \
    if (d->type == NI_EV_COLL) { \
      e.parentObj = d->coll.parentGroup; \
      e.coll.name = native ? old_ident.name : NULL; \
      e.coll.commHash = native ? old_ident.hash : 0; \
      e.coll.seqNumber = d->coll.seqNumber; \
      e.coll.func = FUNC(d->coll.func); \
      e.coll.sendBuff = d->coll.sendBuff; \
      e.coll.recvBuff = d->coll.recvBuff; \
      e.coll.count = d->coll.count; \
      e.coll.root = d->coll.root; \
      e.coll.datatype = TYPE(d->coll.datatype); \
      e.coll.nMaxChannels = d->coll.nChannels; \
      e.coll.nWarps = d->coll.nWarps; \
      e.coll.algo = ALGO(d->coll.algo); \
      e.coll.proto = PROTO(d->coll.proto); \
    } else if (d->type == NI_EV_P2P) { \
      e.parentObj = d->p2p.parentGroup; \
      e.p2p.name = native ? old_ident.name : NULL; \
      e.p2p.commHash = native ? old_ident.hash : 0; \
      e.p2p.func = FUNC(d->p2p.func); \
      e.p2p.buff = d->p2p.buff; \
      e.p2p.datatype = TYPE(d->p2p.datatype); \
      e.p2p.count = d->p2p.count; \
      e.p2p.peer = d->p2p.peer; \
    } else if (d->type == NI_EV_PROXY_OP) { \
      memcpy(&e.proxyOp, &d->proxyOp, sizeof e.proxyOp); \
    } else if (d->type == NI_EV_PROXY_STEP) { \
      e.proxyStep.step = d->proxyStep.step; \
    } \
    MORE((const struct ni_prof_vtable_v##version *)ni_core.vtable)->startEvent(ctx, handle, &e); \
  }
OLD_START(1, func_code, type_code, algo_code, proto_code, )
OLD_START(2, AS_IS, AS_IS, AS_IS, AS_IS, )
OLD_START(
    3, AS_IS, AS_IS, AS_IS, AS_IS,
    if (d->type == NI_EV_KERNEL_CH) e.kernelCh.channelId = d->kernelCh.channelId;
    if (d->type == NI_EV_NET_PLUGIN) {
      e.netPlugin.id = d->netPlugin.id;
      e.netPlugin.data = d->netPlugin.data;
    })

static const struct face faces[] = {
    [1] = {0x3f, NI_ST_PROXY_CTRL_APPEND_END, init_v1, start_v1},
    [2] = {0x3f, NI_ST_PROXY_CTRL_APPEND_END, init_v1, start_v2},
    [3] = {0xff, NI_ST_PROXY_CTRL_APPEND_END, init_v1, start_v3},
    [4] = {0xff, NI_ST_KERNEL_CH_STOP, init_v4, start_v4},
    [5] = {0xfff, NI_ST_GROUP_API_END_BEGIN, init_v6, start_v5},
    [6] = {0x7fff, NI_ST_CE_BATCH_COMPLETE, init_v6, start_v6},
    [7] = {NI_EV_ALL, NI_ST_KERNEL_PHASE_STOP, init_v6, start_v7},
};

static const struct face *face(void) {
  int v = ni_core.interface;
  if (!v || ni_core.gone)
    return NULL;
  return &faces[v];
}

/*
 * Calls on a translated version go through pointers that a successful init has filled; before that NCCL would
 * crash.
 */
static bool callable(void) {
  if (ni_core.filled || ni_core_native(ni_core.release, ni_core.interface))
    return true;
  static atomic_flag said = ATOMIC_FLAG_INIT;
  char release[40];
  if (!atomic_flag_test_and_set(&said))
    ni_sim_say("NCCL %s would call a null pointer here: no init through v%d has succeeded",
               ni_release_text(ni_core.release, release), ni_core.interface);
  return false;
}

/* What the translations of a release take out of the shared mask after each init of the plugin. */
static int cleared_bits(void) {
  int phase = ni_core_new(ni_core.release) ? NI_EV_KERNEL_PHASE : 0;
  if (ni_core_native(ni_core.release, ni_core.interface))
    return 0;
  if (ni_core.interface == 5)
    return NI_EV_CE_COLL | NI_EV_CE_SYNC | NI_EV_CE_BATCH | phase;
  return ni_core.interface == 6 ? phase : 0;
}

/* Phases hang on KernelCh: NCCL adds it, at init and through RAS only. */
static int with_kernel_ch(int mask) {
  return ni_core_new(ni_core.release) && (mask & NI_EV_KERNEL_PHASE) ? mask | NI_EV_KERNEL_CH : mask;
}

void ni_core_ras(int mask) {
  mask = with_kernel_ch(mask);
  atomic_store_explicit(&ni_core.ras, mask + 1, memory_order_relaxed);
  atomic_store_explicit(ni_core.mask, mask, memory_order_relaxed);
}

/* Bits of the mask that no plugin may set, because in this library they are other events, or nobody's. */
static void look_for_strange_bits(void) {
  int strange = ni_core_mask() & ~(ni_core.interface >= 7 ? 0xffff : 0x7fff);
  if (ni_core.rccl && strange)
    ni_die(NI_SIM_FAILED, "the plugin asks for events 0x%x through v%d, which are RCCL's own", strange,
           ni_core.interface);
}

int ni_core_init(void **ctx, const struct ni_comm_ident *id) {
  const struct face *f = face();
  if (!f)
    return 0;
  counts.calls[NI_CALL_INIT]++;
  int rc = f->init(ctx, id);
  if (rc == 0) {
    ni_core.filled = true;
    look_for_strange_bits();
    int clear = cleared_bits(), ras = atomic_load_explicit(&ni_core.ras, memory_order_relaxed);
    if (clear)
      atomic_fetch_and_explicit(ni_core.mask, ~clear, memory_order_relaxed);
    int mask = ni_core_mask(), more = with_kernel_ch(mask);
    if (more != mask)
      atomic_fetch_or_explicit(ni_core.mask, NI_EV_KERNEL_CH, memory_order_relaxed);
    if (ras)
      atomic_store_explicit(ni_core.mask, ras - 1, memory_order_relaxed);
  } else if (ni_core.release < 22800) {
    ni_sim_say("WARN init returned %d: profiling is off for the whole process", rc);
    ni_core.gone = true;
  }
  return rc;
}

void ni_core_finalize(void *ctx) {
  if (!face() || !callable())
    return;
  if (!ctx && ni_core.release >= 22800)
    return;
  counts.calls[NI_CALL_FINALIZE]++;
  ((const struct ni_prof_vtable_v6 *)ni_core.vtable)->finalize(ctx);
}

void ni_core_who(const struct ni_comm_ident *id) { old_ident = *id; }

void ni_core_start(void *ctx, void **handle, struct ni_prof_descr_v7 *d) {
  const struct face *f = face();
  if (!f || !callable())
    return;
  if (!((uint64_t)f->events & d->type)) {
    uint64_t ce = NI_EV_CE_COLL | NI_EV_CE_SYNC | NI_EV_CE_BATCH;
    uint64_t nulled = ni_core.interface == 6 ? NI_EV_KERNEL_PHASE : ni_core.interface == 5 ? ce : 0;
    if (ni_core_new(ni_core.release) && (d->type & nulled))
      *handle = NULL;
    return;
  }
  f->start(ctx, handle, d);
  int bit = __builtin_ctzll(d->type);
  counts.calls[NI_CALL_START]++;
  counts.starts[bit & 15]++;
  if (!*handle)
    counts.nulls[bit & 15]++;
}

void ni_core_stop(void *handle) {
  if (!handle || !face() || !callable())
    return;
  counts.calls[NI_CALL_STOP]++;
  ((const struct ni_prof_vtable_v6 *)ni_core.vtable)->stopEvent(handle); /* the same in every version */
}

void ni_core_record(void *handle, enum ni_prof_state state, const union ni_prof_state_v4 *args) {
  const struct face *f = face();
  if (!handle || !f || (int)state > f->last_state || !callable())
    return;
  counts.calls[NI_CALL_RECORD]++;
  if (ni_core.interface <= 3) {
    union ni_prof_state_v1 old;
    memset(&old, 0, sizeof old);
    if (args && state <= NI_ST_PROXY_OP_RECV_DONE)
      old.proxyOp.transSize = args->proxyStep.transSize;
    else if (args && state >= NI_ST_PROXY_CTRL_IDLE)
      old.proxyCtrl.appendedProxyOps = args->proxyCtrl.appendedProxyOps;
    bool none = ni_core.release < 22600 && state >= NI_ST_PROXY_STEP_SEND_GPU_WAIT &&
        state <= NI_ST_PROXY_STEP_RECV_GPU_WAIT;
    ((const struct ni_prof_vtable_v1 *)ni_core.vtable)->recordEventState(handle, state, none ? NULL : &old);
    return;
  }
  union ni_prof_state_v4 a;
  memset(&a, 0xAA, sizeof a);
  bool none = state == NI_ST_GROUP_API_START_END || state == NI_ST_GROUP_API_END_BEGIN;
  if (args && !(ni_core.interface == 4 && state == NI_ST_PROXY_OP_IN_PROGRESS))
    a = *args;
  ((const struct ni_prof_vtable_v6 *)ni_core.vtable)
      ->recordEventState(handle, state,
                         none && ni_core_native(ni_core.release, ni_core.interface) ? NULL : &a);
}

void ni_core_diag(void *handle) {
  struct {
    uint8_t kind, reserved;
    uint16_t flags;
    int64_t value, value2;
  } args = {.kind = 3, .flags = 1, .value = 0x5a5a5a5a5a5a, .value2 = -1};
  const struct ni_prof_vtable_v6 *v = ni_core.vtable;
  if (!handle || !face() || !callable())
    return;
  counts.calls[NI_CALL_RECORD]++;
  v->recordEventState(handle, (enum ni_prof_state)NI_ST_PROXY_DIAG_UPDATE, (void *)&args);
}

void ni_core_flush_counts(void) {
  for (int i = 0; i < NI_CALL_COUNT; i++)
    atomic_fetch_add_explicit(&ni_core.calls[i], counts.calls[i], memory_order_relaxed);
  for (int i = 0; i < 16; i++) {
    atomic_fetch_add_explicit(&ni_core.starts[i], counts.starts[i], memory_order_relaxed);
    atomic_fetch_add_explicit(&ni_core.null_handles[i], counts.nulls[i], memory_order_relaxed);
  }
  memset(&counts, 0, sizeof counts);
}
