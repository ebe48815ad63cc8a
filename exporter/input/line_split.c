#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "gzip_header.h"
#include "line_reader.h"
#include "line_split.h"

/*
 * A member larger than this is not inflated to prove a cut; our plugin's flushes are far below. It also
 * bounds the work of a split: two windows at most are read for each cut.
 */
enum { WINDOW_BYTES = 4 << 20, OUT_BYTES = 64 << 10, CANDIDATES_MAX = 16 };

static const char head[] = "{\"header\"";

struct split {
  int fd;
  uint64_t size;
  uint8_t *window;
  uint8_t *out;
  struct ni_inflater *inflater;
};

static ssize_t read_window(const struct split *s, uint64_t at, size_t n) {
  size_t got = 0;
  while (got < n) {
    ssize_t k = pread(s->fd, s->window + got, n - got, (off_t)(at + got));
    if (k < 0 && errno == EINTR)
      continue;
    if (k < 0)
      return -errno;
    if (k == 0)
      break;
    got += (size_t)k;
  }
  return (ssize_t)got;
}

/* Offset of the first line at or after at that begins with the head, 0 if there is none within a window. */
static uint64_t cut_plain(const struct split *s, uint64_t at) {
  ssize_t n = read_window(s, at - 1, WINDOW_BYTES);
  if (n <= 0)
    return 0;
  const uint8_t *p = s->window, *end = p + n;
  while ((p = memchr(p, '\n', (size_t)(end - p)))) {
    p++;
    if ((size_t)(end - p) < sizeof head - 1)
      return 0;
    if (memcmp(p, head, sizeof head - 1) == 0)
      return at - 1 + (uint64_t)(p - s->window);
  }
  return 0;
}

/*
 * Inflates one member in window[from..n). Its end, or 0; *last is its last byte, *first holds its first ones.
 */
static size_t inflate_member(struct split *s, size_t from, size_t n, uint8_t *last,
                             char first[sizeof head - 1]) {
  const uint8_t *in = s->window + from;
  size_t left = n - from, seen = 0;
  enum ni_inflate_result r;
  ni_inflater_reset(s->inflater);
  do {
    uint8_t *out = s->out;
    size_t out_left = OUT_BYTES, left_before = left;
    r = ni_inflater_step(s->inflater, &in, &left, &out, &out_left);
    size_t made = OUT_BYTES - out_left;
    for (size_t i = 0; i < made && seen + i < sizeof head - 1; i++)
      first[seen + i] = (char)s->out[i];
    seen += made;
    if (made > 0)
      *last = s->out[made - 1];
    if (r == NI_INF_MORE && made == 0 && left == left_before)
      return 0;
  } while (r == NI_INF_MORE);
  return r == NI_INF_END && seen >= sizeof head - 1 ? n - left : 0;
}

/* First proven member border at or after at. */
static uint64_t cut_gzip(struct split *s, uint64_t at) {
  ssize_t got = read_window(s, at, WINDOW_BYTES);
  size_t n = got > 0 ? (size_t)got : 0, tried = 0;
  for (size_t i = 0; i + NI_GZIP_HEADER_BYTES <= n && tried < CANDIDATES_MAX;) {
    uint8_t *p = memchr(s->window + i, 0x1f, n - i - NI_GZIP_HEADER_BYTES + 1);
    if (!p)
      return 0;
    i = (size_t)(p - s->window);
    if (!ni_gzip_header(p)) {
      i++;
      continue;
    }
    /* A member that is whole and sound here proves its own begin and the begin of the next. */
    char first[sizeof head - 1], next_first[sizeof head - 1];
    uint8_t last = 0, next_last = 0;
    size_t end = inflate_member(s, i, n, &last, first);
    tried++;
    if (end == 0) {
      i++;
      continue;
    }
    const bool may_begin = last == '\n' && end + NI_GZIP_HEADER_BYTES <= n && ni_gzip_header(s->window + end);
    if (may_begin && inflate_member(s, end, n, &next_last, next_first) &&
        memcmp(next_first, head, sizeof head - 1) == 0)
      return at + end;
    i = end;
  }
  return 0;
}

int ni_reader_split(const char *path, int want, uint64_t min_bytes, struct ni_range *out) {
  struct split s = {.fd = -1};
  int e = -ENOMEM, n = 0;
  struct stat st;
  s.fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (s.fd < 0 || fstat(s.fd, &st) < 0) {
    e = -errno;
    goto out;
  }
  s.size = (uint64_t)st.st_size;
  out[n++] = (struct ni_range){.to = UINT64_MAX >> 1};
  e = 1;
  if (min_bytes > 0 && (uint64_t)want > s.size / min_bytes)
    want = (int)(s.size / min_bytes);
  if (want < 2 || !S_ISREG(st.st_mode))
    goto out;
  s.window = malloc(WINDOW_BYTES);
  s.out = malloc(OUT_BYTES);
  if (!s.window || !s.out || (e = ni_inflater_open(&s.inflater, NI_INFLATE_AUTO)) < 0) {
    e = -ENOMEM;
    goto out;
  }
  ssize_t got = read_window(&s, 0, 2);
  bool gzip = got == 2 && s.window[0] == 0x1f && s.window[1] == 0x8b;
  for (int i = 1; i < want; i++) {
    uint64_t at = s.size / (uint64_t)want * (uint64_t)i;
    if (at <= out[n - 1].from)
      continue;
    uint64_t cut = gzip ? cut_gzip(&s, at) : cut_plain(&s, at);
    if (cut <= out[n - 1].from || cut >= s.size)
      continue;
    out[n - 1].to = cut;
    out[n++] = (struct ni_range){.from = cut, .to = UINT64_MAX >> 1};
  }
  e = n;
out:
  ni_inflater_free(s.inflater);
  free(s.window);
  free(s.out);
  if (s.fd >= 0)
    close(s.fd);
  return e;
}
