#include "nearest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "source.h"

const char *ni_near_name(enum ni_near how) {
  static const char *const names[] = {NULL, "SYS", "PHB", "PXB", "PIX"};
  return names[how];
}

/* Of two devices, by where they really lie: ".../pci0000:00/0000:00:01.0/0000:01:00.0", the host bridge first. */
static enum ni_near near_of(const char *a, const char *b) {
  size_t shared = 0, end = 0; /* whole names that both begin with */
  if (!(a = strstr(a, "/pci")) || !(b = strstr(b, "/pci"))) return NI_NEAR_UNKNOWN;
  for (size_t i = 1; a[i] && a[i] == b[i]; i++)
    if (a[i] == '/') shared++, end = i + 1;
  if (shared < 2) return shared ? NI_NEAR_PHB : NI_NEAR_SYS;
  return strchr(a + end, '/') || strchr(b + end, '/') ? NI_NEAR_PXB : NI_NEAR_PIX;
}

enum { GPUS = 256 };
struct gpus {
  struct gpu {
    char *at; /* where it really lies; its end is its address */
    const char *pci, *name;
    int numa;
  } gpu[GPUS];
  size_t n;
};

/* Where the device really lies, to be freed; NULL: nowhere. */
static char *place(const char *pci) {
  char path[NI_ROOT_PATH];
  return pci ? realpath(ni_root_path(path, "/sys/bus/pci/devices/%s", pci), NULL) : NULL;
}

/* name NULL: its address is its name. */
static void add(struct gpus *g, const char *pci, const char *name, int numa) {
  char *at = g->n < GPUS ? place(pci) : NULL;
  if (!at) return;
  pci = strrchr(at, '/') + 1;
  g->gpu[g->n++] = (struct gpu){at, pci, name ? name : pci, numa};
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
      add(g, names[i]->d_name, NULL, ni_root_line(numa, sizeof numa, at, "numa_node") > 0 ? atoi(numa) : -1);
  }
  ni_root_names_free(names, n);
}

static void nearest_of(const struct gpus *g, const char *at, int numa, struct ni_nearest *out) {
  int most = 0;
  size_t used = 0, room = sizeof out->all;
  for (const struct gpu *k = g->gpu; k < g->gpu + g->n; k++) {
    enum ni_near how = near_of(at, k->at);
    int rank = 2 * (int)how + (numa >= 0 && numa == k->numa);
    if (!how || rank <= most) continue;
    most = rank;
    out->how = how;
    snprintf(out->gpu, sizeof out->gpu, "%s", k->name);
  }
  for (const struct gpu *k = g->gpu; k < g->gpu + g->n && out->how > NI_NEAR_SYS; k++) /* all that are as near */
    if (near_of(at, k->at) == out->how && used + strlen(k->pci) + 2 < room)
      used += (size_t)snprintf(out->all + used, room - used, "%s%s", used ? "," : "", k->pci);
}

int ni_nearest_find(const struct ni_set *s, struct ni_nearest *out) {
  struct gpus *g = calloc(1, sizeof *g);
  if (!g) return -ENOMEM;
  for (const struct ni_entity *e = s->entity; e < s->entity + s->n_entities; e++)
    if (e->source == NI_METRIC_GPU) add(g, e->pci, e->name, e->numa);
  if (!g->n) of_pci(g);
  for (size_t i = 0; i < s->n_entities; i++) {
    const struct ni_entity *e = &s->entity[i];
    char *at = e->source == NI_METRIC_GPU ? NULL : place(e->pci);
    out[i] = (struct ni_nearest){0};
    if (at) nearest_of(g, at, e->numa, &out[i]);
    free(at);
  }
  for (size_t i = 0; i < g->n; i++) free(g->gpu[i].at);
  free(g);
  return 0;
}
