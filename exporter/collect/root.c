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

static const char *path(char out[NI_ROOT_PATH], const char *format, va_list args) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, look);
  int n = snprintf(out, NI_ROOT_PATH, "%s", root);
  int m = n < NI_ROOT_PATH ? vsnprintf(out + n, (size_t)(NI_ROOT_PATH - n), format, args) : 0;
  if (n + m >= NI_ROOT_PATH) *out = 0;
  return out;
}

#define PATH(name, format)                            \
  char name[NI_ROOT_PATH];                            \
  do {                                                \
    va_list args_;                                    \
    va_start(args_, format);                          \
    path(name, format, args_);                        \
    va_end(args_);                                    \
  } while (0)

const char *ni_root_path(char out[NI_ROOT_PATH], const char *format, ...) {
  va_list args;
  va_start(args, format);
  path(out, format, args);
  va_end(args);
  return out;
}

int ni_root_open(const char *format, ...) {
  PATH(p, format);
  int fd = open(p, O_RDONLY | O_CLOEXEC);
  return fd < 0 ? -errno : fd;
}

int ni_root_read(int fd, char *out, size_t size) {
  ssize_t n = pread(fd, out, size - 1, 0);
  out[n > 0 ? n : 0] = 0;
  return n < 0 ? -errno : (int)n;
}

int ni_line_of(char *out, size_t size, const char *folder, const char *file) {
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

int ni_root_line(char *out, size_t size, const char *format, ...) {
  PATH(p, format);
  return ni_line_of(out, size, p, NULL);
}

static int visible(const struct dirent *d) { return d->d_name[0] != '.'; }

int ni_root_names(char ***names, const char *format, ...) {
  PATH(p, format);
  return ni_names_of(names, p);
}

int ni_names_of(char ***names, const char *folder) {
  struct dirent **found;
  *names = NULL;
  int n = scandir(folder, &found, visible, versionsort);
  if (n < 0) return -errno;
  char **list = calloc((size_t)n + 1, sizeof *list);
  int e = list ? n : -ENOMEM;
  for (int i = 0; i < n; i++) {
    if (list && !(list[i] = strdup(found[i]->d_name))) e = -ENOMEM;
    free(found[i]);
  }
  free(found);
  if (e < 0 && list) ni_root_names_free(list, n);
  else *names = list;
  return e;
}

void ni_root_names_free(char **names, int n) {
  for (int i = 0; names && i < n; i++) free(names[i]);
  free(names);
}
