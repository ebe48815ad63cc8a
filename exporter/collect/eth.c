/*
 * Interfaces of this network namespace: what the kernel counts of each, and what its driver counts (ethtool.h).
 *
 * Virtual ones count as well where they are up: a container's eth0 is one. RDMA passes by all these.
 */
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "ethtool.h"
#include "files.h"
#include "root.h"

/* "up, 25 Gb/s" */
static void link_of(struct ni_set *s, const char *folder) {
  struct ni_entity *e = &s->entity[s->n_entities - 1];
  char state[64], speed[64], text[128];
  long mbit = ni_line_of(speed, sizeof speed, folder, "speed") > 0 ? atol(speed) : -1; /* -1, or EINVAL: none is known */
  if (ni_line_of(state, sizeof state, folder, "operstate") <= 0) return;
  if (mbit > 0) snprintf(text, sizeof text, "%s, %g Gb/s", state, (double)mbit / 1e3);
  e->link = ni_set_text(s, mbit > 0 ? text : state);
  e->link_bytes_s = mbit > 0 ? (double)mbit * 1e6 / 8 : 0;
}

void ni_eth_find(struct ni_find *f) {
  static const char *const changes[] = {"carrier_changes", NULL};
  char **names, folder[NI_ROOT_PATH], device[NI_ROOT_PATH], text[64];
  int n = ni_root_names(&names, "/sys/class/net");
  for (int i = 0; i < n; i++) {
    ni_root_path(folder, "/sys/class/net/%s", names[i]);
    char *real = realpath(ni_root_path(device, "/sys/class/net/%s/device", names[i]), NULL);
    bool up = ni_line_of(text, sizeof text, folder, "flags") > 0 && strtol(text, NULL, 16) & 1;
    free(real);
    if ((!real && !up) || ni_line_of(text, sizeof text, folder, "statistics/rx_bytes") < 0) continue; /* or it is no interface */
    if (ni_find_entity(f, NI_METRIC_ETH, names[i])) {
      ni_device_about(f->set, device);
      link_of(f->set, folder);
      struct ni_files *x = ni_files_new(f);
      ni_files_folder(f, x, &(struct ni_folder){.path = folder, .sub = "statistics", .must = true});
      ni_files_folder(f, x, &(struct ni_folder){.path = folder, .only = changes, .proven = true});
      ni_files_done(f, x);
    }
    if (ni_ethtool_find(f, names[i])) link_of(f->set, folder);
  }
  ni_root_names_free(names, n);
}
