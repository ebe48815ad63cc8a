/*
 * InfiniBand and RoCE: each port's counters. In counters/ are those of the port management agent, each read a query of it; in
 * hw_counters/ those of the driver (mlx5, bnxt_re, efa, ...), which asks the NIC no more often than once in `lifespan`.
 */
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "files.h"
#include "root.h"

/* "ACTIVE, 400 Gb/sec (4X NDR), InfiniBand" */
static void link_of(struct ni_set *s, const char *device, const char *port) {
  struct ni_entity *e = &s->entity[s->n_entities - 1];
  char state[64], rate[64], layer[64], vendor[64], text[256];
  ni_line_of(state, sizeof state, port, "state"); /* "4: ACTIVE" */
  ni_line_of(rate, sizeof rate, port, "rate");
  ni_line_of(layer, sizeof layer, port, "link_layer");
  const char *word = strstr(state, ": ");
  bool efa = ni_line_of(vendor, sizeof vendor, device, "vendor") > 0 && strcmp(vendor, "0x1d0f") == 0 && atoi(rate) == 100;
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
  char text[64], of_device[NI_ROOT_PATH];
  if (!ni_find_entity(f, NI_METRIC_IB, name)) return;
  snprintf(of_device, sizeof of_device, "%s", device);
  strncat(of_device, "/device", sizeof of_device - strlen(of_device) - 1);
  ni_device_about(f->set, of_device);
  link_of(f->set, of_device, port);
  struct ni_files *x = ni_files_new(f);
  struct ni_folder hw = {.path = port, .sub = "hw_counters", .skip = skip, .proven = true, .lifespan_ms = 10};
  if (ni_line_of(text, sizeof text, port, "hw_counters/lifespan") > 0) hw.lifespan_ms = (unsigned)atoi(text);
  if (hw.lifespan_ms > 10000) hw.lifespan_ms = 10000;
  ni_files_folder(f, x, &(struct ni_folder){.path = port, .sub = "counters", .proven = true});
  if (ni_files_folder(f, x, &hw) < 0 && one) {
    hw.path = device;
    ni_files_folder(f, x, &hw);
  }
  ni_files_done(f, x);
}

void ni_ib_find(struct ni_find *f) {
  char **devices, **ports, device[NI_ROOT_PATH], port[NI_ROOT_PATH], name[300];
  int n = ni_root_names(&devices, "/sys/class/infiniband");
  for (int i = 0; i < n; i++) {
    ni_root_path(device, "/sys/class/infiniband/%s", devices[i]);
    int m = ni_root_names(&ports, "/sys/class/infiniband/%s/ports", devices[i]);
    if (m < 0) ni_set_unread(f->set, device, "its ports cannot be listed");
    for (int k = 0; k < m; k++) {
      snprintf(name, sizeof name, "%s:%s", devices[i], ports[k]);
      port_of(f, name, device, ni_root_path(port, "/sys/class/infiniband/%s/ports/%s", devices[i], ports[k]), m == 1);
    }
    ni_root_names_free(ports, m);
  }
  ni_root_names_free(devices, n);
}
