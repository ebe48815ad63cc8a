#include "output.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include <zlib.h>

#include "exporter/base/out_file.h"
#include "exporter/base/text/time_text.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/input/discover.h"

#define LOCK ".lock"
#define NI_ELSEWHERE ", by --output-dir DIR"

/* What a result consists of, in OUT. */
static const char *const parts[] = {"parquet_files", "parquet_counters", "parquet_series", "dataset",
                                    "summary",       "report.html",      "output.log",     NI_RESULT_MARKER};
enum { N_PARTS = sizeof parts / sizeof *parts };

static int remove_inside(int dir);

/* Whatever has that name, without following a link. A name that is not there is none to remove. */
static int remove_tree(int dir, const char *name) {
  if (unlinkat(dir, name, 0) == 0 || errno == ENOENT)
    return 0;
  if (errno != EISDIR)
    return -errno;
  int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
      e = fd < 0 ? -errno : remove_inside(fd);
  if (fd >= 0)
    close(fd);
  return e < 0 ? e : unlinkat(dir, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

static DIR *open_list(int dir) {
  int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *d = fd < 0 ? NULL : fdopendir(fd);
  if (fd >= 0 && !d)
    close(fd);
  return d;
}

static const char *read_next_name(DIR *d) {
  struct dirent *e;
  while ((e = readdir(d)) && (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)) {}
  return e ? e->d_name : NULL;
}

static int remove_inside(int dir) {
  DIR *d = open_list(dir);
  int e = d ? 0 : -errno;
  for (const char *name; e == 0 && (name = read_next_name(d));)
    e = remove_tree(dir, name);
  if (d)
    closedir(d);
  return e;
}

/* Chooses the folder as NVIDIA's exporter does: "<input dir name>-analysis" in the current folder. */
static char *choose_default_dir(const struct ni_inputs *in) {
  char *real = realpath(in->path[0], NULL), *out = NULL;
  struct stat st;
  const bool is_file = real && stat(real, &st) == 0 && !S_ISDIR(st.st_mode);
  if (is_file && strrchr(real, '/') != real)
    *strrchr(real, '/') = 0;
  const char *base = real ? strrchr(real, '/') : NULL;
  if (asprintf(&out, "%s-analysis", base && base[1] ? base + 1 : "nccl-inspector") < 0)
    out = NULL;
  free(real);
  return out;
}

/* Is anything in it, but for temporary folders of runs that were killed or run now? 0, 1 or -errno. */
static int has_content(int dir) {
  DIR *d = open_list(dir);
  const char *name = NULL;
  if (!d)
    return -errno;
  while ((name = read_next_name(d)) && strncmp(name, ".tmp-", 5) == 0) {}
  closedir(d);
  return name != NULL;
}

/* Opens a folder of our own in dir. -EPERM: it is another user's. */
static int open_own_folder(int dir, const char *name) {
  struct stat st;
  int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  int e = fd < 0 || fstat(fd, &st) < 0 ? -errno : st.st_uid == geteuid() ? 0 : -EPERM;
  if (e == 0)
    return fd;
  if (fd >= 0)
    close(fd);
  return e;
}

/* How far a result has come in place of an earlier one: files in its temporary folder. */
#define ALL_ASIDE ".aside"   /* all old parts lie here, as old-PART: what is in OUT is new */
#define ALL_PLACED ".placed" /* all new ones are in OUT */

static const char *name_aside(int i, char name[64]) {
  snprintf(name, 64, "old-%s", parts[i]);
  return name;
}
static bool is_there(int dir, const char *name) {
  return faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/*
 * The earlier result is whole again, unless the new one is. false: a part of it cannot go back, and lies in
 * the temporary folder.
 */
static bool restore_parts(int out, int tmp) {
  bool all = true, placing = is_there(tmp, ALL_ASIDE);
  char old[64];
  if (is_there(tmp, ALL_PLACED))
    return true;
  for (int i = 0; i < N_PARTS && placing; i++)
    if (renameat(out, parts[i], tmp, parts[i]) < 0 && errno != ENOENT)
      all = false;
  for (int i = 0; i < N_PARTS; i++)
    if (is_there(tmp, name_aside(i, old)) && renameat(tmp, old, out, parts[i]) < 0)
      all = false;
  if (all && placing)
    unlinkat(tmp, ALL_ASIDE, 0);
  return all;
}

/*
 * Temporary folders of runs that are over. Where one was killed while its result came in place of an earlier
 * one, that comes back. A run holds a lock in its own as long as it lives, on whatever machine; the kernel
 * lets go of it when it is killed. One that has no lock yet is empty, and who makes it makes another if it is
 * gone.
 */
static void remove_leftovers(const struct ni_run *r) {
  DIR *d = open_list(r->out_fd);
  if (!d)
    return;
  for (const char *name; (name = read_next_name(d));) {
    if (strncmp(name, ".tmp-", 5) != 0 || strspn(name + 5, "0123456789") != strlen(name + 5))
      continue;
    if (strcmp(name, r->tmp_name) == 0)
      continue;
    int dir = open_own_folder(r->out_fd, name), fd = -1;
    if (dir >= 0)
      fd = openat(dir, LOCK, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    bool over = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && restore_parts(r->out_fd, dir) &&
        remove_inside(dir) == 0;
    /* without a lock: if it is empty */
    if (over || (dir >= 0 && fd < 0 && errno == ENOENT))
      unlinkat(r->out_fd, name, AT_REMOVEDIR);
    if (fd >= 0)
      close(fd);
    if (dir >= 0)
      close(dir);
  }
  closedir(d);
}

static FILE *create_file(const struct ni_run *r, const char *name) {
  int fd = openat(r->tmp_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  return fd < 0 ? NULL : fdopen(fd, "w");
}

/*
 * The folder is ours alone while files are made in it, so what is below needs no care. Somebody who may write
 * to OUT could have put another one of ours in its place before it was open: that one would not be empty.
 */
static int make_folder(struct ni_run *r) {
  struct stat st;
  int e = ni_out_name(r->tmp_name);
  if (e == 0 && mkdirat(r->out_fd, r->tmp_name, 0700) < 0)
    e = -errno;
  if (e == 0 && (e = r->tmp_fd = open_own_folder(r->out_fd, r->tmp_name)) >= 0)
    e = 0;
  /* not every file system keeps modes */
  if (e == 0 && fstat(r->tmp_fd, &st) == 0)
    (void)fchmod(r->tmp_fd, st.st_mode & 07700);
  if (e == 0 && (e = has_content(r->tmp_fd)) > 0)
    e = -EEXIST;
  return e;
}

/*
 * -ENOENT: another run took the folder for a leftover before it had its lock. A file system without locks
 * leaves leftovers to the user.
 */
static int lock_folder(struct ni_run *r) {
  struct stat st;
  r->lock_fd = openat(r->tmp_fd, LOCK, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  int e = r->lock_fd < 0 || (flock(r->lock_fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) ? -errno : 0;
  const bool is_removed = e == 0 && fstat(r->lock_fd, &st) == 0 && st.st_nlink == 0;
  if (e == -EWOULDBLOCK || is_removed)
    e = -ENOENT;
  if (e != -ENOENT)
    return e;
  if (r->lock_fd >= 0)
    close(r->lock_fd);
  close(r->tmp_fd);
  r->lock_fd = r->tmp_fd = -1;
  return e;
}

static int make_tmp(struct ni_run *r) {
  int e = -ENOENT;
  for (int i = 0; e == -ENOENT && i < 8; i++)
    if ((e = make_folder(r)) == 0)
      e = lock_folder(r);
  if (e < 0)
    return e;
  snprintf(r->tmp_dir, sizeof r->tmp_dir, "/proc/self/fd/%d", r->tmp_fd);
  if (access(r->tmp_dir, W_OK) < 0)
    return ni_run_fail(r, -ENOENT, "/proc is not mounted: it is needed to write the files");
  for (unsigned i = 0; i < 2 && !r->opt.no_parquet; i++)
    if (mkdirat(r->tmp_fd, i ? "parquet_files/invalid" : "parquet_files", 0777) < 0)
      return -errno;
  return (r->log = create_file(r, "output.log")) ? 0 : -errno;
}

/* The folder of the log, for free(). NULL: it is gone. */
static char *find_folder_of_log(const char *path) {
  char *folder = strndup(path, (size_t)(ni_path_name(path) - path));
  char *real = folder ? realpath(*folder ? folder : ".", NULL) : NULL;
  free(folder);
  return real;
}

/*
 * Of which logs a result is: the folders that they lie in, however they were named. The line of the marker
 * that says so.
 */
static void write_origin(const struct ni_run *r, char line[40]) {
  const char *before = NULL;
  size_t length = 0;
  uLong sum = 0;
  for (size_t i = 0; i < r->files.n; i++) {
    const char *path = r->files.file[i].path;
    const size_t n = (size_t)(ni_path_name(path) - path);
    if (before && n == length && memcmp(before, path, n) == 0)
      continue;
    before = path;
    length = n;
    char *folder = find_folder_of_log(path);
    if (folder)
      sum = crc32(sum, (const Bytef *)folder, (uInt)strlen(folder) + 1);
    free(folder);
  }
  snprintf(line, 40, "of: %08lx", sum);
}

/* Does the marker of the folder name other logs than ours? One of an earlier version names none. */
static bool is_of_other_logs(int dir, const char *origin) {
  char text[512] = "";
  int fd = openat(dir, NI_RESULT_MARKER, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  ssize_t n = fd < 0 ? 0 : pread(fd, text, sizeof text - 1, 0);
  if (fd >= 0)
    close(fd);
  text[n > 0 ? n : 0] = 0;
  const char *line = strstr(text, "\nof: ");
  return line && strncmp(line + 1, origin, strlen(origin)) != 0;
}

/* Opens OUT; -errno with a sentence in why. */
static int open_out_dir(struct ni_run *r, char *why, size_t cap) {
  char origin[40];
  write_origin(r, origin);
  r->out_dir = r->opt.output_dir ? strdup(r->opt.output_dir) : choose_default_dir(&r->opt.inputs);
  if (!r->out_dir)
    return -ENOMEM;
  const int fd = ni_out_dir(r->out_dir, true, why, cap);
  r->of_others = fd >= 0 && is_of_other_logs(fd, origin);
  return fd;
}

int ni_result_begin(struct ni_run *r) {
  char why[400] = "";
  int e = r->out_fd = open_out_dir(r, why, sizeof why);
  if (e < 0) {
    const bool is_elsewhere = e == -EACCES || e == -EROFS;
    return ni_run_fail(r, e, "%s: %s%s", r->out_dir ? r->out_dir : "the result", *why ? why : strerror(-e),
                       is_elsewhere ? NI_ELSEWHERE : "");
  }
  remove_leftovers(r);
  e = has_content(r->out_fd);
  if (e > 0 && !r->opt.force && !ni_result_earlier(r)) {
    return ni_run_fail(
        r, -EEXIST,
        "%s: holds files that no earlier summary wrote; give another --output-dir, or --force to "
        "replace only what has the names of a summary",
        r->out_dir);
  }
  r->replaces = ni_result_earlier(r);
  if (e >= 0)
    e = make_tmp(r);
  return e < 0 ? ni_run_fail(r, e, "%s: %s%s", r->out_dir, ni_out_error_text(e),
                             e == -EACCES || e == -EROFS ? NI_ELSEWHERE : "")
               : e;
}

bool ni_result_earlier(const struct ni_run *r) {
  return r->out_fd >= 0 && faccessat(r->out_fd, NI_RESULT_MARKER, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int write_marker(const struct ni_run *r) {
  FILE *f = create_file(r, NI_RESULT_MARKER);
  if (!f)
    return -errno;
  char origin[40];
  write_origin(r, origin);
  ni_say(f,
         "Written by nccl-inspector summary. The next summary into this folder replaces it as a whole.\n%s\n",
         origin);
  char *folder = r->files.n ? find_folder_of_log(r->files.file[0].path) : NULL;
  if (folder)
    ni_say(f, "logs: %s\n", folder);
  free(folder);
  return fclose(f) == 0 ? 0 : -errno;
}

/* The temporary folder with all that is in it. Its lock goes last. */
static int remove_tmp(struct ni_run *r) {
  int e = r->tmp_fd < 0 ? 0 : remove_inside(r->tmp_fd);
  const bool is_made = e == 0 && *r->tmp_name;
  if (is_made && unlinkat(r->out_fd, r->tmp_name, AT_REMOVEDIR) < 0 && errno != ENOENT)
    e = -errno;
  if (r->lock_fd >= 0)
    close(r->lock_fd);
  r->lock_fd = -1;
  return e;
}

static int make_empty(int dir, const char *name) {
  int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd >= 0)
    close(fd);
  return fd < 0 ? -errno : 0;
}

/*
 * All old parts step aside, then all new ones come: whoever is killed meanwhile, or cannot go on, has the
 * earlier result again.
 */
static int replace_parts(const struct ni_run *r) {
  char old[64];
  int e = 0;
  for (int i = 0; e == 0 && i < N_PARTS; i++)
    if (renameat(r->out_fd, parts[i], r->tmp_fd, name_aside(i, old)) < 0 && errno != ENOENT)
      e = -errno;
  if (e == 0)
    e = make_empty(r->tmp_fd, ALL_ASIDE);
  for (int i = 0; e == 0 && i < N_PARTS; i++)
    if (renameat(r->tmp_fd, parts[i], r->out_fd, parts[i]) < 0 && errno != ENOENT)
      e = -errno;
  if (e == 0 && renameat(r->tmp_fd, ALL_ASIDE, r->tmp_fd, ALL_PLACED) < 0)
    e = -errno;
  return e;
}

/* What could not go back waits for the next run in its temporary folder. */
static void abandon_tmp(struct ni_run *r) {
  if (r->lock_fd >= 0)
    close(r->lock_fd);
  close(r->tmp_fd);
  r->lock_fd = r->tmp_fd = -1;
  *r->tmp_name = 0;
}

int ni_result_commit(struct ni_run *r) {
  int e = write_marker(r);
  if (r->log && fclose(r->log) != 0 && e == 0)
    e = -errno;
  r->log = NULL;
  if (e == 0 && (e = replace_parts(r)) < 0 && !restore_parts(r->out_fd, r->tmp_fd))
    abandon_tmp(r);
  char old[64];
  /* before what says that it is not wanted */
  for (int i = 0; e == 0 && i < N_PARTS; i++)
    e = remove_tree(r->tmp_fd, name_aside(i, old));
  if (e == 0)
    e = remove_tmp(r);
  return e < 0 ? ni_run_fail(r, e, "%s: %s", r->out_dir, strerror(-e)) : e;
}

void ni_result_abort(struct ni_run *r) {
  if (r->log)
    fclose(r->log);
  r->log = NULL;
  if (r->out_fd < 0)
    return;
  remove_tmp(r);
  rmdir(r->out_dir); /* only when nothing else is in it */
}

void ni_out_log(struct ni_run *r, const char *level, const char *text, ...) {
  struct timeval now;
  char stamp[32];
  if (!r->log)
    return;
  gettimeofday(&now, NULL);
  ni_say(r->log, "%s,%03ld - %s - ", ni_second_text(now.tv_sec, ' ', true, stamp), (long)now.tv_usec / 1000,
         level);
  va_list ap;
  va_start(ap, text);
  ni_vsay(r->log, text, ap);
  va_end(ap);
  putc('\n', r->log);
}
