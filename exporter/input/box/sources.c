#include "exporter/base/process/as_user.h"
#include "exporter/base/now.h"
#include "exporter/base/text/plural.h"
#include "exporter/base/text/safe_text.h"
#include "sources.h"
#include "box_decode.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool ni_box_name(const char *path) {
  size_t n = strlen(path), k = sizeof NI_BOX_SUFFIX - 1;
  return n > k && strcmp(path + n - k, NI_BOX_SUFFIX) == 0;
}

/* boxes of which is asked whether they are another job's: a machine has fewer */
#define ASKED_MAX 1000

static bool is_box_name(const char *name) {
  return strncmp(name, NI_BOX_PREFIX, sizeof NI_BOX_PREFIX - 1) == 0 && ni_box_name(name);
}

/* Named files go to one list or the other, directories to both. */
static void split_paths(const struct ni_inputs *in, char **logs, size_t *n_logs, char **boxes,
                        size_t *n_boxes) {
  for (size_t i = 0; i < in->n; i++) {
    struct stat st;
    bool directory = stat(in->path[i], &st) == 0 && S_ISDIR(st.st_mode);
    if (directory || !ni_box_name(in->path[i]))
      logs[(*n_logs)++] = in->path[i];
    if (directory || ni_box_name(in->path[i]))
      boxes[(*n_boxes)++] = in->path[i];
  }
}

/* errno of what keeps a folder from being searched, or 0. */
static int find_search_error(const char *dir) {
  struct stat st;
  if (stat(dir, &st) != 0)
    return errno;
  if (!S_ISDIR(st.st_mode))
    return ENOTDIR;
  return access(dir, R_OK | X_OK) == 0 ? 0 : errno;
}

int ni_box_dir_check(const char *name, const char *named) {
  int e = named ? find_search_error(named) : 0;
  if (e)
    ni_say(stderr, "%s: --box-dir %s: %s. %s\n", name, named, strerror(e),
           e == EACCES ? "Run as the user of the job, or as root"
                       : "Give the folder that NCCL_INSPECTOR_BLACKBOX names in the job, or leave --box-dir "
                         "out for " NI_BOX_DIR);
  return -e;
}

/* Does it lie in this very folder? */
static bool is_in_folder(const struct ni_file *f, void *arg) {
  const struct stat *d = arg;
  struct stat of;
  char *slash = strrchr(f->path, '/');
  if (slash)
    *slash = 0;
  bool there = stat(slash ? f->path : ".", &of) == 0 && of.st_dev == d->st_dev && of.st_ino == d->st_ino;
  if (slash)
    *slash = '/';
  return there;
}

/*
 * Is the box of a newer layout, and of a process without a log here? Only its plugin's own program can read
 * where its log lies, but its name has the host and the pid, as those of logs have: two jobs on one machine
 * need not have the same plugin.
 */
static bool is_of_another_user(const struct ni_file *f, void *arg) {
  const struct ni_files *logs = arg;
  struct ni_box_header h;
  struct stat st;
  int fd = ni_plain_open(AT_FDCWD, f->path, &st);
  bool is_box = fd >= 0 && read(fd, &h, sizeof h) == sizeof h && memcmp(h.magic, NI_BOX_MAGIC, 8) == 0;
  bool is_newer = is_box && h.byte_order == NI_BOX_BYTE_ORDER && h.version > NI_BOX_VERSION;
  if (fd >= 0)
    close(fd);
  const char *who = ni_path_name(f->path) + sizeof NI_BOX_PREFIX - 1, *end = strrchr(who, '-');
  if (!is_newer || !end)
    return false;
  size_t n = (size_t)(end - who) + 1; /* "node-a-pid4711-" */
  for (size_t i = 0; i < logs->n; i++)
    if (strncmp(ni_path_name(logs->file[i].path), who, n) == 0)
      return false;
  return true;
}

int ni_box_sources_find(struct ni_box_sources *s, const struct ni_inputs *in, const char *box_dir,
                        const char *not_in) {
  char **logs = calloc(2 * (in->n + 1), sizeof *logs), **boxes = logs ? logs + in->n + 1 : NULL;
  size_t n_logs = 0, n_boxes = 0;
  struct stat dir;
  if (!logs)
    return -ENOMEM;
  split_paths(in, logs, &n_logs, boxes, &n_boxes);
  s->box_dir = box_dir ? box_dir : NI_BOX_DIR;
  s->boxes.wanted = ni_box_name;
  int e = ni_discover(&s->logs, logs, n_logs);
  if (e == 0)
    e = ni_discover(&s->boxes, boxes, n_boxes);
  if (e == 0 && not_in && stat(not_in, &dir) == 0)
    ni_files_drop(&s->boxes, is_in_folder, &dir);
  s->named = s->boxes.n > 0;
  for (size_t i = 0; i < s->boxes.n_bad; i++)
    s->named |= ni_box_name(s->boxes.bad[i].path);
  if (e == 0 && !s->named) {
    char *here = (char *)(uintptr_t)s->box_dir;
    ni_files_free(&s->boxes); /* folders that cannot be searched are among the logs' bad ones, too */
    s->boxes.wanted = is_box_name;
    s->box_dir_error = find_search_error(here);
    if (!s->box_dir_error)
      e = ni_discover(&s->boxes, &here, 1);
    if (e == 0 && s->logs.n && s->boxes.n <= ASKED_MAX)
      ni_files_drop(&s->boxes, is_of_another_user, &s->logs);
  }
  free(logs);
  return e;
}

/* What a child tells of the box; its parent takes care that the text ends. */
struct told_box {
  int error;
  char why[256];
};

struct visit {
  const struct ni_box_visit *v;
  struct told_box *told;
  uint64_t most;
};

static int visit_box(void *arg) {
  const struct visit *x = arg;
  struct ni_box *b = NULL;
  int e = ni_box_open(&b, x->v->path, x->most, x->told->why, sizeof x->told->why);
  /* replaced meanwhile */
  if (e == 0)
    e = ni_box_owner(b) == x->v->owner ? x->v->work(b, x->v->arg) : -ENOENT;
  ni_box_close(b);
  x->told->error = e;
  return 0;
}

/* What the boxes of each user have taken, in ms. Of the 64th on: together. */
static uint64_t *find_time_of_user(uid_t uid) {
  static struct {
    uid_t uid;
    uint64_t ms;
  } user[64];
  size_t i = 0;
  while (i < 63 && user[i].ms && user[i].uid != uid)
    i++;
  user[i].uid = uid;
  return &user[i].ms;
}

int ni_box_visit(struct ni_box_visit *v, char *why, size_t why_bytes) {
  static struct told_box *told; /* one visit after the other */
  struct stat st;
  *why = 0;
  if (!told && !(told = ni_shared(sizeof *told)))
    return -ENOMEM;
  if (lstat(v->path, &st) != 0)
    return -errno;
  if (!v->named && st.st_uid != geteuid() && geteuid() != 0) {
    snprintf(why, why_bytes,
             "it belongs to uid %u, and what it says could be forged. Run as that user, or say with --output "
             "where the records shall go",
             st.st_uid);
    return -EACCES;
  }
  v->owner = st.st_uid;
  *told = (struct told_box){0};
  struct visit x = {v, told, ni_as_user_needed(v->owner) ? NI_BOX_ROOT_BYTES : 0};
  uint64_t *taken = find_time_of_user(v->owner), begun = ni_now_ns(CLOCK_MONOTONIC);
  if (*taken >= 1000 * NI_AS_USER_SECONDS && x.most) {
    snprintf(why, why_bytes,
             "the boxes of uid %u have taken %u s, all that root gives a user. Run as that user", v->owner,
             NI_AS_USER_SECONDS);
    return -ETIMEDOUT;
  }
  unsigned left = (unsigned)((1000 * NI_AS_USER_SECONDS - (x.most ? *taken : 0)) / 1000) + 1;
  if (v->seconds && v->seconds < left)
    left = v->seconds;
  int e = ni_as_owner(v->owner, left, v->keep, visit_box, &x, why, why_bytes);
  *taken += (ni_now_ns(CLOCK_MONOTONIC) - begun) / 1000000 + 1;
  if (e < 0)
    return e;
  told->why[sizeof told->why - 1] = 0;
  if (told->error)
    snprintf(why, why_bytes, "%s", told->why);
  return told->error;
}

bool ni_box_passes(struct ni_box_passed *p, const char *path, int error) {
  struct stat st;
  if (error == -EACCES) {
    p->foreign++;
    if (stat(path, &st) == 0)
      p->uid = st.st_uid;
  }
  /* gone: its process has ended since we looked into the folder */
  return error != -EACCES && error != -ENOENT;
}

static const char *advise_on_error(int error) {
  switch (error) {
    case ENOENT:
      return ". The folder is that of NCCL_INSPECTOR_DUMP_DIR, which the job makes when it first writes";
    case EACCES:
      return NI_UNREADABLE_ADVICE;
    case ENOTDIR:
      return ". Name a folder, or the file itself";
    case EINVAL:
      return ": neither a file nor a folder";
    default:
      return "";
  }
}

static bool is_at_or_below(const char *file, const char *path) {
  size_t n = strlen(path);
  bool ends_in_slash = n && path[n - 1] == '/';
  return strncmp(file, path, n) == 0 && (file[n] == 0 || file[n] == '/' || ends_in_slash);
}

static void print_unreadable(FILE *f, const char *name, const struct ni_unreadable *b) {
  ni_say(f, "%s: %s: %s%s\n", name, b->path, b->error == EINVAL ? "cannot be read" : strerror(b->error),
         advise_on_error(b->error));
}

bool ni_box_sources_bad(const struct ni_box_sources *s) { return s->logs.n_bad > 0; }

void ni_box_sources_say_bad(FILE *f, const char *name, const struct ni_box_sources *s) {
  for (size_t i = 0; i < s->logs.n_bad; i++)
    print_unreadable(f, name, &s->logs.bad[i]);
}

static void explain_path(FILE *f, const char *name, const struct ni_box_sources *s, const char *path,
                         bool logs) {
  bool told = false, found = false;
  for (size_t i = 0; i < s->logs.n_bad; i++) {
    const struct ni_unreadable *b = &s->logs.bad[i];
    if (!is_at_or_below(b->path, path))
      continue;
    print_unreadable(f, name, b);
    told = true;
  }
  for (size_t i = 0; i < s->logs.n && !found; i++)
    found = is_at_or_below(s->logs.file[i].path, path);
  if (told || ni_box_name(path))
    return;
  if (found && !logs)
    return;
  if (found)
    ni_say(f, "%s: %s: no line in it is one of a log\n", name, path);
  else
    ni_say(f, "%s: %s: holds neither logs (*.jsonl.gz, *.jsonl, *.log.gz, *.log) nor black boxes (*.box)\n",
           name, path);
}

void ni_box_sources_explain(FILE *f, const char *name, const struct ni_box_sources *s,
                            const struct ni_inputs *in, const struct ni_box_passed *passed, bool logs) {
  const char *box_dir = s->box_dir;
  for (size_t i = 0; i < in->n; i++)
    explain_path(f, name, s, in->path[i], logs);
  if (s->named)
    return;
  if (s->box_dir_error) {
    ni_say(f, "%s: %s: %s, so no black boxes of this machine\n", name, box_dir, strerror(s->box_dir_error));
    return;
  }
  if (passed->foreign == 0 && passed->elsewhere == 0) {
    ni_say(f,
           "%s: %s: no black box of this machine. Boxes of other machines: copy them with `nccl-inspector "
           "snapshot` there\n",
           name, box_dir);
    return;
  }
  if (passed->elsewhere)
    ni_say(f,
           "%s: %s: %zu black box%s of processes that log elsewhere, passed over. Give the folder of their "
           "logs, or none\n",
           name, box_dir, passed->elsewhere, ni_plural(passed->elsewhere, "", "es"));
  if (passed->foreign)
    ni_say(f,
           "%s: %s: %zu black box%s of other users (one is of uid %u), which cannot be read. Run as that "
           "user, or as root\n",
           name, box_dir, passed->foreign, ni_plural(passed->foreign, "", "es"), passed->uid);
}

/* realpath, also of a directory that is not there yet: a process that was killed early had not made it. */
static char *resolve_path(const char *path) {
  char *real = realpath(path, NULL);
  const char *slash = strrchr(path, '/'), *last = ni_path_name(path);
  if (real || errno != ENOENT)
    return real;
  bool has_name = *last && strcmp(last, "..") != 0 && strcmp(last, ".") != 0;
  if (slash == path || !has_name)
    return NULL;
  char *up = slash ? strndup(path, (size_t)(slash - path)) : strdup("."),
       *above = up ? resolve_path(up) : NULL;
  if (above && asprintf(&real, "%s/%s", strcmp(above, "/") == 0 ? "" : above, last) < 0)
    real = NULL;
  free(up);
  free(above);
  return real;
}

/* real: of resolve_path(), or NULL. Is it the path or below it? */
static bool is_under(const char *real, const char *path) {
  char *above = real ? resolve_path(path) : NULL;
  size_t n = above ? strlen(above) : 0;
  bool has_begin = above && strncmp(real, above, n) == 0;
  bool is_below = has_begin && (real[n] == 0 || real[n] == '/' || n == 1);
  free(above);
  return is_below;
}

bool ni_box_is_under(const struct ni_inputs *in, const char *dir) {
  char *real = resolve_path(dir);
  bool is_below = false;
  for (size_t i = 0; !is_below && i < in->n; i++)
    is_below = is_under(real, in->path[i]);
  free(real);
  return is_below;
}

bool ni_box_asked_for(const struct ni_box_sources *s, const struct ni_inputs *in, const char *dir) {
  return s->named || in->n == 0 || (*dir && ni_box_is_under(in, dir));
}

void ni_box_sources_led(struct ni_box_sources *s, const char *dir) {
  struct ni_files *f = &s->logs;
  char *real = f->n_bad ? resolve_path(dir) : NULL;
  size_t kept = 0;
  for (size_t i = 0; i < f->n_bad; i++) {
    if (f->bad[i].error == ENOENT && f->bad[i].named && is_under(real, f->bad[i].path))
      free(f->bad[i].path);
    else
      f->bad[kept++] = f->bad[i];
  }
  f->n_bad = kept;
  free(real);
}

void ni_box_sources_free(struct ni_box_sources *s) {
  ni_files_free(&s->logs);
  ni_files_free(&s->boxes);
}
