#include "atlas.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "atlas_files.h"
#include "exporter/base/array.h"
#include "exporter/base/now.h"
#include "map_wire.h"

/* of ctime, before it is trusted to tell the next change: clocks have ticks, and servers clocks */
#define SETTLED_NS INT64_C(2000000000)

static void load_shelf(struct ni_atlas *a, struct ni_atlas_folder *f, int k) {
  char *folder, *name, *path = NULL;
  if (!ni_atlas_place(a, f, k, &folder, &name))
    return;
  if (asprintf(&path, "%s/%s", folder, name) < 0)
    path = NULL;
  int e = path ? ni_shelf_read(&f->shelf[k], path) : -ENOMEM;
  /* Who may not enter the cache has none there: a home of somebody else's. */
  const bool is_none = e == -ENOENT || e == -ENOTDIR || (e == -EACCES && k == 1);
  if (e < 0 && !is_none)
    ni_atlas_say(a, f->path, "is not used",
                 e == -EBADMSG ? "it is damaged, or of another version" : strerror(-e));
  free(path);
  free(folder);
  free(name);
}

static int find_or_add_folder(struct ni_atlas *a, const char *path, uint32_t *out) {
  const char *name = ni_path_name(path);
  size_t n = name == path ? 0 : (size_t)(name - path) - (name - path > 1);
  for (size_t i = a->n_folders; i-- > 0;) {
    const char *have = a->folder[i].path;
    if (n ? strncmp(have, path, n) == 0 && !have[n] : strcmp(have, ".") == 0) {
      *out = (uint32_t)i;
      return 0;
    }
  }
  if (!ni_array_room(a->folder, a->n_folders, a->cap_folders))
    return -ENOMEM;
  struct ni_atlas_folder *f = &a->folder[a->n_folders];
  *f = (struct ni_atlas_folder){.path = n ? strndup(path, n) : strdup(".")};
  *out = (uint32_t)a->n_folders++;
  if (!f->path)
    return -ENOMEM;
  if (a->opt.reindex || a->opt.off)
    return 0;
  load_shelf(a, f, NI_SHELF_NEAR);
  load_shelf(a, f, NI_SHELF_CACHE);
  return 0;
}

static bool are_granules_unchanged(int fd, const struct ni_granules *g, bool all) {
  uint32_t crc;
  for (size_t i = 0; i < g->n; i = all || i + 1 == g->n ? i + 1 : g->n - 1)
    if (ni_atlas_sum(fd, g->item[i].at, g->item[i].bytes, &crc) < 0 || crc != g->item[i].crc)
      return false;
  return true;
}

/* What came behind the end that the index knows begins with a line that needs none before it. */
static bool is_tail_alone(const char *path, uint64_t from, bool gzip) {
  const struct ni_reader_options opt = {.from = from, .to = UINT64_MAX >> 1};
  struct ni_reader *r;
  struct ni_text t;
  if (ni_reader_open(&r, path, &opt) < 0)
    return false;
  const size_t n = strlen(NI_LINE_HEAD);
  bool has_line = ni_reader_stats(r)->gzip == gzip && ni_reader_next(r, &t) == 1 && !t.too_long;
  bool is_alone = has_line && t.len > n && memcmp(t.text, NI_LINE_HEAD, n) == 0;
  ni_reader_close(r);
  return is_alone;
}

static struct ni_granules *load_map(const struct ni_shelf_entry *e) {
  struct ni_granules *g =
      ni_shelf_is_intact(&e->map) && ni_shelf_is_intact(&e->account) ? ni_granules_new(0) : NULL;
  struct ni_wire p = ni_wire_load(e->map.bytes, e->map.n);
  if (g)
    ni_map_wire(&p, g);
  if (g && ni_wire_over(&p))
    return g;
  ni_granules_free(g);
  return NULL;
}

/* How the log stands to the entry. */
static enum ni_atlas_state compare_with_entry(struct ni_atlas_file *f, const struct ni_shelf_entry *e,
                                              const struct ni_granules *g) {
  const struct ni_shelf_stat *s = &f->stat, *t = &e->stat;
  if (s->size < g->end || t->size != g->end)
    return NI_ATLAS_STALE;
  bool is_same_file = s->size == t->size && s->mtime_ns == t->mtime_ns && s->ino == t->ino;
  if (is_same_file && t->ctime_ns && s->ctime_ns == t->ctime_ns)
    return NI_ATLAS_FRESH;
  if (s->size > g->end && (g->odd || !g->closed))
    return NI_ATLAS_STALE;
  int fd = open(f->file->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  enum ni_atlas_state state = NI_ATLAS_STALE;
  if (fd >= 0 && are_granules_unchanged(fd, g, s->size == g->end))
    state = s->size == g->end ? NI_ATLAS_FRESH : NI_ATLAS_GROWN;
  if (fd >= 0)
    close(fd);
  if (state == NI_ATLAS_GROWN && !is_tail_alone(f->file->path, g->end, g->gzip))
    return NI_ATLAS_STALE;
  return state;
}

/* The best that a shelf has to say of the log. */
static void find_best_entry(struct ni_atlas *a, struct ni_atlas_file *f) {
  for (int k = 0; k < 2 && f->state != NI_ATLAS_FRESH; k++) {
    const struct ni_shelf *s = &f->folder->shelf[k];
    const struct ni_shelf_entry *e = ni_shelf_find(s, ni_path_name(f->file->path));
    if (!e)
      continue;
    if (s->owner != f->file->owner && s->owner != geteuid() && s->owner != 0) {
      ni_atlas_say(a, f->folder->path, "is not used",
                   "it belongs neither to the owner of the logs nor to you");
      continue;
    }
    struct ni_granules *g = load_map(e);
    if (!g)
      ni_atlas_say(a, f->folder->path, "is not used", "it is damaged");
    enum ni_atlas_state state = g ? compare_with_entry(f, e, g) : NI_ATLAS_STALE;
    if (state <= f->state) {
      ni_granules_free(g);
      continue;
    }
    ni_granules_free(f->map);
    f->map = g;
    f->entry = e;
    f->state = state;
  }
}

static void note_stat(struct ni_atlas_file *f) {
  const struct ni_file *l = f->file;
  int64_t now = (int64_t)ni_now_ns(CLOCK_REALTIME);
  bool settled = l->ctime_ns < now - SETTLED_NS;
  f->stat = (struct ni_shelf_stat){l->bytes, l->ino, l->mtime_ns, settled ? l->ctime_ns : 0};
}

int ni_atlas_open(struct ni_atlas **out, const char *who, const struct ni_files *files,
                  const struct ni_atlas_options *o, bool always) {
  struct ni_atlas *a = *out = NULL;
  uint64_t bytes = 0;
  for (size_t i = 0; i < files->n; i++)
    bytes += files->file[i].bytes;
  if ((o->off && !o->maps) || files->n == 0)
    return 0;
  a = calloc(1, sizeof *a);
  if (!a || !(a->file = calloc(files->n, sizeof *a->file))) {
    free(a);
    return -ENOMEM;
  }
  *a = (struct ni_atlas){.who = who,
                         .files = files,
                         .opt = *o,
                         .file = a->file,
                         .build = !o->off && (always || o->reindex || o->dir || bytes >= NI_ATLAS_LEAST)};
  uint32_t *folder = calloc(files->n, sizeof *folder);
  int e = folder ? 0 : -ENOMEM;
  for (size_t i = 0; e == 0 && i < files->n; i++)
    e = find_or_add_folder(a, files->file[i].path, &folder[i]);
  for (size_t i = 0; e == 0 && i < files->n; i++) {
    struct ni_atlas_file *f = &a->file[i];
    f->file = &files->file[i];
    f->folder = &a->folder[folder[i]];
    note_stat(f);
    find_best_entry(a, f);
  }
  free(folder);
  *out = a;
  if (e == 0)
    return 0;
  ni_atlas_close(a, false, NULL);
  *out = NULL;
  return e;
}

void ni_atlas_close(struct ni_atlas *a, bool done, struct ni_atlas_counts *how) {
  if (how)
    *how = (struct ni_atlas_counts){0};
  if (!a)
    return;
  if (done)
    ni_atlas_keep(a, how);
  for (size_t i = 0; i < a->files->n; i++) {
    ni_granules_free(a->file[i].map);
    if (a->file[i].account)
      ni_ledgers_drop(NULL, a->file[i].account);
    free(a->file[i].new_map.bytes);
    free(a->file[i].new_account.bytes);
    free(a->file[i].new_sums.bytes);
    free(a->file[i].sums);
  }
  for (size_t i = 0; i < a->n_folders; i++) {
    ni_shelf_free(&a->folder[i].shelf[0]);
    ni_shelf_free(&a->folder[i].shelf[1]);
    free(a->folder[i].path);
  }
  free(a->folder);
  free(a->file);
  free(a);
}
