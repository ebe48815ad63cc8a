/* The part's file: gzip, on disk, then named. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "recover_box.h"

#define MEMBER_TEXT (1u << 20) /* text of a gzip member: readers share a file by members */
#define MAX_NUMBER 1000000

static int write_all(int fd, const unsigned char *p, size_t n) {
  while (n) {
    ssize_t put = write(fd, p, n);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return put < 0 ? -errno : -EIO;
    p += put;
    n -= (size_t)put;
  }
  return 0;
}

/* One gzip member of len bytes of text. */
static int write_member(int fd, const char *text, size_t len) {
  z_stream z = {0};
  if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) return -ENOMEM;
  uLong most = deflateBound(&z, (uLong)len);
  unsigned char *out = malloc(most);
  int e = -ENOMEM;
  if (out) {
    z.next_in = (Bytef *)(uintptr_t)text;
    z.avail_in = (uInt)len;
    z.next_out = out;
    z.avail_out = (uInt)most;
    e = deflate(&z, Z_FINISH) == Z_STREAM_END ? write_all(fd, out, most - z.avail_out) : -EIO;
  }
  deflateEnd(&z);
  free(out);
  return e;
}

static int write_members(int fd, const char *text, size_t len) {
  while (len) {
    size_t n = len;
    if (n > MEMBER_TEXT) { /* ends with a line; a line is never so long */
      const char *end = memrchr(text, '\n', MEMBER_TEXT);
      n = end ? (size_t)(end - text) + 1 : len;
    }
    int e = write_member(fd, text, n);
    if (e < 0) return e;
    text += n;
    len -= n;
  }
  return fsync(fd) == 0 ? 0 : -errno;
}

/* Gives the file its name: the first number that is free. Never replaces anything. */
static int name_it(const char *hidden, const char *stem, uint64_t from, char **path) {
  for (uint64_t i = from; i - from < MAX_NUMBER; i++) {
    char number[24] = "";
    if (i) snprintf(number, sizeof number, ".%" PRIu64, i);
    if (asprintf(path, "%s%s.jsonl.gz", stem, number) < 0) {
      *path = NULL;
      return -ENOMEM;
    }
    if (link(hidden, *path) == 0) return 0;
    int e = -errno;
    /* File systems without links: the name is free, as nobody else recovers this process's box meanwhile. */
    if ((e == -EPERM || e == -EOPNOTSUPP || e == -ENOSYS) && access(*path, F_OK) != 0 && rename(hidden, *path) == 0) return 0;
    free(*path);
    *path = NULL;
    if (e != -EEXIST) return e;
  }
  return -EEXIST;
}

int ni_recover_write(const char *stem, uint64_t from, const char *text, size_t len, char **path) {
  const char *slash = strrchr(stem, '/');
  int dir = slash ? (int)(slash - stem) + 1 : 0;
  char *hidden;
  *path = NULL;
  if (asprintf(&hidden, "%.*s.recover-%s-%ld", dir, stem, stem + dir, (long)getpid()) < 0) return -ENOMEM;
  int fd = open(hidden, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644), e = fd < 0 ? -errno : 0;
  if (e == 0) {
    e = write_members(fd, text, len);
    if (close(fd) != 0 && e == 0) e = -errno;
    if (e == 0) e = name_it(hidden, stem, from, path);
    unlink(hidden);
  }
  free(hidden);
  return e;
}
