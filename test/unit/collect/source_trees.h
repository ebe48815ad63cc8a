/*
 * For test_sources.c: a driver, files and a clock of its own, fake trees, and what a collector got of them.
 */
#ifndef NI_TEST_SOURCE_TREES_H
#define NI_TEST_SOURCE_TREES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "exporter/collect/collector.h"

/* trees of many small files */
static char root[] = "/dev/shm/ni-sources.XXXXXX", elsewhere[] = "/tmp/ni-sources.XXXXXX";

/* ---- a driver ---- */

static struct {
  const char *name[8];
  uint64_t value[8];
  uint32_t n, ifindex;
} driver;
static int pread_fails;

ssize_t pread(int fd, void *to, size_t n, off_t at) {
  if (pread_fails) {
    errno = pread_fails;
    return -1;
  }
  return syscall(SYS_pread64, fd, to, n, at);
}

/* what the wall clock is ahead of the real one: in every other call; in each */
static int64_t jitter_ns, stepped_ns;

int clock_gettime(clockid_t clock, struct timespec *t);
int clock_gettime(clockid_t clock, struct timespec *t) {
  static unsigned turn;
  int failed = (int)syscall(SYS_clock_gettime, clock, t);
  if (clock == CLOCK_REALTIME) {
    int64_t ns = t->tv_sec * INT64_C(1000000000) + t->tv_nsec + stepped_ns + (turn++ % 2 ? jitter_ns : 0);
    *t = (struct timespec){.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
  }
  return failed;
}

int ioctl(int fd, unsigned long what, ...);
int ioctl(int fd, unsigned long what, ...) {
  va_list args;
  va_start(args, what);
  struct ifreq *ifr = va_arg(args, void *);
  va_end(args);
  if (what != SIOCETHTOOL && what != SIOCGIFINDEX)
    return (int)syscall(SYS_ioctl, fd, what, ifr);
  if (!driver.n || strcmp(ifr->ifr_name, "hsn0") != 0) {
    errno = ENODEV;
    return -1;
  }
  if (what == SIOCGIFINDEX) {
    ifr->ifr_ifindex = (int)driver.ifindex;
    return 0;
  }
  uint32_t cmd;
  memcpy(&cmd, ifr->ifr_data, sizeof cmd);
  if (cmd == ETHTOOL_GSSET_INFO) {
    struct ethtool_sset_info *s = (void *)ifr->ifr_data;
    memcpy(s->data, &driver.n, sizeof driver.n);
  } else if (cmd == ETHTOOL_GSTRINGS) {
    struct ethtool_gstrings *s = (void *)ifr->ifr_data;
    s->len = driver.n;
    for (uint32_t i = 0; i < driver.n; i++) {
      size_t n = strlen(driver.name[i]);
      memcpy(s->data + i * ETH_GSTRING_LEN, driver.name[i], n < ETH_GSTRING_LEN ? n + 1 : ETH_GSTRING_LEN);
    }
  } else if (cmd == ETHTOOL_GSTATS) {
    struct ethtool_stats *s = (void *)ifr->ifr_data;
    s->n_stats = driver.n;
    memcpy(s->data, driver.value, driver.n * sizeof *driver.value);
  } else {
    errno = EOPNOTSUPP;
    return -1;
  }
  return 0;
}

/* ---- what the tests need ---- */

static void tree(const char *words) {
  char command[1024];
  const char *data = getenv("NI_TEST_DATA");
  snprintf(command, sizeof command, "%s/cassini/before.txt.gz", data ? data : "../shared/data");
  if (strncmp(words, "cxi", 3) == 0 && access(command, R_OK) != 0) {
    print_message("%s is not here\n", command);
    skip();
  }
  snprintf(command, sizeof command, "python3 test/lib/counters/counter_trees.py %s %s", root, words);
  if (system(command) != 0)
    fail_msg("%s", command);
}

static int fresh(void **state) {
  (void)state;
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s/*", root);
  memset(&driver, 0, sizeof driver);
  pread_fails = 0;
  jitter_ns = stepped_ns = 0;
  return system(command);
}

struct got {
  struct ni_collector *c;
  const struct ni_set *set;
  struct ni_reading *r;
  size_t bad;
};

static void again(struct got *g) { g->bad = ni_collector_read(g->c, g->r, 3); }

static struct got open_all(const struct ni_wanted *w) {
  struct got g = {0};
  assert_int_equal(ni_collector_open(&g.c, w), 0);
  g.set = ni_collector_set(g.c);
  g.r = calloc(g.set->n_counters + 1, sizeof *g.r);
  again(&g);
  return g;
}

static void done(struct got *g) {
  ni_collector_close(g->c);
  free(g->r);
}

static const struct ni_entity *entity(const struct got *g, enum ni_metric_source source, const char *name) {
  for (size_t i = 0; i < g->set->n_entities; i++)
    if (g->set->entity[i].source == source && strcmp(g->set->entity[i].name, name) == 0)
      return &g->set->entity[i];
  return NULL;
}

static size_t find(const struct got *g, enum ni_metric_source source, const char *name, const char *counter) {
  const struct ni_entity *e = entity(g, source, name);
  for (uint32_t i = e ? e->first : 0; e && i < e->first + e->n; i++)
    if (strcmp(g->set->counter[i].name, counter) == 0)
      return i;
  return SIZE_MAX;
}

static const struct ni_reading *at(const struct got *g, enum ni_metric_source source, const char *name,
                                   const char *counter) {
  size_t i = find(g, source, name, counter);
  if (i == SIZE_MAX)
    fail_msg("no %s %s of %s", ni_source_name(source), counter, name);
  return &g->r[i];
}

static bool told(const struct got *g, const char *path, const char *why, bool skipped) {
  for (size_t i = 0; i < g->set->n_unread; i++)
    if (strstr(g->set->unread[i].path, path) && strstr(g->set->unread[i].why, why) &&
        g->set->unread[i].skipped == skipped)
      return true;
  return false;
}

#define ALL ((struct ni_wanted){.all = true})
#define ONLY(source) ((struct ni_wanted){.all = true, .sources = 1u << (source)})

#endif
