/*
 * InfiniBand, RoCE, Omni-Path and EFA.
 *
 *   DEV/ports/N/counters      of the port management agent: each read is a query of it
 *   DEV/ports/N/hw_counters   of the driver (mlx5, bnxt_re, efa, ionic, hfi1, ...), which asks the NIC no
 *                             more often than once in `lifespan`
 *   DEV/hw_counters           what the driver counts of the device as a whole (hfi1, efa): an entity of its
 *                             own. Drivers that had one port's counters there, and nowhere else, have them as
 *                             the port's; what a port has as well is the port's
 *
 * And which ports are alike: those of one PCI model and link layer, at the same place on their cards, of one
 * purpose (kind_of()).
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "source.h"

enum { ROUTES = 16, IFF_UP_BIT = 1, ACTIVE = 4, INTERFACE = 64 };

/* Interfaces that the host's default routes go through. */
struct routes {
  char name[ROUTES][INTERFACE];
  size_t n;
};

static void read_routes(struct routes *r) {
  char path[NI_ROOT_PATH], line[512], to[64];
  FILE *f = fopen(ni_root_path(path, "/proc/net/route"), "re");
  r->n = 0;
  while (f && r->n < ROUTES && fgets(line, sizeof line, f))
    if (sscanf(line, "%63s %63s", r->name[r->n], to) == 2 && strcmp(to, "00000000") == 0)
      r->n++;
  if (f)
    fclose(f);
}

static bool has_route(const struct routes *r, const char *interface) {
  for (size_t i = 0; i < r->n; i++)
    if (strcmp(r->name[i], interface) == 0)
      return true;
  return false;
}

/*
 * Of the interfaces of a port: is any set up, and does the default route go through one, or through the bond
 * that it is in.
 */
struct interfaces {
  bool any, up, route;
};

static void add_interface(struct interfaces *x, const struct routes *r, const char *name) {
  char path[NI_ROOT_PATH], flags[64], *master;
  if (ni_root_line(flags, sizeof flags, ni_root_path(path, "/sys/class/net/%s", name), "flags") <= 0)
    return;
  x->any = true;
  x->up |= strtol(flags, NULL, 16) & IFF_UP_BIT;
  x->route |= has_route(r, name);
  master = realpath(ni_root_path(path, "/sys/class/net/%s/master", name), NULL);
  if (master)
    x->route |= has_route(r, strrchr(master, '/') + 1);
  free(master);
}

/*
 * A port's interface stands in its table of GIDs, where it has any; those of its device in the device's
 * folder.
 */
static struct interfaces find_interfaces(const struct routes *r, const char *device, const char *port) {
  struct interfaces x = {0};
  struct dirent **names;
  char path[NI_ROOT_PATH + 32], name[INTERFACE];
  snprintf(path, sizeof path, "%s/gid_attrs/ndevs", port);
  if (ni_root_line(name, sizeof name, path, "0") > 0)
    add_interface(&x, r, name);
  if (x.any)
    return x;
  snprintf(path, sizeof path, "%s/device/net", device);
  int n = ni_root_names(&names, path);
  for (int i = 0; i < n; i++)
    add_interface(&x, r, names[i]->d_name);
  ni_root_names_free(names, n);
  return x;
}

/* "ACTIVE, 400 Gb/sec (4X NDR), InfiniBand" */
static void describe_link(struct ni_set *s, struct ni_entity *e, const char *device, const char *port,
                          const char *layer, bool set_up) {
  char state[64], rate[64], vendor[64], text[256];
  ni_root_line(state, sizeof state, port, "state"); /* "4: ACTIVE" */
  ni_root_line(rate, sizeof rate, port, "rate");
  const char *word = strstr(state, ": ");
  bool efa = ni_root_line(vendor, sizeof vendor, device, "vendor") > 0 && strcmp(vendor, "0x1d0f") == 0 &&
      atoi(rate) == 100;
  const char *state_text = word ? word + 2 : *state ? state : "state unknown";
  snprintf(text, sizeof text, "%s, %s%s, %s", state_text, *rate ? rate : "rate unknown",
           efa ? " as all older drivers say" : "", layer);
  e->link = ni_set_text(s, text);
  if (atoi(state) == ACTIVE)
    e->state = NI_LINK_UP;
  else if (!*state)
    e->state = NI_LINK_UNKNOWN;
  else
    e->state = set_up ? NI_LINK_DOWN : NI_LINK_OFF;
  /* The rate of a link that is down is that of its slowest form. */
  if (e->state == NI_LINK_UP)
    e->link_bytes_s = strtod(rate, NULL) * 1e9 / 8;
}

/* "InfiniBand, 15b3:1021", with what else is known of the port itself; its place on the card comes later. */
static void describe_kind(struct ni_set *s, struct ni_entity *e, const char *layer,
                          const struct interfaces *x) {
  char text[300];
  snprintf(text, sizeof text, "%s%s%s%s", *layer ? layer : "layer unknown", e->kind ? ", " : "",
           e->kind ? e->kind : "", x->route ? ", the default route's" : "");
  e->kind = ni_set_text(s, text);
}

static unsigned read_lifespan(const char *folder) {
  char text[64];
  int ms = ni_root_line(text, sizeof text, folder, "hw_counters/lifespan") > 0 ? atoi(text) : 10;
  return ms < 0 || ms > 10000 ? 10000 : (unsigned)ms;
}

/* bnxt_re fills recoverable_errors from the broadcasts sent. */
static const char *const no_counters[] = {"lifespan", NULL}, *const wrong[] = {"recoverable_errors", NULL};
static const char wrong_why[] = "the driver fills it from another counter";

/* Folders of counters that nobody reads here, as older drivers have them: counters_ext, diag_counters. */
static void report_other_folders(struct ni_find *f, const char *folder) {
  struct dirent **names;
  char path[NI_ROOT_PATH + 300];
  int n = ni_find_source(f, NI_METRIC_IB) ? ni_root_names(&names, folder) : -1;
  for (int i = 0; i < n; i++) {
    const char *name = names[i]->d_name;
    if (!ni_metric_fits("*counters*", name) || strcmp(name, "counters") == 0 ||
        strcmp(name, "hw_counters") == 0)
      continue;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    ni_set_skipped(f->set, path, "a folder of counters that only this driver has");
  }
  if (n >= 0)
    ni_root_names_free(names, n);
}

/* one: it is the device's only port, which may have its counters at the device. */
static void find_port(struct ni_find *f, const struct routes *r, const char *name, const char *device,
                      const char *port, bool one) {
  char path[NI_ROOT_PATH + 16], layer[64];
  struct ni_entity *e = ni_find_entity(f, NI_METRIC_IB, name);
  if (!e)
    return;
  struct interfaces x = find_interfaces(r, device, port);
  snprintf(path, sizeof path, "%s/device", device);
  ni_root_line(layer, sizeof layer, port, "link_layer");
  ni_find_about(f, e, path);
  /*
   * Without its interface a port of Ethernet stays down. InfiniBand's does not need one: that is for IP
   * alone.
   */
  bool set_up = strcmp(layer, "Ethernet") != 0 || !x.any || x.up;
  describe_link(f->set, e, path, port, layer, set_up);
  describe_kind(f->set, e, layer, &x);
  report_other_folders(f, port);
  snprintf(path, sizeof path, "%s/hw_counters", port);
  const char *hw = one && access(path, X_OK) != 0 ? device : port;
  const struct ni_folder folders[] = {
      {.path = port, .sub = "counters", .proven = true},
      {.path = hw,
       .sub = "hw_counters",
       .skip = no_counters,
       .left = wrong,
       .left_why = wrong_why,
       .proven = true,
       .lifespan_ms = read_lifespan(hw)},
  };
  if (ni_files_find(f, folders, 2) == 0 && f->wanted->all)
    ni_set_skipped(f->set, port, "it has no counters");
}

/* What the device counts beside its ports; port: the first of them. */
static void find_device_counters(struct ni_find *f, const char *name, const char *device, const char *port) {
  char path[NI_ROOT_PATH + 16], at_port[NI_ROOT_PATH + 16];
  snprintf(at_port, sizeof at_port, "%s/hw_counters", port);
  report_other_folders(f, device);
  if (access(at_port, X_OK) != 0)
    return; /* then they are read as the port's */
  struct ni_entity *e = ni_find_entity(f, NI_METRIC_IBDEV, name);
  if (!e)
    return;
  snprintf(path, sizeof path, "%s/device", device);
  ni_find_about(f, e, path);
  const struct ni_folder folder = {.path = device,
                                   .sub = "hw_counters",
                                   .skip = no_counters,
                                   .left = wrong,
                                   .left_why = wrong_why,
                                   .but_in = at_port,
                                   .proven = true,
                                   .lifespan_ms = read_lifespan(device)};
  ni_files_find(f, &folder, 1);
}

/* Functions of one device of PCI, and its ports, are one card's. */
static bool is_same_card(const struct ni_entity *a, const struct ni_entity *b) {
  size_t n = a->pci ? strcspn(a->pci, ".") : 0;
  return a == b || (b->pci && n && strncmp(a->pci, b->pci, n + 1) == 0);
}

/*
 * Which port of its card each is: cards for storage or management have two where those for the job have one.
 */
static void note_places_on_cards(struct ni_find *f, size_t first) {
  char text[400];
  for (size_t i = first; i < f->set->n_entities; i++) {
    struct ni_entity *e = &f->set->entity[i];
    unsigned ports = 0, place = 0;
    for (size_t k = first; k < f->set->n_entities && e->source == NI_METRIC_IB; k++) {
      const struct ni_entity *o = &f->set->entity[k];
      if (o->source != NI_METRIC_IB || !is_same_card(e, o))
        continue;
      ports++;
      place += k <= i;
    }
    if (!ports)
      continue;
    snprintf(text, sizeof text, "%s, port %u of %u", e->kind, place, ports);
    e->kind = ni_set_text(f->set, text);
  }
}

void ni_ib_find(struct ni_find *f) {
  struct dirent **devices, **ports;
  struct routes routes;
  char path[NI_ROOT_PATH], device[NI_ROOT_PATH], port[NI_ROOT_PATH], name[600];
  size_t first = f->set->n_entities;
  int n = ni_root_names(&devices, ni_root_path(path, "/sys/class/infiniband"));
  read_routes(&routes);
  for (int i = 0; i < n; i++) {
    ni_root_path(device, "/sys/class/infiniband/%s", devices[i]->d_name);
    int m = ni_root_names(&ports, ni_root_path(path, "/sys/class/infiniband/%s/ports", devices[i]->d_name));
    if (m < 0)
      ni_set_unread(f->set, device, "its ports cannot be listed");
    for (int k = 0; k < m; k++) {
      snprintf(name, sizeof name, "%s:%s", devices[i]->d_name, ports[k]->d_name);
      ni_root_path(port, "/sys/class/infiniband/%s/ports/%s", devices[i]->d_name, ports[k]->d_name);
      find_port(f, &routes, name, device, port, m == 1);
    }
    if (m > 0) {
      ni_root_path(port, "/sys/class/infiniband/%s/ports/%s", devices[i]->d_name, ports[0]->d_name);
      find_device_counters(f, devices[i]->d_name, device, port);
    }
    ni_root_names_free(ports, m);
  }
  ni_root_names_free(devices, n);
  note_places_on_cards(f, first);
}
