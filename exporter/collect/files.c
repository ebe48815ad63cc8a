#include "files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/now.h"
#include "exporter/base/text/plural.h"
#include "source.h"

enum { FOLDERS = 4, SPARE_FDS = 128, STEPPED_NS = 5000000 };

struct file {
  const char *name; /* in its folder: the set's text */
  int fd;           /* -1: opened at each reading */
  uint8_t folder, width;
};

struct files {
  struct ni_counter_reader r;
  struct file *file;
  size_t n, cap;
  struct {
    int fd;
    bool stamped;
    int64_t lifespan_ns, fresh_ns; /* monotonic: when the driver last asked the device, as far as is known */
  } folder[FOLDERS];
  unsigned n_folders;
  int fd_max;
  int64_t ahead_ns; /* the wall clock, of the monotonic one */
};

/* A decimal number, perhaps with a sign. Behind it, or NULL: there is none, or it is too large. */
static const char *parse_number(const char *s, uint64_t *out) {
  bool negative = *s == '-';
  uint64_t v = 0;
  const char *from = s += negative;
  for (unsigned d; (d = (unsigned)(*s - '0')) < 10; s++) {
    if (v >= UINT64_MAX / 10 && (v > UINT64_MAX / 10 || d > UINT64_MAX % 10))
      return NULL;
    v = v * 10 + d;
  }
  *out = negative ? 0 - v : v;
  return s == from ? NULL : s;
}

/* What a file holds: "12\n", "12@1746204071.662953620\n". */
static bool parse_text(const char *s, bool stamped, uint64_t *value, int64_t *ns) {
  uint64_t sec, part;
  if (!(s = parse_number(s, value)))
    return false;
  if (stamped) {
    if (*s++ != '@' || !(s = parse_number(s, &sec)) || *s++ != '.')
      return false;
    const char *from = s;
    if (!(s = parse_number(s, &part)) || s - from != 9 || sec > INT64_MAX / 2000000000)
      return false;
    *ns = (int64_t)(sec * 1000000000 + part);
  }
  return !*s || *s == '\n';
}

/* Bytes of the file's text, or -errno. */
static int read_text(int fd, char text[64]) {
  *text = 0;
  return fd < 0 ? -errno : ni_root_read(fd, text, 64);
}

/*
 * By how much the wall clock is ahead of the monotonic one. The two differ by the same amount until somebody
 * sets the first, so what was measured before stays: a stamp is the same time in each sweep then.
 */
static int64_t measure_wall_ahead(int64_t before) {
  int64_t narrowest = INT64_MAX, ahead = before;
  for (int i = 0; i < 3; i++) { /* this thread may have to wait between two clocks */
    int64_t from = (int64_t)ni_now_ns(CLOCK_MONOTONIC), real = (int64_t)ni_now_ns(CLOCK_REALTIME);
    int64_t took = (int64_t)ni_now_ns(CLOCK_MONOTONIC) - from;
    if (took < narrowest) {
      narrowest = took;
      ahead = real - from;
    }
    if (llabs(ahead - before) < STEPPED_NS)
      return before;
  }
  return ahead;
}

static int open_file_in(int folder, const char *name) {
  return openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

/* Does the error say that the device is gone? The last one is that of a file system in user space. */
static bool is_gone(int e) { return e == -ENODEV || e == -ENOENT || e == -ENXIO || e == -ENOTCONN; }

static void read_files(struct ni_counter_reader *r, struct ni_reading *out) {
  struct files *x = (struct files *)r;
  int64_t ahead = x->ahead_ns = measure_wall_ahead(x->ahead_ns);
  NI_EACH(const struct file, f, x->file, x->n) {
    char text[64];
    bool stamped = x->folder[f->folder].stamped;
    int fd = f->fd >= 0 ? f->fd : open_file_in(x->folder[f->folder].fd, f->name), n = read_text(fd, text);
    if (f->fd < 0 && fd >= 0)
      close(fd);
    bool is_read = n >= 0 && parse_text(text, stamped, &out->value, &out->real_ns);
    out->state = is_read ? NI_READ_OK : NI_READ_UNREADABLE;
    /* A reading has both clocks; one of them is read, or is in the file. */
    if (is_read && stamped) {
      out->mono_ns = out->real_ns - ahead;
    } else {
      int64_t now = (int64_t)ni_now_ns(CLOCK_MONOTONIC), *fresh = &x->folder[f->folder].fresh_ns;
      if (n >= 0 && now - *fresh >= x->folder[f->folder].lifespan_ns)
        *fresh = now;
      out->mono_ns = n < 0 ? now : *fresh;
      out->real_ns = out->mono_ns + ahead;
    }
    if (!is_read)
      out->value = 0;
    /* 32 bits, printed with a sign */
    if (out->value >> 63 && f->width < 64)
      out->value &= (UINT64_C(1) << f->width) - 1;
    if (is_gone(n)) {
      out->state = NI_READ_MISSING;
      r->changed = true;
    }
    out++;
  }
}

static void close_files(struct ni_counter_reader *r) {
  struct files *x = (struct files *)r;
  for (size_t i = 0; i < x->n; i++)
    if (x->file[i].fd >= 0)
      close(x->file[i].fd);
  for (unsigned i = 0; i < x->n_folders; i++)
    close(x->folder[i].fd);
  free(x->file);
  free(x);
}

/* The first of the files that cannot be read, why, and how many there are of them. */
struct bad {
  char name[256], why[160];
  size_t n;
  bool skipped;
};

static void note_bad_file(struct bad *b, const char *name, const char *why, bool skipped) {
  if (b->n++)
    return;
  b->skipped = skipped;
  snprintf(b->name, sizeof b->name, "%s", name);
  snprintf(b->why, sizeof b->why, "%s", why);
}

/* Adds the file, if it is asked for and is a counter. */
static void add_file(struct ni_find *f, struct files *x, const struct ni_folder *how, const char *name,
                     struct bad *bad) {
  char counter[512], text[64], why[96];
  unsigned folder = x->n_folders - 1;
  uint64_t value;
  int64_t ns;
  int fd = -1;
  snprintf(counter, sizeof counter, "%s%s", how->prefix ? how->prefix : "", name);
  if (how->proven) {
    int n = read_text(fd = open_file_in(x->folder[folder].fd, name), text);
    if (n < 0 || !parse_text(text, how->stamped, &value, &ns)) {
      if (fd >= 0)
        close(fd);
      snprintf(why, sizeof why, "it says \"%.*s\", which is no number", (int)strcspn(text, "\n"),
               n < 0 ? "" : text);
      bool denied = n == -EACCES || n == -EPERM;
      if (n != -EISDIR)
        note_bad_file(bad, name, n < 0 ? strerror(-n) : why, !denied);
      return;
    }
  }
  if (!ni_array_room(x->file, x->n, x->cap))
    f->set->failed = true;
  else if (ni_find_counter(f, counter)) {
    const struct ni_counter *c = &f->set->counter[f->set->n_counters - 1];
    if (fd < 0)
      fd = open_file_in(x->folder[folder].fd, name);
    if (fd < 0 && errno != EMFILE && errno != ENFILE)
      note_bad_file(bad, name, strerror(errno), false);
    bool kept = fd >= 0 && !how->anew && fd <= x->fd_max;
    x->file[x->n++] = (struct file){c->name + strlen(counter) - strlen(name), kept ? fd : -1, (uint8_t)folder,
                                    c->what.kind == NI_METRIC_COUNTER ? c->what.width : 64};
    if (kept)
      fd = -1;
  }
  if (fd >= 0)
    close(fd);
}

static bool is_in_folder(const char *folder, const char *name) {
  char path[NI_ROOT_PATH];
  return folder && snprintf(path, sizeof path, "%s/%s", folder, name) < NI_ROOT_PATH &&
      access(path, F_OK) == 0;
}

static int add_folder(struct ni_find *f, struct files *x, const struct ni_folder *how) {
  struct dirent **names;
  struct bad bad = {0}, twice = {0};
  char folder[NI_ROOT_PATH], path[NI_ROOT_PATH + 300], why[NI_ROOT_PATH + 256];
  if (snprintf(folder, sizeof folder, "%s%s%s", how->path, how->sub ? "/" : "", how->sub ? how->sub : "") >=
      NI_ROOT_PATH)
    *folder = 0;
  int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
      n = fd < 0 ? -errno : ni_root_names(&names, folder);
  if (n < 0 && how->must)
    ni_set_unread(f->set, folder, strerror(-n));
  if (fd < 0)
    return n;
  x->folder[x->n_folders].fd = fd;
  x->folder[x->n_folders].stamped = how->stamped;
  x->folder[x->n_folders++].lifespan_ns = how->lifespan_ms * INT64_C(1000000);
  for (int i = 0; i < n; i++) {
    const char *name = names[i]->d_name;
    if (how->only && !ni_metric_fits_any(how->only, name))
      continue;
    if (how->skip && ni_metric_fits_any(how->skip, name))
      continue;
    if (how->left && ni_metric_fits_any(how->left, name)) {
      snprintf(path, sizeof path, "%s/%s", folder, name);
      ni_set_skipped(f->set, path, how->left_why);
    } else if (is_in_folder(how->but_in, name)) {
      note_bad_file(&twice, name, "", true);
    } else {
      add_file(f, x, how, name, &bad);
    }
  }
  if (twice.n) {
    snprintf(why, sizeof why, "%s has a counter of that name, which is read%s", how->but_in,
             twice.n > 1 ? "; so it is with others of this folder" : "");
    snprintf(path, sizeof path, "%s/%s", folder, twice.name);
    ni_set_skipped(f->set, path, why);
  }
  if (bad.n) {
    int used = snprintf(why, sizeof why, "%s", bad.why);
    if (bad.n > 1)
      snprintf(why + used, sizeof why - (size_t)used, "; so it is with %zu more %s of this folder", bad.n - 1,
               ni_plural(bad.n - 1, "file", "files"));
    snprintf(path, sizeof path, "%s/%s", folder, bad.name);
    (bad.skipped ? ni_set_skipped : ni_set_unread)(f->set, path, why);
  }
  ni_root_names_free(names, n);
  return n < 0 ? n : 0;
}

int ni_files_find(struct ni_find *f, const struct ni_folder *folder, unsigned n) {
  struct files *x = calloc(1, sizeof *x);
  struct rlimit limit;
  if (!x) {
    f->set->failed = true;
    return -ENOMEM;
  }
  x->r.read = read_files;
  x->r.close = close_files;
  x->fd_max = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < INT32_MAX
      ? (int)limit.rlim_cur - SPARE_FDS
      : INT32_MAX;
  int e = 0;
  for (unsigned i = 0; i < n && i < FOLDERS; i++) {
    int failed = add_folder(f, x, &folder[i]);
    if (i == 0)
      e = failed;
  }
  if (e == 0)
    e = (int)x->n;
  ni_find_reader(f, &x->r);
  return e;
}
