#include "checkpoint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/out_file.h"
#include "exporter/input/inflate.h"
#include "tables.h"

/* In front of the arrays. Where the meaning of an item changes and its size does not, the version does. */
enum { VERSION = 3 };
struct checkpoint_head {
  char magic[8];
  uint32_t version, crc; /* crc: of all bytes of the file, with crc 0 */
  uint64_t n[NI_LIVE_TABLES], size[NI_LIVE_TABLES];
  struct ni_live_totals totals;
  uint64_t left_out, began_ns, mono_ns; /* mono_ns: when it was saved */
};

/*
 * What must hold in the items, so that nobody who uses them has to ask: ends of texts, truth values, numbers
 * of other items.
 */
enum { JOB = NI_LIVE_JOBS, MEMBER = NI_LIVE_MEMBERS, TEXT = NI_LIVE_TABLES, TRUTH, SIZE_CLASS };
static const struct rule {
  unsigned table, what;
  size_t at, size;
} rules[] = {
#define RULE(table, what, type, field) \
  {NI_LIVE_##table, what, offsetof(struct ni_live_##type, field), sizeof((struct ni_live_##type *)0)->field},
#define NAMED(table, type, field) RULE(table, TEXT, type, field job) RULE(table, TEXT, type, field attempt)
#define WHO(table, type) \
  NAMED(table, type, who.) RULE(table, TEXT, type, who.comm) RULE(table, TEXT, type, who.gpu_pci)
    NAMED(JOBS, job, ) NAMED(JOBS, job, hang.) RULE(JOBS, TEXT, job, hang.sentence) RULE(
        JOBS, TEXT, job, hang.path) RULE(JOBS, TRUTH, job, hang.certain) RULE(JOBS, TRUTH, job, stuck)
        RULE(JOBS, TRUTH, job, looked) RULE(CLASSES, JOB, class, job) RULE(CLASSES, TEXT, class, func)
            RULE(CLASSES, SIZE_CLASS, class, size_class) WHO(MEMBERS, member) RULE(MEMBERS, JOB, member, job)
                RULE(FUNCS, MEMBER, func, member) RULE(FUNCS, TEXT, func, func) WHO(NVIDIAS, nvidia)
                    RULE(NVIDIAS, TEXT, nvidia, func) RULE(NVIDIAS, TEXT, nvidia, algo_proto)
                        RULE(NVIDIAS, TRUTH, nvidia, p2p) RULE(LIVES, JOB, life, job)
                            RULE(LIVES, TEXT, life, gpu_pci) NAMED(FILES, file, )
                                RULE(FILES, TEXT, file, path) RULE(FILES, TRUTH, file, ended)};

static bool rule_holds(const struct rule *r, const char *field, const uint64_t *n) {
  uint32_t number;
  if (r->what == TEXT)
    return memchr(field, 0, r->size) != NULL;
  if (r->what == TRUTH)
    return (unsigned char)*field <= 1;
  memcpy(&number, field, sizeof number);
  return number < (r->what == SIZE_CLASS ? NI_LIVE_SIZES : n[r->what]);
}

int ni_live_save(const struct ni_live *l, int dir, const char *name, uint64_t mono_ns) {
  struct checkpoint_head h = {"NISTATE", VERSION, 0, {0}, {0}, l->totals, l->left_out, l->began_ns, mono_ns};
  struct ni_out_file o;
  for (unsigned t = 0; t < NI_LIVE_TABLES; t++) {
    h.n[t] = NI_LIVE_N(l, t);
    h.size[t] = ni_live_shapes[t].size;
  }
  uint32_t crc = ni_crc32(0, &h, sizeof h);
  for (unsigned t = 0; t < NI_LIVE_TABLES; t++)
    if (h.n[t])
      crc = ni_crc32(crc, NI_LIVE_ITEMS(l, t), h.n[t] * h.size[t]);
  h.crc = crc;
  int e = ni_out_begin(&o, dir, 0600);
  if (e == 0)
    e = ni_write_all(o.fd, &h, sizeof h, -1);
  for (unsigned t = 0; t < NI_LIVE_TABLES && e == 0; t++)
    e = ni_write_all(o.fd, NI_LIVE_ITEMS(l, t), h.n[t] * h.size[t], -1);
  if (e == 0)
    return ni_out_commit(&o, name, true);
  ni_out_drop(&o);
  return e;
}

/* Says why n bytes are no valid state; NULL: they are one. */
static const char *find_fault(char *bytes, size_t n, struct checkpoint_head *h) {
  const char *items[NI_LIVE_TABLES];
  size_t all = sizeof *h;
  if (n < all || memcmp(bytes, "NISTATE", 8) != 0)
    return "it is no state of an agent";
  memcpy(h, bytes, sizeof *h);
  memset(bytes + offsetof(struct checkpoint_head, crc), 0, sizeof h->crc);
  for (unsigned t = 0; t < NI_LIVE_TABLES; t++) {
    bool ours =
        h->version == VERSION && h->size[t] == ni_live_shapes[t].size && h->n[t] <= ni_live_shapes[t].max;
    if (!ours)
      return "it is of another version";
    items[t] = bytes + all;
    all += h->n[t] * h->size[t];
  }
  if (n != all)
    return "it is cut";
  if (ni_crc32(0, bytes, n) != h->crc)
    return "it is damaged";
  for (const struct rule *r = rules; r < rules + sizeof rules / sizeof *rules; r++)
    for (uint64_t i = 0; i < h->n[r->table]; i++)
      if (!rule_holds(r, items[r->table] + i * h->size[r->table] + r->at, h->n))
        return "its numbers do not fit together";
  return NULL;
}

int ni_live_load(struct ni_live *l, int dir, const char *name, uint64_t mono_ns, char *why, size_t cap) {
  struct checkpoint_head h;
  struct stat st = {0};
  int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK),
      e = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;
  size_t n = S_ISREG(st.st_mode) ? (size_t)st.st_size : 0;
  /* nobody changes it: it is replaced */
  char *bytes = n ? mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0) : NULL;
  if (bytes == MAP_FAILED)
    e = -ENOMEM;
  const char *fault = e ? NULL : find_fault(bytes, n, &h), *p = e || fault ? NULL : bytes + sizeof h;
  if (fault)
    e = -EBADMSG;
  else if (e == 0 && !ni_live_ready(l))
    e = -ENOMEM;
  for (unsigned t = 0; t < NI_LIVE_TABLES && e == 0; p += h.n[t] * h.size[t], t++) {
    memcpy(NI_LIVE_ITEMS(l, t), p, h.n[t] * h.size[t]);
    NI_LIVE_N(l, t) = h.n[t];
    if (!ni_live_reindex(l, t))
      e = -ENOMEM;
  }
  if (e)
    snprintf(why, cap, "%s", fault ? fault : strerror(-e));
  if (n && bytes != MAP_FAILED)
    munmap(bytes, n);
  if (fd >= 0)
    close(fd);
  if (e) {
    ni_live_free(l);
    return e;
  }
  l->totals = h.totals;
  l->left_out = h.left_out;
  l->began_ns = h.began_ns;
  mono_ns -= h.mono_ns;
  NI_EACH(struct ni_live_job, j, l->job, l->n_jobs) {
    if (j->ended_ns)
      j->ended_ns += mono_ns;
    j->told_ns += mono_ns;
    j->moved_ns += mono_ns;
    j->last_ns = 0;
    j->alive = 0;
    j->stuck = false;
  }
  for (size_t i = 0; i < l->n_files; i++)
    l->file[i].from += mono_ns;
  /* what was missed meanwhile is no rate of now */
  for (size_t i = 0; i < l->n_funcs; i++)
    l->func[i].before.n = 0;
  return 0;
}
