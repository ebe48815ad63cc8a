/*
 * Rules for the preloaded objects: which call of the plugin fails, when and how.
 *
 *   RULE   call=how[@N|@N+]    how: an errno name, "short" (write), "hang" (write), or "ok"; @N the Nth call only, @N+
 *                              from the Nth on; calls are counted from the moment the rule is set
 *                              "kill", "killhalf", "killafter" (write): SIGKILL before it, when half is written, after it
 * Only calls made by the plugin's own code are touched, told by the return address. ni_fault_set (exported;
 * the host's verb "fault", or the environment variable NI_FAULT at load) sets one; several are separated by
 * commas. "hang" waits until the rule is taken back. Any thread; rules are few and never removed, only
 * switched.
 */
#ifndef NI_TEST_FAULT_H
#define NI_TEST_FAULT_H

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* above 0: an errno */
enum { HOW_OK = 0, HOW_SHORT = -1, HOW_HANG = -2, HOW_KILL = -3, HOW_KILL_HALF = -4, HOW_KILL_AFTER = -5 };

struct rule {
  const char *call;
  _Atomic int how;
  _Atomic long from, to, calls;
};
static struct rule rules[];
static _Atomic long fired;
static _Atomic uintptr_t plugin_lo, plugin_hi;

static int find_plugin(struct dl_phdr_info *info, size_t size, void *arg) {
  (void)size, (void)arg;
  if (!info->dlpi_name || !strstr(info->dlpi_name, "profiler-inspector"))
    return 0;
  uintptr_t lo = UINTPTR_MAX, hi = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *p = &info->dlpi_phdr[i];
    if (p->p_type != PT_LOAD)
      continue;
    uintptr_t a = info->dlpi_addr + p->p_vaddr;
    if (a < lo)
      lo = a;
    if (a + p->p_memsz > hi)
      hi = a + p->p_memsz;
  }
  atomic_store(&plugin_lo, lo);
  atomic_store(&plugin_hi, hi);
  return 1;
}

static int from_plugin(const void *caller) {
  static _Thread_local int within;
  if (!atomic_load(&plugin_hi)) {
    if (within)
      return 0;
    within = 1;
    dl_iterate_phdr(find_plugin, NULL);
    within = 0;
  }
  return (uintptr_t)caller >= atomic_load(&plugin_lo) && (uintptr_t)caller < atomic_load(&plugin_hi);
}

/* What is to happen to this call: HOW_OK, HOW_SHORT, HOW_HANG or an errno. */
static int verdict(struct rule *r, const void *caller) {
  int how = atomic_load(&r->how);
  if (how == HOW_OK || !from_plugin(caller))
    return HOW_OK;
  long n = atomic_fetch_add(&r->calls, 1) + 1;
  if (n < atomic_load(&r->from) || n > atomic_load(&r->to))
    return HOW_OK;
  atomic_fetch_add(&fired, 1);
  return how;
}

static int how_of(const char *s) {
  static const struct {
    const char *name;
    int how;
  } names[] = {{"ok", HOW_OK},
               {"short", HOW_SHORT},
               {"hang", HOW_HANG},
               {"ENOSPC", ENOSPC},
               {"kill", HOW_KILL},
               {"killhalf", HOW_KILL_HALF},
               {"killafter", HOW_KILL_AFTER},
               {"EIO", EIO},
               {"EINTR", EINTR},
               {"EROFS", EROFS},
               {"EDQUOT", EDQUOT},
               {"EACCES", EACCES},
               {"EMFILE", EMFILE},
               {"ENOMEM", ENOMEM},
               {"EAGAIN", EAGAIN},
               {"EBADF", EBADF},
               {"ESTALE", ESTALE},
               {"EINVAL", EINVAL},
               {"ENOSYS", ENOSYS},
               {"EFBIG", EFBIG},
               {"ENAMETOOLONG", ENAMETOOLONG}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(s, names[i].name))
      return names[i].how;
  fprintf(stderr, "no such way to fail: %s\n", s);
  _Exit(64);
}

static void set_one(char *text) {
  char *eq = strchr(text, '='), *at = eq ? strchr(eq, '@') : NULL;
  if (!eq)
    _Exit(64);
  *eq = 0;
  if (at)
    *at = 0;
  int all = !strcmp(text, "all"), found = 0;
  for (struct rule *r = rules; r->call; r++) {
    if (!all && strcmp(r->call, text))
      continue;
    found = 1;
    long n = at ? atol(at + 1) : 1;
    atomic_store(&r->how, HOW_OK);
    atomic_store(&r->calls, 0);
    atomic_store(&r->from, n);
    atomic_store(&r->to, at && !strchr(at + 1, '+') ? n : INT64_MAX);
    atomic_store(&r->how, how_of(eq + 1));
  }
  if (!found) {
    fprintf(stderr, "no such call: %s\n", text);
    _Exit(64);
  }
}

__attribute__((visibility("default"))) void ni_fault_set(const char *text);
void ni_fault_set(const char *text) {
  char copy[256], *save = NULL;
  snprintf(copy, sizeof copy, "%s", text);
  for (char *t = strtok_r(copy, ",", &save); t; t = strtok_r(NULL, ",", &save))
    set_one(t);
}
__attribute__((visibility("default"))) long ni_fault_fired(void);
long ni_fault_fired(void) { return atomic_load(&fired); }

__attribute__((constructor)) static void set_from_environment(void) {
  const char *t = getenv("NI_FAULT");
  if (t)
    ni_fault_set(t);
}

#define REAL(name) \
  static __typeof__(name) *real; \
  if (!real) \
  *(void **)&real = dlsym(RTLD_NEXT, #name)
#define CALLER __builtin_return_address(0)
#define FAIL_WITH(v) return errno = (v), -1

#endif
