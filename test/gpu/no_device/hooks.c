/*
 * The CUDA runtime inside NCCL; see no_device.h. The constructor loads NI_NO_DEVICE_NCCL, reads its symbol
 * table and puts a jump at the beginning of each cuda* function: to the one here, or to one that says its
 * name and answers "not supported".
 */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "no_device.h"

_Thread_local int nd_device;
int nd_release;

void nd_say(const char *what, const char *name) {
  if (getenv("NI_NO_DEVICE_LOG"))
    fprintf(stderr, "no_device: %s %s\n", what, name);
}
uint64_t nd_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
int nd_memory(void **p, size_t n) {
  if (posix_memalign(p, n >= 1 << 20 ? 2 << 20 : 4096, n + 64))
    return ND_OUT_OF_MEMORY;
  if (n < 64 << 20)
    memset(*p, 0, n);
  return 0;
}

#define HOOKS(X) \
  X(cudaGetLastError, (void), 0) \
  X(cudaPeekAtLastError, (void), 0) \
  X(cudaThreadExchangeStreamCaptureMode, (int *m), ((void)m, 0)) \
  X(cudaGetDevice, (int *d), (*d = nd_device, 0)) \
  X(cudaSetDevice, (int d), (nd_device = d, 0)) \
  X(cudaGetDeviceCount, (int *n), (*n = ND_GPUS, 0)) \
  X(cudaDriverGetVersion, (int *v), (*v = 13000, 0)) \
  X(cudaRuntimeGetVersion, (int *v), (*v = 12090, 0)) \
  X(cudaGetDriverEntryPoint, (const char *s, void **p, uint64_t f, int *q), \
    ((void)f, nd_entry_point(s, p, q))) \
  X(cudaGetDriverEntryPointByVersion, (const char *s, void **p, unsigned v, uint64_t f, int *q), \
    ((void)v, (void)f, nd_entry_point(s, p, q))) \
  X(cudaMemcpyAsync, (void *d, const void *s, size_t n, int k, void *t), \
    ((void)k, (void)t, memcpy(d, s, n), 0)) \
  X(cudaMemcpy, (void *d, const void *s, size_t n, int k), ((void)k, memcpy(d, s, n), 0)) \
  X(cudaMemset, (void *d, int v, size_t n), (memset(d, v, n), 0)) \
  X(cudaMemsetAsync, (void *d, int v, size_t n, void *t), ((void)t, memset(d, v, n), 0)) \
  X(cudaMalloc, (void **p, size_t n), nd_memory(p, n)) \
  X(cudaMallocAsync, (void **p, size_t n, void *t), ((void)t, nd_memory(p, n))) \
  X(cudaMallocFromPoolAsync, (void **p, size_t n, void *q, void *t), ((void)q, (void)t, nd_memory(p, n))) \
  X(cudaHostAlloc, (void **p, size_t n, unsigned f), ((void)f, host_alloc(p, n))) \
  X(cudaHostGetDevicePointer, (void **d, void *h, unsigned f), ((void)f, *d = h, 0)) \
  X(cudaStreamCreateWithFlags, (void **s, unsigned f), ((void)f, nd_stream_create(s))) \
  X(cudaStreamCreateWithPriority, (void **s, unsigned f, int p), ((void)f, (void)p, nd_stream_create(s))) \
  X(cudaDeviceGetStreamPriorityRange, (int *a, int *b), (*a = *b = 0)) \
  X(cudaEventCreate, (void **e), nd_event_create(e)) \
  X(cudaEventCreateWithFlags, (void **e, unsigned f), ((void)f, nd_event_create(e))) \
  X(cudaDeviceGetAttribute, (int *v, int a, int d), ((void)d, *v = nd_attribute(a), 0)) \
  X(cudaDeviceGetPCIBusId, (char *s, int n, int d), (snprintf(s, (size_t)n, "0000:%02x:00.0", 0x40 + d), 0)) \
  X(cudaGetDeviceProperties_v2, (char *p, int d), ((void)d, memset(p, 0, 1000), 0)) \
  X(cudaGetDeviceProperties, (char *p, int d), ((void)d, memset(p, 0, 1000), 0)) \
  X(cudaDeviceCanAccessPeer, (int *c, int a, int b), ((void)a, (void)b, *c = 1, 0)) \
  X(cudaPointerGetAttributes, (struct pointer * a, void *p), (*a = (struct pointer){2, nd_device, p, p}, 0)) \
  X(cudaFuncGetAttributes, (struct function * a, void *f), \
    ((void)f, *a = (struct function){.v = {640, 96, 90, 90}}, 0)) \
  X(cudaGetFuncBySymbol, (void **f, void *s), (*f = s, 0)) \
  X(cudaLaunchKernel, (void *f), ((void)f, nd_kernel_launch(NULL, 0, NULL))) \
  X(cudaLaunchKernelExC, (void *f), ((void)f, nd_kernel_launch(NULL, 0, NULL))) \
  X(cudaLaunchHostFunc, (void *s, void (*f)(void *), void *a), nd_enqueue(s, f, a, false)) \
  X(cudaMemPoolCreate, (void **p, void *q), ((void)q, nd_memory(p, 64))) \
  X(cudaStreamIsCapturing, (void *s, int *st), ((void)s, *st = nd_capturing() != NULL, 0)) \
  X(cudaStreamGetCaptureInfo_v2, (void *s, int *st, uint64_t *id, void **g, void **d, size_t *n), \
    ((void)s, (void)d, capture_info(st, id, g, n))) \
  X(cudaStreamGetCaptureInfo_v3, (void *s, int *st, uint64_t *id, void **g, void **d, void **e, size_t *n), \
    ((void)s, (void)d, (void)e, capture_info(st, id, g, n))) \
  X(cudaStreamGetCaptureInfo, \
    (void *s, int *st, uint64_t *id, void **g, void **d, void **e, size_t *n), /* CUDA 13 */ \
    ((void)s, (void)d, (void)e, capture_info(st, id, g, n))) \
  X(cudaUserObjectCreate, (void **o, void *p, void (*f)(void *), unsigned n, unsigned g), \
    ((void)n, (void)g, user_object(o, p, f))) \
  X(cudaStreamDestroy, (void *s), nd_stream_destroy(s)) \
  X(cudaStreamSynchronize, (void *s), nd_stream_sync(s)) \
  X(cudaStreamQuery, (void *s), nd_stream_query(s)) \
  X(cudaDeviceSynchronize, (void), nd_device_sync()) \
  X(cudaStreamWaitEvent, (void *s, void *e, unsigned f), ((void)f, nd_event_wait(s, e))) \
  X(cudaEventRecord, (void *e, void *s), nd_event_record(e, s)) \
  X(cudaEventRecordWithFlags, (void *e, void *s, unsigned f), ((void)f, nd_event_record(e, s))) \
  X(cudaEventQuery, (void *e), nd_event_query(e)) \
  X(cudaEventSynchronize, (void *e), nd_event_sync(e)) \
  X(cudaEventElapsedTime, (float *ms, void *a, void *b), nd_event_elapsed(ms, a, b)) \
  X(cudaFreeHost, (void *p), (nd_wire_forget(p), 0)) \
  X(cudaStreamGetDevice, (void *s, int *d), ((void)s, *d = nd_device, 0))
/* clang-format off */
#define WELL(X) \
  /* nothing to do, and well */ \
  X(cudaFree) \
  X(cudaFreeAsync) \
  X(cudaHostRegister) \
  X(cudaHostUnregister) \
  X(cudaEventDestroy) \
  X(cudaFuncSetAttribute) \
  X(cudaDeviceEnablePeerAccess) \
  X(cudaMemPoolDestroy) \
  X(cudaMemPoolSetAttribute) \
  X(cudaDeviceSetLimit) \
  X(cudaStreamUpdateCaptureDependencies) \
  X(cudaStreamUpdateCaptureDependencies_v2) \
  X(cudaGraphAddEventRecordNode) \
  X(cudaGraphAddDependencies) \
  X(cudaGraphAddDependencies_v2) \
  X(cudaGraphRetainUserObject) \
  X(cudaUserObjectRelease)
/* clang-format on */

struct pointer {
  int type, device;
  void *on_device, *on_host;
};
struct function { /* cudaFuncAttributes */
  size_t shared, constant, local;
  int v[16]; /* threads of a block, registers, ptx, binary */
};
static int not_there(const char *name) { return nd_say("not there:", name), ND_NOT_SUPPORTED; }

/* A function that calls not_there(name): mov name, %rdi; mov not_there, %rax; jmp *%rax. */
static void *refusal(const char *name) {
  static unsigned char *page;
  static size_t used;
  if (!page)
    page = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  unsigned char *p = page + used;
  const char *kept = strdup(name);
  int (*to)(const char *) = not_there;
  used += 32;
  memcpy(p, "\x48\xbf", 2), memcpy(p + 2, &kept, 8), memcpy(p + 10, "\x48\xb8", 2), memcpy(p + 12, &to, 8);
  memcpy(p + 20, "\xff\xe0", 2);
  return p;
}
int nd_entry_point(const char *name, void **p, int *status) {
  char v2[128];
  Dl_info self;
  int (*one_of_ours)(const char *, void **, int *) = nd_entry_point;
  void *at;
  memcpy(&at, &one_of_ours, sizeof at);
  dladdr(at, &self);
  void *lib = dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  snprintf(v2, sizeof v2, "%s_v2", name);
  if (!(*p = dlsym(lib, name)) && !(*p = dlsym(lib, v2)))
    *p = refusal(name);
  if (status)
    *status = 0;
  return 0;
}
static int host_alloc(void **p, size_t n) {
  int rc = nd_memory(p, n);
  if (rc == 0)
    nd_kernel_sees(*p, n), nd_wire_sees(*p, n);
  return rc;
}
static int capture_info(int *status, uint64_t *id, void **g, size_t *n) {
  *status = nd_capturing() != NULL;
  if (id)
    *id = (uintptr_t)nd_capturing();
  if (g)
    *g = nd_capturing();
  if (n)
    *n = 0;
  return 0;
}
static int user_object(void **o, void *p, void (*f)(void *)) { return *o = p, nd_graph_at_end(f, p); }

#define DEFINE(name, args, result) \
  static int h_##name args { return result; }
#define DEFINE_WELL(name) \
  static int h_##name(void) { return 0; }
HOOKS(DEFINE)
WELL(DEFINE_WELL)
static const char *h_cudaGetErrorString(int e) {
  return e == ND_NOT_SUPPORTED ? "not supported without a device" : "no device";
}
#define NAMED(name, ...) {#name, (void (*)(void))h_##name},
static const struct {
  const char *name;
  void (*to)(void);
} hooks[] = {HOOKS(NAMED) WELL(NAMED) NAMED(cudaGetErrorString)};

static void jump(unsigned char *at, void *to) { /* mov to, %rax; jmp *%rax */
  void *page = (void *)((uintptr_t)at & ~UINT64_C(4095));
  mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC);
  memcpy(at, "\x48\xb8", 2), memcpy(at + 2, &to, 8), memcpy(at + 10, "\xff\xe0", 2);
  mprotect(page, 8192, PROT_READ | PROT_EXEC);
}

static void take_over(const char *file, size_t base) {
  const Elf64_Ehdr *h = (const void *)file;
  const Elf64_Shdr *s = (const void *)(file + h->e_shoff);
  for (int i = 0; i < h->e_shnum; i++) {
    if (s[i].sh_type != SHT_SYMTAB)
      continue;
    const Elf64_Sym *y = (const void *)(file + s[i].sh_offset), *end = y + s[i].sh_size / sizeof *y;
    const char *names = file + s[s[i].sh_link].sh_offset;
    for (; y < end; y++) {
      const char *name = names + y->st_name;
      void *to = NULL;
      if (ELF64_ST_TYPE(y->st_info) != STT_FUNC || strncmp(name, "cuda", 4) || name[4] < 'A' || name[4] > 'Z')
        continue;
      if (!y->st_value || y->st_size < 12 || strchr(name, '.'))
        continue;
      for (size_t k = 0; k < sizeof hooks / sizeof *hooks; k++)
        if (strcmp(hooks[k].name, name) == 0)
          memcpy(&to, &hooks[k].to, sizeof to);
      jump((unsigned char *)(base + y->st_value), to ? to : refusal(name));
    }
  }
}

__attribute__((constructor)) static void start(void) {
  const char *path = getenv("NI_NO_DEVICE_NCCL");
  struct link_map *map;
  struct stat st;
  if (!path)
    return; /* loaded as NVML or by a tool that asks for nothing */
  void *lib = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (!lib || fd < 0 || fstat(fd, &st) < 0 || dlinfo(lib, RTLD_DI_LINKMAP, &map) != 0) {
    fprintf(stderr, "no_device: %s: %s\n", path, lib ? "not to be read" : dlerror());
    _exit(1);
  }
  char *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (file == MAP_FAILED)
    _exit(1);
  int (*version)(int *) = NULL;
  *(void **)&version = dlsym(lib, "ncclGetVersion");
  if (!version || version(&nd_release) != 0)
    _exit(1);
  take_over(file, map->l_addr);
  munmap(file, (size_t)st.st_size);
}
