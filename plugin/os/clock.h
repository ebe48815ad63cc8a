/*
 * Time: a CPU counter for the callbacks, and its relation to CLOCK_MONOTONIC and CLOCK_REALTIME for the log.
 *
 * Callbacks read only the counter (ni_ticks); all conversion happens later, in the dump thread. The counter
 * is rdtsc where the CPU says it is invariant and the kernel has not lost trust in it, cntvct_el0 on aarch64,
 * and clock_gettime(CLOCK_MONOTONIC) otherwise; which one is chosen once, at init.
 *
 * Model. A sample is one moment in three clocks. The fit is a straight line through the newest sample, with
 * the slope of the longest baseline within the last minute (CLOCK_MONOTONIC is slewed by NTP, so a longer one
 * would average over different slopes). CLOCK_REALTIME is monotonic + the offset of the newest sample, so a
 * step of the wall clock moves Unix times from the next sample on and never bends a duration.
 *
 * Threads: ni_ticks by anybody. init, sample and the conversions by one thread at a time; the dump thread
 * owns the struct (init before it starts, the exit path after it has stopped or handed over). Not promised:
 * that conversions made before and after a sample are monotone to each other within the sampling uncertainty
 * (well below a microsecond; the wall clock may step). With one fit they are.
 */
#ifndef NI_CLOCK_H
#define NI_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum ni_clock_source { NI_CLOCK_GETTIME = 0, NI_CLOCK_TSC, NI_CLOCK_CNTVCT };

struct ni_clock_point {
  uint64_t ticks, monotonic_ns, realtime_ns;
};

struct ni_clock {
  enum ni_clock_source source;
  uint32_t n_samples;
  /* times the counter left its line by more than NI_CLOCK_JUMP_NS (VM moved, suspended) */
  uint32_t n_jumps;
  double ns_per_tick;
  uint64_t mult;                /* ns_per_tick in units of 2^-40 */
  struct ni_clock_point newest; /* the line goes through it */
  struct ni_clock_point base;   /* start of the baseline */
  struct ni_clock_point middle; /* becomes base when it is half a minute old */
};

#define NI_CLOCK_JUMP_NS 1000000

static inline uint64_t ni_monotonic_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

static inline uint64_t ni_realtime_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

/*
 * The counter. Wait-free, no system call (clock_gettime is in the vDSO). Not serialising: neighbouring
 * instructions may move across by some ns, which is below what a callback's position means. source:
 * ni_clock.source, kept by the caller where it is read anyway.
 */
static inline uint64_t ni_ticks(enum ni_clock_source source) {
#if defined(__x86_64__)
  if (__builtin_expect(source == NI_CLOCK_TSC, 1))
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  if (__builtin_expect(source == NI_CLOCK_CNTVCT, 1)) {
    uint64_t v;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
    return v;
  }
#endif
  return ni_monotonic_ns();
}

/* Chooses the counter, takes the first samples (at most 1 ms in all). Reads one file in /sys. Never fails:
 * the worst case is NI_CLOCK_GETTIME. force_gettime: for tests and for a setting. */
void ni_clock_init(struct ni_clock *c, bool force_gettime);

/*
 * Takes a sample: the tightest of several brackets clock_gettime, counter, clock_gettime. About a
 * microsecond. 0; 1: the counter had jumped and the line starts anew here (counted); -ERANGE: the readings
 * make no sense, the old line stays.
 */
int ni_clock_sample(struct ni_clock *c);

/* The same with given readings, for tests and replay. */
int ni_clock_add_sample(struct ni_clock *c, const struct ni_clock_point *p);

/* Difference of two counter readings in ns. No overflow below 2^63 ns. */
static inline uint64_t ni_clock_span_ns(const struct ni_clock *c, uint64_t ticks) {
  return (uint64_t)(((unsigned __int128)ticks * c->mult) >> 40);
}

/* Counter reading -> CLOCK_MONOTONIC ns; readings from before the newest sample included. Not below 0. */
static inline uint64_t ni_clock_monotonic_ns(const struct ni_clock *c, uint64_t ticks) {
  if (ticks >= c->newest.ticks)
    return c->newest.monotonic_ns + ni_clock_span_ns(c, ticks - c->newest.ticks);
  uint64_t back = ni_clock_span_ns(c, c->newest.ticks - ticks);
  return back < c->newest.monotonic_ns ? c->newest.monotonic_ns - back : 0;
}

/* Counter reading -> Unix ns, with the wall clock as it was at the newest sample. */
static inline uint64_t ni_clock_unix_ns(const struct ni_clock *c, uint64_t ticks) {
  return ni_clock_monotonic_ns(c, ticks) + (c->newest.realtime_ns - c->newest.monotonic_ns);
}

/* "tsc", "cntvct" or "clock_gettime". */
const char *ni_clock_source_name(enum ni_clock_source s);

#endif
