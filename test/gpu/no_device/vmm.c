/*
 * Memory by handles (cuMemCreate and the like); see no_device.h. A handle is a memory file, so what another
 * rank gets by its file descriptor is the same memory, and NCCL's windows, which symmetric kernels want, come
 * about as on a GPU.
 *
 * A handle counts its owners and keeps its number; a mapping keeps the memory, as with CUDA, also when the
 * handle is released.
 */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "no_device.h"

enum { MAX_HANDLES = 8192, MAX_MAPPINGS = 8192, INVALID = 1, NOT_MAPPED = 211 };
struct properties { /* CUmemAllocationProp */
  int type, handle_types, place, device;
  void *unused;
  char flags[8];
};
static struct allocation {
  int fd, owners; /* fd: -1 when nobody owns it any more */
  struct properties properties;
} allocations[MAX_HANDLES];
static struct mapping {
  char *at;
  size_t n;
  uint64_t handle;
} mappings[MAX_MAPPINGS];
static uint64_t n_allocations;
static int n_mappings;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all of it */

static int add(uint64_t *handle, int fd, const struct properties *p) {
  int rc = ND_OUT_OF_MEMORY;
  pthread_mutex_lock(&lock);
  if (fd >= 0 && n_allocations < MAX_HANDLES) {
    allocations[n_allocations] = (struct allocation){fd, 1, *p};
    *handle = ++n_allocations;
    rc = 0;
  }
  pthread_mutex_unlock(&lock);
  return rc;
}
/* With the lock held; NULL: not ours. */
static struct allocation *owned(uint64_t handle) {
  return handle && handle <= n_allocations && allocations[handle - 1].fd >= 0 ? &allocations[handle - 1]
                                                                              : NULL;
}
static struct mapping *at(const char *p) {
  for (int i = 0; i < n_mappings; i++)
    if (p >= mappings[i].at && p < mappings[i].at + mappings[i].n)
      return &mappings[i];
  return NULL;
}

ND_API(cuMemCreate, (uint64_t *handle, size_t n, const struct properties *p, uint64_t flags)) {
  int fd = memfd_create("no_device", MFD_CLOEXEC);
  (void)flags;
  if (fd >= 0 && ftruncate(fd, (off_t)n) < 0)
    return close(fd), ND_OUT_OF_MEMORY;
  return add(handle, fd, p);
}
ND_API(cuMemExportToShareableHandle, (int *fd, uint64_t handle, int type, uint64_t flags)) {
  (void)type, (void)flags;
  pthread_mutex_lock(&lock);
  struct allocation *a = owned(handle);
  *fd = a ? dup(a->fd) : -1;
  pthread_mutex_unlock(&lock);
  return *fd >= 0 ? 0 : INVALID;
}
ND_API(cuMemImportFromShareableHandle, (uint64_t *handle, void *fd, int type)) {
  const struct properties device = {1, 1, 1, nd_device, NULL, ""};
  (void)type;
  return add(handle, dup((int)(intptr_t)fd), &device);
}
ND_API(cuMemGetAllocationPropertiesFromHandle, (struct properties * p, uint64_t handle)) {
  pthread_mutex_lock(&lock);
  struct allocation *a = owned(handle);
  if (a)
    *p = a->properties;
  pthread_mutex_unlock(&lock);
  return a ? 0 : INVALID;
}
ND_API(cuMemRelease, (uint64_t handle)) {
  pthread_mutex_lock(&lock);
  struct allocation *a = owned(handle);
  if (a && --a->owners == 0) {
    close(a->fd);
    a->fd = -1;
  }
  pthread_mutex_unlock(&lock);
  return a ? 0 : INVALID;
}
ND_API(cuMemRetainAllocationHandle, (uint64_t *handle, const char *p)) {
  pthread_mutex_lock(&lock);
  const struct mapping *m = at(p);
  struct allocation *a = m ? owned(m->handle) : NULL;
  if (a) {
    a->owners++;
    *handle = m->handle;
  }
  pthread_mutex_unlock(&lock);
  return a ? 0 : INVALID;
}

ND_API(cuMemAddressReserve, (char **p, size_t n, size_t alignment, char *wanted, uint64_t flags)) {
  size_t step = alignment > 4096 ? alignment : 4096;
  (void)wanted, (void)flags;
  char *all = mmap(NULL, n + step, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (all == MAP_FAILED)
    return ND_OUT_OF_MEMORY;
  *p = (char *)(((uintptr_t)all + step - 1) / step * step);
  return 0;
}
ND_API(cuMemAddressFree, (char *p, size_t n)) { return munmap(p, n) == 0 ? 0 : INVALID; }
/* The mapping owns the allocation, too: released handles can be asked for again by the address. */
ND_API(cuMemMap, (char *p, size_t n, size_t offset, uint64_t handle, uint64_t flags)) {
  int rc = INVALID;
  (void)flags;
  pthread_mutex_lock(&lock);
  struct allocation *a = owned(handle);
  if (a && n_mappings < MAX_MAPPINGS &&
      mmap(p, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, a->fd, (off_t)offset) == p) {
    mappings[n_mappings++] = (struct mapping){p, n, handle};
    a->owners++;
    rc = 0;
  }
  pthread_mutex_unlock(&lock);
  return rc;
}
ND_API(cuMemUnmap, (char *p, size_t n)) {
  mmap(p, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  for (;;) { /* a range may hold several */
    uint64_t handle = 0;
    pthread_mutex_lock(&lock);
    for (int i = 0; i < n_mappings && !handle; i++)
      if (mappings[i].at >= p && mappings[i].at < p + n) {
        handle = mappings[i].handle;
        mappings[i] = mappings[--n_mappings];
      }
    pthread_mutex_unlock(&lock);
    if (!handle)
      return 0;
    cuMemRelease(handle);
  }
}
ND_API(cuMemSetAccess, (char *p, size_t n, const void *who, size_t count)) {
  return (void)p, (void)n, (void)who, (void)count, 0;
}
ND_API(cuMemGetAllocationGranularity, (size_t *g, void *p, int o)) {
  return (void)p, (void)o, *g = 2 << 20, 0;
}
/* base, n: may be NULL. Other memory than that of handles is called a page. */
ND_API(cuMemGetAddressRange_v2, (char **base, size_t *n, char *p)) {
  pthread_mutex_lock(&lock);
  const struct mapping *m = at(p);
  if (base)
    *base = m ? m->at : p;
  if (n)
    *n = m ? m->n : 4096;
  pthread_mutex_unlock(&lock);
  return 0;
}
