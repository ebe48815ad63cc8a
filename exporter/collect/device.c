#include "device.h"

#include <stdlib.h>
#include <string.h>

#include "root.h"

/* "0000:c1:00.0", as PCI names its devices? A domain may have more digits. */
static bool is_pci(const char *name) {
  static const char form[] = "xxxx:xx:xx.x";
  size_t n = strlen(name);
  if (n < strlen(form)) return false;
  name += n - strlen(form);
  for (n = 0; form[n]; n++)
    if (form[n] == 'x' ? !strchr("0123456789abcdef", name[n]) : form[n] != name[n]) return false;
  return true;
}

/* A number of one of the device's files; 0: there is none. */
static double amount(const char *device, const char *file, char text[64]) {
  return ni_root_line(text, 64, device, file) > 0 ? strtod(text, NULL) : 0;
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

void ni_device_about(struct ni_set *s, struct ni_entity *e, const char *device) {
  char text[64], warning[200], *path = realpath(device, NULL), *end = path ? path + strlen(path) : NULL;
  if (!path) return;
  /* A device of a bus of its own, as virtio's, lies below that of PCI. */
  for (; end > path; *end = 0) {
    char *name = strrchr(path, '/') + 1;
    if (is_pci(name)) {
      e->pci = ni_set_text(s, name);
      e->warning = ni_set_text(s, lacks(warning, path));
      e->numa = ni_root_line(text, sizeof text, path, "numa_node") > 0 ? atoi(text) : -1;
      break;
    }
    end = name - 1;
  }
  free(path);
}
