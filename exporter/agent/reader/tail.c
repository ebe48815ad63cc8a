#include "tail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/input/gzip_header.h"
#include "exporter/input/inflate.h"
#include "exporter/input/line_reader.h"
#include "exporter/input/parse/parse.h"

/* what is flushed at once is rarely more than IN_BYTES */
enum { IN_BYTES = 16 << 10, TEXT_MAX = 8 << 20, PACKED_MAX = 16 << 20, LOOK_PIECES = 256 };

struct ni_tail {
  struct ni_inflater *z;
  char *text;
  size_t cap; /* of text, with the padding */
  uint8_t in[IN_BYTES];
};

int ni_tail_open(struct ni_tail **out) {
  struct ni_tail *t = *out = calloc(1, sizeof *t);
  if (!t || ni_inflater_open(&t->z, NI_INFLATE_AUTO) < 0 ||
      !ni_array_exact(&t->text, &t->cap, NI_MAX_LINE_BYTES + 1 + NI_PARSE_PADDING, 1)) {
    ni_tail_close(t);
    *out = NULL;
    return -ENOMEM;
  }
  memset(t->text, 0, t->cap);
  return 0;
}

void ni_tail_close(struct ni_tail *t) {
  if (t)
    ni_inflater_free(t->z);
  if (t)
    free(t->text);
  free(t);
}

static ssize_t read_at(int fd, void *to, size_t n, uint64_t at) {
  ssize_t got;
  do {
    got = pread(fd, to, n, (off_t)at);
  } while (got < 0 && errno == EINTR);
  return got < 0 ? -errno : got;
}

/*
 * Inflates the member at `at`, of which in_len bytes are in t->in, into t->text. 1: it is complete, *len
 * bytes, and ends before *end; 0: not yet; -EBADMSG: damaged.
 */
static int inflate_member(struct ni_tail *t, int fd, uint64_t at, size_t in_len, uint64_t *end, size_t *len) {
  uint64_t from = at;
  const uint8_t *in = t->in;
  at += in_len;
  ni_inflater_reset(t->z);
  for (*len = 0;;) {
    if (in_len == 0) {
      ssize_t got = read_at(fd, t->in, IN_BYTES, at);
      if (got <= 0)
        return (int)got;
      in = t->in;
      in_len = (size_t)got;
      at += in_len;
    }
    if (*len == t->cap - NI_PARSE_PADDING && *len < TEXT_MAX) {
      if (!ni_array_more(&t->text, &t->cap, 0, 1))
        return -ENOMEM;
      memset(t->text + *len, 0, t->cap - *len);
    }
    size_t in_had = in_len, left = t->cap - NI_PARSE_PADDING - *len, had = left;
    uint8_t *out = (uint8_t *)t->text + *len;
    enum ni_inflate_result r = ni_inflater_step(t->z, &in, &in_len, &out, &left);
    *len += had - left;
    if (r == NI_INF_END) {
      *end = at - in_len;
      return 1;
    }
    const bool stands = in_len == in_had && left == had;
    if (r != NI_INF_MORE || stands || at - from > PACKED_MAX)
      return -EBADMSG;
  }
}

static int emit_lines(struct ni_tail *t, size_t len, ni_tail_line *line, void *arg,
                      struct ni_live_totals *sum) {
  for (char *p = t->text, *end = p + len, *next; p < end; p = next) {
    char *lf = memchr(p, '\n', (size_t)(end - p));
    size_t n = (size_t)((lf ? lf : end) - p);
    next = lf ? lf + 1 : end;
    if (n == 0)
      continue;
    int e = n > NI_MAX_LINE_BYTES ? 1 : line(arg, p, n);
    if (e < 0)
      return e;
    sum->lines++;
    sum->bad_lines += e > 0;
  }
  sum->bytes += len;
  return 1;
}

/*
 * Finds where a member may begin, from `at` on; or where one could begin that is not complete yet; or 4 MiB
 * further.
 */
static int64_t find_header(struct ni_tail *t, int fd, uint64_t at) {
  for (int pieces = 0; pieces < LOOK_PIECES; pieces++) {
    off_t data = lseek(fd, (off_t)at, SEEK_DATA); /* not through holes, which cost nobody anything to make */
    if (data > (off_t)at)
      at = (uint64_t)data;
    ssize_t got = read_at(fd, t->in, IN_BYTES, at);
    if (got < NI_GZIP_HEADER_BYTES)
      return got < 0 ? got : (int64_t)at;
    const uint8_t *end = t->in + got - NI_GZIP_HEADER_BYTES + 1, *p = t->in;
    while ((p = memchr(p, 0x1f, (size_t)(end - p))) && !ni_gzip_header(p) && ++p < end) {}
    if (p && p < end)
      return (int64_t)at + (p - t->in);
    at += (uint64_t)(end - t->in);
  }
  return (int64_t)at;
}

static int step_gzip(struct ni_tail *t, int fd, struct ni_tail_at *p, ni_tail_line *line, void *arg,
                     struct ni_live_totals *sum) {
  uint64_t end = 0;
  size_t len;
  ssize_t got = read_at(fd, t->in, IN_BYTES, p->at);
  if (got < NI_GZIP_HEADER_BYTES)
    return got < 0 ? (int)got : 0;
  bool padding = t->in[0] == 0; /* tar and tape pad with zeros */
  int e = ni_gzip_header(t->in) ? inflate_member(t, fd, p->at, (size_t)got, &end, &len) : -EBADMSG;
  if (e == 1 && (e = emit_lines(t, len, line, arg, sum)) == 1)
    *p = (struct ni_tail_at){.at = end};
  if (e != -EBADMSG)
    return e;
  int64_t next = find_header(t, fd, p->at + 1);
  if (next < 0)
    return (int)next;
  sum->damages += !p->lost && !padding;
  *p = (struct ni_tail_at){(uint64_t)next, true};
  return 1;
}

/* Skips a line that is too long up to its end, and counts it when it is found. */
static int step_plain(struct ni_tail *t, int fd, struct ni_tail_at *p, ni_tail_line *line, void *arg,
                      struct ni_live_totals *sum) {
  ssize_t got = read_at(fd, t->text, NI_MAX_LINE_BYTES + 1, p->at);
  if (got <= 0)
    return (int)got;
  char *last = memrchr(t->text, '\n', (size_t)got),
       *first = last && p->lost ? memchr(t->text, '\n', (size_t)got) : NULL;
  if (!last && got <= (ssize_t)NI_MAX_LINE_BYTES && !p->lost)
    return 0;
  if (!last || first) {
    sum->lines += !p->lost;
    sum->bad_lines += !p->lost;
    *p = (struct ni_tail_at){p->at + (first ? (uint64_t)(first + 1 - t->text) : (uint64_t)got), !first};
    return 1;
  }
  int e = emit_lines(t, (size_t)(last + 1 - t->text), line, arg, sum);
  if (e == 1)
    p->at += (uint64_t)(last + 1 - t->text);
  return e;
}

/* The last line with a header in text[0..n); NULL: there is none. *lines: line feeds from it on, or all. */
static char *find_last_head(char *text, size_t n, bool begins, uint64_t *lines) {
  static const char head[] = NI_LINE_HEAD;
  for (char *lf; (lf = memrchr(text, '\n', n)); n = (size_t)(lf - text)) {
    if (memcmp(lf + 1, head, sizeof head - 1) == 0)
      return lf + 1;
    ++*lines;
  }
  return begins && memcmp(text, head, sizeof head - 1) == 0 ? text : NULL;
}

int ni_tail_marker(struct ni_tail *t, int fd, uint64_t at, ni_tail_line *line, void *arg, uint64_t *behind) {
  enum { HEAD = sizeof NI_LINE_HEAD - 1 };
  uint64_t to = at, lines = 0;
  char *found = NULL;
  ssize_t got = at ? read_at(fd, t->text, HEAD, at) : 0;
  if (got < HEAD || memcmp(t->text, NI_LINE_HEAD, HEAD) == 0)
    return got < 0 ? (int)got : 0;
  for (; !found && to && at - to < TEXT_MAX; to -= to < IN_BYTES ? to : IN_BYTES) {
    const uint64_t from = to < IN_BYTES ? 0 : to - IN_BYTES;
    /*
     * With what a line that begins at its end begins with: the last line feed of the piece before may be the
     * head's.
     */
    if ((got = read_at(fd, t->text, (size_t)(to - from) + HEAD, from)) < (ssize_t)(to - from))
      return got < 0 ? (int)got : 0;
    if ((found = find_last_head(t->text, (size_t)(to - from), from == 0, &lines)))
      at = from + (uint64_t)(found - t->text);
  }
  if (!found)
    return 0;
  got = read_at(fd, t->text, NI_MAX_LINE_BYTES + 1, at);
  char *lf = got > 0 ? memchr(t->text, '\n', (size_t)got) : NULL;
  if (!lf)
    return got < 0 ? (int)got : 0;
  *behind = lines ? lines - 1 : 0; /* one is the head's own */
  int e = line(arg, t->text, (size_t)(lf - t->text));
  return e < 0 ? e : 1;
}

int ni_tail_step(struct ni_tail *t, int fd, bool gzip, struct ni_tail_at *p, ni_tail_line *line, void *arg,
                 struct ni_live_totals *sum) {
  return (gzip ? step_gzip : step_plain)(t, fd, p, line, arg, sum);
}
