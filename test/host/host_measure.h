/*
 * What the scripted host measures of its process and does to it: memory, CPU time of the plugin's thread,
 * limits, load. For one file: host.c.
 */
#ifndef NI_TEST_HOST_MEASURE_H
#define NI_TEST_HOST_MEASURE_H

#include <dirent.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "pulse.h"
#include "test/bench/plug.h"

#define DUMP_THREAD "nccl-insp-dump"

/* A limit of the test was exceeded: ends the process with 3. */
static void broken(const char *what, double is, double limit) {
  fprintf(stderr, "%s: %g, limit %g\n", what, is, limit);
  _exit(3);
}

static long rss_kb(void) {
  long pages = 0, skip;
  FILE *f = fopen("/proc/self/statm", "r");
  if (!f || fscanf(f, "%ld %ld", &skip, &pages) != 2)
    pages = 0;
  if (f)
    fclose(f);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* -1: no thread of that name. */
static long thread_id(const char *name) {
  DIR *dir = opendir("/proc/self/task");
  struct dirent *e;
  long tid = -1;
  while (dir && (e = readdir(dir)) != NULL) {
    char path[300], comm[32] = "";
    snprintf(path, sizeof path, "/proc/self/task/%s/comm", e->d_name);
    FILE *f = fopen(path, "r");
    if (!f)
      continue;
    if (fscanf(f, "%31s", comm) == 1 && !strcmp(comm, name))
      tid = atol(e->d_name);
    fclose(f);
  }
  if (dir)
    closedir(dir);
  return tid;
}

/* Nanoseconds on a CPU of the thread with that name; -1: no such thread. */
static double thread_cpu_ns(const char *name) {
  char path[64];
  double ns = -1;
  snprintf(path, sizeof path, "/proc/self/task/%ld/schedstat", thread_id(name));
  FILE *f = fopen(path, "r");
  if (!f)
    return -1;
  if (fscanf(f, "%lf", &ns) != 1)
    ns = -1;
  fclose(f);
  return ns;
}

/* How often the thread with that name went to sleep; -1: no such thread. */
static double thread_sleeps(const char *name) {
  char path[64], text[128];
  double n = -1;
  snprintf(path, sizeof path, "/proc/self/task/%ld/status", thread_id(name));
  FILE *f = fopen(path, "r");
  if (!f)
    return -1;
  while (n < 0 && fgets(text, sizeof text, f))
    (void)sscanf(text, "voluntary_ctxt_switches: %lf", &n);
  fclose(f);
  return n;
}

/* Does the thread with that name sleep? One that could run and has no processor does not. */
static bool thread_sleeps_now(const char *name) {
  char path[64], text[256] = "", *state;
  snprintf(path, sizeof path, "/proc/self/task/%ld/stat", thread_id(name));
  FILE *f = fopen(path, "r");
  if (!f)
    return false;
  state = fgets(text, sizeof text, f) ? strrchr(text, ')') : NULL;
  fclose(f);
  return state && state[1] == ' ' && state[2] == 'S';
}

/*
 * Until the dump thread has nothing to do: three times in a row it slept before and after 150 ms, in which it
 * must wake up where anything is left for it, and took less than 1 ms of CPU.
 */
static void wait_rested(void) {
  for (int times = 0; times < 3; times++) {
    double cpu = thread_cpu_ns(DUMP_THREAD);
    bool slept = thread_sleeps_now(DUMP_THREAD);
    if (cpu < 0)
      broken("no dump thread", -1, 0);
    usleep(150000);
    if (!slept || !thread_sleeps_now(DUMP_THREAD) || thread_cpu_ns(DUMP_THREAD) - cpu > 1e6)
      times = -1;
  }
}

/*
 * Waking a thread costs 10 us on one machine and 150 us on another: the limit is the given share, or twice
 * what the same number of wake-ups costs a thread that does nothing else. What is counted is set against the
 * time that passed: on a busy machine a sleep is longer than it was to be. The best of three windows counts,
 * since a thread that rests does so in each; one that comes late to its rest, or a hypervisor that takes the
 * CPU away, spoils one of them.
 */
static void check_cpu(uint64_t ms, double permyriad, double per_s) {
  const char *name = DUMP_THREAD;
  for (int left = 3; left > 0; left--) {
    struct pulse bare;
    double cpu = thread_cpu_ns(name), sleeps = thread_sleeps(name), ns = pulse_clock(CLOCK_MONOTONIC);
    if (cpu < 0 || sleeps < 0)
      broken("no dump thread", -1, 0);
    pulse_start(&bare, 100);
    usleep((useconds_t)(ms * 1000));
    cpu = thread_cpu_ns(name) - cpu;
    sleeps = thread_sleeps(name) - sleeps;
    ns = pulse_clock(CLOCK_MONOTONIC) - ns;
    pulse_stop(&bare);
    double share = 10000 * cpu / ns, wake = bare.wakes ? bare.cpu_ns / (double)bare.wakes : 0;
    double limit = fmax(permyriad, 2 * sleeps * wake * 10000 / ns), most = per_s * ns / 1e9 + 2;
    printf("dump thread: %.2f / 10000 of a core, %.0f wake-ups in %.0f ms; a bare wake-up costs %.1f us\n",
           share, sleeps, ns / 1e6, wake / 1e3);
    if (share <= limit && sleeps <= most)
      return;
    if (left > 1)
      continue;
    if (share > limit)
      broken("CPU of the idle dump thread, 1/10000 of a core", share, limit);
    broken("wake-ups of the idle dump thread", sleeps, most);
  }
}

/* ---- load and limits ---- */

static void *spin_until(void *arg) {
  uint64_t end = *(uint64_t *)arg;
  while (plug_now_ns() < end) {}
  return NULL;
}

static void spin(uint64_t ms) {
  uint64_t end = plug_now_ns() + ms * 1000000;
  pthread_t t;
  if (pthread_create(&t, NULL, spin_until, &end))
    _exit(67);
  spin_until(&end);
  pthread_join(t, NULL);
}

/* The scheduler's policy "idle": runs only when nobody else wants the CPU. */
/* policy: SCHED_IDLE starves it, SCHED_OTHER lets it run as all others do. */
static void schedule_dump_thread(int policy) {
  struct sched_param p = {0};
  long tid = thread_id(DUMP_THREAD);
  if (tid < 0 || sched_setscheduler((pid_t)tid, policy, &p))
    broken("cannot schedule the dump thread", -1, 0);
}

static void limit(int what, uint64_t n) {
  struct rlimit l;
  getrlimit((__rlimit_resource_t)what, &l);
  l.rlim_cur = n;
  setrlimit((__rlimit_resource_t)what, &l);
}

#endif
