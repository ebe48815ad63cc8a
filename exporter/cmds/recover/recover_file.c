/* The part's file: lines in, gzip on disk, a name when it is whole. */
#include <errno.h>
#include <inttypes.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "recover_file.h"

#define MEMBER_TEXT (1u << 20) /* text of a gzip member: readers share a file by members */
#define MAX_NUMBER 1000000

/* Text that is not in a member yet. */
struct lines {
  int fd;
  size_t n;
  char text[MEMBER_TEXT];
};

/* A member ends with a line; a line is never so long as one. */
static int put_member(struct lines *l) {
  const char *end = memrchr(l->text, '\n', l->n);
  size_t n = end ? (size_t)(end - l->text) + 1 : l->n;
  int e = n ? ni_write_member(l->fd, l->text, n) : 0;
  memmove(l->text, l->text + n, l->n - n);
  l->n -= n;
  return e;
}

static ssize_t take(void *cookie, const char *text, size_t n) {
  struct lines *l = cookie;
  for (size_t done = 0, some; done < n; done += some) {
    some = n - done < MEMBER_TEXT - l->n ? n - done : MEMBER_TEXT - l->n;
    memcpy(l->text + l->n, text + done, some);
    l->n += some;
    int e = l->n == MEMBER_TEXT ? put_member(l) : 0;
    if (e < 0) {
      errno = -e;
      return 0;
    }
  }
  return (ssize_t)n;
}

static int end(void *cookie) {
  struct lines *l = cookie;
  int e = put_member(l);
  if (e == 0 && fsync(l->fd) != 0) e = -errno;
  free(l);
  errno = -e;
  return e < 0 ? -1 : 0;
}

FILE *ni_recover_lines(int fd) {
  struct lines *l = malloc(sizeof *l);
  if (!l) return NULL;
  l->fd = fd;
  l->n = 0;
  FILE *f = fopencookie(l, "w", (cookie_io_functions_t){.write = take, .close = end});
  if (!f) free(l);
  else (void)__fsetlocking(f, FSETLOCKING_BYCALLER); /* one thread */
  return f;
}

int ni_recover_name(struct ni_out_file *o, const char *stem, uint64_t from, char *name, size_t size) {
  for (uint64_t i = from; i - from < MAX_NUMBER; i++) {
    char number[24] = "";
    if (i) snprintf(number, sizeof number, ".%" PRIu64, i);
    snprintf(name, size, "%s%s.jsonl.gz", stem, number);
    int e = ni_out_commit(o, name, false);
    if (e != -EEXIST) return e;
  }
  ni_out_drop(o);
  return -EEXIST;
}
