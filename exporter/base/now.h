/* The time of a clock, as all sources say times: in ns. Any thread. */
#ifndef NI_NOW_H
#define NI_NOW_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* Unix ns between 2001 and 2100: anything else is no time of a job. */
static inline bool ni_time_of_a_job(int64_t ns) {
  return ns > INT64_C(1000000000000000000) && ns < INT64_C(4102444800000000000);
}

/* The time of CLOCK_REALTIME, since 1970. */
static inline uint64_t ni_now_ns(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#endif
