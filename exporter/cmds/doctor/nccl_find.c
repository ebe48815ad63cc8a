/*
 * Which NCCL would a job use? Looked at, in this order: --nccl, NCCL_HOME, the wheel beside PyTorch (in the Python
 * that is first in PATH), LD_LIBRARY_PATH, CUDA_HOME, what the loader finds by itself, the usual folders. A wheel comes before
 * LD_LIBRARY_PATH because PyTorch names it by its own path.
 */
#include <dlfcn.h>
#include <glob.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/text/safe_text.h"
#include "child.h"
#include "nccl_find.h"
#include "format/release.h"

enum { MAX_FOUND = 16 };

struct found {
  char *path[MAX_FOUND];
  size_t n;
};

static void take(struct found *f, const char *path) {
  char *real = realpath(path, NULL);
  if (!real) return;
  for (size_t i = 0; i < f->n; i++)
    if (strcmp(f->path[i], real) == 0) {
      free(real);
      return;
    }
  if (f->n < MAX_FOUND) f->path[f->n++] = real;
  else free(real);
}

static void take_pattern(struct found *f, const char *pattern) {
  glob_t g;
  if (glob(pattern, 0, NULL, &g) == 0)
    for (size_t i = 0; i < g.gl_pathc; i++) take(f, g.gl_pathv[i]);
  globfree(&g);
}

static void take_under(struct found *f, const char *folder, const char *below) {
  char path[4096];
  if (!folder || !*folder) return;
  snprintf(path, sizeof path, "%s%s/libnccl.so.2", folder, below);
  take(f, path);
}

/* The packages' folders of the Python in PATH; it is asked, since only it knows them. */
static void take_wheels(struct found *f) {
  char *const argv[] = {"python3", "-c", "import sys\nfor p in sys.path: print(p)", NULL};
  char *text = NULL, *save = NULL, path[4096];
  if (ni_child_exec(argv, NULL, 5, &text) == 0)
    for (char *p = strtok_r(text, "\n", &save); p; p = strtok_r(NULL, "\n", &save)) {
      snprintf(path, sizeof path, "%s/nvidia/nccl/lib/libnccl.so.2", p);
      take(f, path);
    }
  free(text);
}

/* In a child: the loader's own choice, then the release. */
static int ask(void *arg, int fd) {
  void *lib = dlopen(arg, RTLD_NOW | RTLD_LOCAL);
  struct link_map *map;
  int v = 0, (*get)(int *) = NULL;
  if (!lib) return dprintf(fd, "0 %s", dlerror()), 1;
  *(void **)&get = dlsym(lib, "ncclGetVersion");
  if (!get || get(&v) != 0) return dprintf(fd, "0 it has no ncclGetVersion"), 1;
  dprintf(fd, "%d %s", v, dlinfo(lib, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "");
  return 0;
}

static void take_loader(struct found *f) {
  char *text = NULL;
  if (ni_child_call(ask, (void *)(uintptr_t) "libnccl.so.2", 20, &text) == 0 && strchr(text, ' '))
    take(f, strchr(text, ' ') + 1);
  free(text);
}

static void find(struct ni_doctor *d, struct found *f) {
  const char *home = getenv("NCCL_HOME"), *cuda = getenv("CUDA_HOME"), *path = getenv("LD_LIBRARY_PATH");
  if (d->nccl) {
    take(f, d->nccl);
    return;
  }
  take_under(f, home, "/lib");
  take_under(f, home, "/lib64");
  take_under(f, home, "/build/lib");
  take_wheels(f);
  char *list = path ? strdup(path) : NULL, *save = NULL;
  for (char *p = list ? strtok_r(list, ":", &save) : NULL; p; p = strtok_r(NULL, ":", &save)) take_under(f, p, "");
  free(list);
  take_under(f, cuda, "/lib64");
  take_loader(f);
  take_pattern(f, "/usr/local/cuda*/lib64/libnccl.so.2");
  take_pattern(f, "/usr/local/nccl*/lib/libnccl.so.2");
  take_pattern(f, "/usr/lib/*-linux-gnu/libnccl.so.2");
  take_pattern(f, "/usr/lib64/libnccl.so.2");
}

/* The newest interface that both have (docs/nccl-callbacks.md, 1.1), 0: none. */
static int interface_of(int release, unsigned versions) {
  static const int since[] = {22300, 22400, 22600, 22700, 22800, 22900}; /* v1, v2, ... */
  int newest = 0;
  while (newest < (int)(sizeof since / sizeof *since) && release >= since[newest]) newest++;
  while (newest > 0 && !(versions & 1u << newest)) newest--;
  return newest;
}

static void tell(struct ni_doctor *d, const char *path, bool first) {
  char *text = NULL, why[128];
  int rc = ni_child_call(ask, (void *)(uintptr_t)path, 20, &text), v = text ? atoi(text) : 0;
  if (rc != 0 || v <= 0) {
    const char *said = text && strchr(text, ' ') ? strchr(text, ' ') + 1 : ni_child_why(rc, why, sizeof why);
    ni_doctor_add(d, "nccl", first ? NI_DOC_WARNING : NI_DOC_NOTE,
                  "Is this the library the job uses? Name another with --nccl.",
                  "%s cannot be asked for its release: %s", path, said);
    free(text);
    return;
  }
  free(text);
  int use = interface_of(v, d->versions);
  char release[40];
  ni_release_text(v, release);
  if (first) d->nccl_version = v;
  if (v < 22300)
    ni_doctor_add(d, "nccl", first ? NI_DOC_PROBLEM : NI_DOC_NOTE,
                  "NCCL 2.23 is the first with a profiler interface, 2.27 the first that tells "
                  "device times; use a newer one.",
                  "%s is release %s, which loads no profiler", path, release);
  else if (d->plugin_path && use == 0)
    ni_doctor_add(d, "nccl", first ? NI_DOC_PROBLEM : NI_DOC_NOTE,
                  "Use a plugin with an interface that this release knows.",
                  "%s is release %s and knows none of the plugin's interfaces", path, release);
  else if (v < 22700)
    ni_doctor_add(d, "nccl", first ? NI_DOC_WARNING : NI_DOC_NOTE, "2.27 and later give device times.",
                  "%s is release %s: it tells no device times, so records say kernel_cpu or collective_cpu", path,
                  release);
  else if (d->plugin_path)
    ni_doctor_add(d, "nccl", first ? NI_DOC_OK : NI_DOC_NOTE, NULL,
                  "%s is release %s; it will use the plugin's interface v%d", path, release, use);
  else ni_doctor_add(d, "nccl", first ? NI_DOC_OK : NI_DOC_NOTE, NULL, "%s is release %s", path, release);
  if (first && v >= 22900 && (!getenv("NCCL_ALLGATHERV_ENABLE") || strcmp(getenv("NCCL_ALLGATHERV_ENABLE"), "0") != 0))
    ni_doctor_add(d, "nccl", NI_DOC_NOTE, "NCCL_ALLGATHERV_ENABLE=0 makes them like the others, if you need them.",
                  use == 0 || use >= 5
                      ? "from 2.29 on NCCL shows profilers the call of an ncclBroadcast only: its records have no device times"
                      : "from 2.29 on NCCL shows this interface no ncclBroadcast: there will be no records of them");
}

void ni_doctor_nccl(struct ni_doctor *d) {
  struct found f = {.n = 0};
  find(d, &f);
  if (d->find_nccl) {
    for (size_t i = 0; i < f.n; i++) ni_say(stdout, "%s\n", f.path[i]);
  } else if (f.n == 0 && d->nccl) {
    ni_doctor_add(d, "nccl", NI_DOC_PROBLEM, "Name the libnccl.so.2 that the job uses.",
                  "--nccl %s: there is no such file", d->nccl);
  } else if (f.n == 0) {
    ni_doctor_add(d, "nccl", NI_DOC_NOTE,
                  "Run this in the job's own environment (container, module, virtual environment), or name the library "
                  "with --nccl.",
                  "no libnccl.so.2 found here");
  }
  for (size_t i = 0; i < f.n; i++) {
    if (!d->find_nccl) tell(d, f.path[i], i == 0);
    free(f.path[i]);
  }
}
