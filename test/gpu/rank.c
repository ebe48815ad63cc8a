/* Device, communicators and truth of one rank; see rank.h. */
#include "rank.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/names.h"

_Noreturn void ni_rank_die(struct ni_rank *r, const char *fmt, ...) {
  va_list ap;
  fprintf(stderr, "gpu_drive: rank %d: ", r->rank);
  va_start(ap, fmt);
  vfprintf(stderr, fmt, ap);
  va_end(ap);
  fputc('\n', stderr);
  if (r->truth)
    fflush(r->truth);
  _exit(NI_DRIVE_FAILED); /* exit handlers could wait for a device that is stuck */
}

void ni_rank_cuda(struct ni_rank *r, int result, const char *what) {
  if (result != NI_CUDA_SUCCESS)
    ni_rank_die(r, "%s: CUDA error %d", what, result);
}

void ni_rank_nccl(struct ni_rank *r, struct ni_gcomm *c, int result, const char *what) {
  uint64_t until = ni_gpu_now() + 120000000000u;
  while (result == NI_NCCL_IN_PROGRESS && c && c->nccl) {
    if (r->api.CommGetAsyncError(c->nccl, &result) != NI_NCCL_SUCCESS)
      break;
    if (ni_gpu_now() > until)
      ni_rank_die(r, "%s: still in progress after 120 s", what);
    usleep(100);
  }
  if (result == NI_NCCL_SUCCESS)
    return;
  ni_rank_die(r, "%s: NCCL error %d: %s%s%s", what, result, r->api.GetErrorString(result),
              r->api.GetLastError ? "; " : "", r->api.GetLastError ? r->api.GetLastError(NULL) : "");
}

void ni_rank_barrier(struct ni_rank *r) {
  struct ni_shared *s = r->shared;
  int turn = atomic_load_explicit(&s->turn, memory_order_acquire);
  ni_rank_progress(r);
  if (atomic_fetch_add_explicit(&s->arrived, 1, memory_order_acq_rel) + 1 == r->ranks) {
    atomic_store_explicit(&s->arrived, 0, memory_order_relaxed);
    atomic_store_explicit(&s->turn, turn + 1, memory_order_release);
    return;
  }
  /* A rank that died never comes; the parent ends this process then. */
  while (atomic_load_explicit(&s->turn, memory_order_acquire) == turn)
    usleep(20);
}

bool ni_rank_agree(struct ni_rank *r, bool mine) {
  if (r->rank == 0)
    atomic_store_explicit(&r->shared->decision, mine, memory_order_relaxed);
  ni_rank_barrier(r);
  bool all = atomic_load_explicit(&r->shared->decision, memory_order_relaxed);
  ni_rank_barrier(r);
  return all;
}

bool ni_rank_time_for(struct ni_rank *r, const char *plan, const char *what) {
  if (ni_rank_agree(r, ni_gpu_now() < r->t_end_ns))
    return true;
  fprintf(r->truth, "skip plan=%s what=%s why=time\n", plan, what);
  return false;
}

static void put_env(struct ni_rank *r, const char *name) {
  const char *v = getenv(name);
  if (v && *v && !strchr(v, '\n'))
    fprintf(r->truth, "env %s=%s\n", name, v);
}

void ni_rank_open(struct ni_rank *r) {
  char path[4096], why[512], device[128] = "";
  int gpus = 0, dev, driver = 0;
  void *ctx;
  snprintf(path, sizeof path, "%s/truth-%d.txt", r->opt->dir, r->rank);
  r->truth = fopen(path, "we");
  if (!r->truth)
    ni_rank_die(r, "%s: %s", path, strerror(errno));
  int rc = ni_gpu_open(&r->api, r->opt->cuda, r->opt->nccl, why, sizeof why);
  if (rc < 0 && rc != NI_GPU_NO_DRIVER)
    ni_rank_die(r, "%s", why);
  if (rc == 0 && (rc = r->api.cuInit(0)) == NI_CUDA_NO_DEVICE)
    rc = NI_GPU_NO_DRIVER;
  if (rc == NI_GPU_NO_DRIVER)
    _exit(NI_DRIVE_NO_GPU);
  ni_rank_cuda(r, rc, "cuInit");
  ni_rank_cuda(r, r->api.cuDeviceGetCount(&gpus), "cuDeviceGetCount");
  if (gpus == 0)
    _exit(NI_DRIVE_NO_GPU);
  if (r->opt->layout == NI_LAYOUT_GPUS && gpus < r->ranks)
    ni_rank_die(r, "layout gpus: %d ranks, but %d GPUs", r->ranks, gpus);
  ni_rank_cuda(r, r->api.cuDeviceGet(&dev, r->opt->layout == NI_LAYOUT_GPUS ? r->rank : 0), "cuDeviceGet");
  ni_rank_cuda(r, r->api.cuDeviceGetName(device, sizeof device, dev), "cuDeviceGetName");
  ni_rank_cuda(r, r->api.cuDeviceGetAttribute(&r->cc, NI_CUDA_CC_MAJOR, dev), "cuDeviceGetAttribute");
  ni_rank_cuda(r, r->api.cuDriverGetVersion(&driver), "cuDriverGetVersion");
  ni_rank_cuda(r, r->api.cuDevicePrimaryCtxRetain(&ctx, dev), "cuDevicePrimaryCtxRetain");
  ni_rank_cuda(r, r->api.cuCtxSetCurrent(ctx), "cuCtxSetCurrent");
  ni_rank_cuda(r, r->api.cuStreamCreate(&r->stream, 1 /* non-blocking */), "cuStreamCreate");
  r->cap = r->opt->max_bytes < 4096 ? 4096 : r->opt->max_bytes;
  ni_rank_cuda(r, r->api.cuMemAlloc_v2(&r->send, r->cap), "cuMemAlloc");
  ni_rank_cuda(r, r->api.cuMemAlloc_v2(&r->recv, r->cap), "cuMemAlloc");
  ni_rank_cuda(r, r->api.cuMemsetD8Async(r->send, 0, r->cap, r->stream), "cuMemsetD8Async");
  ni_rank_cuda(r, r->api.cuMemsetD8Async(r->recv, 0, r->cap, r->stream), "cuMemsetD8Async");
  ni_rank_cuda(r, r->api.cuStreamSynchronize(r->stream), "cuStreamSynchronize");
  for (int i = 0; i < 2 * NI_MAX_PENDING; i++)
    ni_rank_cuda(r, r->api.cuEventCreate(&r->events[i], 0), "cuEventCreate");
  if (r->api.GetVersion(&r->nccl) != NI_NCCL_SUCCESS)
    ni_rank_die(r, "ncclGetVersion fails");
  for (char *p = device; *p; p++)
    if (*p == ' ')
      *p = '_';
  static const char *const layouts[NI_LAYOUT_COUNT] = {"hostid", "gpus", "multirank"};
  fprintf(r->truth, "process pid=%d rank=%d ranks=%d nccl=%d layout=%s device=%s cc=%d cuda=%d\n", getpid(),
          r->rank, r->ranks, r->nccl, layouts[r->opt->layout], device, r->cc, driver);
  static const char *const names[] = {"NCCL_ALGO", "NCCL_PROTO", "NCCL_ALLGATHERV_ENABLE",
                                      "NCCL_PROFILER_PLUGIN"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    put_env(r, names[i]);
  ni_rank_progress(r);
  r->t_end_ns = ni_gpu_now() + (uint64_t)r->opt->seconds * 1000000000u;
}

static struct ni_gcomm *add_comm(struct ni_rank *r, const char *name, int rank, int ranks) {
  if (r->n_comms == NI_MAX_COMMS)
    ni_rank_die(r, "more than %d communicators", NI_MAX_COMMS);
  struct ni_gcomm *c = &r->comm[r->n_comms++];
  memset(c, 0, sizeof *c);
  snprintf(c->name, sizeof c->name, "%s", name);
  c->rank = rank;
  c->ranks = ranks;
  fprintf(r->truth, "comm name=%s rank=%d ranks=%d\n", name, rank, ranks);
  return c;
}

struct ni_gcomm *ni_rank_world(struct ni_rank *r, const char *name, bool nonblocking) {
  struct ni_gcomm *c = add_comm(r, name, r->rank, r->ranks);
  struct ni_nccl_config config = NI_NCCL_CONFIG(c->name);
  struct ni_unique_id *id = &r->shared->id[r->next_id++ % NI_MAX_IDS];
  config.blocking = !nonblocking;
  c->nonblocking = nonblocking;
  if (r->rank == 0)
    ni_rank_nccl(r, NULL, r->api.GetUniqueId(id), "ncclGetUniqueId");
  ni_rank_barrier(r);
  ni_rank_nccl(r, c, r->api.CommInitRankConfig(&c->nccl, r->ranks, *id, r->rank, &config),
               "ncclCommInitRankConfig");
  ni_rank_progress(r);
  return c;
}

struct ni_gcomm *ni_rank_split(struct ni_rank *r, struct ni_gcomm *c, int color, const char *name,
                               bool share) {
  /*
   * Every rank of the parent makes one colour here, or none: so rank and size are those of the parent or 1.
   */
  struct ni_nccl_config config = NI_NCCL_CONFIG(NULL);
  struct ni_gcomm *n = color >= 0 ? add_comm(r, name, c->rank, c->ranks) : NULL;
  ni_nccl_comm none = NULL, *out = n ? &n->nccl : &none;
  config.comm_name = n ? n->name : name;
  config.split_share = share;
  ni_rank_nccl(r, c, r->api.CommSplit(c->nccl, color, c->rank, out, &config), "ncclCommSplit");
  return n;
}

/* ---- operations ---------------------------------------------------------------------------------------- */

static struct ni_pending *pend(struct ni_rank *r, struct ni_gcomm *c, const char *func, const char *dtype,
                               uint64_t bytes, int root, int peer) {
  if (r->n_pending == NI_MAX_PENDING)
    ni_rank_die(r, "more than %d operations without a settle", NI_MAX_PENDING);
  struct ni_pending *p = &r->pending[r->n_pending++];
  memset(p, 0, sizeof *p);
  snprintf(p->op.comm, sizeof p->op.comm, "%s", c->name);
  snprintf(p->op.func, sizeof p->op.func, "%s", func);
  snprintf(p->op.dtype, sizeof p->op.dtype, "%s", dtype);
  snprintf(p->op.how, sizeof p->op.how, "%s", r->capturing ? "graph" : r->open_group ? "group" : "eager");
  p->op.bytes = bytes;
  p->op.root = root;
  p->op.peer = peer;
  p->op.group = r->open_group;
  p->op.tag = r->tag;
  p->event = r->capturing || r->open_group || r->untimed ? -1 : 2 * (r->n_pending - 1);
  return p;
}

static int plain(struct ni_rank *r, struct ni_gcomm *c, enum ni_func f, void *in, void *out, size_t n,
                 int dtype, int root) {
  switch (f) {
    case NI_FUNC_ALLREDUCE:
      return r->api.AllReduce(in, out, n, dtype, NI_NCCL_SUM, c->nccl, r->stream);
    case NI_FUNC_REDUCE:
      return r->api.Reduce(in, out, n, dtype, NI_NCCL_SUM, root, c->nccl, r->stream);
    case NI_FUNC_BROADCAST:
      return r->api.Broadcast(in, out, n, dtype, root, c->nccl, r->stream);
    case NI_FUNC_ALLGATHER:
      return r->api.AllGather(in, out, n, dtype, c->nccl, r->stream);
    case NI_FUNC_REDUCESCATTER:
      return r->api.ReduceScatter(in, out, n, dtype, NI_NCCL_SUM, c->nccl, r->stream);
    default:
      return NI_NCCL_INVALID_ARGUMENT;
  }
}

/* The same with the rank's tag; only where ni_rank_tags() holds. */
static int tagged(struct ni_rank *r, struct ni_gcomm *c, enum ni_func f, void *in, void *out, size_t n,
                  int dtype, int root) {
  const struct ni_coll_config k = NI_COLL_CONFIG(r->tag);
  switch (f) {
    case NI_FUNC_ALLREDUCE:
      return r->api.AllReduceConfig(in, out, n, dtype, NI_NCCL_SUM, c->nccl, r->stream, &k);
    case NI_FUNC_REDUCE:
      return r->api.ReduceConfig(in, out, n, dtype, NI_NCCL_SUM, root, c->nccl, r->stream, &k);
    case NI_FUNC_BROADCAST:
      return r->api.BroadcastConfig(in, out, n, dtype, root, c->nccl, r->stream, &k);
    case NI_FUNC_ALLGATHER:
      return r->api.AllGatherConfig(in, out, n, dtype, c->nccl, r->stream, &k);
    case NI_FUNC_REDUCESCATTER:
      return r->api.ReduceScatterConfig(in, out, n, dtype, NI_NCCL_SUM, c->nccl, r->stream, &k);
    default:
      return NI_NCCL_INVALID_ARGUMENT;
  }
}

bool ni_rank_tags(const struct ni_rank *r) {
  return r->api.AllReduceConfig && r->api.ReduceConfig && r->api.BroadcastConfig && r->api.AllGatherConfig &&
      r->api.ReduceScatterConfig && r->api.AlltoAllConfig;
}

void ni_rank_coll(struct ni_rank *r, struct ni_gcomm *c, const char *func, int dtype, uint64_t bytes,
                  int root) {
  const char *name = ni_dt_names[dtype];
  uint64_t size = ni_datatype_bytes(name), share = bytes / (uint64_t)c->ranks / size * size,
           desc = bytes / size * size;
  enum ni_func f = ni_func_from_name(func);
  void *in = (void *)(uintptr_t)r->send, *out = (void *)(uintptr_t)r->recv;
  bool rewritten = f == NI_FUNC_ALLGATHER || f == NI_FUNC_BROADCAST; /* NCCL hands these over as bytes */
  int rc;
  if (f == NI_FUNC_ALLGATHER || f == NI_FUNC_REDUCESCATTER)
    desc = share;
  if (bytes > r->cap)
    ni_rank_die(r, "%s of %llu bytes: the buffers have %zu", func, (unsigned long long)bytes, r->cap);
  struct ni_pending *p = pend(r, c, func, rewritten ? "ncclInt8" : name, desc, root, -1);
  if (p->event >= 0)
    ni_rank_cuda(r, r->api.cuEventRecord(r->events[p->event], r->stream), "cuEventRecord");
  uint64_t t0 = ni_gpu_now();
  rc = r->tag ? tagged(r, c, f, in, out, desc / size, dtype, root)
              : plain(r, c, f, in, out, desc / size, dtype, root);
  p->op.call_ns = ni_gpu_now() - t0;
  ni_rank_nccl(r, c, rc == NI_NCCL_IN_PROGRESS && r->open_group ? NI_NCCL_SUCCESS : rc, func);
  if (p->event >= 0)
    ni_rank_cuda(r, r->api.cuEventRecord(r->events[p->event + 1], r->stream), "cuEventRecord");
}

void ni_rank_p2p(struct ni_rank *r, struct ni_gcomm *c, bool send, int dtype, uint64_t bytes, int peer,
                 uint64_t offset) {
  const char *name = ni_dt_names[dtype], *func = send ? "Send" : "Recv";
  uint64_t size = ni_datatype_bytes(name), n = bytes / size;
  if (offset + bytes > r->cap)
    ni_rank_die(r, "%s: beyond the buffers", func);
  struct ni_pending *p = pend(r, c, func, name, n * size, 0, peer);
  uint64_t t0 = ni_gpu_now();
  int rc = send ? r->api.Send((void *)(uintptr_t)(r->send + offset), n, dtype, peer, c->nccl, r->stream)
                : r->api.Recv((void *)(uintptr_t)(r->recv + offset), n, dtype, peer, c->nccl, r->stream);
  p->op.call_ns = ni_gpu_now() - t0;
  ni_rank_nccl(r, c, rc == NI_NCCL_IN_PROGRESS && r->open_group ? NI_NCCL_SUCCESS : rc, func);
}

void ni_rank_alltoall(struct ni_rank *r, struct ni_gcomm *c, int dtype, uint64_t share) {
  const char *name = ni_dt_names[dtype];
  r->open_group = ++r->groups;
  for (int peer = 0; peer < c->ranks; peer++) {
    pend(r, c, "Send", name, share, 0, peer);
    pend(r, c, "Recv", name, share, 0, peer);
  }
  r->open_group = 0;
  void *in = (void *)(uintptr_t)r->send, *out = (void *)(uintptr_t)r->recv;
  const struct ni_coll_config k = NI_COLL_CONFIG(r->tag);
  size_t n = share / ni_datatype_bytes(name);
  int rc = r->tag ? r->api.AlltoAllConfig(in, out, n, dtype, c->nccl, r->stream, &k)
                  : r->api.AlltoAll(in, out, n, dtype, c->nccl, r->stream);
  ni_rank_nccl(r, c, rc, "ncclAlltoAll");
}

void ni_rank_group_start(struct ni_rank *r) {
  ni_rank_nccl(r, NULL, r->api.GroupStart(), "ncclGroupStart");
  r->open_group = ++r->groups;
}

void ni_rank_group_end(struct ni_rank *r) {
  int rc = r->api.GroupEnd();
  r->open_group = 0;
  /* With a non-blocking communicator in it the group goes on in another thread. */
  for (int i = 0; rc == NI_NCCL_IN_PROGRESS && i < r->n_comms; i++)
    if (r->comm[i].nccl && r->comm[i].nonblocking)
      ni_rank_nccl(r, &r->comm[i], rc, "ncclGroupEnd");
  if (rc != NI_NCCL_IN_PROGRESS)
    ni_rank_nccl(r, NULL, rc, "ncclGroupEnd");
}

void ni_rank_capture_start(struct ni_rank *r) {
  ni_rank_settle(r);
  r->capturing = true;
  r->capture_from = r->n_pending;
  ni_rank_cuda(r, r->api.cuStreamBeginCapture_v2(r->stream, 1 /* thread-local */), "cuStreamBeginCapture");
}

void ni_rank_capture_end(struct ni_rank *r, int times, struct ni_gcomm *behind) {
  ni_graph graph;
  ni_graph_exec exec;
  ni_rank_cuda(r, r->api.cuStreamEndCapture(r->stream, &graph), "cuStreamEndCapture");
  ni_rank_cuda(r, r->api.cuGraphInstantiateWithFlags(&exec, graph, 0), "cuGraphInstantiate");
  r->capturing = false;
  int n = r->n_pending - r->capture_from;
  struct ni_pending *captured = calloc((size_t)n, sizeof *captured);
  if (!captured)
    ni_rank_die(r, "out of memory");
  memcpy(captured, &r->pending[r->capture_from], (size_t)n * sizeof *captured);
  r->n_pending = r->capture_from;
  for (int t = 0; t < times; t++) {
    uint64_t base = r->groups;
    ni_rank_cuda(r, r->api.cuGraphLaunch(exec, r->stream), "cuGraphLaunch");
    for (int i = 0; i < n; i++) { /* a group of the capture is a group of each replay */
      struct ni_pending *p = &r->pending[r->n_pending++];
      *p = captured[i];
      if (p->op.group)
        p->op.group += base;
      if (p->op.group > r->groups)
        r->groups = p->op.group;
    }
    if (r->n_pending + n > NI_MAX_PENDING)
      ni_rank_settle(r);
  }
  if (behind) {
    ni_rank_coll(r, behind, "AllReduce", NI_DT_FLOAT32, NI_BEHIND_BYTES, 0);
    /* Which of them NCCL shows first nobody promises: replays are shown by a thread of CUDA's. */
    r->groups++;
    for (int i = r->capture_from; i < r->n_pending; i++)
      r->pending[i].op.group = r->groups;
  }
  ni_rank_settle(r);
  free(captured);
  ni_rank_cuda(r, r->api.cuGraphExecDestroy(exec), "cuGraphExecDestroy");
  ni_rank_cuda(r, r->api.cuGraphDestroy(graph), "cuGraphDestroy");
}

static void write_pending(struct ni_rank *r, bool timed) {
  for (int i = 0; i < r->n_pending; i++) {
    struct ni_pending *p = &r->pending[i];
    float ms = 0;
    if (timed && p->event >= 0)
      ni_rank_cuda(r, r->api.cuEventElapsedTime(&ms, r->events[p->event], r->events[p->event + 1]),
                   "cuEventElapsedTime");
    const struct ni_gpu_op *o = &p->op;
    fprintf(r->truth, NI_GPU_OP_FORMAT, o->comm, (unsigned long long)o->group, o->func, o->dtype,
            (unsigned long long)o->bytes, o->root, o->peer, timed ? o->how : "lost",
            (unsigned long long)((double)ms * 1e6), (unsigned long long)o->call_ns,
            (unsigned long long)o->tag);
  }
  r->n_pending = 0;
  fflush(r->truth);
  ni_rank_progress(r);
}

void ni_rank_settle(struct ni_rank *r) {
  ni_rank_cuda(r, r->api.cuStreamSynchronize(r->stream), "cuStreamSynchronize");
  write_pending(r, true);
}

void ni_rank_lost(struct ni_rank *r) { write_pending(r, false); }

void ni_rank_close(struct ni_rank *r, struct ni_gcomm *c, const char *how) {
  if (!c || !c->nccl)
    return;
  if (strcmp(how, "abort") == 0) {
    int rc = r->api.CommAbort(c->nccl);
    if (rc != NI_NCCL_SUCCESS && rc != NI_NCCL_IN_PROGRESS)
      ni_rank_nccl(r, c, rc, "ncclCommAbort");
  } else {
    if (strcmp(how, "finalize") == 0)
      ni_rank_nccl(r, c, r->api.CommFinalize(c->nccl), "ncclCommFinalize");
    int rc = r->api.CommDestroy(c->nccl); /* a non-blocking one is gone when this says "in progress" */
    if (rc != NI_NCCL_IN_PROGRESS)
      ni_rank_nccl(r, NULL, rc, "ncclCommDestroy");
  }
  c->nccl = NULL;
  fprintf(r->truth, "end comm=%s how=%s\n", c->name, how);
  fflush(r->truth);
  ni_rank_progress(r);
}

/* ---- windows ------------------------------------------------------------------------------------------- */

bool ni_rank_windows_open(struct ni_rank *r, struct ni_gcomm *c, size_t bytes) {
  void *memory[2];
  if (!r->api.MemAlloc || !r->api.CommWindowRegister || !r->api.CommWindowDeregister)
    return false;
  for (int i = 0; i < 2; i++) {
    ni_rank_nccl(r, NULL, r->api.MemAlloc(&memory[i], bytes), "ncclMemAlloc");
    ni_rank_nccl(r, c,
                 r->api.CommWindowRegister(c->nccl, memory[i], bytes, &r->windows[i], NI_WIN_COLL_SYMMETRIC),
                 "ncclCommWindowRegister");
  }
  r->send = (ni_devptr)(uintptr_t)memory[0];
  r->recv = (ni_devptr)(uintptr_t)memory[1];
  r->cap = bytes;
  return r->windows[0] && r->windows[1]; /* NULL: symmetric memory is not supported here */
}

void ni_rank_windows_close(struct ni_rank *r, struct ni_gcomm *c) {
  for (int i = 0; i < 2; i++)
    if (r->windows[i])
      ni_rank_nccl(r, c, r->api.CommWindowDeregister(c->nccl, r->windows[i]), "ncclCommWindowDeregister");
}
