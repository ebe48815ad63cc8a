/* Finding and closing the profiler library as NCCL does (callbacks 1.2, 1.3). States and threads: core.h. */
#include <dlfcn.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "core.h"

static _Atomic int own_mask;
struct ni_core ni_core = {.release = 23007, .mask = &own_mask, .lock = PTHREAD_MUTEX_INITIALIZER};

/* The mask of a library by that name: the plugin looks which file it lies in. */
static _Atomic int *mask_in(const char *path) {
  char beside[4200], program[4096];
  ssize_t n = path ? 0 : readlink("/proc/self/exe", program, sizeof program - 1);
  program[n > 0 ? n : 0] = 0;
  char *slash = strrchr(program, '/');
  if (!path)
    snprintf(beside, sizeof beside, "%.*s/test/rccl/librccl.so.1", slash ? (int)(slash - program) : 0,
             program);
  void *lib = dlopen(path ? path : beside, RTLD_NOW | RTLD_LOCAL),
       *mask = lib ? dlsym(lib, "ncclProfilerEventMask") : NULL;
  const char *why = mask ? NULL : dlerror();
  if (!mask)
    ni_die(NI_SIM_FAILED, "%s: no activation mask of a library: %s; `make tests` builds it",
           path ? path : beside, why ? why : "?");
  return mask;
}

void ni_core_become(int release) {
  const char *file = getenv("NI_SIM_MASK_IN");
  ni_core.rccl = release >= NI_RCCL;
  ni_core.release = release % NI_RCCL;
  if (ni_core.rccl || file)
    ni_core.mask = mask_in(file);
}

int ni_core_release(const char *text) {
  if (strncmp(text, "rccl-", 5) == 0) {
    int like = ni_core_release(text + 5);
    bool known = like / 100 == 228 || like / 100 == 231;
    return known ? NI_RCCL + (like / 100 == 228 ? 22803 : 23102) : 0;
  }
  int a = 0, b = 0, c = 0;
  int n = sscanf(text, "%d.%d.%d", &a, &b, &c);
  if (n == 1 && a >= 22300)
    return a;
  if (n < 2 || a != 2 || b < 23 || b > 32)
    return 0;
  static const int last_patch[] = {4, 3, 1, 6, 7, 9, 7, 7, 2, 3}; /* newest read of 2.23 .. 2.32 */
  return a * 10000 + b * 100 + (n == 3 ? c : last_patch[b - 23]);
}

int ni_core_newest(int release) {
  if ((release >= NI_RCCL || ni_core.rccl) && release % NI_RCCL < 22900)
    return 6;
  release %= NI_RCCL;
  if (release < 22400)
    return 1;
  if (release < 22600)
    return 2;
  if (release < 22700)
    return 3;
  if (release < 22800)
    return 4;
  if (release < 22900)
    return 5;
  return ni_core_new(release) ? 7 : 6;
}

bool ni_core_native(int release, int interface) { return ni_core_newest(release) == interface; }

static void *try_open(const char *name) { return dlopen(name, RTLD_NOW | RTLD_LOCAL); }

static void *open_by_rules(const char *value, char *shown, size_t cap) {
  char name[255];
  snprintf(name, sizeof name, "%s", value); /* NCCL cuts at 255 bytes without a word */
  size_t n = strlen(name);
  snprintf(shown, cap, "%s", name);
  if (n == 0) {
    snprintf(shown, cap, "lib%s-profiler.so", ni_core.rccl ? "rccl" : "nccl");
    return try_open(shown);
  }
  if (strcasecmp(name, "none") == 0 && ni_core.release >= 22800)
    return NULL;
  if (strncasecmp(name, "STATIC_PLUGIN", n) == 0)
    return dlopen(NULL, RTLD_NOW | RTLD_LOCAL);
  bool so = n > 6 && strncmp(name, "lib", 3) == 0 && strcmp(name + n - 3, ".so") == 0;
  void *dl = try_open(name);
  if (dl || strchr(name, '/') || so)
    return dl;
  snprintf(shown, cap, "lib%s-profiler-%s.so", ni_core.rccl ? "rccl" : "nccl", name);
  return try_open(shown);
}

bool ni_core_load(void) {
  pthread_mutex_lock(&ni_core.lock);
  if (!ni_core.vtable && !ni_core.failed) {
    const char *env = ni_core.library ? ni_core.library : getenv("NCCL_PROFILER_PLUGIN");
    char shown[300];
    ni_core.dl = open_by_rules(env ? env : "", shown, sizeof shown);
    if (!ni_core.dl) {
      const char *why = dlerror();
      ni_sim_say("no profiler: %s: %s", shown, why ? why : "switched off");
    }
    int newest = ni_core_newest(ni_core.release);
    int from = ni_core.want_interface ? ni_core.want_interface : newest;
    int to = ni_core.want_interface ? ni_core.want_interface : 1;
    for (int v = from; ni_core.dl && v >= to && !ni_core.vtable; v--) {
      char symbol[32];
      snprintf(symbol, sizeof symbol, "ncclProfiler_v%d", v);
      ni_core.vtable = dlsym(ni_core.dl, symbol);
      ni_core.interface = v;
    }
    if (!ni_core.vtable) {
      if (ni_core.dl) {
        ni_sim_say("no profiler: %s has no ncclProfiler_v%d%s", shown, from, from > to ? " or older" : "");
        dlclose(ni_core.dl);
      }
      ni_core.dl = NULL;
      ni_core.interface = 0;
      ni_core.failed = true;
      /* NCCL goes on without a profiler; whoever names one here wants to see it. */
      if (ni_core.library)
        ni_die(NI_SIM_FAILED, "--plugin %s: not loaded", ni_core.library);
    }
    ni_core.filled = false;
    ni_core.gone = false;
  }
  bool there = ni_core.vtable != NULL;
  if (there)
    ni_core.refs++;
  pthread_mutex_unlock(&ni_core.lock);
  return there;
}

void ni_core_unload(void) {
  pthread_mutex_lock(&ni_core.lock);
  if (ni_core.refs > 0 && --ni_core.refs == 0) {
    dlclose(ni_core.dl);
    ni_core.dl = NULL;
    ni_core.vtable = NULL;
    ni_core.interface = 0;
  }
  pthread_mutex_unlock(&ni_core.lock);
}
