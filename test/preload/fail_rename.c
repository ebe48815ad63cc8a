/*
 * The Nth renameat() or renameat2() of the process fails with EIO, or the process is killed before it
 * (NI_RENAME_FAILS=N, NI_RENAME_KILLS=N); each that is to give the name TO fails (NI_RENAME_NEVER=TO).
 * Preload it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int number(const char *name) {
  const char *text = getenv(name);
  return text ? atoi(text) : 0;
}

static int refused(const char *to) {
  static atomic_int calls;
  const int n = ++calls;
  if (n == number("NI_RENAME_KILLS"))
    (void)raise(SIGKILL);
  const char *never = getenv("NI_RENAME_NEVER");
  if (n == number("NI_RENAME_FAILS") || (never && strcmp(to, never) == 0))
    return errno = EIO, 1;
  return 0;
}

__attribute__((visibility("default"))) int renameat(int from_dir, const char *from, int to_dir,
                                                    const char *to) {
  int (*real)(int, const char *, int, const char *);
  *(void **)&real = dlsym(RTLD_NEXT, "renameat");
  return refused(to) ? -1 : real(from_dir, from, to_dir, to);
}

__attribute__((visibility("default"))) int renameat2(int from_dir, const char *from, int to_dir,
                                                     const char *to, unsigned how) {
  int (*real)(int, const char *, int, const char *, unsigned);
  *(void **)&real = dlsym(RTLD_NEXT, "renameat2");
  return refused(to) ? -1 : real(from_dir, from, to_dir, to, how);
}
