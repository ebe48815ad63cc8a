/*
 * A profiler with one interface version only: NCCL must take that one. NI_FORCE_PLUGIN names the profiler
 * whose table of that version this one hands out; its callbacks are called directly. Without it, or when it
 * has no such version, the table stays empty: init then answers an error, once, and NCCL goes on without a
 * profiler.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_(v) ncclProfiler_v##v
#define NAME(v) NAME_(v)
#define TEXT_(v) #v
#define TEXT(v) TEXT_(v)

enum { MEMBERS = 6, SYSTEM_ERROR = 2 }; /* of every version's table: a name and five functions */

static int no_init(void) { return SYSTEM_ERROR; }
static int nothing(void) { return 0; }

/* NCCL reads a table of pointers; the function pointers have other arguments, which nobody here looks at. */
extern void *NAME(NI_FORCE_VERSION)[MEMBERS];
__attribute__((visibility("default"))) void *NAME(NI_FORCE_VERSION)[MEMBERS];

__attribute__((constructor)) static void take(void) {
  const char *path = getenv("NI_FORCE_PLUGIN"), *symbol = "ncclProfiler_v" TEXT(NI_FORCE_VERSION);
  int (*init)(void) = no_init, (*rest)(void) = nothing;
  void *lib = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
  const void *table = lib ? dlsym(lib, symbol) : NULL;
  void **mine = NAME(NI_FORCE_VERSION);
  if (table) {
    memcpy(mine, table, MEMBERS * sizeof *mine);
    return;
  }
  fprintf(stderr, "force_v%d: %s\n", NI_FORCE_VERSION,
          !path     ? "NI_FORCE_PLUGIN is not set"
              : lib ? "the plugin has no such version"
                    : dlerror());
  mine[0] = (void *)(size_t)"none";
  memcpy(&mine[1], &init, sizeof init);
  for (int i = 2; i < MEMBERS; i++)
    memcpy(&mine[i], &rest, sizeof rest);
}
