#include "device.h"

#include <stdlib.h>
#include <string.h>

#include "root.h"

bool ni_device_is_pci(const char *name, size_t n) {
  static const char form[] = "xxxx:xx:xx.x";
  if (n < sizeof form - 1) return false;
  for (name += n - (sizeof form - 1), n = 0; form[n]; n++) /* a domain may have more digits */
    if (form[n] == 'x' ? !strchr("0123456789abcdef", name[n]) : form[n] != name[n]) return false;
  return true;
}

/* A number of one of the device's files; 0: there is none. */
static double amount(const char *device, const char *file, char text[64]) {
  return ni_line_of(text, 64, device, file) > 0 ? strtod(text, NULL) : 0;
}

/* What its link to the host has, and could have. */
static const char *lacks(char out[200], const char *device) {
  char width[64], most[64], speed[64], fastest[64];
  bool narrow = amount(device, "current_link_width", width) < amount(device, "max_link_width", most);
  bool slow = amount(device, "current_link_speed", speed) < amount(device, "max_link_speed", fastest);
  /* A link without a width is none, as that of a device behind a hypervisor. */
  if ((!narrow && !slow) || !strtod(width, NULL) || !strtod(speed, NULL)) return NULL;
  int n = snprintf(out, 200, "PCIe link");
  if (narrow) n += snprintf(out + n, 200 - (size_t)n, " x%.8s of x%.8s", width, most);
  if (slow) snprintf(out + n, 200 - (size_t)n, "%s %.24s of %.24s", narrow ? "," : "", speed, fastest);
  return out;
}

void ni_device_about(struct ni_set *s, const char *device) {
  struct ni_entity *e = &s->entity[s->n_entities - 1];
  char text[64], warning[200], *path = realpath(device, NULL), *end = path ? path + strlen(path) : NULL;
  if (!path) return;
  /* A device of a bus of its own, as virtio's, lies below that of PCI. */
  for (; end > path; *end = 0) {
    char *name = strrchr(path, '/') + 1;
    if (ni_device_is_pci(name, strlen(name))) {
      e->pci = ni_set_text(s, name);
      e->warning = ni_set_text(s, lacks(warning, path));
      e->numa = ni_line_of(text, sizeof text, path, "numa_node") > 0 ? atoi(text) : -1;
      break;
    }
    end = name - 1;
  }
  free(path);
}
