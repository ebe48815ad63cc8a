#include "glibc_compat.h"

#include "nccl_version.h"

#include <dlfcn.h>
#include <stddef.h>

typedef int (*get_version_fn)(int *version); /* ncclResult_t ncclGetVersion(int *), 0 is success */

static int ask(void *symbol) {
  get_version_fn fn;
  *(void **)&fn = symbol;
  int v = 0;
  return fn && fn(&v) == 0 && v > 0 ? v : 0;
}

int ni_nccl_version(const void *mask) {
  int v = ask(dlsym(RTLD_DEFAULT, "ncclGetVersion"));
  if (v) return v;
  /* A framework may have opened libnccl RTLD_LOCAL. RTLD_NOLOAD: what is not loaded stays so. */
  Dl_info where;
  if (!mask || !dladdr(mask, &where) || !where.dli_fname) return 0;
  void *lib = dlopen(where.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (!lib) return 0;
  v = ask(dlsym(lib, "ncclGetVersion"));
  dlclose(lib);
  return v;
}
