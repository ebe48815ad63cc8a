#include "discover.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <search.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"

/* The chain of directories above the present one: a link back to any of them is a loop. */
struct above {
  const struct above *up;
  dev_t dev;
  ino_t ino;
  unsigned depth;
};

static int add_bad(struct ni_files *f, const char *path, int error, bool named) {
  char *copy = ni_array_room(f->bad, f->n_bad, f->cap_bad) ? strdup(path) : NULL;
  if (!copy)
    return -ENOMEM;
  f->bad[f->n_bad++] = (struct ni_unreadable){copy, error, named};
  return 0;
}

static int64_t convert_to_ns(const struct timespec *t) {
  return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

static int add_file(struct ni_files *f, const char *path, const struct stat *st) {
  char *copy = ni_array_room(f->file, f->n, f->cap) ? strdup(path) : NULL;
  if (!copy)
    return -ENOMEM;
  f->file[f->n++] = (struct ni_file){.path = copy,
                                     .bytes = (uint64_t)st->st_size,
                                     .dev = st->st_dev,
                                     .ino = st->st_ino,
                                     .owner = st->st_uid,
                                     .mtime_ns = convert_to_ns(&st->st_mtim),
                                     .ctime_ns = convert_to_ns(&st->st_ctim)};
  return 0;
}

/* Length of a name without a last part of digits; that part as a number, 0 where there is none. */
static size_t measure_stem(const char *name, size_t n, uint64_t *number) {
  size_t from = n;
  *number = 0;
  while (from > 0 && name[from - 1] >= '0' && name[from - 1] <= '9')
    from--;
  if (from == n || from < 2 || name[from - 1] != '.')
    return n;
  *number = strtoull(name + from, NULL, 10);
  return from - 1;
}

/* Bit of the extension, 0: no log; *stem: length of what is before it. Files that others rotated carry a
 * number behind (x.jsonl.gz.1). */
static unsigned find_extension(const char *name, size_t *stem) {
  static const char *const ext[] = {".log", ".log.gz", ".jsonl", ".jsonl.gz"};
  uint64_t number;
  size_t n = *stem = measure_stem(name, strlen(name), &number);
  for (unsigned i = 0; i < sizeof ext / sizeof *ext; i++) {
    size_t k = strlen(ext[i]);
    if (n <= k || memcmp(name + n - k, ext[i], k) != 0)
      continue;
    *stem = n - k;
    return 1u << i;
  }
  return 0;
}

/* Is a file of that name wanted where directories are searched? Not 0: yes. */
static unsigned is_wanted(const struct ni_files *f, const char *name) {
  size_t stem;
  return f->wanted ? f->wanted(name) : find_extension(name, &stem);
}

static int visit_path(struct ni_files *f, const char *path, const struct above *up, bool named);

struct id {
  dev_t dev;
  ino_t ino;
};

static int compare_by_id(const void *a, const void *b) {
  const struct id *x = a, *y = b;
  return NI_BY(x, y, dev, ino);
}

/*
 * Found on the way, not named: does a link lead into this folder, and into it for the first time? Two links
 * in each of 40 folders to the next one are 2^40 ways. *why: root is not led through the whole machine by a
 * link that another user has laid.
 */
static bool may_enter(struct ni_files *f, const char *path, const struct stat *st, int *why) {
  struct stat link;
  *why = 0;
  if (lstat(path, &link) < 0 || !S_ISLNK(link.st_mode))
    return true;
  if (geteuid() == 0 && link.st_uid != 0 && link.st_uid != st->st_uid) {
    *why = EPERM;
    return false;
  }
  struct id *id = malloc(sizeof *id), **at = NULL;
  if (id)
    *id = (struct id){st->st_dev, st->st_ino};
  if (id)
    at = tsearch(id, &f->by_link, compare_by_id);
  bool first = at && *at == id;
  if (!first)
    free(id);
  if (!at)
    *why = ENOMEM;
  return first;
}

static bool has_enough(const struct ni_files *f) { return f->first_only && f->n; }

static int visit_directory(struct ni_files *f, const char *path, const struct stat *st,
                           const struct above *up, bool named) {
  struct above here = {up, st->st_dev, st->st_ino, up ? up->depth + 1 : 0};
  for (const struct above *a = up; a; a = a->up)
    if (a->dev == here.dev && a->ino == here.ino)
      return 0;
  if (here.depth > NI_DISCOVER_DEPTH)
    return add_bad(f, path, ELOOP, false);
  DIR *d = opendir(path);
  if (!d)
    return add_bad(f, path, errno, named);
  const bool is_found = up != NULL;
  if (is_found && faccessat(dirfd(d), NI_RESULT_MARKER, F_OK, AT_SYMLINK_NOFOLLOW) == 0) {
    closedir(d);
    return 0;
  }
  int e = 0;
  struct dirent *entry;
  while (e == 0 && !has_enough(f) && (errno = 0, entry = readdir(d))) {
    if (entry->d_name[0] == '.' || strcmp(entry->d_name, NI_HANG_FOLDER) == 0)
      continue;
    /* Without a stat of its own, an ordinary file with another name is no business of ours. */
    if (entry->d_type == DT_REG && !is_wanted(f, entry->d_name))
      continue;
    char *child;
    size_t n = strlen(path);
    if (asprintf(&child, "%s%s%s", path, n > 0 && path[n - 1] == '/' ? "" : "/", entry->d_name) < 0) {
      e = -ENOMEM;
      break;
    }
    e = visit_path(f, child, &here, false);
    free(child);
  }
  if (e == 0 && !has_enough(f) && errno)
    e = add_bad(f, path, errno, named);
  closedir(d);
  return e;
}

static int visit_path(struct ni_files *f, const char *path, const struct above *up, bool named) {
  struct stat st;
  int why;
  if (stat(path, &st) < 0) {
    why = errno;
    if (!named && !is_wanted(f, ni_path_name(path)))
      return 0;
    if (!named && lstat(path, &st) < 0 && errno == ENOENT)
      return 0; /* it expired just now */
    return add_bad(f, path, why, named);
  }
  if (S_ISDIR(st.st_mode) && (named || may_enter(f, path, &st, &why)))
    return visit_directory(f, path, &st, up, named);
  if (S_ISDIR(st.st_mode))
    return why ? add_bad(f, path, why, false) : 0;
  unsigned ext = is_wanted(f, ni_path_name(path));
  if (!named && !ext)
    return 0;
  if (!S_ISREG(st.st_mode))
    return add_bad(f, path, EINVAL, named);
  f->kinds |= ext;
  return add_file(f, path, &st);
}

size_t ni_log_stem(const char *path, uint64_t *number) {
  uint64_t own;
  size_t n;
  (void)find_extension(path, &n);
  return measure_stem(path, n, number ? number : &own);
}

bool ni_same_stem(const char *a, const char *b) {
  size_t n = ni_log_stem(a, NULL);
  return n == ni_log_stem(b, NULL) && memcmp(a, b, n) == 0;
}

/*
 * The files of a process in the order they were written: x.jsonl.gz, x.1.jsonl.gz, x.2.jsonl.gz,
 * x.10.jsonl.gz.
 */
static int compare_by_path(const void *a, const void *b) {
  const char *path[2] = {((const struct ni_file *)a)->path, ((const struct ni_file *)b)->path};
  char stem[2][PATH_MAX];
  uint64_t number[2];
  for (int i = 0; i < 2; i++) {
    size_t n = ni_log_stem(path[i], &number[i]);
    if (n >= PATH_MAX)
      n = PATH_MAX - 1;
    memcpy(stem[i], path[i], n);
    stem[i][n] = 0;
  }
  int c = strverscmp(stem[0], stem[1]);
  if (!c)
    c = strcmp(stem[0], stem[1]);
  if (!c)
    c = number[0] < number[1] ? -1 : number[0] > number[1];
  if (!c)
    c = strverscmp(path[0], path[1]); /* what others rotated: .2 before .10 */
  return c ? c : strcmp(path[0], path[1]);
}

static int compare_by_inode(const void *a, const void *b) {
  const struct ni_file *x = a, *y = b;
  int k = NI_BY(x, y, dev, ino);
  return k ? k : compare_by_path(a, b);
}

static int compare_by_bad_path(const void *a, const void *b) {
  return strcmp(((const struct ni_unreadable *)a)->path, ((const struct ni_unreadable *)b)->path);
}

/* Sorted by path; of several names of one file the first in order stays. */
static void sort_files(struct ni_files *f) {
  if (f->n_bad > 1)
    qsort(f->bad, f->n_bad, sizeof *f->bad, compare_by_bad_path);
  if (f->n < 2)
    return;
  qsort(f->file, f->n, sizeof *f->file, compare_by_inode);
  size_t kept = 1;
  for (size_t i = 1; i < f->n; i++) {
    const struct ni_file *last = &f->file[kept - 1];
    if (f->file[i].dev == last->dev && f->file[i].ino == last->ino) {
      free(f->file[i].path);
      f->doubles++;
    } else {
      f->file[kept++] = f->file[i];
    }
  }
  f->n = kept;
  qsort(f->file, f->n, sizeof *f->file, compare_by_path);
}

int ni_discover(struct ni_files *out, char *const *path, size_t n) {
  int e = 0;
  for (size_t i = 0; e == 0 && i < n; i++) {
    struct stat st;
    glob_t g;
    if (stat(path[i], &st) < 0 && strpbrk(path[i], "*?[") && glob(path[i], 0, NULL, &g) == 0) {
      for (size_t k = 0; e == 0 && k < g.gl_pathc; k++) {
        bool directory = stat(g.gl_pathv[k], &st) == 0 && S_ISDIR(st.st_mode);
        e = visit_path(out, g.gl_pathv[k], NULL, !directory);
      }
      globfree(&g);
    } else {
      e = visit_path(out, path[i], NULL, true);
    }
  }
  tdestroy(out->by_link, free);
  out->by_link = NULL;
  sort_files(out);
  return e;
}

const char *ni_unreadable_why(const struct ni_unreadable *u) {
  return u->error == EINVAL ? "not a plain file (a pipe, a device, a socket)" : strerror(u->error);
}

void ni_files_drop(struct ni_files *f, bool (*drop)(const struct ni_file *file, void *arg), void *arg) {
  size_t kept = 0;
  for (size_t i = 0; i < f->n; i++) {
    if (drop(&f->file[i], arg))
      free(f->file[i].path);
    else
      f->file[kept++] = f->file[i];
  }
  f->n = kept;
}

void ni_files_free(struct ni_files *f) {
  for (size_t i = 0; i < f->n; i++)
    free(f->file[i].path);
  for (size_t i = 0; i < f->n_bad; i++)
    free(f->bad[i].path);
  free(f->file);
  free(f->bad);
  *f = (struct ni_files){0};
}

int32_t ni_rank_in_name(const char *path, bool *is_guess) {
  const char *name = ni_path_name(path), *at = strcasestr(name, "rank");
  if (at)
    at += 4 + strspn(at + 4, "_-");
  bool stated = at && isdigit((unsigned char)*at);
  if (is_guess)
    *is_guess = !stated;
  for (const char *p = stated ? "" : name; *p; p++)
    if (isdigit((unsigned char)*p) && (p == name || !isdigit((unsigned char)p[-1])))
      at = p;
  long rank = at && isdigit((unsigned char)*at) ? strtol(at, NULL, 10) : -1;
  return rank < INT32_MAX ? (int32_t)rank : -1;
}
