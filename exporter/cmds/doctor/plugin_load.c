/*
 * What NCCL makes of NCCL_PROFILER_PLUGIN, by its own rules, and whether that loads: dlopen with NCCL's flags
 * in a child process, the interface tables, and whose they are.
 *
 * Which NCCL would a job use? Looked at, in this order: --nccl, NCCL_HOME, the wheel beside PyTorch (in the
 * Python that is first in PATH), LD_LIBRARY_PATH, CUDA_HOME, what the loader finds by itself, the usual
 * folders. A wheel comes before LD_LIBRARY_PATH because PyTorch names it by its own path.
 */
#include "plugin_load.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <glob.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/text/safe_text.h"
#include "format/release.h"
#include "child.h"

static const char file_name[] = "libnccl-profiler-inspector.so";
static const char our_name[] = "NCCL Inspector C", nvidias_name[] = "Inspector"; /* of the plugins' tables */

bool ni_plugin_beside_us(char *out, size_t cap) {
  static const char *const places[] = {"%s/%s", "%s/../lib/%s", "%s/../lib64/%s",
#ifdef __aarch64__
                                       "%s/../lib/aarch64-linux-gnu/%s"};
#else
                                       "%s/../lib/x86_64-linux-gnu/%s"};
#endif
  char self[4096];
  ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
  if (n <= 0)
    return false;
  self[n] = 0;
  *strrchr(self, '/') = 0;
  for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
    char path[4200];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(path, sizeof path, places[i], self, file_name);
#pragma GCC diagnostic pop
    char *real = realpath(path, NULL);
    if (real) {
      snprintf(out, cap, "%s", real);
      free(real);
      return true;
    }
  }
  return false;
}

/* Loads it, in a child. Writes "versions path\nname" on success, else the reason of the loader. */
static int load_in_child(void *arg, int fd) {
  void *lib = dlopen(arg, RTLD_NOW | RTLD_LOCAL);
  struct link_map *map = NULL;
  unsigned versions = 0;
  const char *name = "";
  if (!lib) {
    dprintf(fd, "%s", dlerror());
    return 1;
  }
  for (int v = 1; v <= 9; v++) {
    char symbol[32];
    snprintf(symbol, sizeof symbol, "ncclProfiler_v%d", v);
    const char *const *table = dlsym(lib, symbol); /* its first member is the name, in every version */
    if (!table)
      continue;
    versions |= 1u << v;
    if (*table)
      name = *table;
  }
  dlinfo(lib, RTLD_DI_LINKMAP, &map);
  dprintf(fd, "%u %s\n%s", versions, map && *map->l_name ? map->l_name : (char *)arg, name);
  return 0;
}

static bool try_load(struct ni_doctor *d, const char *name, char *why, size_t cap) {
  char *text = NULL, buf[128], *save = NULL;
  int rc = ni_child_call(load_in_child, (void *)(uintptr_t)name, 20, &text);
  if (rc == 0) {
    char *first = strtok_r(text, "\n", &save), *whose = strtok_r(NULL, "\n", &save);
    d->versions = first ? (unsigned)strtoul(first, NULL, 10) : 0;
    free(d->plugin_path);
    d->plugin_path = strdup(first && strchr(first, ' ') ? strchr(first, ' ') + 1 : name);
    free(d->plugin_name);
    d->plugin_name = strdup(whose ? whose : "");
    d->plugin_ours = whose && strcmp(whose, our_name) == 0;
  } else {
    snprintf(why, cap, "%s", rc == 1 && text && *text ? text : ni_child_why(rc, buf, sizeof buf));
  }
  free(text);
  return rc == 0;
}

/* Did a name without a folder lead to another file than the one beside this program? */
static bool is_loaded_elsewhere(const struct ni_doctor *d, char *beside, size_t cap) {
  char *real = d->plugin_path ? realpath(d->plugin_path, NULL) : NULL;
  bool other = ni_plugin_beside_us(beside, cap) && !(real && strcmp(real, beside) == 0);
  free(real);
  return other;
}

/*
 * Describes what was loaded. by_name: NCCL searches where the loader searches, so another file of that name
 * may have come first.
 */
static void describe_loaded(struct ni_doctor *d, bool by_name) {
  char list[64] = "", beside[4200], whose[160],
       advice[4600] = "NCCL_PROFILER_PLUGIN=<the path of libnccl-profiler-inspector.so>";
  bool other = is_loaded_elsewhere(d, beside, sizeof beside);
  if (other)
    snprintf(advice, sizeof advice, "export NCCL_PROFILER_PLUGIN=%s", beside);
  if (by_name)
    snprintf(advice + strlen(advice), sizeof advice - strlen(advice),
             "; or let its folder be the first in LD_LIBRARY_PATH that has such a file");
  if (strcmp(d->plugin_name, nvidias_name) == 0)
    snprintf(whose, sizeof whose, "NVIDIA's inspector");
  else
    snprintf(whose, sizeof whose, "\"%s\"", d->plugin_name);
  for (int v = 1; v <= 9; v++)
    if (d->versions & 1u << v)
      snprintf(list + strlen(list), sizeof list - strlen(list), " v%d", v);
  if (!d->versions)
    ni_doctor_add(d, "plugin", NI_DOC_PROBLEM, advice,
                  "%s loads, but is no profiler: it has no ncclProfiler_vN", d->plugin_path);
  else if (!d->plugin_ours)
    ni_doctor_add(d, "plugin", NI_DOC_PROBLEM, advice,
                  "%s is another profiler, %s (interfaces%s); NCCL loads one only", d->plugin_path, whose,
                  list);
  else
    ni_doctor_add(d, "plugin", NI_DOC_OK, NULL, "%s loads (interfaces%s; glibc here is %s)", d->plugin_path,
                  list, gnu_get_libc_version());
  if (d->plugin_ours && by_name && other)
    ni_doctor_add(d, "plugin", NI_DOC_NOTE, NULL, "that is not the one beside this program, %s", beside);
}

/* Advice on why an existing file does not load. */
static const char *advice_for(const char *why) {
  if (strstr(why, "GLIBC_"))
    return "This system's C library is older than the plugin's: build it here, or take a build for glibc "
           "2.28 "
           "(scripts/check_symbols.sh says which symbol).";
  if (strstr(why, "wrong ELF class") || strstr(why, "cannot open shared object file: Exec"))
    return "It is built for another kind of processor; build it here.";
  if (strstr(why, "Permission denied"))
    return "Every rank must be able to read it: chmod a+r, and a+x on its folders.";
  if (strstr(why, "No such file"))
    return "Is the path right, and mounted in the job's container and on every host?";
  if (strstr(why, "undefined symbol") || strstr(why, "invalid ELF") || strstr(why, "too short"))
    return "The file is damaged or only partly copied; install it again.";
  return "Set NCCL_PROFILER_PLUGIN to the path of libnccl-profiler-inspector.so.";
}

static void find_by_rules(struct ni_doctor *d, const char *value, const char *where) {
  char why[1024] = "", second[320];
  size_t n = strlen(value);
  bool path = strchr(value, '/') != NULL,
       so = n > 6 && strncmp(value, "lib", 3) == 0 && strcmp(value + n - 3, ".so") == 0;
  if (strcasecmp(value, "none") == 0) {
    ni_doctor_add(d, "plugin", NI_DOC_PROBLEM, "Set it to the path of libnccl-profiler-inspector.so.",
                  "%s=%s switches profiling off", where, value);
    return;
  }
  if (strncasecmp(value, "STATIC_PLUGIN", n) == 0) {
    ni_doctor_add(
        d, "plugin", NI_DOC_PROBLEM, "Set it to the path of libnccl-profiler-inspector.so.",
        "%s=%s: NCCL takes any beginning of STATIC_PLUGIN for that word and looks in the main program", where,
        value);
    return;
  }
  if (n > 254) {
    ni_doctor_add(d, "plugin", NI_DOC_PROBLEM, "Use a shorter path, or a link.",
                  "%s has %zu bytes; NCCL cuts it at 254 without a word", where, n);
    return;
  }
  if (path && value[0] != '/')
    ni_doctor_add(d, "plugin", NI_DOC_WARNING, "Use an absolute path.",
                  "%s=%s depends on each rank's working directory", where, value);
  snprintf(second, sizeof second, "libnccl-profiler-%.260s.so", value);
  const bool has_two_names = !path && !so;
  if (try_load(d, value, why, sizeof why) || (has_two_names && try_load(d, second, why, sizeof why))) {
    describe_loaded(d, !path);
    return;
  }
  ni_doctor_add(d, "plugin", NI_DOC_PROBLEM, advice_for(why), "%s does not load: %s", value, why);
}

static bool is_name_char(char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

/* The names of settings that this very plugin knows: they stand in its file as text. */
static void read_names(struct ni_doctor *d) {
  struct stat st;
  int fd = open(d->plugin_path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &st) < 0 || st.st_size < 16) {
    if (fd >= 0)
      close(fd);
    return;
  }
  const char *m = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
  close(fd);
  if (m == MAP_FAILED)
    return;
  for (const char *p = m, *end = m + st.st_size - 8; p < end; p++) {
    if (memcmp(p, "NCCL_", 5) != 0 || (p > m && p[-1] != 0))
      continue;
    size_t n = 5;
    while (p + n < m + st.st_size && is_name_char(p[n]))
      n++;
    bool setting = strncmp(p, "NCCL_INSPECTOR_", 15) == 0 || strncmp(p, "NCCL_PROFILE_", 13) == 0;
    setting &= p[n - 1] != '_'; /* with which names begin */
    const bool is_ended = p + n < m + st.st_size && p[n] == 0;
    if (setting && n > 14 && is_ended) {
      if (!ni_array_room(d->known, d->n_known, d->cap_known))
        break;
      d->known[d->n_known++] = strndup(p, n);
    }
    p += n - 1;
  }
  munmap((void *)(uintptr_t)m, (size_t)st.st_size);
}

void ni_doctor_plugin(struct ni_doctor *d) {
  const char *value = d->plugin ? d->plugin : getenv("NCCL_PROFILER_PLUGIN");
  char beside[4200], why[1024];
  if (value && *value) {
    find_by_rules(d, value, d->plugin ? "--plugin" : "NCCL_PROFILER_PLUGIN");
  } else if (try_load(d, "libnccl-profiler.so", why, sizeof why)) {
    ni_doctor_add(d, "plugin", NI_DOC_NOTE, NULL,
                  "NCCL_PROFILER_PLUGIN is not set; NCCL then looks for libnccl-profiler.so");
    describe_loaded(d, true);
  } else if (ni_plugin_beside_us(beside, sizeof beside)) {
    char advice[4400], same[4200];
    bool by_name = try_load(d, file_name, why, sizeof why) && d->plugin_ours &&
        !is_loaded_elsewhere(d, same, sizeof same);
    snprintf(advice, sizeof advice, "export NCCL_PROFILER_PLUGIN=%s", by_name ? "inspector" : beside);
    ni_doctor_add(d, "plugin", NI_DOC_PROBLEM, advice,
                  "NCCL_PROFILER_PLUGIN is not set: NCCL loads no profiler. The checks below use the one "
                  "beside this program");
    if (try_load(d, beside, why, sizeof why))
      describe_loaded(d, false);
    else
      ni_doctor_add(d, "plugin", NI_DOC_PROBLEM, advice_for(why), "%s does not load: %s", beside, why);
  } else {
    ni_doctor_add(d, "plugin", NI_DOC_PROBLEM,
                  "export NCCL_PROFILER_PLUGIN=<path of libnccl-profiler-inspector.so>",
                  "NCCL_PROFILER_PLUGIN is not set, and there is no plugin beside this program");
  }
  if (d->plugin_path && d->plugin_ours)
    read_names(d);
}

enum { MAX_FOUND = 16 };

struct found_libraries {
  char *path[MAX_FOUND];
  size_t n;
};

static void add_path(struct found_libraries *f, const char *path) {
  char *real = realpath(path, NULL);
  if (!real)
    return;
  for (size_t i = 0; i < f->n; i++)
    if (strcmp(f->path[i], real) == 0) {
      free(real);
      return;
    }
  if (f->n < MAX_FOUND)
    f->path[f->n++] = real;
  else
    free(real);
}

static void add_matches(struct found_libraries *f, const char *pattern) {
  glob_t g;
  if (glob(pattern, 0, NULL, &g) == 0)
    for (size_t i = 0; i < g.gl_pathc; i++)
      add_path(f, g.gl_pathv[i]);
  globfree(&g);
}

static void add_name(struct found_libraries *f, const char *folder, const char *below, const char *name) {
  char path[4096];
  if (!folder || !*folder)
    return;
  snprintf(path, sizeof path, "%s%s/%s", folder, below, name);
  add_path(f, path);
}

static void add_folder(struct found_libraries *f, const char *folder, const char *below) {
  add_name(f, folder, below, "libnccl.so.2");
}

/* Adds the folders of packages of the Python in PATH. Python is asked, since only it knows them. */
static void add_wheels(struct found_libraries *f) {
  char *const argv[] = {"python3", "-c", "import sys\nfor p in sys.path: print(p)", NULL};
  char *text = NULL, *save = NULL, path[4096];
  if (ni_child_exec(argv, NULL, 5, &text) == 0)
    for (char *p = strtok_r(text, "\n", &save); p; p = strtok_r(NULL, "\n", &save)) {
      snprintf(path, sizeof path, "%s/nvidia/nccl/lib/libnccl.so.2", p);
      add_path(f, path);
    }
  free(text);
}

/* In a child: asks the loader for its own choice, then for the release. */
static int ask_loader_in_child(void *arg, int fd) {
  void *lib = dlopen(arg, RTLD_NOW | RTLD_LOCAL);
  struct link_map *map;
  int v = 0, (*get)(int *) = NULL;
  if (!lib) {
    dprintf(fd, "0 %s", dlerror());
    return 1;
  }
  *(void **)&get = dlsym(lib, "ncclGetVersion");
  if (!get || get(&v) != 0) {
    dprintf(fd, "0 it has no ncclGetVersion");
    return 1;
  }
  dprintf(fd, "%d %s", v, dlinfo(lib, RTLD_DI_LINKMAP, &map) == 0 ? map->l_name : "");
  return 0;
}

static void add_loader_choice(struct found_libraries *f) {
  char *text = NULL;
  if (ni_child_call(ask_loader_in_child, (void *)(uintptr_t)"libnccl.so.2", 20, &text) == 0 &&
      strchr(text, ' '))
    add_path(f, strchr(text, ' ') + 1);
  free(text);
}

static void find_libraries(struct ni_doctor *d, struct found_libraries *f) {
  const char *home = getenv("NCCL_HOME"), *cuda = getenv("CUDA_HOME"), *path = getenv("LD_LIBRARY_PATH");
  if (d->nccl) {
    add_path(f, d->nccl);
    return;
  }
  add_folder(f, home, "/lib");
  add_folder(f, home, "/lib64");
  add_folder(f, home, "/build/lib");
  add_wheels(f);
  char *list = path ? strdup(path) : NULL, *save = NULL;
  for (char *p = list ? strtok_r(list, ":", &save) : NULL; p; p = strtok_r(NULL, ":", &save))
    add_folder(f, p, "");
  free(list);
  add_folder(f, cuda, "/lib64");
  add_loader_choice(f);
  add_matches(f, "/usr/local/cuda*/lib64/libnccl.so.2");
  add_matches(f, "/usr/local/nccl*/lib/libnccl.so.2");
  add_matches(f, "/usr/lib/*-linux-gnu/libnccl.so.2");
  add_matches(f, "/usr/lib64/libnccl.so.2");
}

/* The newest interface that both have (docs/nccl-callbacks.md, 1.1); 0: none. */
static int choose_interface(int release, unsigned versions) {
  static const int since[] = {22300, 22400, 22600, 22700, 22800, 22900, 23100}; /* v1, v2, ... */
  int newest = 0;
  while (newest < (int)(sizeof since / sizeof *since) && release >= since[newest])
    newest++;
  while (newest > 0 && !(versions & 1u << newest))
    newest--;
  return newest;
}

/* Reports what a release does to records, and what helps. use: the interface, 0: not known. */
static void report_release(struct ni_doctor *d, int v, int use) {
  const char *route = getenv("NCCL_ALLGATHERV_ENABLE"), *events = getenv("NCCL_INSPECTOR_EVENTS");
  bool routed = v >= 22900 && (!route || strcmp(route, "0") != 0);
  if (routed)
    ni_doctor_add(
        d, "nccl", NI_DOC_NOTE, "NCCL_ALLGATHERV_ENABLE=0 makes them like the others, if you need them.",
        use == 0 || use >= 5
            ? "from 2.29 on NCCL shows profilers the call of an ncclBroadcast only: its records have no "
              "device times"
            : "from 2.29 on NCCL shows this interface no ncclBroadcast: there will be no records of them");
  if (routed && v >= 23100)
    ni_doctor_add(d, "nccl", NI_DOC_NOTE, "If the job calls ncclBroadcast: export NCCL_ALLGATHERV_ENABLE=0",
                  "from 2.31 on each ncclBroadcast lets NCCL hand out device times of earlier work for all "
                  "that follows on its communicator; such times are not used");
  const bool is_light = events && strcmp(events, "light") == 0;
  if (v >= 23100 && v < 23200 && !is_light)
    ni_doctor_add(d, "nccl", NI_DOC_NOTE, "A later release, or NCCL_INSPECTOR_EVENTS=light, avoids it.",
                  "NCCL 2.31 itself pays for KernelCh events, whoever asks for them: 4 to 13 %% at 128 KB "
                  "to 4 MB on 8 A100 (NVIDIA/nccl issue 2355)");
}

static void report_library(struct ni_doctor *d, const char *path, bool first) {
  char *text = NULL, why[128];
  int rc = ni_child_call(ask_loader_in_child, (void *)(uintptr_t)path, 20, &text), v = text ? atoi(text) : 0;
  if (rc != 0 || v <= 0) {
    const char *said = text && strchr(text, ' ') ? strchr(text, ' ') + 1 : ni_child_why(rc, why, sizeof why);
    ni_doctor_add(d, "nccl", first ? NI_DOC_WARNING : NI_DOC_NOTE,
                  "Is this the library the job uses? Name another with --nccl.",
                  "%s cannot be asked for its release: %s", path, said);
    free(text);
    return;
  }
  free(text);
  int use = choose_interface(v, d->versions);
  char release[40];
  ni_release_text(v, release);
  if (first)
    d->nccl_version = v;
  char uses[64] = "";
  const char *says = uses, *advice = NULL;
  enum ni_status status = NI_DOC_PROBLEM;
  if (v < 22300) {
    says = ", which loads no profiler";
    advice =
        "NCCL 2.23 is the first with a profiler interface, 2.27 the first that tells device times; use a "
        "newer one.";
  } else if (d->plugin_path && use == 0) {
    says = " and knows none of the plugin's interfaces";
    advice = "Use a plugin with an interface that this release knows.";
  } else if (v < 22700) {
    says = ": it tells no device times, so records say kernel_cpu or collective_cpu";
    advice = "2.27 and later give device times.";
    status = NI_DOC_WARNING;
  } else {
    if (d->plugin_path)
      snprintf(uses, sizeof uses, "; it will use the plugin's interface v%d", use);
    status = NI_DOC_OK;
  }
  ni_doctor_add(d, "nccl", first ? status : NI_DOC_NOTE, advice, "%s is release %s%s", path, release, says);
  if (first)
    report_release(d, v, use);
}

/*
 * Reports on AMD's library, which raises the same events with differences. Nothing is said if it is not
 * there.
 */
static void report_rccl(struct ni_doctor *d) {
  const char *plugin = d->plugin ? d->plugin : getenv("NCCL_PROFILER_PLUGIN"),
             *path = getenv("LD_LIBRARY_PATH");
  struct found_libraries f = {.n = 0};
  if (d->nccl && strstr(d->nccl, "librccl"))
    add_path(&f, d->nccl);
  add_name(&f, getenv("ROCM_PATH"), "/lib", "librccl.so.1");
  char *list = path ? strdup(path) : NULL, *save = NULL;
  for (char *p = list ? strtok_r(list, ":", &save) : NULL; p; p = strtok_r(NULL, ":", &save))
    add_name(&f, p, "", "librccl.so.1");
  free(list);
  add_matches(&f, "/opt/rocm*/lib/librccl.so.1");
  if (f.n && (!plugin || plugin[0] != '/'))
    ni_doctor_add(d, "nccl", NI_DOC_WARNING, "Give NCCL_PROFILER_PLUGIN as an absolute path.",
                  "%s is RCCL: by a short name it looks for other files than NCCL, librccl-profiler-NAME.so "
                  "in some releases",
                  f.path[0]);
  if (f.n)
    ni_doctor_add(d, "nccl", NI_DOC_NOTE, "RCCL_DDA_ENABLE=0 makes them like the others, if you need them.",
                  "%s is RCCL: its release tells NCCL's number, and its DDA collectives raise no events",
                  f.path[0]);
  for (size_t i = 0; i < f.n; i++)
    free(f.path[i]);
}

void ni_doctor_nccl(struct ni_doctor *d) {
  struct found_libraries f = {.n = 0};
  find_libraries(d, &f);
  if (d->find_nccl) {
    for (size_t i = 0; i < f.n; i++)
      ni_say(stdout, "%s\n", f.path[i]);
  } else if (f.n == 0 && d->nccl) {
    ni_doctor_add(d, "nccl", NI_DOC_PROBLEM, "Name the libnccl.so.2 that the job uses.",
                  "--nccl %s: there is no such file", d->nccl);
  } else if (f.n == 0) {
    ni_doctor_add(
        d, "nccl", NI_DOC_NOTE,
        "Run this in the job's own environment (container, module, virtual environment), or name the library "
        "with --nccl.",
        "no libnccl.so.2 found here");
  }
  for (size_t i = 0; i < f.n; i++) {
    if (!d->find_nccl)
      report_library(d, f.path[i], i == 0);
    free(f.path[i]);
  }
  if (!d->find_nccl)
    report_rccl(d);
}
