#include "file_facts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

int ni_file_facts(int fd, const char *path, int flags, struct statx *out) {
  if (statx(fd, path, flags, STATX_BASIC_STATS, out) == 0)
    return 0;
  if (errno != EPERM && errno != ENOSYS)
    return -1;
  struct stat s; /* on x86-64 and aarch64 the kernel's and glibc's; glibc's fstatat is a symbol of 2.33 */
  if (syscall(SYS_newfstatat, fd, path, &s, flags))
    return -1;
  memset(out, 0, sizeof *out);
  out->stx_mask = STATX_BASIC_STATS;
  out->stx_ino = s.st_ino;
  out->stx_dev_major = major(s.st_dev);
  out->stx_dev_minor = minor(s.st_dev);
  out->stx_nlink = (uint32_t)s.st_nlink;
  out->stx_mode = (uint16_t)s.st_mode;
  out->stx_uid = s.st_uid;
  out->stx_size = (uint64_t)s.st_size;
  out->stx_mtime =
      (struct statx_timestamp){.tv_sec = s.st_mtim.tv_sec, .tv_nsec = (uint32_t)s.st_mtim.tv_nsec};
  out->stx_ctime =
      (struct statx_timestamp){.tv_sec = s.st_ctim.tv_sec, .tv_nsec = (uint32_t)s.st_ctim.tv_nsec};
  return 0;
}

int ni_above_two(int fd) {
  if (fd < 0 || fd > 2)
    return fd;
  int up = fcntl(fd, F_DUPFD_CLOEXEC, 3), error = errno;
  (void)close(fd);
  errno = error;
  return up;
}

void ni_file_text(const char *path, char *out, size_t cap) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? 0 : read(fd, out, cap - 1);
  if (fd >= 0)
    (void)close(fd);
  out[n > 0 ? n : 0] = 0;
}
