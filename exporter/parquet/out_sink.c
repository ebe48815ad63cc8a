#include "out_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int ni_sink_open(struct ni_sink *s, const char *path, int fd, bool direct) {
  *s = (struct ni_sink){.fd = fd};
  if (!path) return fd < 0 ? -EBADF : 0;
  s->fd = -1;
  s->path = strdup(path);
  if (!s->path) return -ENOMEM;
  int rc = -ENOMEM;
  if (!direct) {
    /* The pid keeps two processes apart; within a process O_EXCL refuses a second writer of the same file. */
    if (asprintf(&s->temp_path, "%s.tmp-%ld", path, (long)getpid()) < 0) {
      s->temp_path = NULL;
      goto out_free;
    }
  }
  s->fd = open(s->temp_path ? s->temp_path : path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (s->fd < 0) {
    rc = -errno;
    goto out_free;
  }
  s->owned = true;
  return 0;
out_free:
  free(s->temp_path);
  free(s->path);
  *s = (struct ni_sink){.fd = -1};
  return rc;
}

int ni_sink_writev(struct ni_sink *s, struct iovec *iov, int n) {
  while (n > 0) {
    if (iov->iov_len == 0) {
      iov++;
      n--;
      continue;
    }
    ssize_t got = writev(s->fd, iov, n < IOV_MAX ? n : IOV_MAX);
    if (got < 0) {
      if (errno == EINTR) continue;
      return -errno;
    }
    if (got == 0) return -EIO;
    s->offset += (uint64_t)got;
    for (size_t left = (size_t)got; left;) {
      size_t m = left < iov->iov_len ? left : iov->iov_len;
      iov->iov_base = (char *)iov->iov_base + m;
      iov->iov_len -= m;
      left -= m;
      if (iov->iov_len == 0) {
        iov++;
        n--;
      }
    }
  }
  return 0;
}

int ni_sink_commit(struct ni_sink *s, bool sync) {
  if (sync && fsync(s->fd) != 0 && errno != EINVAL && errno != EROFS) return -errno; /* a pipe has nothing to sync */
  if (!s->owned) {
    free(s->path);
    *s = (struct ni_sink){.fd = -1, .offset = s->offset};
    return 0;
  }
  int rc = close(s->fd) != 0 && errno != EINTR ? -errno : 0;
  s->fd = -1;
  if (rc) return rc;
  if (s->temp_path && rename(s->temp_path, s->path) != 0) return -errno;
  free(s->temp_path);
  free(s->path);
  *s = (struct ni_sink){.fd = -1, .offset = s->offset};
  return 0;
}

void ni_sink_discard(struct ni_sink *s) {
  if (s->owned) {
    if (s->fd >= 0) close(s->fd);
    unlink(s->temp_path ? s->temp_path : s->path);
  }
  free(s->temp_path);
  free(s->path);
  *s = (struct ni_sink){.fd = -1};
}
