/* See gpu_api.h. */
#include "gpu_api.h"

#include <dlfcn.h>
#include <stdio.h>

int ni_gpu_open(struct ni_gpu_api *api, const char *cuda, const char *nccl, char *why, size_t cap) {
  /* Containers have the driver's folder mounted, not always where the loader looks. */
  static const char *const drivers[] = {"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1",
                                        "/usr/local/nvidia/lib/libcuda.so.1",
                                        "/usr/lib/wsl/lib/libcuda.so.1"};
  void *c = cuda ? dlopen(cuda, RTLD_NOW | RTLD_GLOBAL) : NULL;
  for (size_t i = 0; !cuda && !c && i < sizeof drivers / sizeof *drivers; i++)
    c = dlopen(drivers[i], RTLD_NOW | RTLD_GLOBAL);
  if (!nccl)
    nccl = "libnccl.so.2";
  if (!c) {
    snprintf(why, cap, "CUDA driver: %s", dlerror());
    return NI_GPU_NO_DRIVER;
  }
  void *n = dlopen(nccl, RTLD_NOW | RTLD_GLOBAL);
  if (!n) {
    snprintf(why, cap, "NCCL: %s", dlerror());
    return -1;
  }
  const char *missing = NULL;
#define TAKE(ret, name, args) \
  if (!(*(void **)&api->name = dlsym(n, "nccl" #name))) \
    missing = "nccl" #name;
#define MAY(ret, name, args) *(void **)&api->name = dlsym(n, "nccl" #name);
  NI_NCCL_FUNCTIONS(TAKE, MAY)
  if (missing) {
    snprintf(why, cap, "%s has no %s; NCCL 2.27 or later is needed", nccl, missing);
    return -1;
  }
#undef TAKE
#define TAKE(name, args) \
  if (!(*(void **)&api->name = dlsym(c, #name))) \
    missing = #name;
  NI_CUDA_FUNCTIONS(TAKE)
  if (missing) {
    snprintf(why, cap, "%s has no %s; a driver of CUDA 11.4 or later is needed", cuda ? cuda : "libcuda.so.1",
             missing);
    return -1;
  }
  return 0;
}
