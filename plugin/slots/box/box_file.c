#include "box_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "plugin/os/clock.h"
#include "plugin/os/file_facts.h"
#include "plugin/os/host.h"
#include "ni_box.h"

#define TMPFS 0x01021994 /* statfs: TMPFS_MAGIC of linux/magic.h */
/* a tmpfs without a size says 0 blocks; we take it for a small one */
#define UNLIMITED (UINT64_C(4) << 30)
#define SECOND_NS UINT64_C(1000000000)
#define AHEAD_MIN_BYTES (UINT64_C(4) << 20)
#define AHEAD_MAX_BYTES (UINT64_C(32) << 20)
/* eight ranks take a sixteenth of what is free before they record anything */
#define AHEAD_SHARE 128u
/* one step is at most this part of what is free: ranks start at the same time */
#define STEP_SHARE 64u

/* ---- space ---- */

/* Free bytes for us in the file system of path (NULL: of fd); 0 when it is no tmpfs or cannot be asked. */
static uint64_t free_bytes(int fd, const char *path, int *error) {
  struct statfs s;
  *error = 0;
  if (path ? statfs(path, &s) : fstatfs(fd, &s))
    *error = -errno;
  else if ((uint32_t)s.f_type != TMPFS)
    *error = -ENODEV;
  if (*error)
    return 0;
  if (s.f_blocks == 0)
    return UNLIMITED;
  return (uint64_t)s.f_bavail * (uint64_t)s.f_bsize;
}

/* ---- making ---- */

static int say(char why[NI_BOX_WHY_BYTES], int rc, const char *dir, const char *what) {
  snprintf(why, NI_BOX_WHY_BYTES, "%.100s: %s", dir, what);
  return rc;
}

static void close_file(struct ni_box_file *f) {
  if (f->fd >= 0)
    (void)close(f->fd);
  f->fd = -1;
}

/* Chooses a name. 0 or -ENAMETOOLONG. */
static int name_file(struct ni_box_file *f, const char *dir, const char *host, int64_t pid) {
  uint64_t number = 0;
  if (getrandom(&number, sizeof number, GRND_NONBLOCK) != sizeof number) {
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    number = ((uint64_t)t.tv_nsec << 32 ^ (uint64_t)t.tv_sec ^ (uint64_t)pid) * UINT64_C(0x9e3779b97f4a7c15);
  }
  int n = snprintf(f->path, sizeof f->path, "%s/" NI_BOX_PREFIX "%.64s-pid%lld-%016llx" NI_BOX_SUFFIX, dir,
                   host, (long long)pid, (unsigned long long)number);
  return n < 0 || (size_t)n >= sizeof f->path ? -ENAMETOOLONG : 0;
}

/*
 * Without a name where the kernel can do that and /proc is there to name it later; else under its name at
 * once.
 */
static int create(struct ni_box_file *f, const char *dir, const char *host, int64_t pid) {
  int rc = name_file(f, dir, host, pid);
  if (rc)
    return rc;
  f->fd = access("/proc/self/fd", X_OK) ? -1 : ni_above_two(open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  f->hidden = f->fd >= 0;
  if (!f->hidden)
    f->fd = ni_above_two(open(f->path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  return f->fd < 0 ? -errno : 0; /* 64 random bits do not meet twice by chance */
}

int ni_box_file_publish(struct ni_box_file *f) {
  int rc = 0;
  if (f->hidden) {
    char fd[64];
    snprintf(fd, sizeof fd, "/proc/self/fd/%d", f->fd);
    /* Fails when the name is taken: nobody's file is ever replaced, and no link followed. */
    rc = linkat(AT_FDCWD, fd, AT_FDCWD, f->path, AT_SYMLINK_FOLLOW) ? -errno : 0;
  }
  if (rc == 0)
    f->hidden = 0;
  f->gone |= rc != 0;
  close_file(f);
  return rc;
}

int ni_box_file_make(struct ni_box_file *f, const char *dir, const char *host, int64_t pid, uint64_t least,
                     uint64_t most, char why[NI_BOX_WHY_BYTES]) {
  memset(f, 0, sizeof *f);
  f->fd = -1;
  int rc;
  uint64_t room = free_bytes(-1, dir, &rc);
  if (rc == -ENODEV)
    return say(why, rc, dir, "not a tmpfs, where a store could wait for a disk");
  if (rc)
    return say(why, rc, dir, strerror(-rc));
  /* A length beyond RLIMIT_FSIZE would be SIGXFSZ for the host. Growing later stays below the length. */
  uint64_t limit = ni_file_size_limit();
  if (limit < most)
    most = limit;
  f->bytes = (room / 4 < most ? room / 4 : most) & ~UINT64_C(65535);
  if (f->bytes < least)
    return say(why, -ENOSPC, dir, "a quarter of what is free, or RLIMIT_FSIZE, is too little");
  if ((rc = create(f, dir, host, pid)) != 0)
    return say(why, rc, dir, strerror(-rc));
  struct statx st = {0};
  /* The folder may be a link to another file system by now: the file itself is asked. */
  (void)free_bytes(f->fd, NULL, &rc);
  if (rc == 0 && (ftruncate(f->fd, (off_t)f->bytes) || ni_file_facts(f->fd, "", AT_EMPTY_PATH, &st)))
    rc = -errno;
  if (rc) {
    if (!f->hidden)
      (void)unlink(f->path);
    close_file(f);
    return say(why, rc, dir, rc == -ENODEV ? "not a tmpfs" : strerror(-rc));
  }
  f->dev = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor;
  f->ino = st.stx_ino;
  return 0;
}

/* ---- growing ---- */

/* The file, open; above 2. -1: not to be had now, or (gone is set) not ours any more. */
static int open_again(struct ni_box_file *f) {
  struct statx st;
  int fd = ni_above_two(open(f->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (fd < 0) {
    f->gone |= errno == ENOENT || errno == ELOOP;
    return -1;
  }
  int asked = ni_file_facts(fd, "", AT_EMPTY_PATH, &st) == 0;
  if (asked && st.stx_ino == f->ino && ((uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor) == f->dev)
    return fd;
  f->gone |= asked; /* another file of that name: never touched */
  (void)close(fd);
  return -1;
}

uint64_t ni_box_file_ahead(const struct ni_box_file *f) {
  int rc;
  uint64_t share = free_bytes(f->fd, f->fd < 0 ? f->path : NULL, &rc) / AHEAD_SHARE;
  if (share < AHEAD_MIN_BYTES)
    return AHEAD_MIN_BYTES;
  return share < AHEAD_MAX_BYTES ? share : AHEAD_MAX_BYTES;
}

uint32_t ni_box_file_step(struct ni_box_file *f, uint32_t pages) {
  if (f->gone)
    return 0;
  int rc;
  uint64_t room = free_bytes(f->fd, f->fd < 0 ? f->path : NULL, &rc),
           want = (uint64_t)pages * NI_BOX_PAGE_BYTES;
  if (rc) {
    f->gone |= rc == -ENOENT || rc == -ENODEV;
    return 0;
  }
  if (want > room / STEP_SHARE)
    want = room / STEP_SHARE;
  if (want < 65536)
    return 0; /* the file system is as good as full */
  if (f->committed + want > (room + f->committed) / 4)
    return 0;
  return (uint32_t)(want / NI_BOX_PAGE_BYTES);
}

int ni_box_file_commit(struct ni_box_file *f, uint64_t from, uint64_t to) {
  int fd = f->fd >= 0 ? f->fd : f->gone ? -1 : open_again(f), rc;
  if (fd < 0)
    return -ENOENT;
  do
    rc = fallocate(fd, 0, (off_t)from, (off_t)(to - from)) ? -errno : 0;
  while (rc == -EINTR);
  if (fd != f->fd)
    (void)close(fd);
  if (rc == 0)
    f->committed += to - from;
  return rc;
}

void ni_box_file_remove(struct ni_box_file *f) {
  close_file(f);
  int fd = f->gone || f->hidden ? -1 : open_again(f);
  if (fd >= 0) {
    (void)close(fd);
    (void)unlink(f->path);
  }
  f->gone = 1;
}

/* ---- who lives ---- */

uint64_t ni_box_pid_namespace(void) {
  struct statx st;
  return ni_file_facts(AT_FDCWD, "/proc/self/ns/pid", 0, &st) ? 0 : st.stx_ino;
}

uint64_t ni_box_start_ticks(int64_t pid) {
  char path[64], text[1024];
  snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
  ni_file_text(path, text, sizeof text);
  const char *p = strrchr(text, ')'); /* the name before it is hostile text */
  for (int field = 2; p && field < 22; field++)
    p = strchr(p + 1, ' ');
  uint64_t ticks = 0;
  for (; p && p[1] >= '0' && p[1] <= '9'; p++)
    ticks = 10 * ticks + (uint64_t)(p[1] - '0');
  return ticks;
}

/* Has nobody the file open for writing, and so nobody has it mapped? The kernel grants a read lease only
 * then, whichever pid namespace the others are in. 1, 0, or -1: not known. fd is open for reading. */
static int is_unheld(int fd) {
  /*
   * Whoever opens the file for writing in this moment has us signalled: not by SIGIO, which would end the
   * process.
   */
  if (fcntl(fd, F_SETSIG, SIGURG))
    return -1;
  if (fcntl(fd, F_SETLEASE, F_RDLCK))
    return errno == EAGAIN ? 0 : -1;
  (void)fcntl(fd, F_SETLEASE, F_UNLCK);
  return 1;
}

/*
 * Is the process of the box that fd reads certainly dead, or, where nobody can say, without a heartbeat for
 * long?
 */
static bool is_dead(int fd, const struct ni_box_header *h, const char *boot_id, uint64_t my_namespace) {
  if (!boot_id[0] || !h->boot_id[0])
    return false;
  if (strncmp(h->boot_id, boot_id, sizeof h->boot_id) != 0)
    return true;
  if (my_namespace && h->pid_namespace == my_namespace && h->start_ticks)
    return ni_box_start_ticks(h->pid) != h->start_ticks;
  int unheld = is_unheld(fd);
  return unheld < 0
      ? h->heartbeat_every_ms && ni_monotonic_ns() > h->heartbeat_ns + NI_BOX_SILENT_SECONDS * SECOND_NS
      : unheld;
}

/* ---- pruning ---- */

struct old_box {
  char name[256];
  uint64_t last_ns; /* Unix ns of its last heartbeat; 0: it holds nothing, or is too old to be kept */
  uint64_t bytes;   /* memory that it takes */
};

static int by_age(const void *a, const void *b) {
  uint64_t x = ((const struct old_box *)a)->last_ns, y = ((const struct old_box *)b)->last_ns;
  return x < y ? 1 : x > y ? -1 : 0; /* youngest first */
}

/* Is the file a box of this user whose process is dead? Fills in what decides about it. */
static bool read_old(int dir, const char *name, const char *boot_id, uint64_t my_namespace,
                     struct old_box *old) {
  size_t len = strlen(name), suffix = sizeof NI_BOX_SUFFIX - 1;
  if (strncmp(name, NI_BOX_PREFIX, sizeof NI_BOX_PREFIX - 1) != 0 || len < suffix ||
      len >= sizeof old->name || strcmp(name + len - suffix, NI_BOX_SUFFIX) != 0)
    return false;
  struct statx st;
  struct ni_box_header h;
  int fd = ni_above_two(openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (fd < 0)
    return false;
  bool dead = !ni_file_facts(fd, "", AT_EMPTY_PATH, &st) && S_ISREG(st.stx_mode) && st.stx_uid == geteuid() &&
      pread(fd, &h, sizeof h, 0) == (ssize_t)sizeof h && memcmp(h.magic, NI_BOX_MAGIC, sizeof h.magic) == 0 &&
      /* of older ones it is the same */
      h.byte_order == NI_BOX_BYTE_ORDER && h.version && h.version <= NI_BOX_VERSION;
  h.boot_id[sizeof h.boot_id - 1] = 0;
  dead = dead && is_dead(fd, &h, boot_id, my_namespace);
  (void)close(fd);
  if (!dead)
    return false;
  memcpy(old->name, name, len + 1);
  bool keep =
      h.state == NI_BOX_LIVE && ni_realtime_ns() <= h.heartbeat_unix_ns + NI_BOX_KEEP_SECONDS * SECOND_NS;
  old->last_ns = keep ? h.heartbeat_unix_ns : 0;
  old->bytes = st.stx_blocks * 512;
  return true;
}

uint32_t ni_box_prune(const char *dir, const char *boot_id) {
  DIR *d = opendir(dir);
  if (!d)
    return 0;
  int rc;
  uint64_t my_namespace = ni_box_pid_namespace(), room = free_bytes(dirfd(d), NULL, &rc), kept = 0;
  uint32_t removed = 0, n = 0, cap = 0;
  struct old_box *old = NULL;
  for (struct dirent *e; rc == 0 && (e = readdir(d)) != NULL;) {
    if (n == cap) {
      struct old_box *more = realloc(old, (cap = cap ? 2 * cap : 128) * sizeof *more);
      if (!more)
        break; /* the rest another time */
      old = more;
    }
    if (read_old(dirfd(d), e->d_name, boot_id, my_namespace, &old[n]))
      room += old[n++].bytes;
  }
  if (n)
    qsort(old, n, sizeof *old, by_age);
  for (uint32_t i = 0; i < n; i++) {
    kept += old[i].bytes;
    bool keep = old[i].last_ns && (i == 0 || (i < NI_BOX_KEEP_FILES && kept <= room / 4));
    if (!keep)
      removed += unlinkat(dirfd(d), old[i].name, 0) == 0;
  }
  free(old);
  (void)closedir(d);
  return removed;
}
