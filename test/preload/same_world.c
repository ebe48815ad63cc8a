/*
 * What differs from one run of a process to the next is the same in each: the clocks, the process id, the
 * host's name, random numbers. So the gate counts the same instructions each time. Preload it.
 *
 * Each reading of a clock is a microsecond after the one before, whichever clock it is; usleep() only moves
 * them on. The kernel seems to have no TSC: the plugin then reads its counter by clock_gettime()
 * (plugin/os/clock.c). Any thread.
 *
 * At exit the file that NI_WORLD_MAP names gets a line "ADDRESS PATH" for each library: valgrind does not
 * read the symbols of a library whose .bss has a segment of its own, as the plugin's may have, and shows
 * addresses instead.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
enum { STEP_NS = 1000, BOOT_S = 1000, UNIX_S = 1790000000 };
#define CLOCKSOURCE "/sys/devices/system/clocksource/clocksource0/current_clocksource"

static _Atomic uint64_t passed_ns; /* relaxed: each reading is another number, and that is all */

static struct timespec next(time_t from, uint64_t by_ns) {
  uint64_t ns = atomic_fetch_add_explicit(&passed_ns, by_ns, memory_order_relaxed);
  return (struct timespec){from + (time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

EXPORT int clock_gettime(clockid_t clock, struct timespec *t) {
  *t = next(clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE ? UNIX_S : BOOT_S, STEP_NS);
  return 0;
}
EXPORT int gettimeofday(struct timeval *t, void *zone) {
  struct timespec now = next(UNIX_S, STEP_NS);
  (void)zone;
  *t = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
  return 0;
}
EXPORT time_t time(time_t *t) {
  time_t now = next(UNIX_S, STEP_NS).tv_sec;
  if (t)
    *t = now;
  return now;
}
EXPORT int usleep(useconds_t us) {
  (void)next(0, (uint64_t)us * 1000u);
  return 0;
}

EXPORT pid_t getpid(void) { return 4242; }
EXPORT int gethostname(char *name, size_t n) {
  snprintf(name, n, "gate");
  return 0;
}
EXPORT ssize_t getrandom(void *p, size_t n, unsigned flags) {
  (void)flags;
  memset(p, 0x5a, n);
  return (ssize_t)n;
}

EXPORT int open(const char *path, int flags, ...) {
  static int (*real)(const char *path, int flags, ...);
  va_list ap;
  va_start(ap, flags);
  mode_t mode = flags & (O_CREAT | O_TMPFILE) ? (mode_t)va_arg(ap, int) : 0;
  va_end(ap);
  if (!real)
    *(void **)&real = dlsym(RTLD_NEXT, "open");
  if (strcmp(path, CLOCKSOURCE) != 0)
    return real(path, flags, mode);
  int fd = memfd_create("clocksource", MFD_CLOEXEC);
  if (fd >= 0 && (write(fd, "hpet\n", 5) != 5 || lseek(fd, 0, SEEK_SET) != 0))
    (void)close(fd), fd = -1;
  return fd;
}

static int write_place(struct dl_phdr_info *library, size_t size, void *file) {
  (void)size;
  fprintf(file, "%llx %s\n", (unsigned long long)library->dlpi_addr, library->dlpi_name);
  return 0;
}
__attribute__((destructor)) static void write_map(void) {
  const char *path = getenv("NI_WORLD_MAP");
  FILE *file = path ? fopen(path, "w") : NULL;
  if (!file)
    return;
  dl_iterate_phdr(write_place, file);
  fclose(file);
}
