#include "find.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "exporter/input/discover.h"
#include "ni_box.h"

int ni_find(const char *path, int depth, ni_find_wanted *wanted, ni_find_found *found, void *arg) {
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
  DIR *d = fd < 0 ? NULL : fdopendir(fd);
  struct dirent *x;
  struct stat st;
  char below[PATH_MAX];
  if (!d) return fd < 0 ? -errno : (close(fd), -ENOMEM);
  while ((x = readdir(d))) {
    bool folder = depth > 0 && x->d_name[0] != '.' && (x->d_type == DT_DIR || x->d_type == DT_UNKNOWN);
    if ((!folder && !wanted(arg, x->d_name)) || fstatat(fd, x->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISREG(st.st_mode) && wanted(arg, x->d_name)) found(arg, path, x->d_name, &st);
    if (folder && S_ISDIR(st.st_mode) && snprintf(below, sizeof below, "%s/%s", path, x->d_name) < (int)sizeof below)
      (void)ni_find(below, depth - 1, wanted, found, arg);
  }
  closedir(d);
  return 0;
}

bool ni_find_box(const void *arg, const char *name) {
  size_t n = strlen(name), suffix = sizeof NI_BOX_SUFFIX - 1;
  (void)arg;
  return strncmp(name, NI_BOX_PREFIX, sizeof NI_BOX_PREFIX - 1) == 0 && n > suffix && strcmp(name + n - suffix, NI_BOX_SUFFIX) == 0;
}

bool ni_find_log(const void *node, const char *name) {
  size_t n = strlen(node), stem = ni_log_stem(name, NULL);
  return strncmp(name, node, n) == 0 && strncmp(name + n, "-pid", 4) == 0 && (strstr(name + stem, ".log") || strstr(name + stem, ".jsonl"));
}
