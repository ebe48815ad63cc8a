/*
 * Interfaces of this network namespace: what the kernel counts of each, and what its driver counts.
 *
 * Virtual ones count as well where they are up: a container's eth0 is one. RDMA passes by all these.
 *
 * What a driver counts, as `ethtool -S` shows it: by ioctl, without privileges. The interface is asked by its
 * name, in this process's network namespace; where the /sys that is read is another's (NI_ROOT), the number
 * of the interface must be the same, else nobody is asked.
 */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exporter/base/now.h"
#include "files.h"
#include "source.h"

/* Drivers have thousands at most: some for each queue. The kernel fills in as many as there are by then,
 * whatever it was asked for; so there is always room for more. */
enum { MOST = 1 << 16, MORE = 4096 };

struct driver {
  struct ni_counter_reader r;
  int fd;
  struct ifreq ifr;
  uint32_t n_stats;
  uint32_t *index; /* of the driver's statistics, one a counter */
  struct ethtool_stats *stats;
};

/* 0, or -errno. what: an ethtool command with its room. */
static int ask_driver(int fd, struct ifreq *ifr, void *what) {
  ifr->ifr_data = what;
  return ioctl(fd, SIOCETHTOOL, ifr) < 0 ? -errno : 0;
}

/* How many statistics there are now; 0: none, or the driver cannot be asked. */
static uint32_t count_statistics(int fd, struct ifreq *ifr) {
  union {
    struct ethtool_sset_info info;
    char room[sizeof(struct ethtool_sset_info) + sizeof(uint32_t)];
  } set = {.info = {.cmd = ETHTOOL_GSSET_INFO, .sset_mask = UINT64_C(1) << ETH_SS_STATS}};
  uint32_t n = 0;
  if (ask_driver(fd, ifr, &set) == 0 && set.info.sset_mask)
    memcpy(&n, set.room + sizeof set.info, sizeof n);
  return n > MOST ? MOST : n;
}

static void read_statistics(struct ni_counter_reader *r, struct ni_reading *out) {
  struct driver *d = (struct driver *)r;
  int e = 0;
  d->stats->cmd = ETHTOOL_GSTATS;
  d->stats->n_stats = count_statistics(d->fd, &d->ifr);
  if (d->stats->n_stats == d->n_stats)
    e = ask_driver(d->fd, &d->ifr, d->stats);
  /* Other counters than those whose names are known: whose values these would be nobody knows. */
  uint8_t state = d->stats->n_stats != d->n_stats ? NI_READ_MISSING : e < 0 ? NI_READ_UNREADABLE : NI_READ_OK;
  if (state == NI_READ_MISSING)
    r->changed = true;
  int64_t mono = (int64_t)ni_now_ns(CLOCK_MONOTONIC), real = (int64_t)ni_now_ns(CLOCK_REALTIME);
  for (uint32_t i = 0; i < r->n; i++)
    out[i] = (struct ni_reading){state == NI_READ_OK ? d->stats->data[d->index[i]] : 0, real, mono, state};
}

static void close_driver(struct ni_counter_reader *r) {
  struct driver *d = (struct driver *)r;
  close(d->fd);
  free(d->index);
  free(d->stats);
  free(d);
}

/* Interfaces of which something is left out for the same reason: the first, and how many. */
struct left {
  char first[64];
  size_t n;
};

static void note_left_out(struct left *l, const char *interface) {
  if (!l->n++)
    snprintf(l->first, sizeof l->first, "%.63s", interface);
}

static void report_left_out(struct ni_find *f, const struct left *l, const char *why) {
  char text[256], path[NI_ROOT_PATH];
  if (!l->n || !f->wanted->all)
    return;
  if (l->n == 1)
    snprintf(text, sizeof text, "%s", why);
  else
    snprintf(text, sizeof text, "%s; so it is with %zu more", why, l->n - 1);
  ni_set_skipped(f->set, ni_root_path(path, "/sys/class/net/%s", l->first), text);
}

/* The interface of that name is the one whose /sys is read. */
static bool is_same_interface(int fd, struct ifreq *ifr, const char *interface) {
  char path[NI_ROOT_PATH], text[64];
  return ni_root_line(text, sizeof text, ni_root_path(path, "/sys/class/net/%s/ifindex", interface), NULL) >
      0 &&
      ioctl(fd, SIOCGIFINDEX, ifr) == 0 && ifr->ifr_ifindex == atoi(text);
}

/* Adds those of the driver's counters that are asked for; s has room for all names. */
static void add_statistics(struct ni_find *f, struct driver *d, struct ethtool_gstrings *s,
                           const char *interface) {
  *s = (struct ethtool_gstrings){.cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_STATS, .len = d->n_stats};
  int e = ask_driver(d->fd, &d->ifr, s);
  if (e < 0)
    ni_set_unread(f->set, interface, strerror(-e));
  for (uint32_t i = 0, n = 0; e == 0 && s->len == d->n_stats && i < d->n_stats; i++) {
    char name[ETH_GSTRING_LEN + 1];
    snprintf(name, sizeof name, "%.*s", ETH_GSTRING_LEN, (const char *)s->data + (size_t)i * ETH_GSTRING_LEN);
    const char *from = name + strspn(name, " "); /* some indent them */
    if (*from && ni_find_counter(f, from))
      d->index[n++] = i;
  }
}

/* An interface with the counters of its driver, and their reader. false: it has none, nobody asks for them,
 * or its driver is out of reach, which `unasked` takes. */
static bool find_ethtool(struct ni_find *f, const char *interface, struct left *unasked) {
  struct driver *d = calloc(1, sizeof *d);
  if (!d)
    return !(f->set->failed = true);
  d->r.read = read_statistics;
  d->r.close = close_driver;
  snprintf(d->ifr.ifr_name, sizeof d->ifr.ifr_name, "%.15s", interface);
  d->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (d->fd < 0)
    d->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  bool ours = d->fd >= 0 && is_same_interface(d->fd, &d->ifr, interface);
  uint32_t n = ours ? count_statistics(d->fd, &d->ifr) : 0;
  if (!ours)
    note_left_out(unasked, interface);
  if (!n || !ni_find_entity(f, NI_METRIC_ETHTOOL, interface)) {
    close_driver(&d->r);
    return false;
  }
  d->n_stats = n;
  d->index = calloc(n, sizeof *d->index);
  d->stats = calloc(1, sizeof *d->stats + ((size_t)n + MORE) * sizeof(uint64_t));
  struct ethtool_gstrings *s = calloc(1, sizeof *s + ((size_t)n + MORE) * ETH_GSTRING_LEN);
  if (d->index && d->stats && s)
    add_statistics(f, d, s, interface);
  else
    f->set->failed = true;
  free(s);
  bool found = f->set->entity[f->set->n_entities - 1].n > 0;
  ni_find_reader(f, &d->r);
  return found;
}

/* "up, 25 Gb/s" */
static void describe_link(struct ni_set *s, struct ni_entity *e, const char *folder) {
  char state[64], speed[64], text[128];
  /* -1, or EINVAL: none is known */
  long mbit = ni_root_line(speed, sizeof speed, folder, "speed") > 0 ? atol(speed) : -1;
  if (ni_root_line(state, sizeof state, folder, "operstate") <= 0)
    return;
  if (mbit > 0)
    snprintf(text, sizeof text, "%s, %g Gb/s", state, (double)mbit / 1e3);
  e->link = ni_set_text(s, mbit > 0 ? text : state);
  e->link_bytes_s = mbit > 0 ? (double)mbit * 1e6 / 8 : 0;
}

void ni_eth_find(struct ni_find *f) {
  static const char *const changes[] = {"carrier_changes", NULL};
  struct dirent **names;
  struct left down = {.n = 0}, unasked = {.n = 0};
  char folder[NI_ROOT_PATH], device[NI_ROOT_PATH], text[64];
  int n = ni_root_names(&names, ni_root_path(folder, "/sys/class/net"));
  for (int i = 0; i < n; i++) {
    const char *name = names[i]->d_name;
    ni_root_path(folder, "/sys/class/net/%s", name);
    bool real = access(ni_root_path(device, "/sys/class/net/%s/device", name), F_OK) == 0;
    bool up = ni_root_line(text, sizeof text, folder, "flags") > 0 && strtol(text, NULL, 16) & 1;
    if (ni_root_line(text, sizeof text, folder, "statistics/rx_bytes") < 0)
      continue; /* it is no interface */
    if (!real && !up) {
      note_left_out(&down, name);
      continue;
    }
    struct ni_entity *e = ni_find_entity(f, NI_METRIC_ETH, name);
    if (e) {
      const struct ni_folder folders[] = {{.path = folder, .sub = "statistics", .must = true},
                                          {.path = folder, .only = changes, .proven = true}};
      ni_find_about(f, e, device);
      describe_link(f->set, e, folder);
      ni_files_find(f, folders, 2);
    }
    if (find_ethtool(f, name, &unasked))
      describe_link(f->set, &f->set->entity[f->set->n_entities - 1], folder);
  }
  ni_root_names_free(names, n);
  if (ni_find_source(f, NI_METRIC_ETH))
    report_left_out(f, &down, "no device, and not up");
  if (ni_find_source(f, NI_METRIC_ETHTOOL))
    report_left_out(
        f, &unasked,
        "its driver is not asked: the interface of that name here is another one, or there is none");
}
