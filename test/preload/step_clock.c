/* CLOCK_REALTIME is an hour ahead while the file that NI_STEP_FILE names is there: a step of the clock. */
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t clock, struct timespec *t) {
  static int (*real)(clockid_t, struct timespec *);
  const char *file = getenv("NI_STEP_FILE");
  if (!real)
    *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
  int e = real(clock, t);
  if (e == 0 && clock == CLOCK_REALTIME && file && access(file, F_OK) == 0)
    t->tv_sec += 3600;
  return e;
}
