#include "root.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *root = "";

static void look(void) {
  const char *said = getenv("NI_ROOT");
  if (said) root = said;
}

const char *ni_root_path(char out[NI_ROOT_PATH], const char *format, ...) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  va_list args;
  pthread_once(&once, look);
  int n = snprintf(out, NI_ROOT_PATH, "%s", root);
  va_start(args, format);
  if (n < NI_ROOT_PATH) n += vsnprintf(out + n, (size_t)(NI_ROOT_PATH - n), format, args);
  va_end(args);
  if (n >= NI_ROOT_PATH) *out = 0;
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
  if (snprintf(p, sizeof p, "%s%s%s", folder, file ? "/" : "", file ? file : "") >= NI_ROOT_PATH) return -ENAMETOOLONG;
  int fd = open(p, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return -errno;
  int n = ni_root_read(fd, out, size);
  close(fd);
  if (n < 0) return n;
  out[strcspn(out, "\n")] = 0;
  return (int)strlen(out);
}

static int visible(const struct dirent *d) { return d->d_name[0] != '.'; }

int ni_root_names(struct dirent ***names, const char *folder) {
  *names = NULL;
  int n = scandir(folder, names, visible, versionsort);
  return n < 0 ? -errno : n;
}

void ni_root_names_free(struct dirent **names, int n) {
  for (int i = 0; i < n; i++) free(names[i]);
  free(names);
}
