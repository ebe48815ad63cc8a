#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/array.h"

static const char *root = "";

static void read_root(void) {
  const char *said = getenv("NI_ROOT");
  if (said)
    root = said;
}

const char *ni_root_path(char out[NI_ROOT_PATH], const char *format, ...) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  va_list args;
  pthread_once(&once, read_root);
  int n = snprintf(out, NI_ROOT_PATH, "%s", root);
  va_start(args, format);
  if (n < NI_ROOT_PATH)
    n += vsnprintf(out + n, (size_t)(NI_ROOT_PATH - n), format, args);
  va_end(args);
  if (n >= NI_ROOT_PATH)
    *out = 0;
  return out;
}

int ni_root_read(int fd, char *out, size_t size) {
  ssize_t n = pread(fd, out, size - 1, 0);
  out[n > 0 ? n : 0] = 0;
  return n < 0 ? -errno : (int)n;
}

int ni_root_line(char *out, size_t size, const char *folder, const char *file) {
  char p[NI_ROOT_PATH];
  *out = 0;
  if (snprintf(p, sizeof p, "%s%s%s", folder, file ? "/" : "", file ? file : "") >= NI_ROOT_PATH)
    return -ENAMETOOLONG;
  int fd = open(p, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return -errno;
  int n = ni_root_read(fd, out, size);
  close(fd);
  if (n < 0)
    return n;
  out[strcspn(out, "\n")] = 0;
  return (int)strlen(out);
}

static int is_visible(const struct dirent *d) { return d->d_name[0] != '.'; }

int ni_root_names(struct dirent ***names, const char *folder) {
  *names = NULL;
  int n = scandir(folder, names, is_visible, versionsort);
  return n < 0 ? -errno : n;
}

void ni_root_names_free(struct dirent **names, int n) {
  for (int i = 0; i < n; i++)
    free(names[i]);
  free(names);
}

bool ni_find_source(const struct ni_find *f, enum ni_metric_source source) {
  return !f->wanted->sources || f->wanted->sources >> source & 1;
}

struct ni_entity *ni_find_entity(struct ni_find *f, enum ni_metric_source source, const char *name) {
  const struct ni_wanted *w = f->wanted;
  if (!ni_find_source(f, source))
    return NULL;
  if (w->entities && !ni_metric_fits_any(w->entities, name))
    return NULL;
  return ni_set_entity(f->set, source, name);
}

bool ni_find_is_named(const struct ni_find *f, const char *name) {
  return f->wanted->counters && ni_metric_fits_any(f->wanted->counters, name);
}

bool ni_find_is_asked(const struct ni_find *f, enum ni_metric_source source, const char *name) {
  return f->wanted->all || ni_metric_short(source, name) || ni_find_is_named(f, name);
}

bool ni_find_counter(struct ni_find *f, const char *name) {
  enum ni_metric_source source = (enum ni_metric_source)f->set->entity[f->set->n_entities - 1].source;
  return ni_find_is_asked(f, source, name) && ni_set_counter(f->set, name);
}

void ni_find_reader(struct ni_find *f, struct ni_counter_reader *r) {
  const struct ni_entity *e = &f->set->entity[f->set->n_entities - 1];
  r->first = e->first;
  r->n = e->n;
  if (!e->n || !ni_array_room(f->reader, f->n_readers, f->cap_readers)) {
    if (e->n)
      f->set->failed = true;
    else if (!e->link)
      f->set->n_entities--;
    r->close(r);
  } else {
    f->reader[f->n_readers++] = r;
  }
}

/* "0000:c1:00.0", as PCI names its devices? A domain may have more digits. */
static bool is_pci_address(const char *name) {
  static const char form[] = "xxxx:xx:xx.x";
  size_t n = strlen(name);
  if (n < strlen(form))
    return false;
  name += n - strlen(form);
  for (n = 0; form[n]; n++)
    if (form[n] == 'x' ? !strchr("0123456789abcdef", name[n]) : form[n] != name[n])
      return false;
  return true;
}

/* A number of one of the device's files; 0: there is none. */
static double read_amount(const char *device, const char *file, char text[64]) {
  return ni_root_line(text, 64, device, file) > 0 ? strtod(text, NULL) : 0;
}

/* What its link to the host has, and could have. */
static const char *describe_lacks(char out[200], const char *device) {
  char width[64], most[64], speed[64], fastest[64];
  bool narrow =
      read_amount(device, "current_link_width", width) < read_amount(device, "max_link_width", most);
  bool slow =
      read_amount(device, "current_link_speed", speed) < read_amount(device, "max_link_speed", fastest);
  /* A link without a width is none, as that of a device behind a hypervisor. */
  if (!strtod(width, NULL) || !strtod(speed, NULL))
    return NULL;
  if (!narrow && !slow)
    return NULL;
  int n = snprintf(out, 200, "PCIe link");
  if (narrow)
    n += snprintf(out + n, 200 - (size_t)n, " x%.8s of x%.8s", width, most);
  if (slow)
    snprintf(out + n, 200 - (size_t)n, "%s %.24s of %.24s", narrow ? "," : "", speed, fastest);
  return out;
}

/* "15b3:1021": vendor and device. */
static const char *read_model(char out[32], const char *device) {
  char vendor[64], number[64];
  if (ni_root_line(vendor, sizeof vendor, device, "vendor") <= 0 ||
      ni_root_line(number, sizeof number, device, "device") <= 0)
    return NULL;
  snprintf(out, 32, "%.8s:%.8s", vendor + 2 * (strncmp(vendor, "0x", 2) == 0),
           number + 2 * (strncmp(number, "0x", 2) == 0));
  return out;
}

void ni_find_about(struct ni_find *f, struct ni_entity *e, const char *device) {
  char text[64], warning[200], is[32], *path = realpath(device, NULL),
                                       *end = path ? path + strlen(path) : NULL;
  if (!path)
    return;
  /* A device of a bus of its own, as virtio's, lies below that of PCI. */
  for (; end > path; *end = 0) {
    char *name = strrchr(path, '/') + 1;
    if (is_pci_address(name)) {
      e->pci = ni_set_text(f->set, name);
      e->warning = ni_set_text(f->set, describe_lacks(warning, path));
      e->kind = ni_set_text(f->set, read_model(is, path));
      e->numa = ni_root_line(text, sizeof text, path, "numa_node") > 0 ? atoi(text) : -1;
      break;
    }
    end = name - 1;
  }
  free(path);
}
