/*
 * Cassini (Slingshot): telemetry of each NIC, its retry handler, and what its driver says beside them.
 *
 *   /sys/class/cxi/cxi0/device/telemetry/...      "value@seconds.nanoseconds": each read asks the NIC, and
 *                                                 has its time
 *   /run/cxi/cxi0/...                             the retry handler's, a file system in user space
 *   /sys/class/cxi/cxi0/device/link_restarts/...  when the link came up again: a ring of ten. Each entry is a
 *                                                 gauge, so that two sweeps of different processes show as
 *                                                 many changed ones as restarts
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "files.h"
#include "source.h"

/* State and speed, where Cassini 1 and 2 have them. */
static void describe_link(struct ni_set *s, struct ni_entity *e, const char *device) {
  static const char *const files[][2] = {{"port/link", "port/speed"},
                                         {"port/0/link/state", "port/0/link/speed"},
                                         {"properties/link", "properties/speed"}};
  char speed[64] = "", state[64] = "", text[160];
  for (int i = 0; i < 3 && !*speed && !*state; i++) {
    ni_root_line(state, sizeof state, device, files[i][0]);
    ni_root_line(speed, sizeof speed, device, files[i][1]);
  }
  int gbit = atoi(speed + strcspn(speed, "0123456789")); /* "BS_200G", "bs200G" */
  if (!*speed && !*state)
    return;
  if (gbit > 0)
    snprintf(text, sizeof text, "%s, %d Gb/s", *state ? state : "state unknown", gbit);
  else
    snprintf(text, sizeof text, "%s", *state ? state : speed);
  e->link = ni_set_text(s, text);
  e->state = strcmp(state, "up") == 0 ? NI_LINK_UP
      : strcmp(state, "down") == 0    ? NI_LINK_DOWN
                                      : NI_LINK_UNKNOWN;
  e->link_bytes_s = gbit > 0 ? gbit * 1e9 / 8 : 0;
}

static void find_telemetry(struct ni_find *f, const char *name, const char *device) {
  static const char *const binary[] = {"ALL-in-binary", NULL};
  const struct ni_folder folder = {
      .path = device,
      .sub = "telemetry",
      .must = true,
      .stamped = true,
      .left = binary,
      .left_why = "skipped: all counters once more, in a form of the driver's own"};
  struct ni_entity *e = ni_find_entity(f, NI_METRIC_CXI, name);
  if (!e)
    return;
  ni_find_about(f, e, device);
  describe_link(f->set, e, device);
  if (ni_files_find(f, &folder, 1) == 0 && f->wanted->all)
    ni_set_unread(f->set, device, "no counters are in its telemetry");
}

static void find_other_files(struct ni_find *f, const char *name, const char *device) {
  static const char *const errors[] = {"pcie_*corr_err", NULL}, *const times[] = {"time_#", NULL};
  const struct ni_folder folders[] = {
      {.path = device, .sub = "properties", .only = errors, .proven = true},
      {.path = device, .sub = "link_restarts", .only = times, .prefix = "link_restart_", .proven = true},
  };
  if (ni_find_entity(f, NI_METRIC_CXIDEV, name))
    ni_files_find(f, folders, 2);
}

/*
 * A name proves nothing there, and an open file is read from the cache of FUSE: each is opened at each
 * reading.
 */
static void find_retry_handler(struct ni_find *f, const char *name, const char *run) {
  static const char *const orders[] = {"reset_counters", NULL};
  const struct ni_folder folder = {
      .path = run, .sub = name, .must = true, .skip = orders, .proven = true, .anew = true};
  if (ni_find_entity(f, NI_METRIC_RH, name))
    ni_files_find(f, &folder, 1);
}

/* "/sys/class/cxi", or a folder like it: its NICs. Returns how many. */
static int find_nics(struct ni_find *f, const char *folder) {
  struct dirent **names;
  char device[NI_ROOT_PATH];
  int nics = 0, n = ni_root_names(&names, folder);
  for (int i = 0; i < n; i++) {
    const char *name = names[i]->d_name;
    if (!ni_metric_fits("cxi#", name) ||
        snprintf(device, sizeof device, "%s/%s/device", folder, name) >= NI_ROOT_PATH - 64)
      continue;
    find_telemetry(f, name, device);
    if (!f->wanted->cxi_dir)
      find_other_files(f, name, device);
    nics++;
  }
  if (n < 0 && n != -ENOENT)
    ni_set_unread(f->set, folder, strerror(-n));
  ni_root_names_free(names, n);
  return nics;
}

/* Path: ".../cxi3/device/telemetry", of one NIC? Its name, and path becomes that of its device. */
static bool parse_telemetry_path(char *path, char name[64]) {
  static const char end[] = "/device/telemetry";
  char *nic = path + strlen(path) - strlen(end);
  if (nic <= path || strcmp(nic, end) != 0)
    return false;
  *nic = 0;
  const char *last = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  size_t len = strlen(last);
  bool is_one = len < 64 && ni_metric_fits("cxi#", last);
  if (is_one)
    memcpy(name, last, len + 1);
  strcpy(nic, is_one ? "/device" : end);
  return is_one;
}

void ni_cxi_find(struct ni_find *f) {
  char path[NI_ROOT_PATH], name[64];
  struct dirent **names;
  if (f->wanted->cxi_dir) {
    size_t n = (size_t)snprintf(path, sizeof path, "%s", f->wanted->cxi_dir);
    while (n > 1 && n < sizeof path && path[n - 1] == '/')
      path[--n] = 0;
    if (n < sizeof path - 64 && parse_telemetry_path(path, name))
      find_telemetry(f, name, path);
    else if (n >= sizeof path - 64 || !find_nics(f, path))
      ni_set_unread(f->set, f->wanted->cxi_dir,
                    "it has no NICs of Cassini: give a folder with entries cxi0, cxi1, ... as /sys/class/cxi "
                    "is, or one "
                    ".../cxi0/device/telemetry");
    return;
  }
  find_nics(f, ni_root_path(path, "/sys/class/cxi"));
  int n = ni_root_names(&names, ni_root_path(path, "/run/cxi"));
  for (int i = 0; i < n; i++)
    if (ni_metric_fits("cxi#", names[i]->d_name))
      find_retry_handler(f, names[i]->d_name, path);
  ni_root_names_free(names, n);
}
