/*
 * Counts what the calling thread asks of the C library between ni_inside(1) and ni_inside(0), which
 * test/gate/play.c says around each callback: memory, locks, and the functions that make system calls.
 * Preload it.
 *
 * void ni_inside(int begins)     any thread, for itself
 * int ni_inside_tell(int wakes, int yields)
 *                                prints a line for each function that was called, and returns how many lines;
 *                                with `wakes` those of futex wake-ups are only counted, "wakes N", and with
 *                                `yields` sched_yield() is not told
 * dlsym() finds both. A function that is not listed below is not seen: the run with a filter of the kernel
 * (play --sealed) is for those.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define FAST __attribute__((tls_model("initial-exec")))

static _Thread_local int is_inside FAST;
enum { MOST = 64 };
/* Relaxed: read when the threads have ended. A row's name is written by whoever took the row. */
static struct {
  const char *name;
  _Atomic uint64_t calls;
} seen[MOST];
static _Atomic int rows;
static _Atomic uint64_t wakes_seen;

/* One row a wrapper, which keeps its number. */
static void count(_Atomic int *row, const char *name) {
  if (!is_inside)
    return;
  int i = atomic_load_explicit(row, memory_order_relaxed);
  if (!i) {
    i = atomic_fetch_add_explicit(&rows, 1, memory_order_relaxed) + 1;
    if (i >= MOST)
      abort();
    seen[i].name = name;
    atomic_store_explicit(row, i, memory_order_relaxed);
  }
  atomic_fetch_add_explicit(&seen[i].calls, 1, memory_order_relaxed);
}
#define COUNT(name) \
  do { \
    static _Atomic int row; \
    count(&row, name); \
  } while (0)

EXPORT void ni_inside(int begins);
EXPORT void ni_inside(int begins) { is_inside = begins; }

EXPORT int ni_inside_tell(int wakes, int yields);
EXPORT int ni_inside_tell(int wakes, int yields) {
  int lines = 0;
  uint64_t woke = atomic_load_explicit(&wakes_seen, memory_order_relaxed);
  for (int i = 1; i <= atomic_load_explicit(&rows, memory_order_relaxed); i++) {
    if (yields && strcmp(seen[i].name, "sched_yield") == 0)
      continue;
    printf("a callback called %s, %llu times in all\n", seen[i].name, (unsigned long long)seen[i].calls);
    lines++;
  }
  if (wakes)
    printf("wakes %llu\n", (unsigned long long)woke);
  else if (woke)
    printf("a callback woke somebody, %llu times in all\n", (unsigned long long)woke), lines++;
  return lines;
}

/* ---- memory: glibc's own names, because dlsym() itself allocates ---- */

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);
void __libc_free(void *p);

EXPORT void *malloc(size_t n) {
  COUNT("malloc");
  return __libc_malloc(n);
}
EXPORT void *calloc(size_t n, size_t size) {
  COUNT("calloc");
  return __libc_calloc(n, size);
}
EXPORT void *realloc(void *p, size_t n) {
  COUNT("realloc");
  return __libc_realloc(p, n);
}
EXPORT void free(void *p) {
  COUNT("free");
  __libc_free(p);
}

/* ---- all else ---- */

#define WRAP(type, name, params, args) \
  EXPORT type name params { \
    static type(*real) params; \
    COUNT(#name); \
    if (!real) \
      *(void **)&real = dlsym(RTLD_NEXT, #name); \
    return real args; \
  }
WRAP(int, posix_memalign, (void **p, size_t a, size_t n), (p, a, n))
WRAP(void *, aligned_alloc, (size_t a, size_t n), (a, n))
WRAP(void *, mmap, (void *p, size_t n, int prot, int flags, int fd, off_t off), (p, n, prot, flags, fd, off))
WRAP(int, munmap, (void *p, size_t n), (p, n))
WRAP(int, mprotect, (void *p, size_t n, int prot), (p, n, prot))
WRAP(int, madvise, (void *p, size_t n, int how), (p, n, how))
WRAP(int, pthread_mutex_lock, (pthread_mutex_t * m), (m))
WRAP(int, pthread_mutex_trylock, (pthread_mutex_t * m), (m))
WRAP(int, pthread_mutex_timedlock, (pthread_mutex_t * m, const struct timespec *t), (m, t))
WRAP(int, pthread_rwlock_rdlock, (pthread_rwlock_t * l), (l))
WRAP(int, pthread_rwlock_wrlock, (pthread_rwlock_t * l), (l))
WRAP(int, pthread_spin_lock, (pthread_spinlock_t * l), (l))
WRAP(int, pthread_cond_wait, (pthread_cond_t * c, pthread_mutex_t *m), (c, m))
WRAP(int, pthread_cond_signal, (pthread_cond_t * c), (c))
WRAP(int, pthread_cond_broadcast, (pthread_cond_t * c), (c))
WRAP(int, pthread_once, (pthread_once_t * o, void (*fn)(void)), (o, fn))
WRAP(int, pthread_setcancelstate, (int state, int *old), (state, old))
WRAP(int, sem_wait, (sem_t * s), (s))
WRAP(int, sem_post, (sem_t * s), (s))
WRAP(ssize_t, write, (int fd, const void *p, size_t n), (fd, p, n))
WRAP(ssize_t, read, (int fd, void *p, size_t n), (fd, p, n))
WRAP(int, close, (int fd), (fd))
WRAP(pid_t, getpid, (void), ())
WRAP(pid_t, getppid, (void), ())
WRAP(int, sched_yield, (void), ())
WRAP(int, nanosleep, (const struct timespec *t, struct timespec *left), (t, left))
WRAP(int, usleep, (useconds_t us), (us))

/* The plugin's futex calls come this way. */
EXPORT long syscall(long number, ...) {
  static long (*real)(long number, ...);
  va_list ap;
  long a[6];
  va_start(ap, number);
  for (int i = 0; i < 6; i++)
    a[i] = va_arg(ap, long);
  va_end(ap);
  if (number == SYS_futex && a[1] == FUTEX_WAKE_PRIVATE) {
    if (is_inside)
      atomic_fetch_add_explicit(&wakes_seen, 1, memory_order_relaxed);
  } else {
    COUNT("syscall");
  }
  if (!real)
    *(void **)&real = dlsym(RTLD_NEXT, "syscall");
  return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
