#include "source.h"

#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "root.h"

struct ni_entity *ni_find_entity(struct ni_find *f, enum ni_metric_source source, const char *name) {
  const struct ni_wanted *w = f->wanted;
  if (w->sources && !(w->sources >> source & 1)) return NULL;
  if (w->entities && !ni_metric_fits_any(w->entities, name)) return NULL;
  return ni_set_entity(f->set, source, name);
}

bool ni_find_named(const struct ni_find *f, const char *name) {
  return f->wanted->counters && ni_metric_fits_any(f->wanted->counters, name);
}

bool ni_find_asked(const struct ni_find *f, enum ni_metric_source source, const char *name) {
  return f->wanted->all || ni_metric_short(source, name) || ni_find_named(f, name);
}

bool ni_find_counter(struct ni_find *f, const char *name) {
  enum ni_metric_source source = (enum ni_metric_source)f->set->entity[f->set->n_entities - 1].source;
  return ni_find_asked(f, source, name) && ni_set_counter(f->set, name);
}

void ni_find_reader(struct ni_find *f, struct ni_reader *r) {
  const struct ni_entity *e = &f->set->entity[f->set->n_entities - 1];
  r->first = e->first;
  r->n = e->n;
  if (!e->n || !ni_array_room(f->reader, f->n_readers, f->cap_readers)) {
    if (e->n) f->set->failed = true;
    else if (!e->link) f->set->n_entities--;
    r->close(r);
  } else {
    f->reader[f->n_readers++] = r;
  }
}

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

void ni_find_about(struct ni_find *f, struct ni_entity *e, const char *device) {
  char text[64], warning[200], *path = realpath(device, NULL), *end = path ? path + strlen(path) : NULL;
  if (!path) return;
  /* A device of a bus of its own, as virtio's, lies below that of PCI. */
  for (; end > path; *end = 0) {
    char *name = strrchr(path, '/') + 1;
    if (is_pci(name)) {
      e->pci = ni_set_text(f->set, name);
      e->warning = ni_set_text(f->set, lacks(warning, path));
      e->numa = ni_root_line(text, sizeof text, path, "numa_node") > 0 ? atoi(text) : -1;
      break;
    }
    end = name - 1;
  }
  free(path);
}
