#include "gz_out.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "test/jobs/plan/layout.h"

static void fail(const struct nj_out *o) {
  fprintf(stderr, "ni-jobs: %s: %s\n", o->path, strerror(errno));
  exit(1);
}

int nj_out_level = 1;

void nj_out_open(struct nj_out *o, const char *path) {
  snprintf(o->path, sizeof o->path, "%s", path);
  o->text = nj_more(NULL, NJ_MEMBER);
  o->n = 0;
  o->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (o->fd < 0)
    fail(o);
}

static void put_member(struct nj_out *o) {
  static z_stream z;
  static unsigned char *out;
  size_t room = NJ_MEMBER + (NJ_MEMBER >> 8) + 64;
  if (!out) {
    out = nj_more(NULL, room);
    if (deflateInit2(&z, nj_out_level, Z_DEFLATED, 15 + 16, 9, Z_DEFAULT_STRATEGY) != Z_OK)
      nj_more(NULL, ~0ul);
  }
  deflateReset(&z);
  z.next_in = (unsigned char *)o->text;
  z.avail_in = (unsigned)o->n;
  z.next_out = out;
  z.avail_out = (unsigned)room;
  deflate(&z, Z_FINISH);
  if (write(o->fd, out, room - z.avail_out) != (ssize_t)(room - z.avail_out))
    fail(o);
  o->n = 0;
}

char *nj_out_room(struct nj_out *o) {
  if (o->n + NJ_LINE_MAX > NJ_MEMBER)
    put_member(o);
  return o->text + o->n;
}

void nj_out_line(struct nj_out *o, const char *end) { o->n = (size_t)(end - o->text); }

void nj_out_close(struct nj_out *o) {
  if (o->n)
    put_member(o);
  if (close(o->fd) != 0)
    fail(o);
  free(o->text);
}
