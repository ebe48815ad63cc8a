#include "watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "boxes.h"
#include "exporter/base/array.h"
#include "exporter/base/process/as_user.h"
#include "exporter/base/now.h"
#include "exporter/base/order.h"
#include "exporter/base/text/utf8.h"
#include "exporter/input/discover.h"
#include "rows.h"
#include "tail.h"

enum { HEAD_BYTES = 1024, SLICE_BYTES = 64 << 10, LOGS_MAX = 8192, DIRS_MAX = 256 };
static const uint64_t S = 1000000000, OLD_NS = 600000000000, TURN_NS = 500000000;

struct log {
  struct ni_live_file f; /* first: by_file() */
  char *path;
  uint64_t size; /* of the file when it was read; what is as large has nothing new */
  size_t stem;   /* bytes of its name */
  uint64_t left; /* bytes of it, where it is due */
  /* lost: as in tail.h; due: there is more to read at once; missing: another file has its name, or none */
  bool lost, due, missing, unread;
  bool over; /* nobody writes it any more, as it seems */
};
struct dir {
  char *path;
  uint64_t changed_ns, listed_ns; /* changed: its own time; listed: CLOCK_MONOTONIC */
  uint64_t used_ns;               /* when a box or the settings named it last */
  uint32_t left_out;              /* logs that found no room when it was listed */
  bool again;                     /* it changed just before it was listed: times of files are coarse */
};
struct ni_watch {
  struct ni_watch_settings s;
  struct ni_boxes *boxes;
  struct ni_rows rows;
  struct ni_tail *tail;
  struct ni_live_batch look;
  /* by device and inode, without path: of readers before (size 0), and those that were over */
  struct log *known;
  struct log *log;
  struct dir dir[DIRS_MAX], *at; /* at: the one that is listed */
  size_t n_known, cap_known, n_logs, cap_logs, n_dirs, next;
  uint64_t now; /* CLOCK_MONOTONIC: the turn's */
  bool turned;  /* there was one */
};

static NI_ORDER_BY(by_file, struct ni_live_file, dev, ino);

static void use_dir(void *arg, const char *path) {
  struct ni_watch *w = arg;
  size_t i = 0;
  while (i < w->n_dirs && strcmp(w->dir[i].path, path) != 0)
    i++;
  if (i == DIRS_MAX)
    return;
  if (i == w->n_dirs)
    w->dir[w->n_dirs++] = (struct dir){.path = strdup(path)};
  if (!w->dir[i].path)
    w->n_dirs--;
  w->dir[i].used_ns = w->now;
}

static bool is_older_than(const struct stat *st, uint64_t ns) {
  return ni_now_ns(CLOCK_REALTIME) > (uint64_t)st->st_mtim.tv_sec * S + ns;
}

/* Is there a box that says that its process lives or may live? */
static bool has_box(const struct ni_watch *w, const char *path) {
  char dir[PATH_MAX];
  const char *name = ni_path_name(path);
  snprintf(dir, sizeof dir, "%.*s", (int)(name - path - 1), path);
  return ni_boxes_log(w->boxes, dir, name);
}

/*
 * Resumes a log that an earlier reader had not read to its end. There may be no box any more that says where
 * it is.
 */
static void resume_log(struct ni_watch *w, const struct ni_live_file *f) {
  struct log x = {.path = strdup(f->path), .f = *f};
  const char *name = ni_path_name(f->path);
  const bool is_path = x.path && *f->path == '/';
  if (!is_path || w->n_logs >= LOGS_MAX / 2 || !ni_array_room(w->log, w->n_logs, w->cap_logs)) {
    free(x.path);
    return;
  }
  x.stem = ni_log_stem(name, NULL);
  w->log[w->n_logs++] = x;
}

int ni_watch_open(struct ni_watch **out, const struct ni_watch_settings *s, const struct ni_live *known) {
  struct ni_watch *w = *out = calloc(1, sizeof *w);
  size_t n = known ? known->n_files : 0;
  if (!w)
    return -ENOMEM;
  w->s = *s;
  int e = ni_rows_open(&w->rows, s->nvidia, known);
  if (e == 0)
    e = ni_tail_open(&w->tail);
  if (e == 0)
    e = ni_boxes_open(&w->boxes, s->box_dir, s->uid, s->stuck_ns);
  if (e == 0 && !ni_array_exact(&w->known, &w->cap_known, n, sizeof *w->known))
    e = -ENOMEM;
  for (size_t i = 0; e == 0 && i < n; i++) {
    const struct ni_live_file *f = &known->file[i];
    if (f->uid != s->uid)
      continue;
    w->known[w->n_known++] = (struct log){.f = *f};
    if (ni_live_file_open(f, ni_now_ns(CLOCK_MONOTONIC)))
      resume_log(w, f);
  }
  if (e == 0 && w->n_known > 1)
    qsort(w->known, w->n_known, sizeof *w->known, by_file);
  if (e == 0)
    return 0;
  ni_watch_close(w);
  *out = NULL;
  return e;
}

void ni_watch_close(struct ni_watch *w) {
  if (!w)
    return;
  ni_rows_close(&w->rows);
  ni_tail_close(w->tail);
  ni_boxes_close(w->boxes);
  for (size_t i = 0; i < w->n_logs; i++)
    free(w->log[i].path);
  for (size_t i = 0; i < w->n_dirs; i++)
    free(w->dir[i].path);
  free(w->log);
  free(w->known);
  free(w);
}

struct ni_boxes *ni_watch_boxes(const struct ni_watch *w) { return w->boxes; }

/* ---- which logs there are ---- */

static bool is_log_name(const void *arg, const char *name) {
  const struct ni_watch *w = arg;
  size_t n = ni_log_stem(name, NULL);
  bool ours = ni_find_log(w->s.node, name) || ni_boxes_log(w->boxes, NULL, name);
  for (size_t i = 0; i < w->n_logs && !ours; i++) /* a further one of a process whose box is gone */
    ours = w->log[i].stem == n && memcmp(ni_path_name(w->log[i].path), name, n) == 0;
  return ours;
}

/* Adds a new file, or notes a new name of a known one. */
static void visit_log(void *arg, const char *dir, const char *name, const struct stat *st) {
  struct ni_watch *w = arg;
  struct log x = {.stem = ni_log_stem(name, NULL),
                  .f = {.dev = st->st_dev, .ino = st->st_ino, .uid = st->st_uid, .rank = -1, .attempt = "0"}};
  if (st->st_uid != w->s.uid || asprintf(&x.path, "%s/%s", dir, name) < 0)
    return;
  size_t i = 0;
  while (i < w->n_logs && by_file(&w->log[i].f, &x.f) != 0)
    i++;
  if (i < w->n_logs && w->log[i].missing) {
    free(w->log[i].path);
    w->log[i].path = x.path;
    w->log[i].stem = x.stem;
    w->log[i].missing = false;
    return;
  }
  const struct log *known = bsearch(&x.f, w->known, w->n_known, sizeof *w->known, by_file);
  bool read = !known || known->size == (uint64_t)st->st_size; /* or of a time that nobody asks for */
  bool old = read && is_older_than(st, OLD_NS) && !ni_boxes_log(w->boxes, dir, name);
  bool full = w->n_logs == LOGS_MAX || !ni_array_room(w->log, w->n_logs, w->cap_logs);
  w->at->left_out += i == w->n_logs && !old && full;
  if (known)
    x.f = known->f;
  if (i == w->n_logs && !old && !full)
    w->log[w->n_logs++] = x;
  else
    free(x.path);
}

/*
 * Takes a log off the list, which is short and is gone through every second. If a log that is over grows
 * after all, it is resumed.
 */
static void forget_log(struct ni_watch *w, size_t i) {
  struct log *l = &w->log[i], *at = bsearch(&l->f, w->known, w->n_known, sizeof *w->known, by_file);
  free(l->path);
  l->path = NULL;
  const bool is_new = !at && !l->missing;
  if (is_new && w->n_known < NI_LIVE_FILES_MAX && ni_array_room(w->known, w->n_known, w->cap_known))
    for (at = w->known + w->n_known++; at > w->known && by_file(&at[-1].f, &l->f) > 0; at--)
      *at = at[-1];
  if (at)
    *at = *l;
  *l = w->log[--w->n_logs];
}

static void find_logs(struct ni_watch *w) {
  uint64_t now = w->now;
  bool missing = false;
  for (size_t i = 0; i < w->s.n_log_dirs; i++)
    use_dir(w, w->s.log_dir[i]);
  ni_boxes_each_log_dir(w->boxes, use_dir, w);
  /* where what we go on with lies its process may have begun another one */
  for (size_t i = 0; !w->turned && i < w->n_logs; i++) {
    char dir[sizeof w->log->f.path];
    snprintf(dir, sizeof dir, "%.*s", (int)(ni_path_name(w->log[i].path) - w->log[i].path - 1),
             w->log[i].path);
    use_dir(w, dir);
  }
  w->turned = true;
  for (size_t i = w->n_dirs; i-- > w->s.n_log_dirs;) /* those of the settings are first, and stay */
    /* the last file of a process may be newer than the last look at its box */
    if (now - w->dir[i].used_ns > 60 * S) {
      free(w->dir[i].path);
      w->dir[i] = w->dir[--w->n_dirs];
    }
  for (size_t i = 0; i < w->n_logs; i++)
    missing |= w->log[i].missing;
  for (size_t i = 0; i < w->n_dirs; i++) {
    struct dir *d = &w->dir[i];
    struct stat st;
    int depth = i < w->s.n_log_dirs; /* a job's folder in it */
    if (stat(d->path, &st) != 0)
      continue;
    uint64_t changed = (uint64_t)st.st_mtim.tv_sec * S + (uint64_t)st.st_mtim.tv_nsec;
    const bool is_unchanged = !d->again && changed == d->changed_ns;
    if (!missing && is_unchanged && now - d->listed_ns < (depth ? 5 : 60) * S)
      continue;
    d->again = ni_now_ns(CLOCK_REALTIME) - changed < 2 * S;
    d->changed_ns = changed;
    d->listed_ns = now;
    d->left_out = 0;
    w->at = d;
    (void)ni_find(d->path, depth, is_log_name, visit_log, w);
  }
  for (size_t i = 0; i < w->n_dirs; i++)
    w->look.unread += w->dir[i].left_out;
  for (size_t i = 0; i < w->n_logs; i++)
    if (w->log[i].missing || w->log[i].over)
      forget_log(w, i--);
}

/* ---- what they say ---- */

static uint64_t hash_bytes(const uint8_t *p, size_t n) { /* FNV-1a: the same in each process */
  uint64_t h = 14695981039346656037u;
  while (n--)
    h = (h ^ *p++) * 1099511628211u;
  return h;
}

/*
 * Is it the file that was read before, or another one in its place? A file that was only cut is the same;
 * reading continues behind `to`.
 */
static void identify_file(struct ni_live_file *f, const char *path, const uint8_t *head, size_t n) {
  if (n < f->head_bytes || hash_bytes(head, f->head_bytes) != f->head_hash || !f->head_bytes) {
    *f = (struct ni_live_file){.dev = f->dev, .ino = f->ino, .uid = f->uid, .rank = -1, .attempt = "0"};
    const char *end = ni_path_name(path) - 1, *from = end;
    while (from > path && from[-1] != '/')
      from--;
    snprintf(f->job, sizeof f->job, "%.*s", (int)(end - from), from);
  }
  if (n > f->head_bytes)
    f->head_hash = hash_bytes(head, n);
  if (n > f->head_bytes)
    f->head_bytes = (uint32_t)n;
}

/* NVIDIA's v4.3 and later: finds the line before the slice that says whose its first records are. */
static int find_marker(struct ni_watch *w, int fd, uint64_t at) {
  uint64_t behind;
  int e = ni_tail_marker(w->tail, fd, at, ni_rows_add_marker, &w->rows, &behind);
  if (e == 1)
    ni_scan_skip_records(w->rows.scan, behind);
  return e;
}

/* Reads a slice of a log that has grown. 0, what emit() said, -ENOMEM. */
static int read_log(struct ni_watch *w, struct log *l, ni_watch_emit *emit, void *arg) {
  struct stat st;
  uint8_t head[HEAD_BYTES];
  int e = 0, said = 0, fd = ni_plain_open(AT_FDCWD, l->path, &st);
  ssize_t n = fd < 0 ? -1 : pread(fd, head, sizeof head, 0);
  bool ours = fd >= 0 && st.st_uid == w->s.uid && st.st_dev == l->f.dev && st.st_ino == l->f.ino;
  l->due = false;
  if (n >= 2 && ours) {
    identify_file(&l->f, l->path, head, (size_t)n);
    bool fits =
        *l->path == '/' && strlen(l->path) < sizeof l->f.path && ni_utf8_valid(l->path, strlen(l->path));
    snprintf(l->f.path, sizeof l->f.path, "%s", fits ? l->path : "");
    struct ni_tail_at at = {l->f.to, l->lost};
    ni_rows_begin(&w->rows, &l->f);
    bool gzip = head[0] == 0x1f && head[1] == 0x8b;
    if (!gzip)
      e = find_marker(w, fd, at.at);
    while (e >= 0 && !l->due &&
           (e = ni_tail_step(w->tail, fd, gzip, &at, ni_rows_add_line, &w->rows, &w->rows.b.totals)) == 1) {
      /* A member is not looked back into: its slice is larger where a batch goes on. */
      bool within = gzip && ni_scan_count_owed(w->rows.scan) && at.at - l->f.to < 16 * SLICE_BYTES;
      l->due = (at.at - l->f.to >= SLICE_BYTES && !within) || ni_rows_full(&w->rows);
    }
    w->rows.b.file.to = at.at;
    if (e >= 0 && at.at > l->f.to && (said = emit(arg, &w->rows.b)) == 0) {
      l->f = w->rows.b.file;
      l->lost = at.lost;
    }
    l->size = l->due ? UINT64_MAX : (uint64_t)st.st_size;
  }
  l->left = l->due && (uint64_t)st.st_size > l->f.to ? (uint64_t)st.st_size - l->f.to : 0;
  l->unread = n < 0 || !ours || e < 0;
  if (fd >= 0)
    close(fd);
  return e == -ENOMEM ? e : said;
}

int ni_watch_turn(struct ni_watch *w, ni_watch_emit *emit, void *arg, bool *more) {
  uint64_t now = w->now = ni_now_ns(CLOCK_MONOTONIC);
  struct stat st;
  w->look = (struct ni_live_batch){.kind = NI_LIVE_LOOK, .uid = w->s.uid};
  bool lost = *more = false; /* under another name, perhaps: it is looked for at once */
  ni_rows_turn(&w->rows);
  int e = ni_boxes_look(w->boxes, &w->look, &w->rows);
  if (e < 0)
    return e;
  find_logs(w);
  /* due: so many more are to be asked, since one of the last n had more to say */
  size_t n = w->n_logs, i, due = n;
  for (i = 0; e == 0 && i < due && ni_now_ns(CLOCK_MONOTONIC) - now < TURN_NS; i++) {
    struct log *l = &w->log[(w->next + i) % n];
    if (lstat(l->path, &st) != 0 || st.st_ino != l->f.ino || st.st_dev != l->f.dev)
      l->missing = true;
    else if ((uint64_t)st.st_size != l->size)
      e = read_log(w, l, emit, arg);
    else
      l->over = is_older_than(&st, l->f.ended ? OLD_NS : 2 * OLD_NS) && !has_box(w, l->path);
    lost |= l->missing;
    if (l->due &= !l->missing)
      due = i + 1 + n;
  }
  NI_EACH(const struct log, l, w->log, n) {
    w->look.behind += l->due ? l->left : 0;
    w->look.unread += l->unread;
  }
  w->next = n ? (w->next + i) % n : 0;
  *more |= i < due || lost;
  if (*more && !w->look.behind)
    w->look.behind = 1;
  w->look.logs = (uint32_t)n;
  return e ? e : emit(arg, &w->look);
}
