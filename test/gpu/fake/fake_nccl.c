/*
 * An NCCL that moves no data: the C API for gpu_drive, with the profiler called as NCCL calls it (callbacks
 * 3.1, 3.2, 3.5, 3.6), through the loader and the translations of nccl-sim.
 *
 * Each rank is alone: durations are a formula of the size. A communicator has a proxy thread that raises
 * KernelCh when the device, which is a clock, gets there. An operation of 4242 elements never ends.
 *   FAKE_NCCL_VERSION=22809   the release it claims to be (default 23007)
 *   FAKE_NCCL_UNNAMED=1       communicators have no name, as for plugins before v4
 *   FAKE_NCCL_FAULT=what:N    the Nth operation of the process is told wrongly to the profiler: lose, twice,
 *                             size, dtype, algo, peer, channels (one KernelCh too few), stamp (a stop before
 *                             its start); or slow:0, every kernel of 32 MiB or more 10 % longer than the
 *                             events say; or hang:N, the Nth never ends. The checker must notice each
 *                             (test/cases/gpu/gpu_check.sh).
 * Threads: the API from one thread; the proxy threads (fake_proxy.h) share the queue of their communicator
 * under its lock.
 */
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

#include "format/names.h"

#include "test/nccl_sim/core/core.h"
#include "fake_proxy.h"

#define EXPORT __attribute__((visibility("default")))

void ni_sim_say(const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  if (getenv("NCCL_DEBUG"))
    vfprintf(stderr, fmt, ap), fputc('\n', stderr);
  va_end(ap);
}
void ni_die(int status, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  vfprintf(stderr, fmt, ap), fputc('\n', stderr);
  va_end(ap);
  _exit(status);
}

struct task {
  const char *func, *dtype, *algo, *proto;
  uint64_t bytes, count;
  int root, peer, channels; /* peer -1: a collective */
  int mask;
  void *api;
  bool coll, invisible;
};

struct plan {
  struct ncclComm *c;
  struct task tasks[64];
  int n;
};

static _Thread_local struct {
  int depth, n;
  struct {
    struct ncclComm *c;
    ni_stream s;
    struct task t;
  } ops[64];
  void *group_api;
} group;
static unsigned fault_at;
static char fault[16];
static unsigned issued;
static ni_fake_run_fn run;
static ni_fake_release_fn release;
static ni_fake_capturing_fn capturing;
static ni_fake_capture_fn capture;

__attribute__((constructor)) static void start(void) {
  const char *v = getenv("FAKE_NCCL_VERSION"), *f = getenv("FAKE_NCCL_FAULT");
  if (v)
    ni_core.release = ni_core_release(v) ? ni_core_release(v) : atoi(v);
  if (f)
    sscanf(f, "%15[^:]:%u", fault, &fault_at);
  *(void **)&run = dlsym(RTLD_DEFAULT, "fake_cuda_run");
  *(void **)&release = dlsym(RTLD_DEFAULT, "fake_cuda_release");
  *(void **)&capturing = dlsym(RTLD_DEFAULT, "fake_cuda_capturing");
  *(void **)&capture = dlsym(RTLD_DEFAULT, "fake_cuda_capture");
}

static bool faulty(const char *what) { return strcmp(fault, what) == 0 && fault_at && issued == fault_at; }

static bool faulty_next(const char *what, int n) { /* is it among the next n? */
  return strcmp(fault, what) == 0 && fault_at > issued && fault_at <= issued + (unsigned)n;
}

/* ---- launching ----------------------------------------------------------------------------------------- */

static void raise_task(struct plan *p, struct task *t, void *group_handle, uint64_t start_ns, uint64_t end_ns,
                       bool wrong) {
  struct ncclComm *c = p->c;
  struct ni_prof_descr_v7 d;
  void *h = NULL;
  memset(&d, 0, sizeof d);
  d.rank = c->id.rank;
  d.parentObj = t->api;
  uint64_t sn = t->coll ? c->sn[ni_func_from_name(t->func)]++ : 0;
  if (t->invisible)
    return;
  if (t->coll) {
    d.type = NI_EV_COLL;
    d.coll.seqNumber = sn;
    d.coll.func = t->func;
    d.coll.count = t->count;
    d.coll.root = t->root;
    d.coll.datatype = t->dtype;
    d.coll.nChannels = (uint8_t)t->channels;
    d.coll.nWarps = 16;
    d.coll.algo = t->algo;
    d.coll.proto = t->proto;
    d.coll.parentGroup = group_handle;
  } else {
    d.type = NI_EV_P2P;
    d.p2p.func = t->func;
    d.p2p.datatype = t->dtype;
    d.p2p.count = t->count;
    d.p2p.peer = t->peer;
    d.p2p.nChannels = (uint8_t)t->channels;
    d.p2p.parentGroup = group_handle;
  }
  if (wrong && faulty("lose"))
    return;
  if (wrong && faulty("size"))
    d.type == NI_EV_COLL ? d.coll.count++ : d.p2p.count++;
  if (wrong && faulty("dtype"))
    d.type == NI_EV_COLL ? (d.coll.datatype = "ncclFloat64") : (d.p2p.datatype = "ncclFloat64");
  if (wrong && faulty("algo"))
    d.coll.algo = "TREE";
  if (wrong && faulty("peer") && !t->coll)
    d.p2p.peer++;
  bool self = !t->coll && t->peer == c->id.rank;
  for (int times = wrong && faulty("twice") ? 2 : 1; times--;) {
    if (t->coll ? ni_wants_coll(t->mask) : ni_wants_p2p(t->mask, ni_core.release))
      ni_core_start(c->ctx, &h, &d);
    if (h && (t->mask & NI_EV_KERNEL_CH) && !self) {
      struct work *w = ni_xalloc(sizeof *w);
      uint64_t more = strcmp(fault, "slow") == 0 && t->bytes >= 16 << 20 ? (end_ns - start_ns) / 10 : 0;
      *w = (struct work){NULL, h, start_ns, end_ns, end_ns + more, t->channels};
      if (wrong && faulty("channels"))
        w->channels--;
      if (wrong && faulty("stamp"))
        w->shown_end_ns = start_ns - 1000;
      pthread_mutex_lock(&c->lock);
      *c->tail = w;
      c->tail = &w->next;
      pthread_cond_broadcast(&c->cond);
      pthread_mutex_unlock(&c->lock);
    }
    ni_core_stop(h);
  }
}

static void launch(struct plan *p, ni_stream s) {
  struct ncclComm *c = p->c;
  void *h = NULL;
  uint64_t dur = 0, start_ns, end_ns;
  for (int i = 0; i < p->n; i++) {
    dur += 3000 + p->tasks[i].bytes / 20; /* 20 GB/s */
    if (faulty_next("hang", p->n) || p->tasks[i].count == 4242 || p->tasks[i].bytes == 4242 * 4)
      dur = UINT64_C(1) << 50, c->hung = s;
  }
  run(s, dur, &start_ns, &end_ns);
  if (!c->loaded)
    return;
  bool any = false;
  for (int i = 0; i < p->n; i++)
    any |= ni_wants_group(p->tasks[i].mask) && !p->tasks[i].invisible;
  if (any) {
    struct ni_prof_descr_v7 d;
    memset(&d, 0, sizeof d);
    d.type = NI_EV_GROUP;
    ni_core_start(c->ctx, &h, &d);
  }
  for (int i = 0; i < p->n; i++) {
    issued++;
    raise_task(p, &p->tasks[i], h, start_ns, end_ns, true);
  }
  ni_core_stop(h);
}

static void launch_node(void *arg, ni_stream s) { launch(arg, s); }

static int traffic(const void *x, const void *y) { /* collectives first, large ones before small ones */
  const struct task *a = x, *b = y;
  if (a->coll != b->coll)
    return a->coll ? -1 : 1;
  if (!a->coll)
    return 0;
  return a->bytes > b->bytes ? -1 : a->bytes < b->bytes;
}

static void close_group(void) {
  bool done[64] = {false};
  for (int i = 0; i < group.n; i++) {
    if (done[i])
      continue;
    struct plan *p = ni_xalloc(sizeof *p);
    ni_stream s = group.ops[i].s;
    p->c = group.ops[i].c;
    for (int k = i; k < group.n; k++)
      if (group.ops[k].c == p->c && group.ops[k].s == s)
        p->tasks[p->n++] = group.ops[k].t, done[k] = true;
    qsort(p->tasks, (size_t)p->n, sizeof *p->tasks, traffic);
    void *kernel = NULL;
    if (ni_core_mask() & NI_EV_KERNEL_LAUNCH) {
      struct ni_prof_descr_v7 d;
      memset(&d, 0, sizeof d);
      d.type = NI_EV_KERNEL_LAUNCH;
      d.parentObj = group.group_api;
      ni_core_start(p->c->ctx, &kernel, &d);
      ni_core_stop(kernel);
    }
    if (capturing(s)) {
      capture(s, launch_node, p); /* lives as long as the graph: for ever */
    } else {
      launch(p, s);
      free(p);
    }
  }
  ni_core_stop(group.group_api);
  group.group_api = NULL;
  group.n = 0;
}

static int add_op(struct ncclComm *c, ni_stream s, const char *func, uint64_t count, int dtype, int root,
                  int peer) {
  if (!c || dtype < 0 || dtype >= NI_DT_COUNT)
    return 4;
  if (count == 0 || c->id.n_ranks == 1)
    return 0;
  const char *algo = getenv("NCCL_ALGO"), *proto = getenv("NCCL_PROTO");
  const char *name = dtype == NI_DT_UINT8 ? "Unknown" : ni_dt_names[dtype];
  uint64_t size = ni_datatype_bytes(ni_dt_names[dtype]);
  struct task t = {.func = func,
                   .dtype = name,
                   .bytes = count * size,
                   .count = count,
                   .root = root,
                   .peer = peer,
                   .coll = peer < 0,
                   .mask = ni_core_mask()};
  t.algo = algo && strcasecmp(algo, "tree") == 0 ? "TREE" : "RING";
  t.proto = !proto || strcasecmp(proto, "simple") == 0 ? "SIMPLE"
      : strcasecmp(proto, "ll") == 0                   ? "LL"
                                                       : "LL128";
  t.channels = t.bytes > 65536 ? 4 : 1;
  if (strcmp(func, "AllGather") == 0 || strcmp(func, "Broadcast") == 0)
    t.count = t.bytes, t.dtype = "ncclInt8";
  const char *agv = getenv("NCCL_ALLGATHERV_ENABLE");
  t.invisible = strcmp(func, "Broadcast") == 0 && ni_core.release >= 22900 && !(agv && strcmp(agv, "0") == 0);
  struct ni_prof_descr_v7 d;
  if (!group.group_api && c->loaded && ni_wants_group_api(t.mask)) {
    memset(&d, 0, sizeof d);
    d.type = NI_EV_GROUP_API;
    d.groupApi.groupDepth = group.depth + 1;
    d.groupApi.graphCaptured = capturing(s);
    ni_core_start(c->ctx, &group.group_api, &d);
  }
  memset(&d, 0, sizeof d);
  d.parentObj = group.group_api;
  if (t.coll && c->loaded && ni_wants_coll_api(t.mask)) {
    d.type = NI_EV_COLL_API;
    d.collApi.func = func;
    d.collApi.count = count;
    d.collApi.datatype = name;
    d.collApi.root = root;
    d.collApi.graphCaptured = capturing(s);
    ni_core_start(c->ctx, &t.api, &d);
  } else if (!t.coll && c->loaded && ni_wants_p2p_api(t.mask)) {
    d.type = NI_EV_P2P_API;
    d.p2pApi.func = func;
    d.p2pApi.count = count;
    d.p2pApi.datatype = name;
    d.p2pApi.graphCaptured = capturing(s);
    ni_core_start(c->ctx, &t.api, &d);
  }
  ni_core_stop(t.api);
  if (group.n == 64)
    ni_die(1, "fake NCCL: more than 64 operations in a group");
  group.ops[group.n].c = c;
  group.ops[group.n].s = s;
  group.ops[group.n++].t = t;
  if (group.depth == 0)
    close_group();
  c->in_progress = c->nonblocking ? 2 : 0;
  return c->nonblocking ? NI_NCCL_IN_PROGRESS : 0;
}

/* ---- communicators ------------------------------------------------------------------------------------- */

static struct ncclComm *new_comm(uint64_t hash, int ranks, int rank, const struct ni_nccl_config *config) {
  struct ncclComm *c = ni_xalloc(sizeof *c);
  const char *name =
      config && config->magic == 0xcafebeef && !getenv("FAKE_NCCL_UNNAMED") ? config->comm_name : NULL;
  c->id = (struct ni_comm_ident){name ? strdup(name) : NULL, hash, ranks, ranks, rank};
  c->nonblocking = config && config->blocking == 0;
  c->in_progress = c->nonblocking ? 3 : 0;
  c->tail = &c->head;
  pthread_mutex_init(&c->lock, NULL);
  pthread_cond_init(&c->cond, NULL);
  c->loaded = ni_core_load();
  if (c->loaded)
    ni_core_init(&c->ctx, &c->id);
  if (pthread_create(&c->proxy, NULL, ni_fake_proxy, c))
    ni_die(1, "fake NCCL: no thread");
  return c;
}

static int end_comm(struct ncclComm *c, bool abandon) {
  pthread_mutex_lock(&c->lock);
  c->stop = true;
  c->abandon = abandon;
  pthread_cond_broadcast(&c->cond);
  pthread_mutex_unlock(&c->lock);
  pthread_join(c->proxy, NULL);
  if (abandon && c->hung)
    release(c->hung);
  if (c->loaded) {
    ni_core_finalize(c->ctx);
    ni_core_unload();
  }
  return 0; /* the struct stays: a stale pointer in a test shall not crash it */
}

#define API EXPORT int
#define DECLARE(ret, name, args) EXPORT ret nccl##name args;
NI_NCCL_FUNCTIONS(DECLARE, DECLARE)

int ncclGetVersion(int *v) { return *v = ni_core.release, 0; }
const char *ncclGetErrorString(int e) { return e ? "fake error" : "no error"; }
const char *ncclGetLastError(ni_nccl_comm c) { return (void)c, "nothing more is known"; }
int ncclGetUniqueId(struct ni_unique_id *id) {
  uint64_t x = ni_mix(ni_now(), (uint64_t)getpid());
  memset(id, 0, sizeof *id);
  memcpy(id->internal, &x, sizeof x);
  return 0;
}
int ncclCommInitRankConfig(ni_nccl_comm *out, int ranks, struct ni_unique_id id, int rank,
                           struct ni_nccl_config *config) {
  uint64_t hash;
  memcpy(&hash, id.internal, sizeof hash);
  if (config && config->magic != 0xcafebeef)
    return 4;
  *out = new_comm(hash, ranks, rank, config);
  return config && config->blocking == 0 ? NI_NCCL_IN_PROGRESS : 0;
}
int ncclCommSplit(ni_nccl_comm c, int color, int key, ni_nccl_comm *out, struct ni_nccl_config *config) {
  (void)key;
  uint64_t hash = ni_mix(c->id.hash, ++c->splits);
  *out = color < 0 ? NULL : new_comm(ni_mix(hash, (uint64_t)color), c->id.n_ranks, c->id.rank, config);
  return 0;
}
int ncclCommFinalize(ni_nccl_comm c) { return c->in_progress = 1, NI_NCCL_IN_PROGRESS; }
int ncclCommDestroy(ni_nccl_comm c) { return end_comm(c, false); }
int ncclCommAbort(ni_nccl_comm c) { return end_comm(c, true); }
int ncclCommGetAsyncError(ni_nccl_comm c, int *e) {
  *e = c->in_progress > 0 && c->in_progress-- ? NI_NCCL_IN_PROGRESS : 0;
  return 0;
}
int ncclGroupStart(void) { return group.depth++, 0; }
int ncclGroupEnd(void) {
  if (group.depth == 0)
    return 5;
  if (--group.depth == 0)
    close_group();
  return 0;
}
int ncclAllReduce(const void *a, void *b, size_t n, int dt, int op, ni_nccl_comm c, ni_stream s) {
  return (void)a, (void)b, (void)op, add_op(c, s, "AllReduce", n, dt, 0, -1);
}
int ncclReduce(const void *a, void *b, size_t n, int dt, int op, int root, ni_nccl_comm c, ni_stream s) {
  return (void)a, (void)b, (void)op, add_op(c, s, "Reduce", n, dt, root, -1);
}
int ncclBroadcast(const void *a, void *b, size_t n, int dt, int root, ni_nccl_comm c, ni_stream s) {
  return (void)a, (void)b, add_op(c, s, "Broadcast", n, dt, root, -1);
}
int ncclAllGather(const void *a, void *b, size_t n, int dt, ni_nccl_comm c, ni_stream s) {
  return (void)a, (void)b, add_op(c, s, "AllGather", n, dt, 0, -1);
}
int ncclReduceScatter(const void *a, void *b, size_t n, int dt, int op, ni_nccl_comm c, ni_stream s) {
  return (void)a, (void)b, (void)op, add_op(c, s, "ReduceScatter", n, dt, 0, -1);
}
int ncclSend(const void *a, size_t n, int dt, int peer, ni_nccl_comm c, ni_stream s) {
  return (void)a, add_op(c, s, "Send", n, dt, 0, peer);
}
int ncclRecv(void *a, size_t n, int dt, int peer, ni_nccl_comm c, ni_stream s) {
  return (void)a, add_op(c, s, "Recv", n, dt, 0, peer);
}
int ncclAlltoAll(const void *a, void *b, size_t n, int dt, ni_nccl_comm c, ni_stream s) {
  ncclGroupStart();
  for (int p = 0; p < c->id.n_ranks; p++)
    ncclSend(a, n, dt, p, c, s), ncclRecv(b, n, dt, p, c, s);
  return ncclGroupEnd();
}
