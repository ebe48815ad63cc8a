/*
 * What every room of nccl-sim shares: time, random numbers, names, and how a run ends when it cannot go on.
 *
 * Times are nanoseconds of CLOCK_MONOTONIC unless a name says unix or gpu. Random numbers are a pure function
 * of a seed and a counter, so that all ranks, threads and processes of a run agree on a value without talking
 * to each other. Failure: nccl-sim is a test tool; what it cannot do ends the run with exit status 1 (64 for
 * a wrong command line or scenario, as nccl-inspector) and a message that names the file, the value and what
 * is accepted.
 */
#ifndef NI_SIM_H
#define NI_SIM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NI_SIM_FAILED = 1, NI_SIM_USAGE = 64 };

static inline uint64_t ni_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t ni_unix_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* splitmix64 as a hash: equal arguments give equal values everywhere. */
static inline uint64_t ni_mix(uint64_t a, uint64_t b) {
  uint64_t z = a * 0x9e3779b97f4a7c15u + b + 0x9e3779b97f4a7c15u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* xorshift for one thread's own use. */
static inline uint32_t ni_rand(uint64_t *state) {
  uint64_t x = *state ? *state : 0x2545f4914f6cdd1du;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  *state = x;
  return (uint32_t)(x >> 32);
}

static inline void ni_sleep_ns(uint64_t ns) {
  struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
  nanosleep(&t, NULL);
}

/* Message on stderr, then exit with `status`. Defined in main.c. */
_Noreturn void ni_die(int status, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void ni_sim_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

static inline void *ni_xalloc(size_t n) {
  void *p = calloc(1, n ? n : 1);
  if (!p)
    ni_die(NI_SIM_FAILED, "out of memory (%zu bytes)", n);
  return p;
}

/* The array with room for item n, which is zeroed. It doubles at powers of two. */
static inline void *ni_grow(void *items, size_t n, size_t size) {
  if ((n & (n - 1)) == 0)
    items = realloc(items, (n ? 2 * n : 1) * size);
  if (!items)
    ni_die(NI_SIM_FAILED, "out of memory");
  memset((char *)items + n * size, 0, size);
  return items;
}

/* A new, zeroed item behind the n that there are; n is one more then. */
#define NI_ADD(items, n) (((items) = ni_grow((items), (size_t)(n), sizeof *(items))), &(items)[(n)++])

#endif
