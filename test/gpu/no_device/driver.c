/*
 * The CUDA driver and NVML, as far as NCCL and gpu_drive look for them by name; see no_device.h. A GPU of
 * Hopper's kind.
 */
#include <stdio.h>
#include <string.h>

#include "no_device.h"

int nd_attribute(int a) {
  switch (a) {
    case 1:
    case 2:
    case 3:
      return 1024; /* threads of a block */
    case 4:
      return 64;
    case 5:
    case 6:
      return INT32_MAX;
    case 7:
      return 65535;
    case 8:
      return 49152;
    case 10:
      return 32;
    case 13:
      return 1980000;
    case 16:
      return 132; /* multiprocessors */
    case 39:
      return 2048;
    case 41:
      return 1; /* unified addressing */
    case 75:
      return 9;
    case 81:
      return 233472;
    case 97:
      return 232448; /* shared memory a block may ask for */
    case 102:
    case 103:
      return 1; /* memory by handles, which are file descriptors */
    default:
      return 0;
  }
}
static char contexts[ND_GPUS];
ND_API(cuInit, (unsigned f)) { return (void)f, 0; }
ND_API(cuDriverGetVersion, (int *v)) { return *v = 13000, 0; }
ND_API(cuDeviceGetCount, (int *n)) { return *n = ND_GPUS, 0; }
ND_API(cuDeviceGet, (int *d, int i)) { return *d = i, 0; }
ND_API(cuDeviceGetName, (char *s, int n, int d)) { return (void)d, snprintf(s, (size_t)n, "no device"), 0; }
ND_API(cuDeviceGetAttribute, (int *v, int a, int d)) { return (void)d, *v = nd_attribute(a), 0; }
ND_API(cuDeviceGetUuid, (char *u, int d)) { return memset(u, 7 + d, 16), 0; }
ND_API(cuDevicePrimaryCtxRetain, (void **c, int d)) { return nd_device = d, *c = &contexts[d], 0; }
ND_API(cuCtxSetCurrent, (char *c)) { return nd_device = (int)(c - contexts), 0; }
ND_API(cuCtxGetCurrent, (void **c)) { return *c = &contexts[nd_device], 0; }
ND_API(cuCtxGetDevice, (int *d)) { return *d = nd_device, 0; }
ND_API(cuMemAlloc_v2, (void **p, size_t n)) { return nd_memory(p, n); }
ND_API(cuMemsetD8Async, (void *p, unsigned char v, size_t n, void *s)) {
  return (void)p, (void)v, (void)n, (void)s, 0;
}
ND_API(cuPointerSetAttribute, (void *v, int a, void *p)) { return (void)v, (void)a, (void)p, 0; }
ND_API(cuPointerGetAttribute, (int *v, int a, void *p)) {
  (void)p;
  switch (a) {
    case 2:
      return *v = 2, 0; /* on the device */
    case 9:
      return *v = nd_device, 0;
    case 10:
      return *v = 0, 0; /* not to be shared in the way before handles */
    default:
      return nd_say("no pointer's attribute", "of another kind"), ND_NOT_SUPPORTED;
  }
}
ND_API(cuStreamCreate, (void **s, unsigned f)) { return (void)f, nd_stream_create(s); }
ND_API(cuStreamSynchronize, (void *s)) { return nd_stream_sync(s); }
ND_API(cuStreamQuery, (void *s)) { return nd_stream_query(s); }
ND_API(cuEventCreate, (void **e, unsigned f)) { return (void)f, nd_event_create(e); }
ND_API(cuEventRecord, (void *e, void *s)) { return nd_event_record(e, s); }
ND_API(cuEventElapsedTime, (float *ms, void *a, void *b)) { return nd_event_elapsed(ms, a, b); }
ND_API(cuFuncSetAttribute, (void *f, int a, int v)) { return (void)f, (void)a, (void)v, 0; }
ND_API(cuFuncGetAttribute, (int *v, int a, void *f)) { return (void)a, (void)f, *v = 0, 0; }
ND_API(cuGetErrorString, (int e, const char **s)) { return (void)e, *s = "no device", 0; }
struct config { /* CUlaunchConfig */
  unsigned grid[3], block[3], shared;
  void *stream;
};
ND_API(cuLaunchKernelEx, (const struct config *c, void *f, void **params, void **extra)) {
  return (void)f, (void)params, nd_kernel_launch(c->stream, c->grid[0], extra);
}
ND_API(cuLaunchKernel,
       (void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
        unsigned shared, void *stream, void **params, void **extra)) {
  return (void)f, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)params,
         nd_kernel_launch(stream, gx, extra);
}
ND_API(cuStreamBeginCapture_v2, (void *s, int m)) { return (void)s, (void)m, nd_capture_begin(); }
ND_API(cuStreamEndCapture, (void *s, struct nd_graph **g)) { return (void)s, nd_capture_end(g); }
ND_API(cuGraphInstantiateWithFlags, (struct nd_graph * *x, struct nd_graph *g, unsigned long long f)) {
  return (void)f, *x = g, 0;
}
ND_API(cuGraphLaunch, (struct nd_graph * g, void *s)) { return nd_graph_launch(g, s); }
ND_API(cuGraphExecDestroy, (struct nd_graph * g)) { return (void)g, 0; }
ND_API(cuGraphDestroy, (struct nd_graph * g)) { return nd_graph_destroy(g); }

/* ---- NVML: two names of one GPU agree, everything else is not known ------------------------------------ */

static int by_bus(const char *bus, void **d) {
  unsigned b = 0;
  sscanf(bus, "%*x:%x", &b);
  return *d = (void *)(uintptr_t)(1 + (b & 15)), 0;
}
static int by_index(unsigned i, void **d) { return *d = (void *)(uintptr_t)(i + 1), 0; }
ND_API(nvmlInit_v2, (void)) { return 0; }
ND_API(nvmlInit, (void)) { return 0; }
ND_API(nvmlShutdown, (void)) { return 0; }
ND_API(nvmlDeviceGetCount_v2, (unsigned *n)) { return *n = ND_GPUS, 0; }
ND_API(nvmlDeviceGetCount, (unsigned *n)) { return *n = ND_GPUS, 0; }
ND_API(nvmlDeviceGetHandleByPciBusId, (const char *b, void **d)) { return by_bus(b, d); }
ND_API(nvmlDeviceGetHandleByPciBusId_v2, (const char *b, void **d)) { return by_bus(b, d); }
ND_API(nvmlDeviceGetHandleByIndex, (unsigned i, void **d)) { return by_index(i, d); }
ND_API(nvmlDeviceGetHandleByIndex_v2, (unsigned i, void **d)) { return by_index(i, d); }
ND_API(nvmlDeviceGetIndex, (void *d, unsigned *i)) { return *i = (unsigned)(uintptr_t)d - 1, 0; }
ND_API(nvmlDeviceGetCudaComputeCapability, (void *d, int *major, int *minor)) {
  return (void)d, *major = 9, *minor = 0, 0;
}
ND_API(nvmlDeviceGetP2PStatus, (void *a, void *b, int i, int *s)) {
  return (void)a, (void)b, (void)i, *s = 0 /* they reach each other */, 0;
}
__attribute__((visibility("default"))) const char *nvmlErrorString(int e);
const char *nvmlErrorString(int e) { return (void)e, "no device"; }
#define NO_NVML(name) \
  ND_API(name, (void)) { return 3 /* not supported */; }
/* clang-format off */
NO_NVML(nvmlDeviceGetNvLinkState)
NO_NVML(nvmlDeviceGetNvLinkRemotePciInfo)
NO_NVML(nvmlDeviceGetNvLinkRemotePciInfo_v2)
NO_NVML(nvmlDeviceGetNvLinkCapability)
NO_NVML(nvmlDeviceGetFieldValues)
NO_NVML(nvmlDeviceGetGpuFabricInfoV)
NO_NVML(nvmlDeviceGetPlatformInfo)
NO_NVML(nvmlSystemGetConfComputeState)
NO_NVML(nvmlSystemGetConfComputeSettings)
NO_NVML(nvmlDeviceGetCurrPcieLinkGeneration)
NO_NVML(nvmlDeviceGetCurrPcieLinkWidth)
NO_NVML(nvmlDeviceGetUUID)
NO_NVML(nvmlDeviceGetPciInfo_v3)
NO_NVML(nvmlDeviceGetMemoryInfo)
NO_NVML(nvmlDeviceGetAddressingMode)
/* clang-format on */
