#include "place.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/input/box/box_decode.h"

/* Of which the plugin makes names of logs. */
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

struct search {
  struct ni_place *p;
  const struct ni_files *read; /* what was read already */
  uint64_t start_ns;
  bool any;                    /* whoever owns the log */
  uid_t owner;
};

static bool is_its(const struct search *s, const char *name) {
  size_t n = strlen(s->p->stem);
  return strncmp(name, s->p->stem, n) == 0 && ni_log_stem(name, NULL) == n;
}

static int take_file(const struct search *s, const char *path, uid_t owner) {
  if (!s->any && owner != s->owner) return 0;
  if (!s->p->logs) {
    const char *slash = strrchr(path, '/');
    s->p->logs = slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
    if (!s->p->logs) return -ENOMEM;
  }
  return ni_log_state_read(&s->p->log, path, s->start_ns);
}

/* The first file of a log has no number. */
static int by_number(const void *a, const void *b) {
  uint64_t m, n;
  (void)ni_log_stem(*(char *const *)a, &m);
  (void)ni_log_stem(*(char *const *)b, &n);
  return m < n ? -1 : m > n;
}

/* Files of the stem in one directory, in the order in which they were written. */
static int look_in(const struct search *s, const char *dir) {
  DIR *d = opendir(dir);
  char **path = NULL;
  size_t found = 0, cap = 0;
  int e = 0;
  if (!d && errno != ENOENT) s->p->closed = dir, s->p->error = errno;
  if (!d) return 0;
  for (struct dirent *entry; e == 0 && (entry = readdir(d));) {
    if (!is_its(s, entry->d_name)) continue;
    if (!ni_array_room(path, found, cap) || asprintf(&path[found], "%s/%s", dir, entry->d_name) < 0) e = -ENOMEM;
    else found++;
  }
  closedir(d);
  if (found > 1) qsort(path, found, sizeof *path, by_number);
  for (size_t i = 0; i < found; i++) {
    struct stat st;
    bool have = lstat(path[i], &st) != 0 || !S_ISREG(st.st_mode);
    for (size_t k = 0; !have && k < s->read->n; k++)
      have = s->read->file[k].dev == st.st_dev && s->read->file[k].ino == st.st_ino;
    if (e == 0 && !have) e = take_file(s, path[i], st.st_uid);
    free(path[i]);
  }
  free(path);
  return e;
}

/* A name for the log of a process that was killed before it had one. */
static void invent_stem(const struct ni_box_header *h, char *out, size_t size) {
  char host[sizeof h->hostname];
  size_t n = 0;
  for (const char *p = h->hostname; *p && n < sizeof host - 1; p++, n++) {
    bool safe = strchr(NAME_CHARS, *p) && (*p != '.' || n);
    host[n] = safe ? *p : '_';
  }
  host[n] = 0;
  snprintf(out, size, "%.128s-pid%" PRId64 "-%" PRIu64, *host ? host : "unknown-host", h->pid, h->made_ns / 1000000000u);
}

/*
 * May what the box says decide where its part is written? If we are its owner. Not what lies in a folder that root was given:
 * root copies other users' files, and the copies are root's.
 */
static bool trusted(const struct ni_box_sources *s, const struct ni_inputs *in, const struct ni_box *b, const char *said) {
  bool own = ni_box_owner(b) == geteuid(), copied = geteuid() == 0 && s->named;
  return own && *said == '/' && (!copied || ni_box_under(in, said));
}

/* What the box says of its log, and the name that a part of it will have. */
static void take_session(struct search *s, const struct ni_box *b) {
  struct ni_place *p = s->p;
  struct ni_box_log session = {0};
  const char *file = ni_box_session(b, &session) && *session.dir ? session.file : "";
  size_t n = ni_log_stem(file, NULL);
  if (session.dir) snprintf(p->said, sizeof p->said, "%s", session.dir);
  s->start_ns = session.start_ns;
  if (n && n < sizeof p->stem - 32 && strspn(file, NAME_CHARS) >= n && *file != '.') snprintf(p->stem, sizeof p->stem, "%.*s", (int)n, file);
  else invent_stem(ni_box_header(b), p->stem, sizeof p->stem);
}

/* The folder that the part goes to; NULL: nobody says. */
static const char *folder_for(const struct ni_place *p, const struct ni_inputs *in, const char *output, bool believed) {
  struct stat st;
  if (output) return output;
  if (p->logs) return p->logs;
  if (believed) return p->said;
  return in->n == 1 && !*p->said && stat(in->path[0], &st) == 0 && S_ISDIR(st.st_mode) ? in->path[0] : NULL;
}

int ni_place_find(struct ni_place *p, const struct ni_box_sources *s, const struct ni_inputs *in, const char *output,
                  const struct ni_box *b) {
  struct search look = {p, &s->logs, 0, output != NULL, ni_box_owner(b)};
  int e = 0;
  take_session(&look, b);
  for (size_t i = 0; e == 0 && i < s->logs.n; i++)
    if (is_its(&look, ni_path_name(s->logs.file[i].path))) e = take_file(&look, s->logs.file[i].path, s->logs.file[i].owner);
  p->elsewhere = !s->named && in->n && !p->logs && !(*p->said && ni_box_under(in, p->said));
  if (e < 0 || p->elsewhere) return e;
  bool believed = trusted(s, in, b, p->said);
  if (believed || (output && *p->said == '/')) e = look_in(&look, p->said);
  const char *dir = folder_for(p, in, output, believed);
  if (e == 0 && output && (!p->logs || strcmp(p->logs, output) != 0) && strcmp(p->said, output) != 0) e = look_in(&look, output);
  if (e == 0 && dir && !(p->dir = strdup(dir))) e = -ENOMEM;
  return e;
}

void ni_place_free(struct ni_place *p) {
  ni_log_state_free(&p->log);
  free(p->dir);
  free(p->logs);
  *p = (struct ni_place){0};
}

/* ---- the part's file: lines in, gzip on disk, a name when it is whole ---- */

#define MEMBER_TEXT (1u << 20) /* text of a gzip member: readers share a file by members */
#define MAX_NUMBER 1000000

/* Text that is not in a member yet. */
struct lines {
  int fd;
  size_t n;
  char text[MEMBER_TEXT];
};

/* A member ends with a line; a line is never so long as one. */
static int put_member(struct lines *l) {
  const char *end = memrchr(l->text, '\n', l->n);
  size_t n = end ? (size_t)(end - l->text) + 1 : l->n;
  int e = n ? ni_write_member(l->fd, l->text, n) : 0;
  memmove(l->text, l->text + n, l->n - n);
  l->n -= n;
  return e;
}

static ssize_t take(void *cookie, const char *text, size_t n) {
  struct lines *l = cookie;
  for (size_t done = 0, some; done < n; done += some) {
    some = n - done < MEMBER_TEXT - l->n ? n - done : MEMBER_TEXT - l->n;
    memcpy(l->text + l->n, text + done, some);
    l->n += some;
    int e = l->n == MEMBER_TEXT ? put_member(l) : 0;
    if (e < 0) {
      errno = -e;
      return 0;
    }
  }
  return (ssize_t)n;
}

static int end(void *cookie) {
  struct lines *l = cookie;
  int e = put_member(l);
  if (e == 0 && fsync(l->fd) != 0) e = -errno;
  free(l);
  errno = -e;
  return e < 0 ? -1 : 0;
}

FILE *ni_recover_lines(int fd) {
  struct lines *l = malloc(sizeof *l);
  if (!l) return NULL;
  l->fd = fd;
  l->n = 0;
  FILE *f = fopencookie(l, "w", (cookie_io_functions_t){.write = take, .close = end});
  if (!f) free(l);
  else (void)__fsetlocking(f, FSETLOCKING_BYCALLER); /* one thread */
  return f;
}

int ni_recover_name(struct ni_out_file *o, const char *stem, uint64_t from, char *name, size_t size) {
  for (uint64_t i = from; i - from < MAX_NUMBER; i++) {
    char number[24] = "";
    if (i) snprintf(number, sizeof number, ".%" PRIu64, i);
    snprintf(name, size, "%s%s.jsonl.gz", stem, number);
    int e = ni_out_commit(o, name, false);
    if (e != -EEXIST) return e;
  }
  ni_out_drop(o);
  return -EEXIST;
}
