/*
 * What was learned, into the index: entries of logs that were read, beside those that were there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "atlas.h"
#include "atlas_files.h"
#include "exporter/base/array.h"
#include "exporter/model/ledger/pack.h"
#include "exporter/model/ledger/take.h"
#include "map_wire.h"

/* A log that cannot be entered in its middle: one granule, by which it is known again. */
static bool complete_map(struct ni_granules *g, const struct ni_atlas_file *f) {
  if (!g->odd)
    return g->end >= f->stat.size;
  struct ni_granules *one = ni_granules_new(0);
  int fd = open(f->file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  bool is_summed = one && fd >= 0 && ni_atlas_sum(fd, 0, f->stat.size, &one->item[0].crc) == 0;
  if (is_summed) {
    struct ni_granules was = *g;
    one->item[0].bytes = one->end = f->stat.size;
    one->odd = true;
    one->closed = was.closed;
    one->gzip = was.gzip;
    one->proxy = was.proxy;
    one->records = was.records;
    one->first_ns = was.first_ns;
    one->last_ns = was.last_ns;
    *g = *one;
    *one = was;
  }
  if (fd >= 0)
    close(fd);
  ni_granules_free(one);
  return is_summed;
}

/* It comes back as it was put in: what does not is not kept. */
static bool survives_encoding(const struct ni_wire *bytes, const struct ni_file *file) {
  struct ni_ledger c = {0};
  struct ni_wire back = ni_wire_load(bytes->bytes, bytes->n), again = {0};
  ni_ledger_begin(&c, file, true);
  ni_ledger_wire(&back, &c);
  if (!back.bad)
    ni_ledger_wire(&again, &c);
  bool is_same = ni_wire_over(&back) && !again.bad && again.n == bytes->n &&
      memcmp(again.bytes, bytes->bytes, bytes->n) == 0;
  free(again.bytes);
  ni_ledger_free(&c);
  return is_same;
}

void ni_atlas_mapped(void *atlas, size_t file_no, struct ni_ledger *c) {
  struct ni_atlas *a = atlas;
  struct ni_atlas_file *f = &a->file[file_no];
  struct ni_wire account = {0};
  if (c->granules->series || c->problem[NI_PROBLEM_UNREADABLE].places)
    return;
  ni_ledger_wire(&account, c);
  if (!account.bad && survives_encoding(&account, f->file))
    ni_atlas_learn(a, file_no, c->granules, &account);
  else
    free(account.bytes);
}

static struct ni_shelf_part make_part(const struct ni_wire *p) {
  return (struct ni_shelf_part){p->bytes, p->n, ni_crc32(0, p->bytes, p->n)};
}

/* The map as the next command will find it. */
static void reload_map(struct ni_atlas_file *f) {
  struct ni_wire back = ni_wire_load(f->new_map.bytes, f->new_map.n);
  if (!(f->map = ni_granules_new(0)))
    return;
  ni_map_wire(&back, f->map);
  if (ni_wire_over(&back) && ni_map_unpack(f->map) == 0)
    return;
  ni_granules_free(f->map);
  f->map = NULL;
}

void ni_atlas_learn(struct ni_atlas *a, size_t file_no, struct ni_granules *g, struct ni_wire *part) {
  struct ni_atlas_file *f = &a->file[file_no];
  f->new_account = *part;
  *part = (struct ni_wire){0};
  if (f->new_account.bad || f->stat.size == 0 || !complete_map(g, f))
    return;
  ni_map_wire(&f->new_map, g);
  f->made = !f->new_map.bad;
  f->may_grow = !g->odd;
  f->end = g->end;
  if (a->opt.maps && f->made)
    reload_map(f);
}

void ni_atlas_learn_sums(struct ni_atlas *a, size_t file_no, const struct ni_wire *sums) {
  struct ni_atlas_file *f = a ? &a->file[file_no] : NULL;
  if (!f || !a->build || sums->bad)
    return;
  bool is_whole = f->made ? f->may_grow : f->known && f->state == NI_ATLAS_FRESH;
  if (!is_whole)
    return;
  uint64_t end = f->made ? f->end : f->entry->stat.size, unpacked = sums->n;
  uLongf n = compressBound(sums->n);
  uint8_t *packed = malloc(n);
  NI_WIRE(&f->new_sums, &end, &unpacked);
  if (packed && compress2(packed, &n, sums->bytes, sums->n, Z_DEFAULT_COMPRESSION) == Z_OK)
    ni_wire_bytes(&f->new_sums, packed, n);
  else
    f->new_sums.bad = true;
  free(packed);
  const size_t others = f->made ? f->new_map.n + f->new_account.n : f->entry->map.n + f->entry->account.n;
  if (f->new_sums.bad || unpacked > NI_SUMS_MAX || f->new_sums.n + others > end / NI_SUMS_SHARE)
    ni_wire_free(&f->new_sums);
}

void ni_atlas_wire_made(struct ni_wire *w, struct ni_atlas *a, size_t file_no) {
  struct ni_atlas_file *f = &a->file[file_no];
  struct ni_wire *const part[] = {&f->new_map, &f->new_account};
  NI_WIRE(w, &f->made, &f->may_grow, &f->end);
  for (int i = 0; f->made && i < 2; i++) {
    size_t n = part[i]->n;
    ni_wire_count(w, &n, 1);
    const uint8_t *bytes = ni_wire_bytes(w, part[i]->bytes, n);
    if (w->load && bytes)
      ni_wire_bytes(part[i], bytes, n);
    w->bad |= part[i]->bad;
  }
  if (!w->load || w->bad || !f->made)
    return;
  reload_map(f);
  w->bad |= !f->map;
  f->brought = (struct ni_shelf_entry){
      .map = make_part(&f->new_map), .account = make_part(&f->new_account), .stat = f->stat};
  f->entry = &f->brought;
  f->state = NI_ATLAS_FRESH;
}

static int64_t convert_to_ns(const struct timespec *t) {
  return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

/* It is what it was when it was looked at first. */
static bool is_unchanged(const struct ni_file *l) {
  struct stat st;
  if (stat(l->path, &st) != 0)
    return false;
  bool is_same_file = (uint64_t)st.st_size == l->bytes && st.st_ino == l->ino;
  return is_same_file && convert_to_ns(&st.st_mtim) == l->mtime_ns &&
      convert_to_ns(&st.st_ctim) == l->ctime_ns;
}

static bool is_same_stat(const struct ni_shelf_stat *a, const struct ni_shelf_stat *b) {
  return a->size == b->size && a->ino == b->ino && a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

static int add_entry(struct ni_shelf *x, const struct ni_shelf_entry *e) {
  if (!ni_array_room(x->entry, x->n, x->cap))
    return -ENOMEM;
  x->entry[x->n++] = *e;
  return 0;
}

/*
 * Entries of the folder's logs that this command has read or compared, and as many of the others as are there
 * and not older.
 */
static int gather_entries(struct ni_atlas *a, struct ni_atlas_folder *d, struct ni_shelf *x, size_t *news,
                          struct ni_atlas_counts *how) {
  int e = 0;
  for (size_t i = 0; e == 0 && i < a->files->n; i++) {
    struct ni_atlas_file *f = &a->file[i];
    if (f->folder != d)
      continue;
    struct ni_shelf_entry n = {0};
    const bool as_it_was = f->made && f->end == f->file->bytes && is_unchanged(f->file);
    if (f->made && (as_it_was || f->may_grow)) {
      n = (struct ni_shelf_entry){.map = make_part(&f->new_map), .account = make_part(&f->new_account)};
      if (f->state == NI_ATLAS_GROWN)
        n.sums = f->entry->sums;
      f->stat.size = f->end;
      if (!as_it_was)
        f->stat.ctime_ns = 0;
    } else if (f->state != NI_ATLAS_STALE)
      n = *f->entry;
    else {
      continue;
    }
    if (f->new_sums.n) {
      n.sums = make_part(&f->new_sums);
      ++*news;
    }
    bool made = n.map.bytes == f->new_map.bytes;
    if (made || f->state == NI_ATLAS_FRESH) {
      *news += made || !is_same_stat(&f->stat, &n.stat);
      n.stat = f->stat;
    }
    how->kept += made;
    n.name = (char *)(uintptr_t)ni_path_name(f->file->path);
    e = add_entry(x, &n);
  }
  size_t n_read = x->n;
  if (!*news)
    return e; /* nothing is written */
  ni_shelf_sort(x);
  for (int k = 0; k < 2; k++)
    for (size_t i = 0; e == 0 && i < d->shelf[k].n; i++) {
      const struct ni_shelf_entry *n = &d->shelf[k].entry[i];
      const struct ni_shelf mine = {.entry = x->entry, .n = n_read};
      char *path;
      bool is_there = ni_shelf_find(&mine, n->name) || (k && ni_shelf_find(&d->shelf[0], n->name));
      if (is_there || asprintf(&path, "%s/%s", d->path, n->name) < 0)
        continue;
      if (ni_shelf_is_intact(&n->map) && ni_shelf_is_intact(&n->account) && access(path, F_OK) == 0)
        e = add_entry(x, n);
      free(path);
    }
  return e;
}

static void keep_folder(struct ni_atlas *a, struct ni_atlas_folder *d, struct ni_atlas_counts *how) {
  struct ni_shelf x = {0};
  size_t news = 0;
  char why[512] = "";
  int e = gather_entries(a, d, &x, &news, how), tried = 0;
  if (e == 0 && news) {
    ni_shelf_sort(&x);
    for (int k = 0; k < 2; k++) {
      char *folder, *name, more[512];
      if (!ni_atlas_place(a, d, k, &folder, &name))
        continue;
      e = ni_shelf_write(x.entry, x.n, folder, name, tried ? more : why, sizeof why);
      tried++;
      free(folder);
      free(name);
      if (e == 0)
        break;
    }
    if (tried == 0)
      snprintf(why, sizeof why, "there is no place for it");
  }
  if (e < 0 || (news && !tried)) {
    char text[600];
    how->failed++;
    snprintf(text, sizeof text, "%s%s%s", a->opt.dir ? a->opt.dir : "", a->opt.dir ? ": " : "",
             *why ? why : strerror(-e));
    ni_atlas_say(a, d->path, "is not written", text);
  }
  free(x.entry);
}

void ni_atlas_keep(struct ni_atlas *a, struct ni_atlas_counts *how) {
  struct ni_atlas_counts none;
  if (!how)
    *(how = &none) = (struct ni_atlas_counts){0};
  for (size_t i = 0; i < a->files->n; i++) {
    how->fresh += a->file[i].state == NI_ATLAS_FRESH;
    how->grown += a->file[i].state == NI_ATLAS_GROWN;
    how->stale += a->file[i].state == NI_ATLAS_STALE;
  }
  if (!a->build)
    return;
  for (size_t i = 0; i < a->n_folders; i++)
    keep_folder(a, &a->folder[i], how);
}
