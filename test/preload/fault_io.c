/* System calls on files, threads and the machine that fail for the plugin by rule (fault.h). Preload it. */
#include "fault.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum {
  WRITE,
  OPEN,
  FTRUNCATE,
  STATX,
  CLOSE,
  MKDIR,
  THREAD,
  MADVISE,
  MMAP,
  GETRANDOM,
  GETHOSTNAME,
  GETCWD,
  UNLINK
};
static struct rule rules[] = {[WRITE] = {.call = "write"},
                              [OPEN] = {.call = "open"},
                              [FTRUNCATE] = {.call = "ftruncate"},
                              [STATX] = {.call = "statx"},
                              [CLOSE] = {.call = "close"},
                              [MKDIR] = {.call = "mkdir"},
                              [THREAD] = {.call = "pthread_create"},
                              [MADVISE] = {.call = "madvise"},
                              [MMAP] = {.call = "mmap"},
                              [GETRANDOM] = {.call = "getrandom"},
                              [GETHOSTNAME] = {.call = "gethostname"},
                              [GETCWD] = {.call = "getcwd"},
                              [UNLINK] = {.call = "unlink"},
                              {.call = NULL}};

#define EXPORT __attribute__((visibility("default")))

EXPORT ssize_t write(int fd, const void *data, size_t n) {
  REAL(write);
  int v = verdict(&rules[WRITE], CALLER);
  while (v == HOW_HANG) { /* until the rule is taken back; then the call is made */
    if (atomic_load(&rules[WRITE].how) != HOW_HANG)
      return real(fd, data, n);
    struct timespec t = {0, 1000000};
    nanosleep(&t, NULL);
  }
  if (v <= HOW_KILL) {
    if (v != HOW_KILL && real(fd, data, v == HOW_KILL_HALF ? n / 2 : n) < 0)
      _exit(66);
    raise(SIGKILL);
  }
  if (v == HOW_SHORT)
    return real(fd, data, n > 1 ? n / 2 : n);
  if (v)
    FAIL_WITH(v);
  return real(fd, data, n);
}

EXPORT int open(const char *path, int flags, ...) {
  REAL(open);
  va_list ap;
  va_start(ap, flags);
  mode_t mode = flags & O_CREAT ? (mode_t)va_arg(ap, int) : 0;
  va_end(ap);
  int v = flags & O_CREAT ? verdict(&rules[OPEN], CALLER) : 0; /* log files, not /proc */
  if (v)
    FAIL_WITH(v);
  return real(path, flags, mode);
}

#define SIMPLE(id, type, name, params, args) \
  EXPORT type name params { \
    REAL(name); \
    int v = verdict(&rules[id], CALLER); \
    if (v) \
      FAIL_WITH(v); \
    return real args; \
  }
SIMPLE(FTRUNCATE, int, ftruncate, (int fd, off_t n), (fd, n))
SIMPLE(STATX, int, statx, (int fd, const char *p, int f, unsigned m, struct statx *st), (fd, p, f, m, st))
SIMPLE(MKDIR, int, mkdir, (const char *p, mode_t m), (p, m))
SIMPLE(UNLINK, int, unlink, (const char *p), (p))
SIMPLE(MADVISE, int, madvise, (void *p, size_t n, int how), (p, n, how))
SIMPLE(GETRANDOM, ssize_t, getrandom, (void *p, size_t n, unsigned f), (p, n, f))

/* close() reports an error and closes all the same, as NFS does. */
EXPORT int close(int fd) {
  REAL(close);
  int v = verdict(&rules[CLOSE], CALLER), rc = real(fd);
  if (v)
    FAIL_WITH(v);
  return rc;
}

EXPORT void *mmap(void *p, size_t n, int prot, int flags, int fd, off_t off) {
  REAL(mmap);
  int v = verdict(&rules[MMAP], CALLER);
  if (v)
    return errno = v, MAP_FAILED;
  return real(p, n, prot, flags, fd, off);
}

EXPORT int pthread_create(pthread_t *t, const pthread_attr_t *a, void *(*fn)(void *), void *arg) {
  REAL(pthread_create);
  int v = verdict(&rules[THREAD], CALLER);
  return v ? v : real(t, a, fn, arg);
}

EXPORT char *getcwd(char *p, size_t n) {
  REAL(getcwd);
  int v = verdict(&rules[GETCWD], CALLER);
  if (v)
    return errno = v, NULL;
  return real(p, n);
}

/* "short" gives a hostile name instead of an error. */
EXPORT int gethostname(char *p, size_t n) {
  REAL(gethostname);
  int v = verdict(&rules[GETHOSTNAME], CALLER);
  if (v == HOW_SHORT)
    return snprintf(p, n, "../../e\"v\n\\il\x01\xff\xc3(host"), 0;
  if (v)
    FAIL_WITH(v);
  return real(p, n);
}
