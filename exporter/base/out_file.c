#include "out_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* Could another user change it? mode: of the folder itself, or of the one that a link lies in. */
static bool can_others_change(uid_t owner, mode_t mode) {
  uid_t us = geteuid();
  return owner != 0 && owner != us && (us == 0 || mode & (S_ISVTX | S_IWOTH));
}

/*
 * One step of the way: from *dir, whose state is *st, into `name`. What is judged is open already, so it
 * cannot change.
 */
static int enter_folder(int *dir, const char *name, bool make, struct stat *st) {
  mode_t around = st->st_mode;
  if (make && mkdirat(*dir, name, 0777) < 0 && errno != EEXIST)
    return -errno;
  if (fstatat(*dir, name, st, AT_SYMLINK_NOFOLLOW) < 0)
    return -errno;
  bool link = S_ISLNK(st->st_mode);
  if (link && can_others_change(st->st_uid, around))
    return -EPERM;
  int next = openat(*dir, name, O_PATH | O_DIRECTORY | O_CLOEXEC | (link ? 0 : O_NOFOLLOW));
  if (next < 0)
    return -errno;
  if (*dir >= 0)
    close(*dir);
  *dir = next;
  if (fstat(next, st) < 0)
    return -errno;
  return can_others_change(st->st_uid, st->st_mode) ? -EPERM : 0;
}

const char *ni_out_error_text(int error) {
  switch (error) {
    case -EACCES:
      return "Permission denied. Give a place where you may write";
    case -EROFS:
      return "Read-only file system. Give a place where you may write";
    case -ENOSPC:
      return "No space left on device. Give a place with more room";
    default:
      return strerror(-error);
  }
}

int ni_out_dir(const char *path, bool make, char *why, size_t cap) {
  struct stat st = {0};
  char *copy = strdup(path), *save = NULL;
  const char *root = *path == '/' ? "/" : ".", *here = *path == '/' ? "/" : "the current folder";
  size_t walked = 0;
  int dir = AT_FDCWD, e = copy ? enter_folder(&dir, root, false, &st) : -ENOMEM;
  for (char *name = e ? NULL : strtok_r(copy, "/", &save); e == 0 && name;
       name = strtok_r(NULL, "/", &save)) {
    walked = (size_t)(name - copy) + strlen(name);
    e = enter_folder(&dir, name, make, &st);
  }
  bool refused = e == -EPERM && can_others_change(st.st_uid, S_ISVTX);
  int fd = e ? -1 : openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (e == 0 && fd < 0 && errno == EACCES) {
    fd = dir;
    dir = -1;
  } /* may be written, not listed */
  if (e == 0 && fd < 0)
    e = -errno;
  if (dir >= 0)
    close(dir);
  free(copy);
  if (refused)
    snprintf(why, cap,
             "%.*s belongs to uid %u, who could put something else in place of what is written. "
             "Give a folder of your own%s",
             (int)(walked ? walked : strlen(here)), walked ? path : here, st.st_uid,
             geteuid() == 0 ? ", or run as that user" : "");
  else if (e)
    snprintf(why, cap, "%s", ni_out_error_text(e));
  return e ? e : fd;
}

int ni_out_own(int dir, char *why, size_t cap) {
  struct stat st;
  if (fstat(dir, &st) < 0)
    return -errno;
  if (!(st.st_mode & S_IWOTH))
    return 0;
  snprintf(why, cap,
           "everybody may write into it (mode %04o), and could put something else in place of what is kept "
           "there: chmod o-w it, or give another folder",
           (unsigned)st.st_mode & 07777);
  return -EPERM;
}

static void release_lock(struct ni_out_file *o) {
  if (o->locked)
    close(o->lock);
  o->locked = false;
}

int ni_out_name(char name[64]) {
  unsigned long long number;
  if (getrandom(&number, sizeof number, 0) != sizeof number)
    return -errno;
  snprintf(name, 64, ".tmp-%llu", number);
  return 0;
}

int ni_out_begin(struct ni_out_file *o, int dir, mode_t mode) {
  *o = (struct ni_out_file){.dir = dir, .fd = -1};
  int e = ni_out_name(o->tmp);
  if (e == 0)
    o->fd = openat(dir, o->tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
  if (e == 0 && o->fd < 0)
    e = -errno;
  if (e)
    *o->tmp = 0;
  return e;
}

static void remove_left_over(int dir, const char *prefix, bool of_all, const char *mine, const void *magic,
                             size_t n);

enum { PREFIX = sizeof((struct ni_out_file *)0)->tmp / 2 };

void ni_out_sweep_for(int dir, const char *who) {
  char prefix[PREFIX];
  snprintf(prefix, sizeof prefix, ".tmp-%s-", who);
  remove_left_over(dir, prefix, geteuid() == 0, "", "", 0);
}

int ni_out_begin_for(struct ni_out_file *o, int dir, const char *who, mode_t mode) {
  enum { TRIES = 8 };
  struct stat st;
  char prefix[PREFIX];
  snprintf(prefix, sizeof prefix, ".tmp-%s-", who);
  ni_out_sweep_for(dir, who);
  int e = -EAGAIN;
  for (int i = 0; e == -EAGAIN && i < TRIES; i++) {
    unsigned long long number;
    *o = (struct ni_out_file){.dir = dir, .fd = -1};
    e = getrandom(&number, sizeof number, 0) == sizeof number ? 0 : -errno;
    if (e < 0)
      break;
    snprintf(o->tmp, sizeof o->tmp, "%s%llu", prefix, number);
    o->fd = openat(dir, o->tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    if (o->fd < 0)
      e = -errno;
    else if (flock(o->fd, LOCK_EX | LOCK_NB) == 0)
      o->locked = (o->lock = fcntl(o->fd, F_DUPFD_CLOEXEC, 0)) >= 0;
    /* another one took it for left before it had its lock */
    if (e == 0 && fstat(o->fd, &st) == 0 && st.st_nlink == 0) {
      ni_out_drop(o);
      e = -EAGAIN;
    }
  }
  if (e)
    *o = (struct ni_out_file){.dir = dir, .fd = -1};
  return e;
}

int ni_out_begin_at(struct ni_out_file *o, const char *path, const char **name, char *why, size_t cap) {
  struct stat st;
  const char *slash = strrchr(path, '/');
  *name = slash ? slash + 1 : path;
  *why = 0;
  char *folder = strndup(path, (size_t)(*name - path));
  int dir = folder ? ni_out_dir(folder, false, why, cap) : -ENOMEM, e = dir < 0 ? dir : 0;
  free(folder);
  *o = (struct ni_out_file){.dir = dir < 0 ? -1 : dir, .fd = -1};
  bool there = e == 0 && fstatat(dir, *name, &st, 0) == 0;
  bool is_folder = !**name || (there && S_ISDIR(st.st_mode));
  if (e == 0 && is_folder)
    e = -EISDIR;
  if (e == 0 && !there && errno == ENAMETOOLONG)
    e = -errno;
  if (e == 0 && there && !S_ISREG(st.st_mode)) {
    snprintf(why, cap, "not a regular file. `-` is standard output");
    e = -EINVAL;
  }
  if (e == 0)
    e = ni_out_begin(o, dir, 0666);
  if (e && !*why)
    snprintf(why, cap, "%s", ni_out_error_text(e));
  return e;
}

/*
 * Gives the file its name where the file system cannot rename without replacing, as NFS. errno is that of the
 * rename.
 */
static bool place_without_replacing(const struct ni_out_file *o, const char *name) {
  return errno == EINVAL && linkat(o->dir, o->tmp, o->dir, name, 0) == 0;
}

int ni_out_commit(struct ni_out_file *o, const char *name, bool replace) {
  int e = !*name || strchr(name, '/') ? -EINVAL : 0, fd = o->fd;
  o->fd = -1;
  if (fd >= 0 && close(fd) < 0 && errno != EINTR)
    e = -errno;
  if (e == 0 && renameat2(o->dir, o->tmp, o->dir, name, replace ? 0 : RENAME_NOREPLACE) == 0)
    *o->tmp = 0;
  else if (e == 0 && (replace || !place_without_replacing(o, name)))
    e = -errno;
  if (e != -EEXIST)
    ni_out_drop(o);
  return e;
}

int ni_write_all(int fd, const void *from, size_t n, off_t at) {
  for (const char *p = from; n;) {
    ssize_t put = at < 0 ? write(fd, p, n) : pwrite(fd, p, n, at);
    if (put < 0 && errno == EINTR)
      continue;
    if (put <= 0)
      return put < 0 ? -errno : -EIO;
    p += put;
    n -= (size_t)put;
    if (at >= 0)
      at += put;
  }
  return 0;
}

int ni_read_at(int fd, void *to, size_t n, off_t at) {
  for (size_t got = 0; got < n;) {
    ssize_t k = pread(fd, (char *)to + got, n - got, at + (off_t)got);
    if (k < 0 && errno == EINTR)
      continue;
    if (k <= 0)
      return k < 0 ? -errno : -EIO;
    got += (size_t)k;
  }
  return 0;
}

/* Did a run that is over leave it? The descriptor must be able to write: a lock needs that on NFS. */
static bool is_left_over(int fd, bool of_all, const void *magic, size_t n) {
  struct stat st;
  char begin[128];
  if (n > sizeof begin || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
    return false;
  if (!of_all && st.st_uid != geteuid())
    return false;
  return flock(fd, LOCK_EX | LOCK_NB) == 0 && ni_read_at(fd, begin, n, 0) == 0 &&
      memcmp(begin, magic, n) == 0;
}

static void remove_left_over(int dir, const char *prefix, bool of_all, const char *mine, const void *magic,
                             size_t n) {
  int copy = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR *d = copy < 0 ? NULL : fdopendir(copy);
  if (!d && copy >= 0)
    close(copy);
  for (struct dirent *x; d && (x = readdir(d));) {
    if (strncmp(x->d_name, prefix, strlen(prefix)) != 0 || strcmp(x->d_name, mine) == 0)
      continue;
    int fd = openat(dir, x->d_name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd >= 0 && is_left_over(fd, of_all, magic, n))
      unlinkat(dir, x->d_name, 0);
    if (fd >= 0)
      close(fd);
  }
  if (d)
    closedir(d);
}

void ni_out_sweep(int dir, const char *mine, const void *magic, size_t n) {
  remove_left_over(dir, ".tmp-", false, mine, magic, n);
}

static int copy_to_end(int from, int to) {
  char bytes[1 << 16];
  for (ssize_t n; (n = read(from, bytes, sizeof bytes)) != 0;) {
    int e = n < 0 ? -errno : ni_write_all(to, bytes, (size_t)n, -1);
    if (e < 0 && e != -EINTR)
      return e;
  }
  return 0;
}

int ni_copy_file(int from_dir, const char *from, int to_dir, const char *to, int how) {
  const int in = openat(from_dir, from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  const int out = in < 0 ? -1 : openat(to_dir, to, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | how, 0666);
  int e = out < 0 ? -errno : copy_to_end(in, out);
  if (in >= 0)
    close(in);
  if (out >= 0 && close(out) < 0 && e == 0)
    e = -errno;
  return e;
}

int ni_write_member(int fd, const char *text, size_t len) {
  z_stream z = {0};
  if (deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return -ENOMEM;
  uLong most = deflateBound(&z, (uLong)len);
  unsigned char *out = malloc(most);
  int e = -ENOMEM;
  if (out) {
    z.next_in = (Bytef *)(uintptr_t)text;
    z.avail_in = (uInt)len;
    z.next_out = out;
    z.avail_out = (uInt)most;
    e = deflate(&z, Z_FINISH) == Z_STREAM_END ? ni_write_all(fd, out, most - z.avail_out, -1) : -EIO;
  }
  deflateEnd(&z);
  free(out);
  return e;
}

int ni_out_end(FILE *f) {
  int bad = ferror(f);
  return fclose(f) != 0 || bad ? -(errno ? errno : EIO) : 0;
}

void ni_out_drop(struct ni_out_file *o) {
  release_lock(o);
  if (!*o->tmp)
    return;
  if (o->fd >= 0)
    close(o->fd);
  unlinkat(o->dir, o->tmp, 0);
  *o = (struct ni_out_file){.dir = -1, .fd = -1};
}

int ni_out_open(struct ni_out_stream *o, const char *path) {
  *o = (struct ni_out_stream){.f = path ? NULL : stdout, .file = {.dir = -1, .fd = -1}};
  int e = path ? ni_out_begin_at(&o->file, path, &o->name, o->why, sizeof o->why) : 0;
  if (e == 0 && path && !(o->f = fdopen(o->file.fd, "w")))
    e = -errno;
  if (o->f) {
    o->file.fd = -1;
    errno = 0;
  }
  if (e && !*o->why)
    snprintf(o->why, sizeof o->why, "%s", strerror(-e));
  return e;
}

int ni_out_close(struct ni_out_stream *o, int e, bool replace) {
  const int dir = o->file.dir, written = o->name && o->f ? ni_out_end(o->f) : 0;
  if (e == 0)
    e = written;
  if (e == 0 && o->name)
    e = ni_out_commit(&o->file, o->name, replace);
  ni_out_drop(&o->file);
  if (dir >= 0)
    close(dir);
  if (e && !*o->why)
    snprintf(o->why, sizeof o->why, "%s", strerror(-e));
  return e;
}
