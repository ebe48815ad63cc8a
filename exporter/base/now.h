/* The time of a clock, as all sources say times: in ns. Any thread. */
#ifndef NI_NOW_H
#define NI_NOW_H

#include <stdint.h>
#include <time.h>

/* Of CLOCK_REALTIME since 1970. */
static inline uint64_t ni_now_ns(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
