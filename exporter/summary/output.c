#include "output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define MARKER ".nccl-inspector-output"
#define LOCK ".lock"

/* What a result consists of, in OUT. */
static const char *const parts[] = {"parquet_files", "dataset", "summary", "report.html", "output.log", MARKER};
enum { N_PARTS = sizeof parts / sizeof *parts };

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw) {
  (void)st;
  (void)type;
  (void)ftw;
  return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

static int remove_tree(const char *path) {
  return nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS) < 0 && errno != ENOENT ? -errno : 0;
}

static int make_path(const char *path) {
  char *p = strdup(path);
  int e = p ? 0 : -ENOMEM;
  for (char *s = p ? p + 1 : NULL; s && *s && e == 0; s++)
    if (*s == '/') {
      *s = 0;
      if (mkdir(p, 0777) < 0 && errno != EEXIST) e = -errno;
      *s = '/';
    }
  if (e == 0 && mkdir(p, 0777) < 0 && errno != EEXIST) e = -errno;
  free(p);
  return e;
}

/* The contract: "<input dir name>-analysis" in the current folder. */
static char *default_dir(const struct ni_inputs *in) {
  char *real = realpath(in->path[0], NULL), *out = NULL;
  struct stat st;
  if (real && stat(real, &st) == 0 && !S_ISDIR(st.st_mode) && strrchr(real, '/') != real) *strrchr(real, '/') = 0;
  const char *base = real ? strrchr(real, '/') : NULL;
  if (asprintf(&out, "%s-analysis", base && base[1] ? base + 1 : "nccl-inspector") < 0) out = NULL;
  free(real);
  return out;
}

/* Is there anything in it that is not ours? */
static int look_at(const char *dir, bool *ours, bool *empty) {
  DIR *d = opendir(dir);
  if (!d) return -errno;
  *ours = false;
  *empty = true;
  for (struct dirent *e; (e = readdir(d));) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    if (strncmp(e->d_name, ".tmp-", 5) == 0) continue; /* of a run that was killed, or runs now */
    if (strcmp(e->d_name, MARKER) == 0) *ours = true;
    *empty = false;
  }
  closedir(d);
  return 0;
}

/*
 * Temporary folders of runs that are over. A run holds a lock in its own as long as it lives, on whatever machine; the
 * kernel lets go of it when it is killed.
 */
static void remove_leftovers(const char *dir, const char *own) {
  char path[PATH_MAX], lock[PATH_MAX + 8];
  DIR *d = opendir(dir);
  if (!d) return;
  for (struct dirent *e; (e = readdir(d));) {
    if (strncmp(e->d_name, ".tmp-", 5) != 0 || strspn(e->d_name + 5, "0123456789") != strlen(e->d_name + 5)) continue;
    snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
    if (strcmp(path, own) == 0) continue;
    snprintf(lock, sizeof lock, "%s/" LOCK, path);
    int fd = open(lock, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) continue; /* being made, or not of ours */
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) remove_tree(path);
    close(fd);
  }
  closedir(d);
}

static int take_lock(struct ni_run *r) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/" LOCK, r->tmp_dir);
  r->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (r->lock_fd < 0) return -errno;
  flock(r->lock_fd, LOCK_EX | LOCK_NB); /* a file system without locks leaves leftovers to the user */
  return 0;
}

static void drop_lock(struct ni_run *r) {
  if (r->lock_fd >= 0) close(r->lock_fd);
  r->lock_fd = -1;
}

static int make_tmp(struct ni_run *r) {
  static const char *const below[] = {"", "/parquet_files", "/parquet_files/invalid"};
  char path[PATH_MAX];
  int e = remove_tree(r->tmp_dir); /* of an earlier process of that number */
  for (unsigned i = 0; e == 0 && i < (r->opt.no_parquet ? 1 : 3); i++) {
    snprintf(path, sizeof path, "%s%s", r->tmp_dir, below[i]);
    if (mkdir(path, 0777) < 0) e = -errno;
  }
  if (e == 0) e = take_lock(r);
  if (e < 0) return e;
  remove_leftovers(r->out_dir, r->tmp_dir);
  snprintf(path, sizeof path, "%s/output.log", r->tmp_dir);
  r->log = fopen(path, "we");
  return r->log ? 0 : -errno;
}

int ni_result_begin(struct ni_run *r) {
  bool ours = false, empty = true;
  r->out_dir = r->opt.output_dir ? strdup(r->opt.output_dir) : default_dir(&r->opt.inputs);
  if (!r->out_dir || asprintf(&r->tmp_dir, "%s/.tmp-%ld", r->out_dir, (long)getpid()) < 0) {
    r->tmp_dir = NULL;
    return -ENOMEM;
  }
  int e = make_path(r->out_dir);
  if (e == 0) e = look_at(r->out_dir, &ours, &empty);
  if (e == 0 && !ours && !empty && !r->opt.force) {
    ni_run_fail(r, -EEXIST, "%s: holds files that no earlier summary wrote; give another --output-dir, or --force to "
                "replace only what has the names of a summary", r->out_dir);
    free(r->tmp_dir);
    r->tmp_dir = NULL;
    return -EEXIST;
  }
  if (e == 0) e = make_tmp(r);
  if (e < 0) ni_run_fail(r, e, "%s: %s", r->out_dir, strerror(-e));
  return e;
}

static int write_marker(const struct ni_run *r) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/%s", r->tmp_dir, MARKER);
  FILE *f = fopen(path, "we");
  if (!f) return -errno;
  fprintf(f, "Written by nccl-inspector summary. The next summary into this folder replaces it as a whole.\n");
  return fclose(f) == 0 ? 0 : -errno;
}

int ni_result_commit(struct ni_run *r) {
  char from[PATH_MAX], to[PATH_MAX], old[PATH_MAX];
  int e = write_marker(r);
  if (r->log && fclose(r->log) != 0 && e == 0) e = -errno;
  r->log = NULL;
  /* The old part steps aside into the temporary folder before the new one comes: each is there or was, never mixed. */
  for (int i = 0; e == 0 && i < N_PARTS; i++) {
    snprintf(from, sizeof from, "%s/%s", r->tmp_dir, parts[i]);
    snprintf(to, sizeof to, "%s/%s", r->out_dir, parts[i]);
    snprintf(old, sizeof old, "%s/old-%s", r->tmp_dir, parts[i]);
    if (rename(to, old) < 0 && errno != ENOENT) e = -errno;
    if (e == 0 && rename(from, to) < 0 && errno != ENOENT) e = -errno;
  }
  if (e == 0) e = remove_tree(r->tmp_dir);
  drop_lock(r);
  if (e < 0) ni_run_fail(r, e, "%s: %s", r->out_dir, strerror(-e));
  return e;
}

void ni_result_abort(struct ni_run *r) {
  if (r->log) fclose(r->log);
  r->log = NULL;
  if (r->tmp_dir) remove_tree(r->tmp_dir);
  drop_lock(r);
  if (r->out_dir) rmdir(r->out_dir); /* only when nothing else is in it */
}

void ni_out_log(struct ni_run *r, const char *level, const char *text, ...) {
  struct timeval now;
  struct tm tm;
  char stamp[32];
  if (!r->log) return;
  gettimeofday(&now, NULL);
  time_t t = now.tv_sec;
  localtime_r(&t, &tm);
  strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", &tm);
  fprintf(r->log, "%s,%03ld - %s - ", stamp, (long)now.tv_usec / 1000, level);
  va_list ap;
  va_start(ap, text);
  vfprintf(r->log, text, ap);
  va_end(ap);
  putc('\n', r->log);
}
