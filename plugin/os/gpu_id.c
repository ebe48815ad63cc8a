#include "glibc_compat.h"

#include "gpu_id.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/*
 * The driver's ABI, from its public documentation: CUresult and CUdevice are ints, CUuuid is 16 bytes; 0 is
 * success.
 */
struct cuda_uuid {
  unsigned char byte[16];
};
typedef int (*ctx_get_device_fn)(int *device);
typedef int (*device_get_uuid_fn)(struct cuda_uuid *uuid, int device);
typedef int (*device_get_pci_fn)(char *text, int len, int device);

/* POSIX's way from dlsym's object pointer to a function pointer, without a cast that ISO C does not have. */
#define LOOK_UP(fn, lib, name) (*(void **)&(fn) = dlsym((lib), (name)))

static void put_uuid(char *out, size_t cap, const unsigned char *b) {
  snprintf(out, cap, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1],
           b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

int ni_gpu_id_read(struct ni_gpu_id *id) {
  memset(id, 0, sizeof *id);
  id->index = -1;
  void *lib = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
  if (!lib)
    return -ENOENT;
  int ret = -ENODATA, device = -1;
  ctx_get_device_fn ctx_get_device;
  device_get_uuid_fn get_uuid;
  device_get_pci_fn get_pci;
  LOOK_UP(ctx_get_device, lib, "cuCtxGetDevice");
  if (!ctx_get_device || ctx_get_device(&device) != 0 || device < 0)
    goto out_close;
  id->index = device;
  ret = 0;
  /* _v2 gives the MIG instance's own UUID; older drivers have only the first. */
  LOOK_UP(get_uuid, lib, "cuDeviceGetUuid_v2");
  if (!get_uuid)
    LOOK_UP(get_uuid, lib, "cuDeviceGetUuid");
  struct cuda_uuid uuid;
  if (get_uuid && get_uuid(&uuid, device) == 0)
    put_uuid(id->uuid, sizeof id->uuid, uuid.byte);
  LOOK_UP(get_pci, lib, "cuDeviceGetPCIBusId");
  if (get_pci && get_pci(id->pci, (int)sizeof id->pci, device) == 0) {
    id->pci[sizeof id->pci - 1] = 0;
    for (char *p = id->pci; *p; p++)
      *p = (char)tolower((unsigned char)*p);
  } else {
    id->pci[0] = 0;
  }
out_close:
  dlclose(lib); /* gives back only the reference that RTLD_NOLOAD took */
  return ret;
}
