#include "sections.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/input/inflate.h"

enum { SLACK = 96 }; /* bytes behind a section that may be read (partial.h) */

static const char magic[8] = {'N', 'I', 'P', 'A', 'R', 'T', 'I', 'A'};
struct start {
  uint8_t magic[8], format[4];
};
struct head {
  uint8_t id[4], n[8], crc[4];
};

static uint32_t crc_of(const struct head *h, const void *bytes, size_t n) {
  uint32_t crc = ni_crc32(ni_crc32(0, h->id, sizeof h->id), h->n, sizeof h->n);
  return n ? ni_crc32(crc, bytes, n) : crc;
}

/* ---- writing ------------------------------------------------------------------------------------------- */

int ni_sections_create(struct ni_sections *s, struct ni_run *r, const char *path) {
  char why[400];
  *s = (struct ni_sections){.path = path};
  int e = ni_out_begin_at(&s->out, path, &s->name, why, sizeof why);
  if (e < 0) {
    if (s->out.dir >= 0)
      close(s->out.dir);
    s->out = (struct ni_out_file){0};
    return ni_run_fail(r, e, "%s: %s", path, why);
  }
  flock(s->out.fd, LOCK_EX | LOCK_NB);
  /* other commands' have another begin, one that is being made has none yet */
  ni_out_sweep(s->out.dir, s->out.tmp, magic, sizeof magic);
  struct start b = {.format = {0}};
  memcpy(b.magic, magic, sizeof magic);
  ni_put_le(b.format, NI_PARTIAL_FORMAT, sizeof b.format);
  e = ni_write_all(s->out.fd, &b, sizeof b, -1);
  return e < 0 ? ni_run_fail(r, e, "%s: %s", path, strerror(-e)) : e;
}

int ni_sections_put(void *arg, enum ni_section id, const void *bytes, size_t n) {
  struct ni_sections *s = arg;
  struct head h;
  ni_put_le(h.id, id, sizeof h.id);
  ni_put_le(h.n, n, sizeof h.n);
  ni_put_le(h.crc, crc_of(&h, bytes, n), sizeof h.crc);
  int e = ni_write_all(s->out.fd, &h, sizeof h, -1);
  return e < 0 ? e : ni_write_all(s->out.fd, bytes, n, -1);
}

int ni_sections_commit(struct ni_sections *s, struct ni_run *r) {
  /* locked until it has its name */
  int dir = s->out.dir, lock = dup(s->out.fd), e = ni_out_commit(&s->out, s->name, true);
  close(dir);
  if (lock >= 0)
    close(lock);
  s->out = (struct ni_out_file){0};
  return e < 0 ? ni_run_fail(r, e, "%s: %s", s->path, strerror(-e)) : e;
}

/* ---- reading ------------------------------------------------------------------------------------------- */

static int refuse(struct ni_run *r, const struct ni_sections *s, const char *what) {
  return ni_run_fail(r, -EINVAL, "%s: %s", s->path, what);
}

int ni_sections_open(struct ni_sections *s, struct ni_run *r, const char *path) {
  struct stat st;
  struct start b;
  *s = (struct ni_sections){.path = path};
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK),
      e = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;
  if (e == 0 && S_ISDIR(st.st_mode))
    e = -EISDIR;
  if (e == 0 && !(s->f = fdopen(fd, "r")))
    e = -errno;
  if (e < 0) {
    if (fd >= 0)
      close(fd);
    if (e == -EISDIR)
      ni_run_fail(r, e,
                  "%s: a folder; which partial results? give their files (summary --partial writes them)",
                  path);
    else
      ni_run_fail(r, e, "%s: %s", path, strerror(-e));
    return e;
  }
  s->left = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
  if (s->left < sizeof b || fread(&b, sizeof b, 1, s->f) != 1 || memcmp(b.magic, magic, sizeof magic) != 0)
    return refuse(r, s, "no partial result: summary --partial and merge --partial write them");
  s->left -= sizeof b;
  uint64_t format = ni_get_le(b.format, sizeof b.format);
  if (format == NI_PARTIAL_FORMAT)
    return 0;
  return ni_run_fail(
      r, -EINVAL,
      "%s: a partial result of another version of nccl-inspector (format %llu, this one reads %u): "
      "make it again",
      path, (unsigned long long)format, NI_PARTIAL_FORMAT);
}

int ni_sections_get(void *arg, struct ni_run *r, enum ni_section *id, const uint8_t **bytes, size_t *n) {
  struct ni_sections *s = arg;
  struct head h;
  if (s->left < sizeof h || fread(&h, sizeof h, 1, s->f) != 1)
    return refuse(r, s, "cut: its end is missing");
  s->left -= sizeof h;
  const uint64_t len = ni_get_le(h.n, sizeof h.n);
  if (len > s->left)
    return refuse(r, s, "cut or damaged: a section is longer than the file");
  if (!ni_array_room(s->bytes, len + SLACK, s->cap) || !s->bytes)
    return -ENOMEM;
  if (len && fread(s->bytes, len, 1, s->f) != 1)
    return refuse(r, s, "cut: its end is missing");
  s->left -= len;
  memset(s->bytes + len, 0, SLACK);
  if (ni_get_le(h.crc, sizeof h.crc) != crc_of(&h, s->bytes, len))
    return refuse(r, s, "damaged: a checksum is wrong");
  *id = (enum ni_section)ni_get_le(h.id, sizeof h.id);
  if (*id == NI_SECTION_END && s->left)
    return refuse(r, s, "damaged: something follows its end");
  *bytes = s->bytes;
  *n = len;
  return 0;
}

void ni_sections_close(struct ni_sections *s) {
  if (s->f)
    fclose(s->f);
  if (s->name && *s->out.tmp) {
    int dir = s->out.dir;
    ni_out_drop(&s->out);
    close(dir);
  }
  free(s->bytes);
  *s = (struct ni_sections){0};
}
