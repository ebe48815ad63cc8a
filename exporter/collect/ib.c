/*
 * InfiniBand and RoCE: each port's counters. In counters/ are those of the port management agent, each read a query of it; in
 * hw_counters/ those of the driver (mlx5, bnxt_re, efa, ...), which asks the NIC no more often than once in `lifespan`.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files.h"
#include "source.h"

/* "ACTIVE, 400 Gb/sec (4X NDR), InfiniBand" */
static void link_of(struct ni_set *s, struct ni_entity *e, const char *device, const char *port) {
  char state[64], rate[64], layer[64], vendor[64], text[256];
  ni_root_line(state, sizeof state, port, "state"); /* "4: ACTIVE" */
  ni_root_line(rate, sizeof rate, port, "rate");
  ni_root_line(layer, sizeof layer, port, "link_layer");
  const char *word = strstr(state, ": ");
  bool efa = ni_root_line(vendor, sizeof vendor, device, "vendor") > 0 && strcmp(vendor, "0x1d0f") == 0 && atoi(rate) == 100;
  snprintf(text, sizeof text, "%s, %s%s, %s", word ? word + 2 : *state ? state : "state unknown", *rate ? rate : "rate unknown",
           efa ? " as all older drivers say" : "", layer);
  e->link = ni_set_text(s, text);
  /* The rate of a link that is down is that of its slowest form. */
  if (atoi(state) == 4) e->link_bytes_s = strtod(rate, NULL) * 1e9 / 8;
}

/* device, port: their folders; one: it is the device's only port, which may have its counters at the device. */
static void port_of(struct ni_find *f, const char *name, const char *device, const char *port, bool one) {
  /* bnxt_re fills recoverable_errors from the broadcasts sent. */
  static const char *const skip[] = {"lifespan", "recoverable_errors", NULL};
  char text[64], path[NI_ROOT_PATH + 16];
  struct ni_entity *e = ni_find_entity(f, NI_METRIC_IB, name);
  if (!e) return;
  snprintf(path, sizeof path, "%s/device", device);
  ni_find_about(f, e, path);
  link_of(f->set, e, path, port);
  int lifespan = ni_root_line(text, sizeof text, port, "hw_counters/lifespan") > 0 ? atoi(text) : 10;
  snprintf(path, sizeof path, "%s/hw_counters", port);
  const struct ni_folder folders[] = {
      {.path = port, .sub = "counters", .proven = true},
      {.path = one && access(path, X_OK) != 0 ? device : port, .sub = "hw_counters", .skip = skip, .proven = true,
       .lifespan_ms = lifespan < 0 || lifespan > 10000 ? 10000 : (unsigned)lifespan},
  };
  ni_files_find(f, folders, 2);
}

void ni_ib_find(struct ni_find *f) {
  struct dirent **devices, **ports;
  char path[NI_ROOT_PATH], device[NI_ROOT_PATH], port[NI_ROOT_PATH], name[600];
  int n = ni_root_names(&devices, ni_root_path(path, "/sys/class/infiniband"));
  for (int i = 0; i < n; i++) {
    ni_root_path(device, "/sys/class/infiniband/%s", devices[i]->d_name);
    int m = ni_root_names(&ports, ni_root_path(path, "/sys/class/infiniband/%s/ports", devices[i]->d_name));
    if (m < 0) ni_set_unread(f->set, device, "its ports cannot be listed");
    for (int k = 0; k < m; k++) {
      snprintf(name, sizeof name, "%s:%s", devices[i]->d_name, ports[k]->d_name);
      port_of(f, name, device, ni_root_path(port, "/sys/class/infiniband/%s/ports/%s", devices[i]->d_name, ports[k]->d_name), m == 1);
    }
    ni_root_names_free(ports, m);
  }
  ni_root_names_free(devices, n);
}
