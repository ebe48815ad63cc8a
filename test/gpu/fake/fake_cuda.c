/*
 * A CUDA driver without a device; see fake.h. FAKE_CUDA_DEVICES=N: how many GPUs it claims (default 1; 0:
 * cuInit fails as it does where there is none).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "fake.h"

#define EXPORT __attribute__((visibility("default")))
enum { NO_DEVICE = 100, OUT_OF_MEMORY = 2, CAPTURE_INVALIDATED = 901 };

struct node {
  void (*run)(void *, ni_stream);
  void *arg;
};
struct CUgraph_st {
  struct node nodes[64];
  int n;
};
struct CUgraphExec_st {
  struct CUgraph_st graph;
};
struct CUstream_st {
  uint64_t free_ns;
  struct CUgraph_st *capture; /* NULL: not capturing */
};
struct CUevent_st {
  uint64_t at_ns;
};

static uint64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int devices(void) {
  const char *n = getenv("FAKE_CUDA_DEVICES");
  return n ? atoi(n) : 1;
}

EXPORT void fake_cuda_run(ni_stream s, uint64_t dur_ns, uint64_t *start_ns, uint64_t *end_ns) {
  uint64_t now = now_ns();
  *start_ns = (s->free_ns > now ? s->free_ns : now) + 2000; /* a launch takes time */
  *end_ns = *start_ns + dur_ns;
  s->free_ns = *end_ns + 500;
}
EXPORT void fake_cuda_release(ni_stream s) { s->free_ns = now_ns(); }
EXPORT bool fake_cuda_capturing(ni_stream s) { return s->capture != NULL; }
EXPORT void fake_cuda_capture(ni_stream s, void (*node)(void *, ni_stream), void *arg) {
  if (s->capture->n < 64)
    s->capture->nodes[s->capture->n++] = (struct node){node, arg};
}

#define API EXPORT int
API cuInit(unsigned flags);
API cuDriverGetVersion(int *v);
API cuDeviceGetCount(int *n);
API cuDeviceGet(int *d, int i);
API cuDeviceGetName(char *name, int cap, int d);
API cuDeviceGetAttribute(int *v, int what, int d);
API cuDevicePrimaryCtxRetain(void **ctx, int d);
API cuCtxSetCurrent(void *ctx);
API cuMemAlloc_v2(ni_devptr *p, size_t n);
API cuMemsetD8Async(ni_devptr p, unsigned char v, size_t n, ni_stream s);
API cuStreamCreate(ni_stream *s, unsigned flags);
API cuStreamSynchronize(ni_stream s);
API cuStreamQuery(ni_stream s);
API cuEventCreate(ni_event *e, unsigned flags);
API cuEventRecord(ni_event e, ni_stream s);
API cuEventElapsedTime(float *ms, ni_event a, ni_event b);
API cuStreamBeginCapture_v2(ni_stream s, int mode);
API cuStreamEndCapture(ni_stream s, ni_graph *g);
API cuGraphInstantiateWithFlags(ni_graph_exec *x, ni_graph g, unsigned long long flags);
API cuGraphLaunch(ni_graph_exec x, ni_stream s);
API cuGraphExecDestroy(ni_graph_exec x);
API cuGraphDestroy(ni_graph g);

int cuInit(unsigned flags) { return (void)flags, devices() ? 0 : NO_DEVICE; }
int cuDriverGetVersion(int *v) { return *v = 13000, 0; }
int cuDeviceGetCount(int *n) { return *n = devices(), 0; }
int cuDeviceGet(int *d, int i) { return *d = i, i < devices() ? 0 : NO_DEVICE; }
int cuDeviceGetName(char *name, int cap, int d) {
  (void)d;
  if (cap > 0)
    strncpy(name, "no GPU at all", (size_t)cap - 1);
  return 0;
}
int cuDeviceGetAttribute(int *v, int what, int d) {
  return (void)d, *v = what == NI_CUDA_CC_MAJOR ? 9 : 0, 0;
}
int cuDevicePrimaryCtxRetain(void **ctx, int d) { return (void)d, *ctx = &now_ns, 0; }
int cuCtxSetCurrent(void *ctx) { return (void)ctx, 0; }
int cuMemAlloc_v2(ni_devptr *p, size_t n) { /* addresses only: nobody reads them */
  void *m = mmap(NULL, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  *p = (ni_devptr)(uintptr_t)m;
  return m == MAP_FAILED ? OUT_OF_MEMORY : 0;
}
int cuMemsetD8Async(ni_devptr p, unsigned char v, size_t n, ni_stream s) {
  uint64_t a, b;
  (void)p, (void)v;
  fake_cuda_run(s, 1000 + n / 1000, &a, &b);
  return 0;
}
int cuStreamCreate(ni_stream *s, unsigned flags) {
  return (void)flags, *s = calloc(1, sizeof **s), *s ? 0 : OUT_OF_MEMORY;
}
int cuStreamQuery(ni_stream s) { return now_ns() >= s->free_ns ? 0 : NI_CUDA_NOT_READY; }
int cuStreamSynchronize(ni_stream s) {
  for (uint64_t now; (now = now_ns()) < s->free_ns;) {
    uint64_t ns = s->free_ns - now < 1000000000u ? s->free_ns - now : 1000000000u;
    struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    nanosleep(&t, NULL);
  }
  return 0;
}
int cuEventCreate(ni_event *e, unsigned flags) {
  return (void)flags, *e = calloc(1, sizeof **e), *e ? 0 : OUT_OF_MEMORY;
}
int cuEventRecord(ni_event e, ni_stream s) {
  uint64_t now = now_ns();
  if (s->capture)
    return 0;
  e->at_ns = s->free_ns > now ? s->free_ns : now;
  return 0;
}
int cuEventElapsedTime(float *ms, ni_event a, ni_event b) {
  *ms = (float)((double)(b->at_ns - a->at_ns) / 1e6);
  return 0;
}
int cuStreamBeginCapture_v2(ni_stream s, int mode) {
  (void)mode;
  s->capture = calloc(1, sizeof *s->capture);
  return s->capture ? 0 : OUT_OF_MEMORY;
}
int cuStreamEndCapture(ni_stream s, ni_graph *g) {
  if (!s->capture)
    return CAPTURE_INVALIDATED;
  *g = s->capture;
  s->capture = NULL;
  return 0;
}
int cuGraphInstantiateWithFlags(ni_graph_exec *x, ni_graph g, unsigned long long flags) {
  (void)flags;
  *x = calloc(1, sizeof **x);
  if (!*x)
    return OUT_OF_MEMORY;
  (*x)->graph = *g;
  return 0;
}
int cuGraphLaunch(ni_graph_exec x, ni_stream s) {
  for (int i = 0; i < x->graph.n; i++)
    x->graph.nodes[i].run(x->graph.nodes[i].arg, s);
  return 0;
}
int cuGraphExecDestroy(ni_graph_exec x) { return free(x), 0; }
int cuGraphDestroy(ni_graph g) { return free(g), 0; }
