#include "nearest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "root.h"

const char *ni_near_name(enum ni_near how) {
  static const char *const names[] = {NULL, "SYS", "PHB", "PXB", "PIX"};
  return names[how];
}

/* The devices on the way down to one: "0000:00:01.0/0000:01:00.0" of ".../pci0000:00/0000:00:01.0/0000:01:00.0"; and the host
 * bridge before them, into root. NULL: there is no such device. */
static const char *way(const char *path, char root[32]) {
  const char *s = path ? strstr(path, "/pci") : NULL;
  if (!s) return NULL;
  size_t n = strcspn(++s, "/");
  snprintf(root, 32, "%.*s", (int)n, s);
  return s[n] ? s + n + 1 : NULL;
}

static enum ni_near near_of(const char *a, const char *b) {
  char root_a[32], root_b[32];
  const char *way_a = way(a, root_a), *way_b = way(b, root_b);
  if (!way_a || !way_b) return NI_NEAR_UNKNOWN;
  if (strcmp(root_a, root_b) != 0) return NI_NEAR_SYS;
  size_t same = 0; /* whole names that both ways begin with */
  for (size_t i = 0; way_a[i] && way_a[i] == way_b[i]; i++)
    if (way_a[i] == '/') same = i + 1;
  if (!same) return NI_NEAR_PHB;
  return strchr(way_a + same, '/') || strchr(way_b + same, '/') ? NI_NEAR_PXB : NI_NEAR_PIX;
}

/* Where the device really lies, to be freed; NULL: nowhere. */
static char *place(const char *pci) {
  char path[NI_ROOT_PATH];
  return pci ? realpath(ni_root_path(path, "/sys/bus/pci/devices/%s", pci), NULL) : NULL;
}

enum { GPUS = 256 };
struct gpus {
  struct {
    char *at, name[32];
    const char *pci; /* its address: the end of at */
    int numa;
  } gpu[GPUS];
  size_t n;
};

static void add(struct gpus *g, const char *pci, const char *name, int numa) {
  char *at = place(pci);
  if (at && g->n < GPUS) {
    snprintf(g->gpu[g->n].name, sizeof g->gpu[g->n].name, "%s", name);
    g->gpu[g->n].at = at;
    g->gpu[g->n].pci = strrchr(at, '/') ? strrchr(at, '/') + 1 : at;
    g->gpu[g->n++].numa = numa;
  } else {
    free(at);
  }
}

/* Where NVML names none: display controllers of NVIDIA's. */
static void of_pci(struct gpus *g) {
  struct dirent **names;
  char at[NI_ROOT_PATH], vendor[64], class[64], numa[64];
  int n = ni_root_names(&names, ni_root_path(at, "/sys/bus/pci/devices"));
  for (int i = 0; i < n; i++) {
    ni_root_path(at, "/sys/bus/pci/devices/%s", names[i]->d_name);
    if (ni_root_line(vendor, sizeof vendor, at, "vendor") > 0 && strcmp(vendor, "0x10de") == 0 &&
        ni_root_line(class, sizeof class, at, "class") > 0 && strncmp(class, "0x03", 4) == 0)
      add(g, names[i]->d_name, names[i]->d_name, ni_root_line(numa, sizeof numa, at, "numa_node") > 0 ? atoi(numa) : -1);
  }
  ni_root_names_free(names, n);
}

/* All that are as near to a device as the nearest. */
static void list_all(const struct gpus *g, const char *at, struct ni_nearest *out) {
  size_t n = 0, room = sizeof out->all;
  for (size_t k = 0; out->how > NI_NEAR_SYS && k < g->n; k++)
    if (near_of(at, g->gpu[k].at) == out->how && n + strlen(g->gpu[k].pci) + 2 < room)
      n += (size_t)snprintf(out->all + n, room - n, "%s%s", n ? "," : "", g->gpu[k].pci);
}

int ni_nearest_find(const struct ni_set *s, struct ni_nearest *out) {
  struct gpus *g = calloc(1, sizeof *g);
  if (!g) return -ENOMEM;
  for (size_t i = 0; i < s->n_entities; i++)
    if (s->entity[i].source == NI_METRIC_GPU) add(g, s->entity[i].pci, s->entity[i].name, s->entity[i].numa);
  if (!g->n) of_pci(g);
  for (size_t i = 0; i < s->n_entities; i++) {
    char *at = s->entity[i].source == NI_METRIC_GPU ? NULL : place(s->entity[i].pci);
    int most = 0;
    out[i] = (struct ni_nearest){0};
    for (size_t k = 0; at && k < g->n; k++) {
      enum ni_near how = near_of(at, g->gpu[k].at);
      int rank = 2 * (int)how + (s->entity[i].numa >= 0 && s->entity[i].numa == g->gpu[k].numa);
      if (!how || rank <= most) continue;
      most = rank;
      out[i].how = how;
      memcpy(out[i].gpu, g->gpu[k].name, sizeof out[i].gpu);
    }
    if (at) list_all(g, at, &out[i]);
    free(at);
  }
  for (size_t i = 0; i < g->n; i++) free(g->gpu[i].at);
  free(g);
  return 0;
}
