#include "checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "exporter/base/out_file.h"
#include "tables.h"

/* In front of the arrays. Where the meaning of an item changes and its size does not, the version does. */
enum { VERSION = 1 };
struct head {
  char magic[8];
  uint32_t version, crc; /* crc: of all bytes of the file, with crc 0 */
  uint64_t bytes;        /* of the file */
  uint64_t n[NI_LIVE_TABLES], size[NI_LIVE_TABLES];
  struct ni_live_totals totals;
  uint64_t left_out, began_ns;
};
static const char magic[8] = "NISTATE";

/* What must hold in the items, so that nobody who uses them has to ask: ends of texts, truth values, numbers of other items. */
enum what { JOB = NI_LIVE_JOBS, MEMBER = NI_LIVE_MEMBERS, TEXT = NI_LIVE_TABLES, TRUTH, SIZE_CLASS };
static const struct rule {
  enum ni_live_table table;
  enum what what;
  size_t at, size;
} rules[] = {
#define RULE(table, what, type, field) \
  {NI_LIVE_##table, what, offsetof(struct ni_live_##type, field), sizeof((struct ni_live_##type *)0)->field},
#define WHO(table, type) \
  RULE(table, TEXT, type, who.job) RULE(table, TEXT, type, who.attempt) RULE(table, TEXT, type, who.comm) RULE(table, TEXT, type, who.gpu_pci)
    RULE(JOBS, TEXT, job, job) RULE(JOBS, TEXT, job, attempt) RULE(JOBS, TEXT, job, hang.job) RULE(JOBS, TEXT, job, hang.attempt)
    RULE(JOBS, TEXT, job, hang.sentence) RULE(JOBS, TEXT, job, hang.path) RULE(JOBS, TRUTH, job, hang.certain)
    RULE(JOBS, TRUTH, job, stuck) RULE(JOBS, TRUTH, job, looked)
    RULE(CLASSES, JOB, class, job) RULE(CLASSES, TEXT, class, func) RULE(CLASSES, SIZE_CLASS, class, size_class)
    WHO(MEMBERS, member) RULE(MEMBERS, JOB, member, job) RULE(FUNCS, MEMBER, func, member) RULE(FUNCS, TEXT, func, func)
    WHO(NVIDIAS, nvidia) RULE(NVIDIAS, TEXT, nvidia, func) RULE(NVIDIAS, TEXT, nvidia, algo_proto) RULE(NVIDIAS, TRUTH, nvidia, p2p)
    RULE(LIVES, JOB, life, job) RULE(FILES, TEXT, file, job) RULE(FILES, TEXT, file, attempt) RULE(FILES, TRUTH, file, ended)
};

static bool holds(const struct rule *r, const unsigned char *field, const uint64_t *n) {
  uint32_t number;
  if (r->what == TEXT) return memchr(field, 0, r->size) != NULL;
  if (r->what == TRUTH) return *field <= 1;
  memcpy(&number, field, sizeof number);
  return number < (r->what == SIZE_CLASS ? NI_LIVE_SIZES : n[r->what]);
}

int ni_live_save(const struct ni_live *l, int dir, const char *name) {
  struct head h = {"", VERSION, 0, sizeof h, {0}, {0}, l->totals, l->left_out, l->began_ns};
  struct ni_out_file o;
  const void *items[NI_LIVE_TABLES];
  memcpy(h.magic, magic, sizeof magic);
  for (enum ni_live_table t = 0; t < NI_LIVE_TABLES; t++) {
    items[t] = ni_live_items(l, t);
    h.n[t] = *ni_live_count((struct ni_live *)(uintptr_t)l, t);
    h.size[t] = ni_live_shapes[t].size;
    h.bytes += h.n[t] * h.size[t];
  }
  uLong crc = crc32_z(0, (const Bytef *)&h, sizeof h);
  for (enum ni_live_table t = 0; t < NI_LIVE_TABLES; t++)
    if (h.n[t]) crc = crc32_z(crc, items[t], h.n[t] * h.size[t]);
  h.crc = (uint32_t)crc;
  int e = ni_out_begin(&o, dir, 0600);
  if (e == 0) e = ni_write_all(o.fd, &h, sizeof h, -1);
  for (enum ni_live_table t = 0; t < NI_LIVE_TABLES && e == 0; t++) e = ni_write_all(o.fd, items[t], h.n[t] * h.size[t], -1);
  if (e == 0) return ni_out_commit(&o, name, true);
  ni_out_drop(&o);
  return e;
}

/* All bytes of a regular file, for free(); NULL: *e says why not. */
static char *bytes_of(int dir, const char *name, size_t *n, int *e) {
  size_t most = sizeof(struct head), got = 0;
  struct stat st;
  int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0 || fstat(fd, &st) < 0) *e = -errno;
  for (enum ni_live_table t = 0; t < NI_LIVE_TABLES; t++) most += ni_live_shapes[t].max * ni_live_shapes[t].size;
  if (*e == 0 && (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > most)) *e = -EBADMSG;
  char *bytes = *e ? NULL : malloc(*n = (size_t)st.st_size + !st.st_size);
  if (*e == 0 && !bytes) *e = -ENOMEM;
  while (*e == 0 && got < (size_t)st.st_size) {
    ssize_t more = pread(fd, bytes + got, (size_t)st.st_size - got, (off_t)got);
    if (more <= 0) *e = more < 0 ? -errno : -EBADMSG;
    else got += (size_t)more;
  }
  *n = got;
  if (fd >= 0) close(fd);
  if (*e == 0) return bytes;
  free(bytes);
  return NULL;
}

/* Why it is no sound state; NULL: it is. */
static const char *fault_of(char *bytes, size_t n, struct head *h) {
  uint64_t all = sizeof *h;
  if (n < sizeof *h || memcmp(bytes, magic, sizeof magic) != 0) return "it is no state of an agent";
  memcpy(h, bytes, sizeof *h);
  memset(bytes + offsetof(struct head, crc), 0, sizeof h->crc);
  bool sizes = h->version == VERSION;
  for (enum ni_live_table t = 0; t < NI_LIVE_TABLES && sizes; t++) {
    sizes = h->size[t] == ni_live_shapes[t].size && h->n[t] <= ni_live_shapes[t].max;
    all += sizes ? h->n[t] * h->size[t] : 0;
  }
  if (!sizes) return "it is of another version";
  if (n != all || h->bytes != all) return "it is cut";
  if ((uint32_t)crc32_z(0, (const Bytef *)bytes, n) != h->crc) return "it is damaged";
  const unsigned char *items[NI_LIVE_TABLES], *p = (const unsigned char *)bytes + sizeof *h;
  for (enum ni_live_table t = 0; t < NI_LIVE_TABLES; p += h->n[t] * h->size[t], t++) items[t] = p;
  for (const struct rule *r = rules; r < rules + sizeof rules / sizeof *rules; r++)
    for (uint64_t i = 0; i < h->n[r->table]; i++)
      if (!holds(r, items[r->table] + i * h->size[r->table] + r->at, h->n)) return "its numbers do not fit together";
  return NULL;
}

int ni_live_load(struct ni_live *l, int dir, const char *name, char *why, size_t cap) {
  struct head h;
  size_t n = 0;
  int e = 0;
  char *bytes = bytes_of(dir, name, &n, &e), *p = bytes ? bytes + sizeof h : NULL;
  const char *fault = bytes ? fault_of(bytes, n, &h) : NULL;
  if (fault) e = -EBADMSG;
  for (enum ni_live_table t = 0; t < NI_LIVE_TABLES && e == 0; t++) {
    if (!ni_live_room(l, t, h.n[t])) e = -ENOMEM;
    else if (h.n[t]) memcpy(ni_live_items(l, t), p, h.n[t] * h.size[t]);
    p += h.n[t] * h.size[t];
    *ni_live_count(l, t) = e ? 0 : h.n[t];
    ni_live_reindex(l, t);
  }
  free(bytes);
  if (e) {
    ni_live_free(l);
    snprintf(why, cap, "%s", fault ? fault : strerror(-e));
    return e;
  }
  l->totals = h.totals, l->left_out = h.left_out, l->began_ns = h.began_ns;
  for (size_t i = 0; i < l->n_jobs; i++) l->job[i].alive = 0, l->job[i].stuck = false, l->job[i].last_ns = 0;
  for (size_t i = 0; i < l->n_funcs; i++) l->func[i].before_n = 0; /* what was missed meanwhile is no rate of now */
  return 0;
}
