#include "out.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/text/json_write.h"
#include "format/json_text.h"

enum { ROOM = 64 }; /* a number fits */

int ni_tr_out_open(struct ni_tr_out *o, const char *path, char *why, size_t cap) {
  *o = (struct ni_tr_out){.dir = -1, .text = malloc(NI_TR_OUT_BYTES)};
  size_t len = strlen(path);
  bool packed = len > 3 && strcmp(path + len - 3, ".gz") == 0, standard = strcmp(path, "-") == 0;
  const char *slash = strrchr(path, '/');
  o->name = path + (slash ? slash - path + 1 : 0);
  *why = 0;
  int fd = -1, e = o->text ? 0 : -ENOMEM;
  if (e == 0 && !standard) { /* a folder of that name is said before hours of work, not by rename */
    e = ni_out_begin_at(&o->file, path, &o->name, why, cap);
    o->dir = o->file.dir;
  }
  if (e == 0 && (fd = standard ? dup(STDOUT_FILENO) : o->file.fd) < 0)
    e = -errno;
  if (e == 0 && !(o->gz = gzdopen(fd, packed ? "wb1" : "wbT")))
    e = -ENOMEM;
  if (e == 0) {
    o->file.fd = -1; /* gz closes it */
    gzbuffer(o->gz, 128 << 10);
    return 0;
  }
  if (standard && fd >= 0)
    close(fd);
  if (!*why)
    snprintf(why, cap, "%s", strerror(-e));
  ni_tr_out_abort(o);
  return e;
}

static void flush_text(struct ni_tr_out *o) {
  size_t n = o->n;
  o->n = 0;
  o->bytes += n;
  if (o->error || !n || gzwrite(o->gz, o->text, (unsigned)n) == (int)n)
    return;
  o->error = errno ? -errno : -EIO;
}

static char *reserve_text(struct ni_tr_out *o, size_t n) {
  if (o->n + n > NI_TR_OUT_BYTES)
    flush_text(o);
  return o->text + o->n;
}

void ni_tr_out_text(struct ni_tr_out *o, const char *text) {
  for (size_t n, left = strlen(text); left; left -= n, text += n) {
    n = left < NI_TR_OUT_BYTES ? left : NI_TR_OUT_BYTES;
    memcpy(reserve_text(o, n), text, n);
    o->n += n;
  }
}

void ni_tr_out_string(struct ni_tr_out *o, const char *text) {
  *reserve_text(o, 1) = '"';
  o->n++;
  while (*text)
    o->n += ni_json_char(reserve_text(o, ROOM), &text);
  *reserve_text(o, 1) = '"';
  o->n++;
}

void ni_tr_out_u64(struct ni_tr_out *o, uint64_t v) {
  char *p = reserve_text(o, ROOM);
  o->n += (size_t)(ni_json_put_u64(p, v) - p);
}

void ni_tr_out_i64(struct ni_tr_out *o, int64_t v) {
  char *p = reserve_text(o, ROOM);
  o->n += (size_t)(ni_json_put_i64(p, v) - p);
}

void ni_tr_out_hex(struct ni_tr_out *o, uint64_t v) {
  char *p = reserve_text(o, ROOM);
  o->n += (size_t)sprintf(p, "\"0x%llx\"", (unsigned long long)v);
}

void ni_tr_out_us(struct ni_tr_out *o, int64_t ns) {
  if (ns < 0)
    ni_tr_out_text(o, "-");
  uint64_t v = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
  ni_tr_out_u64(o, v / 1000);
  unsigned rest = (unsigned)(v % 1000);
  if (!rest)
    return;
  char *p = reserve_text(o, ROOM);
  p[0] = '.';
  p[1] = (char)('0' + rest / 100);
  p[2] = (char)('0' + rest / 10 % 10);
  p[3] = (char)('0' + rest % 10);
  o->n += 4;
}

void ni_tr_out_f64(struct ni_tr_out *o, double v) {
  char *p = reserve_text(o, 400);
  if (!isfinite(v) || fabs(v) > 1e300)
    ni_tr_out_text(o, "null");
  else
    o->n += (size_t)snprintf(p, 400, "%.6f", v);
}

int ni_tr_out_commit(struct ni_tr_out *o, uint64_t *bytes) {
  struct stat st;
  flush_text(o);
  int k = gzclose(o->gz);
  o->gz = NULL;
  if (!o->error && k != Z_OK)
    o->error = k == Z_ERRNO && errno ? -errno : -EIO;
  if (!o->error && o->dir >= 0)
    o->error = ni_out_commit(&o->file, o->name, true);
  if (bytes)
    *bytes = !o->error && o->dir >= 0 && fstatat(o->dir, o->name, &st, 0) == 0 ? (uint64_t)st.st_size : 0;
  int e = o->error;
  ni_tr_out_abort(o); /* what is committed stays */
  return e;
}

void ni_tr_out_abort(struct ni_tr_out *o) {
  if (o->gz)
    gzclose(o->gz);
  ni_out_drop(&o->file);
  if (o->dir >= 0)
    close(o->dir);
  free(o->text);
  *o = (struct ni_tr_out){.dir = -1};
}
