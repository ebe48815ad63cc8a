/*
 * For test_gpu.c: the library that says what is planted, the collector that reads it, and what is expected of
 * both.
 */
#ifndef NI_TEST_GPU_FAKE_H
#define NI_TEST_GPU_FAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <dirent.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "exporter/collect/collector.h"

static char dir[64], file[96];
static void *fake;
static long (*calls)(const char *);
static struct ni_collector *c;
static const struct ni_set *set;
static struct ni_reading now[512];

/* A GPU as it should be; what a test adds comes behind it and counts instead. */
static const char healthy[] =
    "* gpus 2\n* util 91\n* memutil 40\n* total 85899345920\n* used 60000000000\n* free 25899345920\n* "
    "graphics 1980\n* sm 1980\n"
    "* memclock 2619\n* power 650123\n* temp 61\n* reasons 0x4\n* gen 5\n* width 16\n* maxgen 5\n* maxwidth "
    "16\n* pcietx 1000\n"
    "* pcierx 2000\n* field.83 123456789\n* field.82 70\n* field.74 5000\n* field.269 0\n* field.270 0\n* "
    "field.271 0\n* field.197 7000\n"
    "* field.198 8000\n* field.138.all 10\n* field.139.all 20\n* field.3 1\n* field.4 0\n* field.94 2\n* "
    "field.38 0\n* field.45 0\n"
    "* field.52 0\n* field.59 0\n* field.142 0\n* field.143 0\n* field.144 0\n* field.145 0\n1 power 99000\n";

static void plant(const char *more) {
  char part[112];
  snprintf(part, sizeof part, "%s.part", file);
  FILE *f = fopen(part, "w");
  fprintf(f, "%s%s", healthy, more);
  fclose(f);
  assert_int_equal(rename(part, file), 0);
}

static void load(const char *which) {
  char path[4096];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
  assert_true(n > 0);
  path[n] = 0;
  *strrchr(path, '/') = 0;
  snprintf(strrchr(path, '/'), 64, "/%s/libnvidia-ml.so.1", which);
  if (!(fake = dlopen(path, RTLD_NOW | RTLD_LOCAL)))
    fail_msg("%s: make tools", dlerror());
  *(void **)&calls = dlsym(fake, "fake_calls");
}

static int number(const char *name) {
  int (*f)(void);
  *(void **)&f = dlsym(fake, name);
  return f();
}

static int with_fake(void **state) {
  (void)state;
  load("nvml");
  plant("");
  return 0;
}
static int with_old(void **state) {
  (void)state;
  load("nvml_old");
  plant("");
  return 0;
}
static int without(void **state) {
  (void)state;
  ni_collector_close(c);
  c = NULL;
  if (fake) {
    assert_int_equal(number("fake_started"), 0);
    assert_int_equal(number("fake_samples"), 0);
    dlclose(fake);
  }
  fake = NULL;
  return 0;
}

static void open_it(struct ni_wanted w) {
  ni_collector_close(c);
  w.sources = 1u << NI_METRIC_GPU;
  assert_int_equal(ni_collector_open(&c, &w), 0);
  set = ni_collector_set(c);
  assert_true(set->n_counters < 512);
}
/*
 * Of 50 ms, for what comes when this machine lets it: a call that it held up for 10 ms is made again 4 s
 * later.
 */
enum { SWEEPS = 1200 };
static size_t sweep(void) { return ni_collector_read(c, now, 1); }
static void wait_ms(long ms) { nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL); }
/* On the clock of readings. What may happen only so often is held against the time that really went by: on a
 * busy machine a sleep of 20 ms takes longer. */
static int64_t mono_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}
static long ms_since(int64_t from_ns) { return (long)((mono_ns() - from_ns) / 1000000); }
/*
 * Sweeps until so many readings are lost. A call that this machine held up for 5 ms is made again a second
 * later: what a test expects may need a while here, and what it forbids is forbidden all the time.
 */
static void sweep_until(size_t lost) {
  size_t bad = sweep();
  for (int i = 0; i < SWEEPS && bad != lost; i++) {
    wait_ms(50);
    bad = sweep();
  }
  if (bad != lost)
    fail_msg("%zu readings are lost instead of %zu", bad, lost);
}

static const struct ni_entity *entity(const char *name) {
  for (size_t i = 0; i < set->n_entities; i++)
    if (!strcmp(set->entity[i].name, name))
      return &set->entity[i];
  return NULL;
}
static size_t place(const char *who, const char *name) {
  const struct ni_entity *e = entity(who);
  for (uint32_t i = 0; e && i < e->n; i++)
    if (!strcmp(set->counter[e->first + i].name, name))
      return e->first + i;
  return SIZE_MAX;
}
static bool has(const char *who, const char *name) { return place(who, name) != SIZE_MAX; }
static const struct ni_reading *reading(const char *who, const char *name) {
  size_t i = place(who, name);
  if (i == SIZE_MAX)
    fail_msg("%s has no %s", who, name);
  return &now[i];
}
static void expect(const char *who, const char *name, uint64_t value) {
  const struct ni_reading *r = reading(who, name);
  for (int i = 0; i < SWEEPS && (r->state != NI_READ_OK || r->value != value); i++) {
    wait_ms(50);
    sweep();
  }
  if (r->state != NI_READ_OK || r->value != value)
    fail_msg("%s %s: state %u, %" PRIu64 " instead of %" PRIu64, who, name, r->state, r->value, value);
}
static int entries(const char *path) {
  DIR *d = opendir(path);
  int n = 0;
  while (d && readdir(d))
    n++;
  if (d)
    closedir(d);
  return n;
}

#endif
