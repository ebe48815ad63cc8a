/*
 * What the machine itself costs at this moment, so that a limit on real time or CPU time does not measure the
 * neighbours: a thread that only sleeps for a given time, over and over, and counts how much too late it woke
 * and what waking cost. One pulse belongs to one thread; it must not live across a fork.
 */
#ifndef NI_TEST_PULSE_H
#define NI_TEST_PULSE_H

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

struct pulse {
  pthread_t thread;
  double sleep_ns;
  atomic_int over; /* relaxed: pulse_stop joins before it reads the rest */
  double late_ns;  /* beyond the sleep asked for, summed */
  double cpu_ns;   /* of the thread, from its first sleep on */
  long wakes;
};

static double pulse_clock(clockid_t which) {
  struct timespec t;
  clock_gettime(which, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *pulse_main(void *arg) {
  struct pulse *p = arg;
  struct timespec t = {0, (long)p->sleep_ns};
  double cpu = pulse_clock(CLOCK_THREAD_CPUTIME_ID), last = pulse_clock(CLOCK_MONOTONIC);
  while (!atomic_load_explicit(&p->over, memory_order_relaxed)) {
    nanosleep(&t, NULL);
    double now = pulse_clock(CLOCK_MONOTONIC);
    p->late_ns += now - last - p->sleep_ns;
    p->wakes++;
    last = now;
  }
  p->cpu_ns = pulse_clock(CLOCK_THREAD_CPUTIME_ID) - cpu;
  return NULL;
}

/* sleep_ms: 1 to 999. Without a thread to be had the pulse stays at 0: the limits hold as they are. */
static void pulse_start(struct pulse *p, int sleep_ms) {
  *p = (struct pulse){.sleep_ns = sleep_ms * 1e6};
  if (pthread_create(&p->thread, NULL, pulse_main, p))
    atomic_store(&p->over, 2);
}

/* Waits for the sleep that is under way. */
static void pulse_stop(struct pulse *p) {
  if (atomic_exchange(&p->over, 1) != 2)
    pthread_join(p->thread, NULL);
}

#endif
