#include "atlas_files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/text/safe_text.h"

void ni_atlas_say(struct ni_atlas *a, const char *folder, const char *what, const char *why) {
  if (!a->said)
    ni_say(stderr, "%s: the index of %s %s: %s\n", a->who, folder, what, why);
  a->said = true;
}

/* The same on every machine and at every run, unlike ni_hash(). */
static uint64_t hash_path(const char *text) {
  uint64_t h = 14695981039346656037u;
  for (; *text; text++)
    h = (h ^ (uint8_t)*text) * 1099511628211u;
  return h;
}

bool ni_atlas_place(const struct ni_atlas *a, const struct ni_atlas_folder *f, int shelf, char **folder,
                    char **name) {
  char real[PATH_MAX];
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  *folder = *name = NULL;
  if (!a->opt.dir && shelf == NI_SHELF_NEAR) {
    if (asprintf(folder, "%s/" NI_ATLAS_FOLDER, f->path) < 0)
      *folder = NULL;
    *name = strdup(a->opt.name ? a->opt.name : "index");
  } else {
    if (a->opt.dir && shelf == NI_SHELF_CACHE)
      return false;
    if (!realpath(f->path, real))
      return false;
    if (a->opt.dir)
      *folder = strdup(a->opt.dir);
    else if (cache && *cache == '/') {
      if (asprintf(folder, "%s/nccl-inspector/index", cache) < 0)
        *folder = NULL;
    } else if (home && *home == '/') {
      if (asprintf(folder, "%s/.cache/nccl-inspector/index", home) < 0)
        *folder = NULL;
    }
    if (asprintf(name, "%016llx%s%s", (unsigned long long)hash_path(real), a->opt.name ? "." : "",
                 a->opt.name ? a->opt.name : "") < 0)
      *name = NULL;
  }
  if (*folder && *name)
    return true;
  free(*folder);
  free(*name);
  return false;
}

int ni_atlas_sum(int fd, uint64_t at, uint64_t bytes, uint32_t *crc) {
  uint8_t buf[64 << 10];
  for (*crc = 0; bytes;) {
    ssize_t got = pread(fd, buf, bytes < sizeof buf ? (size_t)bytes : sizeof buf, (off_t)at);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return got < 0 ? -errno : -ENODATA;
    *crc = ni_crc32(*crc, buf, (size_t)got);
    at += (uint64_t)got;
    bytes -= (uint64_t)got;
  }
  return 0;
}
