#include "out_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int ni_sink_open(struct ni_pq_sink *s, const char *path) {
  *s = (struct ni_pq_sink){.fd = -1};
  if (!(s->path = strdup(path))) return -ENOMEM;
  s->fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (s->fd >= 0) return 0;
  int e = -errno;
  free(s->path);
  s->path = NULL;
  return e;
}

int ni_sink_writev(struct ni_pq_sink *s, struct iovec *iov, int n) {
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

int ni_sink_commit(struct ni_pq_sink *s) {
  int rc = close(s->fd) != 0 && errno != EINTR ? -errno : 0;
  s->fd = -1;
  if (rc) return rc;
  free(s->path);
  s->path = NULL;
  return 0;
}

void ni_sink_discard(struct ni_pq_sink *s) {
  if (s->fd >= 0) close(s->fd);
  if (s->path) unlink(s->path);
  free(s->path);
  *s = (struct ni_pq_sink){.fd = -1};
}
