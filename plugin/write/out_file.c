/*
 * Before each write the open descriptor is looked at (statx, one system call a flush): is it still our file
 * (a host that closes descriptors it does not know may have opened something else under our number), has it
 * been deleted, how long is it. So nothing is ever written into somebody's file, and records in a deleted one
 * are counted, not believed.
 */
#include "out_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "plugin/os/file_facts.h"
#include "plugin/os/host.h"

#define PAUSE_FIRST_NS UINT64_C(10000000)
#define PAUSE_LAST_NS UINT64_C(5000000000)
#define NAME_TRIES 100000
#define NAME_BYTES 224 /* host, pid, start, number and suffix; file names end at 255 */
#define SECOND_NS UINT64_C(1000000000)

/* A file that is finished, oldest first in the list. */
struct past_file {
  uint64_t n; /* number in its name, 0: none */
  uint64_t bytes, records, closed_ns;
  /* bytes of it that every file begins with: more than that is worth keeping, records or not */
  uint64_t head;
  uint64_t ino;
  uint32_t dev_major, dev_minor;
};

struct ni_out_state {
  char dir[PATH_MAX];
  char base[NAME_BYTES];
  char suffix[32];
  char path[PATH_MAX + NAME_BYTES + 64];
  uint64_t file_max_bytes, dir_max_bytes, keep_ns, file_age_ns;
  unsigned char *preamble;
  size_t preamble_len;
  int fd; /* -1: none open */
  uint64_t opened_ns, next_n, n_files;
  struct past_file now;   /* the open file; bytes: length of its whole blocks */
  struct past_file *past; /* n_past of cap_past */
  size_t n_past, cap_past;
  uint64_t past_bytes, other_bytes;
  uint64_t pause_ns, next_try_ns;
  uint64_t next_rotation_ns; /* 0: the last one did not fail */
  int close_error, rotation_error;
  bool held; /* nothing expires */
  struct ni_out_lost lost;
};

int ni_out_init(struct ni_out *o, const struct ni_out_options *opt) {
  o->s = NULL;
  struct ni_out_state *s = calloc(1, sizeof *s);
  if (!s)
    return -ENOMEM;
  int ret = -ENAMETOOLONG;
  s->fd = -1;
  size_t n = 0;
  /* Without a working directory the relative path is as good as it gets. */
  if (opt->dir[0] != '/' && getcwd(s->dir, sizeof s->dir - 1) && s->dir[0] == '/') {
    n = strlen(s->dir);
    s->dir[n++] = '/';
  }
  if (snprintf(s->dir + n, sizeof s->dir - n, "%s", opt->dir) >= (int)(sizeof s->dir - n))
    goto out_free;
  char host[128];
  ni_path_component(host, sizeof host, opt->host ? opt->host : "", "unknown-host");
  snprintf(s->base, sizeof s->base, "%s-pid%lld-%llu", host, (long long)opt->pid,
           (unsigned long long)opt->start_s);
  if (snprintf(s->suffix, sizeof s->suffix, "%s", opt->suffix) >= (int)sizeof s->suffix)
    goto out_free;
  snprintf(s->path, sizeof s->path, "%s", s->dir);
  s->file_max_bytes = opt->file_max_bytes;
  s->dir_max_bytes = opt->dir_max_bytes;
  if (s->dir_max_bytes) {
    uint64_t share = s->file_max_bytes ? s->dir_max_bytes / 2 : s->dir_max_bytes / 8;
    if (s->file_max_bytes == 0 || s->file_max_bytes > share)
      s->file_max_bytes = share ? share : 1;
  }
  if (opt->keep_seconds) {
    s->keep_ns = opt->keep_seconds > UINT64_MAX / SECOND_NS ? UINT64_MAX : opt->keep_seconds * SECOND_NS;
    s->file_age_ns = s->keep_ns / 8 > SECOND_NS ? s->keep_ns / 8 : SECOND_NS;
  }
  o->s = s;
  return 0;
out_free:
  free(s);
  return ret;
}

int ni_out_set_preamble(struct ni_out *o, const void *data, size_t n) {
  struct ni_out_state *s = o->s;
  unsigned char *copy = NULL;
  if (n) {
    copy = malloc(n);
    if (!copy)
      return -ENOMEM;
    memcpy(copy, data, n);
  }
  free(s->preamble);
  s->preamble = copy;
  s->preamble_len = n;
  return 0;
}

static void set_path(struct ni_out_state *s, uint64_t n) {
  if (n == 0)
    snprintf(s->path, sizeof s->path, "%s/%s%s", s->dir, s->base, s->suffix);
  else
    snprintf(s->path, sizeof s->path, "%s/%s.%llu%s", s->dir, s->base, (unsigned long long)n, s->suffix);
}

static bool same_file(const struct past_file *f, const struct statx *st) {
  return st->stx_ino == f->ino && st->stx_dev_major == f->dev_major && st->stx_dev_minor == f->dev_minor;
}

static void forget_file(struct ni_out_state *s) {
  s->fd = -1;
  memset(&s->now, 0, sizeof s->now);
}

static bool past_has_room(struct ni_out_state *s) {
  if (s->n_past < s->cap_past)
    return true;
  size_t cap = s->cap_past ? 2 * s->cap_past : 16;
  struct past_file *p = realloc(s->past, cap * sizeof *p);
  if (!p)
    return false;
  s->past = p;
  s->cap_past = cap;
  return true;
}

/*
 * The file stays on disk as it is. A file that cannot be remembered (no memory) is never removed by rotation.
 */
static void end_file(struct ni_out_state *s, uint64_t now_ns, bool do_close) {
  /* close() reports what NFS or a quota refused later: then nobody knows how much of the file is there. */
  if (do_close && close(s->fd) != 0 && errno != EINTR) {
    s->close_error = -errno;
    s->lost.doubtful_files++;
    s->lost.doubtful_records += s->now.records;
  }
  s->now.closed_ns = now_ns;
  if (past_has_room(s)) {
    s->past[s->n_past++] = s->now;
    s->past_bytes += s->now.bytes;
  }
  forget_file(s);
}

/*
 * The file is of no use any more. An empty one is taken away again, so that retries do not fill the
 * directory.
 */
static void abandon_file(struct ni_out_state *s, uint64_t now_ns) {
  struct statx st;
  if (s->now.bytes > s->now.head) {
    end_file(s, now_ns, true);
    return;
  }
  if (ni_file_facts(AT_FDCWD, s->path, AT_SYMLINK_NOFOLLOW, &st) == 0 && same_file(&s->now, &st))
    unlink(s->path);
  close(s->fd);
  forget_file(s);
}

/* Every directory of the path. Errors of the upper ones show at the last: some file systems answer mkdir of
 * an existing directory with something else than EEXIST. */
static int make_dirs(char *dir) {
  for (char *p = dir; *p && (p = strchr(p + 1, '/')) != NULL;) {
    *p = 0;
    if (mkdir(dir, 0755) != 0) { /* judged below */
    }
    *p = '/';
  }
  return mkdir(dir, 0755) == 0 || errno == EEXIST ? 0 : -errno;
}

/* The whole of data at the end of the file, or a negative errno with up to n bytes of it there. */
static int put(int fd, uint64_t at, const unsigned char *data, size_t n) {
  /* Asked first: write() beyond the limit would raise SIGXFSZ in a thread of the job. */
  uint64_t limit = ni_file_size_limit();
  if (at > limit || n > limit - at)
    return -EFBIG;
  while (n) {
    ssize_t got = write(fd, data, n);
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return -errno;
    if (got == 0)
      return -EIO;
    data += got;
    n -= (size_t)got;
  }
  return 0;
}

static int open_file(struct ni_out_state *s, uint64_t now_ns) {
  int fd = -1, err = 0, dirs = 1;
  for (int i = 0; i < NAME_TRIES; i++) {
    set_path(s, s->next_n);
    fd = open(s->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_APPEND | O_NOFOLLOW, 0644);
    if (fd >= 0)
      break;
    err = -errno;
    if (err == -EEXIST) {
      s->next_n++;
    } else if (err == -ENOENT && dirs) {
      dirs = make_dirs(s->dir);
      if (dirs < 0)
        return dirs;
      dirs = 0;
    } else if (err != -EINTR) {
      return err;
    }
  }
  if (fd < 0)
    return err;
  fd = ni_above_two(fd);
  err = -errno;
  if (fd < 0)
    goto out_unlink;
  struct statx st;
  if (ni_file_facts(fd, "", AT_EMPTY_PATH, &st) != 0) {
    err = -errno;
    goto out_close;
  }
  if (s->preamble_len && (err = put(fd, 0, s->preamble, s->preamble_len)) != 0)
    goto out_close;
  s->fd = fd;
  s->now = (struct past_file){.n = s->next_n++,
                              .bytes = s->preamble_len,
                              .head = s->preamble_len,
                              .ino = st.stx_ino,
                              .dev_major = st.stx_dev_major,
                              .dev_minor = st.stx_dev_minor};
  s->opened_ns = now_ns;
  s->n_files++;
  return 0;
out_close:
  close(fd);
out_unlink:
  unlink(s->path); /* created a moment ago, by O_EXCL */
  return err;
}

/* Is the open descriptor still our file, and does it still have a name? Takes its length over. */
static void look_at_file(struct ni_out_state *s, uint64_t now_ns) {
  if (s->fd < 0)
    return;
  struct statx st;
  if (ni_file_facts(s->fd, "", AT_EMPTY_PATH, &st) != 0) {
    /*
     * EBADF: the host closed it, and the file is complete up to here. ESTALE, EIO: it is not usable any more.
     */
    end_file(s, now_ns, errno != EBADF);
  } else if (!same_file(&s->now, &st)) {
    end_file(s, now_ns, false); /* closed by the host, and the number is somebody's now: hands off */
  } else if ((st.stx_mask & STATX_NLINK) && st.stx_nlink == 0) {
    s->lost.deleted_files++;
    s->lost.deleted_records += s->now.records;
    close(s->fd);
    forget_file(s);
  } else {
    s->now.bytes = st.stx_size; /* where a failed block is cut back to, whoever else appended or truncated */
  }
}

/* One try into the current or a new file. */
static int try_write(struct ni_out_state *s, const unsigned char *data, size_t n, uint64_t now_ns) {
  if (s->fd < 0) {
    int err = open_file(s, now_ns);
    if (err)
      return err;
  }
  int err = put(s->fd, s->now.bytes, data, n);
  if (err == 0)
    return 0;
  /*
   * Cut back to whole blocks. Where that fails, too, the torn file is left: readers skip what is cut at its
   * end.
   */
  if (ftruncate(s->fd, (off_t)s->now.bytes) != 0)
    abandon_file(s, now_ns);
  return err;
}

/* The next file is made first: where it cannot be, the old one goes on growing. So it does without memory to
 * remember it: a limit broken is better than a record lost. */
static void rotate(struct ni_out_state *s, size_t n, uint64_t now_ns) {
  if (s->fd < 0 || s->now.bytes <= s->now.head || now_ns < s->next_rotation_ns)
    return;
  bool full = s->file_max_bytes && s->now.bytes + n > s->file_max_bytes;
  bool old = s->file_age_ns && now_ns - s->opened_ns >= s->file_age_ns;
  if (!(full || old) || !past_has_room(s))
    return;
  struct past_file last = s->now;
  int last_fd = s->fd;
  s->rotation_error = open_file(s, now_ns);
  s->next_rotation_ns = s->rotation_error ? now_ns + PAUSE_LAST_NS : 0;
  if (s->rotation_error) {
    set_path(s, last.n);
    return;
  }
  struct past_file next = s->now;
  int next_fd = s->fd;
  s->now = last;
  s->fd = last_fd;
  end_file(s, now_ns, true);
  s->now = next;
  s->fd = next_fd;
}

static void remove_oldest(struct ni_out_state *s) {
  struct past_file f = s->past[0];
  s->n_past--;
  memmove(s->past, s->past + 1, s->n_past * sizeof *s->past);
  s->past_bytes -= f.bytes;
  set_path(s, f.n);
  struct statx st;
  bool ours = ni_file_facts(AT_FDCWD, s->path, AT_SYMLINK_NOFOLLOW, &st) == 0 && same_file(&f, &st);
  if (ours && unlink(s->path) == 0) {
    s->lost.expired_files++;
    s->lost.expired_records += f.records;
  } else {
    s->lost.deleted_files++;
    s->lost.deleted_records += f.records;
  }
  set_path(s, s->next_n - 1); /* the newest again */
}

static void expire(struct ni_out_state *s, uint64_t now_ns) {
  if (s->held)
    return;
  while (s->n_past && s->keep_ns && now_ns - s->past[0].closed_ns > s->keep_ns)
    remove_oldest(s);
  while (s->n_past && s->dir_max_bytes && s->past_bytes + s->now.bytes + s->other_bytes > s->dir_max_bytes)
    remove_oldest(s);
}

void ni_out_expire(struct ni_out *o, uint64_t now_ns) {
  struct ni_out_state *s = o->s;
  look_at_file(s, now_ns);
  expire(s, now_ns);
}

int ni_out_write(struct ni_out *o, const void *data, size_t n, uint64_t n_records, uint64_t now_ns,
                 bool force) {
  struct ni_out_state *s = o->s;
  if (n == 0 && (s->n_files || !s->preamble_len))
    return 0;
  if (!force && now_ns < s->next_try_ns)
    return -EAGAIN;
  look_at_file(s, now_ns);
  rotate(s, n, now_ns);
  bool was_open = s->fd >= 0, had_blocks = s->now.bytes > s->now.head;
  int err = try_write(s, data, n, now_ns);
  /* What a new file may cure: a length limit that the old file has reached, a broken or vanished file. */
  const bool is_full = err == -EFBIG && had_blocks, is_broken = err == -EIO || err == -EBADF;
  if (was_open && (is_full || is_broken || err == -ESTALE)) {
    if (s->fd >= 0)
      abandon_file(s, now_ns);
    err = try_write(s, data, n, now_ns);
  }
  if (err) {
    s->pause_ns = s->pause_ns == 0        ? PAUSE_FIRST_NS
        : s->pause_ns < PAUSE_LAST_NS / 2 ? 2 * s->pause_ns
                                          : PAUSE_LAST_NS;
    s->next_try_ns = now_ns + s->pause_ns;
    return err;
  }
  s->pause_ns = s->next_try_ns = 0;
  s->now.bytes += n;
  s->now.records += n_records;
  expire(s, now_ns);
  return 0;
}

void ni_out_reserve(struct ni_out *o, uint64_t bytes) { o->s->other_bytes = bytes; }
void ni_out_hold(struct ni_out *o, bool hold) { o->s->held = hold; }
const char *ni_out_base(const struct ni_out *o) { return o->s ? o->s->base : ""; }

uint64_t ni_out_file_max(const struct ni_out *o) { return o->s->file_max_bytes; }
uint64_t ni_out_next_try_ns(const struct ni_out *o) { return o->s->next_try_ns; }
int ni_out_rotation_error(const struct ni_out *o) { return o->s->rotation_error; }
struct ni_out_lost ni_out_lost(const struct ni_out *o) { return o->s->lost; }
uint64_t ni_out_files(const struct ni_out *o) { return o->s->n_files; }
uint64_t ni_out_bytes(const struct ni_out *o) { return o->s->past_bytes + o->s->now.bytes; }
const char *ni_out_path(const struct ni_out *o) { return o->s->n_files ? o->s->path : o->s->dir; }

int ni_out_close(struct ni_out *o, struct ni_out_lost *lost) {
  struct ni_out_state *s = o->s;
  if (!s)
    return 0;
  look_at_file(s, 0);
  if (s->fd >= 0)
    end_file(s, 0, true);
  if (lost)
    *lost = s->lost;
  int ret = s->close_error;
  free(s->preamble);
  free(s->past);
  free(s);
  o->s = NULL;
  return ret;
}
