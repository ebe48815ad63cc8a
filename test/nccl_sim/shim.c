/*
 * Calling the plugin: v6 descriptors in, the plugin's version out (contract 1.4). States and threads: core.h.
 *
 * Each version is one `struct face`: which events and states pass, and how a descriptor is narrowed. NCCL's
 * translations to v4 and v5 build the narrower descriptor on the stack without clearing it, so everything not copied is
 * garbage here too: 0xAA, and in p2p.nChannels of v4, where a careless plugin would believe it, on request a number
 * that looks right.
 */
#include <string.h>

#include "core.h"

struct face {
  int events; /* forwarded */
  int last_state;
  int (*init)(void **ctx, const struct ni_comm_ident *id);
  void (*start)(void *ctx, void **handle, struct ni_prof_descr_v6 *d);
};

static _Thread_local struct {
  uint64_t calls[NI_CALL_COUNT], starts[16], nulls[16];
} counts;
static _Thread_local uint64_t poison_state;

static void log_line(enum ni_log_level level, unsigned long flags, const char *where, int line, const char *fmt, ...) {
  if (ni_core.quiet && level != NI_LOG_WARN) return;
  char text[1024];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof text, fmt, ap);
  va_end(ap);
  ni_say("%s %s:%d [0x%lx] %s", level == NI_LOG_WARN ? "WARN" : "INFO", where ? where : "?", line, flags, text);
}

static int init_v6(void **ctx, const struct ni_comm_ident *id) {
  const struct ni_prof_vtable_v6 *v = ni_core.vtable; /* v5 has the same init */
  return v->init(ctx, id->hash, (int *)&ni_core.mask, id->name, id->n_nodes, id->n_ranks, id->rank, log_line);
}

static int init_v4(void **ctx, const struct ni_comm_ident *id) {
  const struct ni_prof_vtable_v4 *v = ni_core.vtable;
  return v->init(ctx, (int *)&ni_core.mask, id->name, id->hash, id->n_nodes, id->n_ranks, id->rank, log_line);
}

static void start_v6(void *ctx, void **handle, struct ni_prof_descr_v6 *d) {
  ((const struct ni_prof_vtable_v6 *)ni_core.vtable)->startEvent(ctx, handle, d);
}

static void start_v5(void *ctx, void **handle, struct ni_prof_descr_v6 *d) {
  struct ni_prof_descr_v5 e;
  memset(&e, ni_core_native(ni_core.release, 5) ? 0 : 0xAA, sizeof e);
  e.type = d->type;
  e.parentObj = d->parentObj;
  e.rank = d->rank;
  size_t n = sizeof d->coll; /* the largest member; the others are copied whole with it only when native */
  switch (d->type) {
    case NI_EV_GROUP: case NI_EV_PROXY_CTRL: n = 0; break;
    case NI_EV_P2P: n = sizeof d->p2p; break;
    case NI_EV_PROXY_OP: n = sizeof d->proxyOp; break;
    case NI_EV_PROXY_STEP: n = sizeof d->proxyStep; break;
    case NI_EV_KERNEL_CH: n = sizeof d->kernelCh; break;
    case NI_EV_NET_PLUGIN: n = sizeof d->netPlugin; break;
    case NI_EV_GROUP_API: n = sizeof d->groupApi; break;
    case NI_EV_COLL_API: n = sizeof d->collApi; break;
    case NI_EV_P2P_API: n = sizeof d->p2pApi; break;
    case NI_EV_KERNEL_LAUNCH: n = sizeof d->kernelLaunch; break;
    default: break;
  }
  memcpy(&e.coll, &d->coll, n);
  ((const struct ni_prof_vtable_v5 *)ni_core.vtable)->startEvent(ctx, handle, &e);
}

static void start_v4(void *ctx, void **handle, struct ni_prof_descr_v6 *d) {
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
    case NI_EV_PROXY_OP: memcpy(&e.proxyOp, &d->proxyOp, sizeof e.proxyOp); break;
    case NI_EV_PROXY_STEP: e.proxyStep.step = d->proxyStep.step; break;
    case NI_EV_KERNEL_CH:
      e.kernelCh.channelId = d->kernelCh.channelId;
      e.kernelCh.pTimer = d->kernelCh.pTimer;
      break;
    case NI_EV_NET_PLUGIN:
      e.netPlugin.id = d->netPlugin.id;
      e.netPlugin.data = d->netPlugin.data;
      break;
    default: break;
  }
  ((const struct ni_prof_vtable_v4 *)ni_core.vtable)->startEvent(ctx, handle, &e);
}

static const struct face faces[] = {
    [4] = {0xff, NI_ST_KERNEL_CH_STOP, init_v4, start_v4},
    [5] = {0xfff, NI_ST_GROUP_API_END_BEGIN, init_v6, start_v5},
    [6] = {NI_EV_ALL, NI_ST_CE_BATCH_COMPLETE, init_v6, start_v6},
};

static const struct face *face(void) {
  int v = ni_core.interface;
  if (!v || ni_core.gone) return NULL;
  const struct face *f = &faces[v];
  if (v < 4 || !f->init) ni_die(NI_SIM_FAILED, "interface v%d: nccl-sim speaks v4, v5 and v6", v);
  return f;
}

/* Calls on a translated version go through pointers that a successful init has filled; before that NCCL would crash. */
static bool callable(void) {
  if (ni_core.filled || ni_core_native(ni_core.release, ni_core.interface)) return true;
  static atomic_flag said = ATOMIC_FLAG_INIT;
  if (!atomic_flag_test_and_set(&said))
    ni_say("NCCL %d would call a null pointer here: no init through v%d has succeeded", ni_core.release,
           ni_core.interface);
  return false;
}

int ni_core_init(void **ctx, const struct ni_comm_ident *id) {
  const struct face *f = face();
  if (!f) return 0;
  counts.calls[NI_CALL_INIT]++;
  int rc = f->init(ctx, id);
  if (rc == 0) {
    ni_core.filled = true;
    /* The v5 translation takes the copy-engine bits out of the shared mask after each init. */
    if (ni_core.interface == 5 && !ni_core_native(ni_core.release, 5))
      atomic_fetch_and_explicit(&ni_core.mask, ~(NI_EV_CE_COLL | NI_EV_CE_SYNC | NI_EV_CE_BATCH), memory_order_relaxed);
  } else if (ni_core.release < 22800) {
    ni_say("WARN init returned %d: profiling is off for the whole process", rc);
    ni_core.gone = true;
  }
  return rc;
}

void ni_core_finalize(void *ctx) {
  if (!face() || !callable()) return;
  if (!ctx && ni_core.release >= 22800) return;
  counts.calls[NI_CALL_FINALIZE]++;
  ((const struct ni_prof_vtable_v6 *)ni_core.vtable)->finalize(ctx);
}

void ni_core_start(void *ctx, void **handle, struct ni_prof_descr_v6 *d) {
  const struct face *f = face();
  if (!f || !(f->events & d->type) || !callable()) return;
  f->start(ctx, handle, d);
  int bit = __builtin_ctzll(d->type);
  counts.calls[NI_CALL_START]++;
  counts.starts[bit & 15]++;
  if (!*handle) counts.nulls[bit & 15]++;
}

void ni_core_stop(void *handle) {
  if (!handle || !face() || !callable()) return;
  counts.calls[NI_CALL_STOP]++;
  ((const struct ni_prof_vtable_v6 *)ni_core.vtable)->stopEvent(handle); /* the same in every version */
}

void ni_core_record(void *handle, enum ni_prof_state state, const union ni_prof_state_v4 *args) {
  const struct face *f = face();
  if (!handle || !f || (int)state > f->last_state || !callable()) return;
  counts.calls[NI_CALL_RECORD]++;
  union ni_prof_state_v4 a;
  memset(&a, 0xAA, sizeof a);
  bool none = state == NI_ST_GROUP_API_START_END || state == NI_ST_GROUP_API_END_BEGIN;
  if (args && !(ni_core.interface == 4 && state == NI_ST_PROXY_OP_IN_PROGRESS)) a = *args;
  ((const struct ni_prof_vtable_v6 *)ni_core.vtable)
      ->recordEventState(handle, state, none && ni_core_native(ni_core.release, ni_core.interface) ? NULL : &a);
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
