#include "csv_out.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exporter/base/text/safe_text.h"
#include "exporter/base/text/shortest.h"
#include "exporter/base/text/time_text.h"

enum { BUFFER_BYTES = 64 << 10, ROW_MAX_BYTES = 1024 };

struct ni_csv {
  int fd, error;
  bool p2p, local;
  size_t n;
  int64_t second;              /* of `stamp`; INT64_MIN: none */
  char stamp[32];
  uint64_t size;
  char human[32];
  char buffer[BUFFER_BYTES];
};

static int flush(struct ni_csv *c) {
  for (size_t done = 0; done < c->n && !c->error;) {
    ssize_t k = write(c->fd, c->buffer + done, c->n - done);
    if (k < 0 && errno == EINTR) continue;
    if (k < 0) c->error = -errno;
    else done += (size_t)k;
  }
  c->n = 0;
  return c->error;
}

static char *put_text(char *p, const char *text) {
  size_t n = strlen(text);
  memcpy(p, text, n);
  return p + n;
}

static char *put_u64(char *p, uint64_t v) {
  char digits[20];
  int n = 0;
  do digits[n++] = (char)('0' + v % 10);
  while (v /= 10);
  while (n) *p++ = digits[--n];
  return p;
}

static char *put_next_u64(char *p, uint64_t v) {
  *p++ = ',';
  return put_u64(p, v);
}

static char *put_i32(char *p, int32_t v) {
  if (v < 0) *p++ = '-';
  return put_u64(p, v < 0 ? (uint64_t)-(int64_t)v : (uint64_t)v);
}

/* numpy's print form. */
static char *put_set(char *p, const int32_t *v, unsigned n) {
  *p++ = '[';
  for (unsigned i = 0; i < n; i++) {
    if (i) *p++ = ' ';
    p = put_i32(p, v[i]);
  }
  *p++ = ']';
  return p;
}

/* YYYY-mm-dd HH:MM:SS.mmm, cut off below the millisecond. Rows come with few different seconds. */
static char *put_time(struct ni_csv *c, char *p, uint64_t us) {
  int64_t second = (int64_t)(us / 1000000);
  if (second != c->second) {
    c->second = second;
    ni_second_text(second, ' ', c->local, c->stamp);
  }
  p = put_text(p, c->stamp);
  unsigned ms = (unsigned)(us % 1000000 / 1000);
  *p++ = '.';
  *p++ = (char)('0' + ms / 100);
  *p++ = (char)('0' + ms / 10 % 10);
  *p++ = (char)('0' + ms % 10);
  return p;
}

int ni_csv_open(struct ni_csv **out, const char *path, bool p2p, bool local_time) {
  struct ni_csv *c = *out = malloc(sizeof *c);
  if (!c) return -ENOMEM;
  *c = (struct ni_csv){.p2p = p2p, .local = local_time, .second = INT64_MIN, .size = UINT64_MAX};
  c->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (c->fd < 0) {
    int e = -errno;
    free(c);
    *out = NULL;
    return e;
  }
  static const char head[] =
      "id,coll_sn,coll_msg_size_bytes,mean_coll_busbw_gbs,log_count,n_ranks,nnodes,coll_start_timestamp_us,"
      "coll_end_timestamp_us,coll_duration_us,human_readable_coll_msg_size_bytes,coll_start_datetime,"
      "coll_end_datetime,coll_duration_human";
  char *p = put_text(c->buffer, head);
  if (p2p) p = put_text(p, ",rank,p2p_peer");
  *p++ = '\n';
  c->n = (size_t)(p - c->buffer);
  return 0;
}

int ni_csv_row(struct ni_csv *c, const struct ni_csv_row *row) {
  if (c->n + ROW_MAX_BYTES > sizeof c->buffer && flush(c) < 0) return c->error;
  char *p = c->buffer + c->n;
  uint64_t us = row->last_us - row->first_us;
  if (row->msg_bytes != c->size) {
    c->size = row->msg_bytes;
    ni_human_bytes(row->msg_bytes, c->human);
  }
  p = put_text(p, row->id);
  p = put_next_u64(p, row->sn);
  p = put_next_u64(p, row->msg_bytes);
  *p++ = ',';
  p += ni_shortest(row->mean_busbw_gbs, p);
  p = put_next_u64(p, row->count);
  *p++ = ',';
  p = put_set(p, &row->n_ranks, 1);
  *p++ = ',';
  p = put_set(p, row->nnodes, row->n_nnodes);
  p = put_next_u64(p, row->first_us);
  p = put_next_u64(p, row->last_us);
  p = put_next_u64(p, us);
  *p++ = ',';
  p = put_text(p, c->human);
  *p++ = ',';
  p = put_time(c, p, row->first_us);
  *p++ = ',';
  p = put_time(c, p, row->last_us);
  *p++ = ',';
  if (us < 1000) {
    p = put_u64(p, us);
    p = put_text(p, ".0\316\274s");
  } else {
    p += sprintf(p, us < 1000000 ? "%.1fms" : "%.1fs", (double)us / (us < 1000000 ? 1e3 : 1e6));
  }
  if (c->p2p) {
    *p++ = ',';
    p = put_i32(p, row->rank);
    *p++ = ',';
    p = put_i32(p, row->peer);
  }
  *p++ = '\n';
  c->n = (size_t)(p - c->buffer);
  return c->error;
}

int ni_csv_close(struct ni_csv *c) {
  if (!c) return 0;
  int e = flush(c);
  if (close(c->fd) < 0 && e == 0) e = -errno;
  free(c);
  return e;
}

void ni_csv_text(FILE *f, const char *text) {
  if (!text) return;
  const char *quote = strpbrk(text, ",\"") ? "\"" : "";
  fprintf(f, "%s%s", quote, *text && strchr("=+-@", *text) ? "'" : "");
  for (const char *mark; (mark = strchr(text, '"')); text = mark + 1) ni_say(f, "%.*s\"\"", (int)(mark - text), text);
  ni_say(f, "%s%s", text, quote);
}

void ni_csv_double(FILE *f, double value) {
  char text[NI_SHORTEST_BYTES];
  fwrite(text, 1, ni_shortest(value, text), f);
}
