/*
 * Interfaces of this network namespace: what the kernel counts of each, and what its driver counts (ethtool.c).
 *
 * Virtual ones count as well where they are up: a container's eth0 is one. RDMA passes by all these.
 */
#include <stdlib.h>
#include <unistd.h>

#include "files.h"
#include "root.h"

/* "up, 25 Gb/s" */
static void link_of(struct ni_set *s, struct ni_entity *e, const char *folder) {
  char state[64], speed[64], text[128];
  long mbit = ni_root_line(speed, sizeof speed, folder, "speed") > 0 ? atol(speed) : -1; /* -1, or EINVAL: none is known */
  if (ni_root_line(state, sizeof state, folder, "operstate") <= 0) return;
  if (mbit > 0) snprintf(text, sizeof text, "%s, %g Gb/s", state, (double)mbit / 1e3);
  e->link = ni_set_text(s, mbit > 0 ? text : state);
  e->link_bytes_s = mbit > 0 ? (double)mbit * 1e6 / 8 : 0;
}

void ni_eth_find(struct ni_find *f) {
  static const char *const changes[] = {"carrier_changes", NULL};
  struct dirent **names;
  char folder[NI_ROOT_PATH], device[NI_ROOT_PATH], text[64];
  int n = ni_root_names(&names, ni_root_path(folder, "/sys/class/net"));
  for (int i = 0; i < n; i++) {
    const char *name = names[i]->d_name;
    ni_root_path(folder, "/sys/class/net/%s", name);
    bool real = access(ni_root_path(device, "/sys/class/net/%s/device", name), F_OK) == 0;
    bool up = ni_root_line(text, sizeof text, folder, "flags") > 0 && strtol(text, NULL, 16) & 1;
    if ((!real && !up) || ni_root_line(text, sizeof text, folder, "statistics/rx_bytes") < 0) continue; /* or it is no interface */
    struct ni_entity *e = ni_find_entity(f, NI_METRIC_ETH, name);
    if (e) {
      const struct ni_folder folders[] = {{.path = folder, .sub = "statistics", .must = true},
                                          {.path = folder, .only = changes, .proven = true}};
      ni_find_about(f, e, device);
      link_of(f->set, e, folder);
      ni_files_find(f, folders, 2);
    }
    if (ni_ethtool_find(f, name)) link_of(f->set, &f->set->entity[f->set->n_entities - 1], folder);
  }
  ni_root_names_free(names, n);
}
