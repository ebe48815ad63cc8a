#include "plugin/os/glibc_compat.h"

#include "control_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control_parse.h"
#include "plugin/os/file_facts.h"

int ni_ctl_file_init(struct ni_ctl_file *f, const char *dir, const char *name) {
  memset(f, 0, sizeof *f);
  if (strlen(dir) + strlen(name) + 2 > sizeof f->path)
    return -ENAMETOOLONG;
  f->name = f->path + snprintf(f->path, sizeof f->path, "%s/", dir);
  memcpy(f->path + (f->name - f->path), name, strlen(name) + 1);
  return 0;
}

static uint64_t ns_of(const struct statx_timestamp *t) {
  return t->tv_sec < 0 ? 0 : (uint64_t)t->tv_sec * UINT64_C(1000000000) + t->tv_nsec;
}

/* Is it what was seen last? If not, it is from now on. */
static int unchanged(struct ni_ctl_file *f, const struct statx *st) {
  struct ni_ctl_seen now = {st->stx_ino,           st->stx_size,      ns_of(&st->stx_mtime),
                            ns_of(&st->stx_ctime), st->stx_dev_major, st->stx_dev_minor};
  int same = memcmp(&f->seen, &now, sizeof now) == 0;
  f->seen = now;
  return same;
}

static const char *not_believed(const struct statx *st) {
  if (!S_ISREG(st->stx_mode))
    return "not a plain file";
  if (st->stx_uid != geteuid() && st->stx_uid != 0)
    return "belongs to another user than this process and root";
  if (st->stx_mode & (S_IWGRP | S_IWOTH))
    return "writable for others than its owner: chmod go-w";
  if (st->stx_size > NI_CTL_FILE_BYTES)
    return "longer than 8192 bytes";
  return NULL;
}

static ssize_t read_all(int fd, char *buf, size_t cap) {
  size_t n = 0;
  while (n < cap) {
    ssize_t got = read(fd, buf + n, cap - n);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return -1;
    if (got == 0)
      break;
    n += (size_t)got;
  }
  return (ssize_t)n;
}

int ni_ctl_file_look(struct ni_ctl_file *f, char *buf, size_t cap, size_t *n, uint64_t *mtime_ns,
                     const char **why) {
  struct statx st;
  if (!f->path[0] || ni_file_facts(AT_FDCWD, f->path, AT_SYMLINK_NOFOLLOW, &st) != 0) {
    memset(&f->seen, 0, sizeof f->seen); /* gone: what comes next is new */
    return 0;
  }
  if (unchanged(f, &st))
    return 0;
  if ((*why = not_believed(&st)) != NULL)
    return -1;
  int fd = ni_above_two(open(f->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY));
  if (fd < 0) {
    *why = errno == EACCES || errno == EPERM ? "may not be read by this process" : "cannot be opened";
    return -1;
  }
  ssize_t got = -1;
  *why = "cannot be read";
  if (ni_file_facts(fd, "", AT_EMPTY_PATH, &st) == 0) {
    (void)unchanged(f, &st); /* what is read is what was opened */
    const char *wrong = not_believed(&st);
    if (wrong)
      *why = wrong;
    else
      got = read_all(fd, buf, cap < NI_CTL_FILE_BYTES ? cap : NI_CTL_FILE_BYTES);
  }
  close(fd);
  if (got < 0)
    return -1;
  *n = (size_t)got;
  *mtime_ns = ns_of(&st.stx_mtime);
  return 1;
}
