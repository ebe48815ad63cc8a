#include "glibc_compat.h"

#include "nccl_library.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>

typedef int (*get_version_fn)(int *version); /* ncclResult_t ncclGetVersion(int *), 0 is success */

static int ask_version(void *symbol) {
  get_version_fn fn;
  *(void **)&fn = symbol;
  int v = 0;
  return fn && fn(&v) == 0 && v > 0 ? v : 0;
}

static bool is_named(const char *file, const char *library) {
  const char *slash = strrchr(file, '/');
  return strncmp(slash ? slash + 1 : file, library, strlen(library)) == 0;
}

/*
 * lib: of the file that the mask lies in; RTLD_DEFAULT: it could not be asked for by its name, as a program
 * called without path.
 */
static enum ni_library library_of(const char *file, void *lib) {
  if (is_named(file, "librccl"))
    return NI_LIBRARY_RCCL;
  if (is_named(file, "libnccl"))
    return NI_LIBRARY_NCCL;
  if (dlsym(lib, "ncclAllToAllv") || dlsym(lib, "ncclAllReduceWithBias"))
    return NI_LIBRARY_RCCL;
  return dlsym(lib, "ncclGetVersion") ? NI_LIBRARY_NCCL : NI_LIBRARY_UNKNOWN;
}

struct ni_nccl_library ni_nccl_library(const void *mask) {
  struct ni_nccl_library found = {NI_LIBRARY_UNKNOWN, ask_version(dlsym(RTLD_DEFAULT, "ncclGetVersion"))};
  Dl_info where;
  if (!mask || !dladdr(mask, &where) || !where.dli_fname)
    return found;
  /* A framework may have opened it RTLD_LOCAL. RTLD_NOLOAD: what is not loaded stays so. */
  void *lib = dlopen(where.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  found.library = library_of(where.dli_fname, lib ? lib : RTLD_DEFAULT);
  if (lib) {
    if (!found.version || found.library == NI_LIBRARY_RCCL) {
      int v = ask_version(dlsym(lib, "ncclGetVersion"));
      if (v)
        found.version = v;
    }
    dlclose(lib);
  }
  return found;
}
