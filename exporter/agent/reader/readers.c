#include "readers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exporter/base/as_user.h"
#include "exporter/base/now.h"
#include "boxes.h"
#include "hang_turn.h"
#include "watch.h"

enum { USERS_MAX = 256, LEAST_BYTES = 256 << 10, MEMORY = 1 << 30 };
static const uint64_t S = 1000000000, MS = 1000000;
enum { TURN_MS = 1000, SOONEST_MS = 50, SILENT_S = 120, SETTLE_S = 30, FIRST_S = 600, IDLE_S = 600, WAIT_MAX_S = 60, LOGS_EVERY_S = 5 };

struct reader {
  struct ni_readers *all;
  uint32_t uid;
  pid_t pid;               /* 0: none; with fd -1 it was killed, or has ended */
  int fd;
  char *bytes;
  size_t len, cap;
  uint64_t began, looked, next, wait, used; /* CLOCK_MONOTONIC: begun, its newest look, when it may begin again (wait: s), work seen */
  uint64_t heard;          /* ... and when it, or one before it, last said anything */
  bool settled;
};
struct ni_readers {
  const struct ni_agent_options *o;
  const char *node;
  struct ni_live *live;
  int epoll;
  struct reader *reader[USERS_MAX];
  size_t n;
  uint64_t now, first, logs_at, restarts, cpu_ns; /* cpu_ns: of those that are over */
};

/* ---- the child ---- */

struct telling {
  int fd;
  struct ni_watch *watch;
  struct ni_hang_watch *hang;
};

static int tell(void *arg, const struct ni_live_batch *b) {
  struct telling *t = arg;
  struct ni_live_batch out = *b;
  struct ni_live_hang said;
  size_t left;
  if (t->hang && b->kind == NI_LIVE_LOOK && ni_hang_watch_turn(t->hang, b, ni_watch_log_dirs(t->watch), ni_now_ns(CLOCK_MONOTONIC), &said)) {
    out.hangs = &said;
    out.n_hangs = 1;
  }
  char *bytes = ni_live_encode(&out, &left), *at = bytes;
  for (ssize_t n; bytes && left; at += n, left -= (size_t)n)
    if ((n = write(t->fd, at, left)) < 0) {
      if (errno != EINTR) break;
      n = 0;
    }
  free(bytes);
  return bytes && !left ? 0 : -EPIPE;
}

static int read_on(void *arg) {
  const struct reader *r = arg;
  const struct ni_readers *all = r->all;
  const struct ni_agent_options *o = all->o;
  const char *box_dir = o->box_dir ? o->box_dir : NI_BOX_DIR;
  const struct ni_watch_settings s = {.uid = r->uid, .box_dir = box_dir, .node = all->node, .log_dir = o->log_dirs.path,
                                      .n_log_dirs = o->log_dirs.n, .stuck_ns = o->stuck_ns, .nvidia = o->nvidia_names};
  const struct ni_hang_settings h = {.box_dir = box_dir, .node = all->node, .stacks = o->stacks, .stuck_ns = o->stuck_ns};
  struct telling t = {.fd = r->fd};
  sigset_t none;
  bool more;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  struct rlimit most;
  if (getrlimit(RLIMIT_AS, &most) == 0 && most.rlim_max >= MEMORY) { /* hang_turn.h's commands may raise it again */
    most.rlim_cur = MEMORY;
    (void)setrlimit(RLIMIT_AS, &most);
  }
#endif
  (void)setpriority(PRIO_PROCESS, 0, 10);
  (void)sigprocmask(SIG_SETMASK, (sigemptyset(&none), &none), NULL);
  if (ni_watch_open(&t.watch, &s, all->live) < 0 || (!o->watch_only && ni_hang_watch_open(&t.hang, &h) < 0)) return 1;
  for (;;) {
    uint64_t began = ni_now_ns(CLOCK_MONOTONIC);
    if (ni_watch_turn(t.watch, tell, &t, &more) != 0) return 1;
    struct pollfd p = {.fd = ni_watch_fd(t.watch), .events = POLLIN};
    int left = 0;
    if (!more) do {
      (void)poll(NULL, 0, SOONEST_MS);
      left = TURN_MS - (int)((ni_now_ns(CLOCK_MONOTONIC) - began) / MS);
    } while (left > 0 && poll(&p, 1, left) > 0 && !ni_watch_stirred(t.watch));
  }
}

/* ---- one of them ---- */

static bool begin(struct reader *r) {
  struct ni_readers *all = r->all;
  struct epoll_event ev = {.events = EPOLLIN, .data.ptr = r};
  int pipes[2];
  if (pipe2(pipes, O_CLOEXEC) != 0) return false;
  r->fd = pipes[1];
  pid_t pid = ni_as_owner_start(r->uid, pipes[1], read_on, r);
  close(pipes[1]);
  r->fd = pipes[0];
  (void)fcntl(pipes[0], F_SETFL, O_NONBLOCK);
  r->began = r->looked = all->now;
  r->len = 0;
  r->settled = false;
  if (pid > 0 && epoll_ctl(all->epoll, EPOLL_CTL_ADD, pipes[0], &ev) == 0) {
    r->pid = pid;
    return true;
  }
  if (pid > 0) kill(r->pid = pid, SIGKILL);
  close(pipes[0]);
  r->fd = -1;
  return false;
}

/* Not waited for: it may hang in a file system. What it had not said whole is read again by the next one. */
static void end(struct reader *r) {
  if (r->fd >= 0) close(r->fd); /* the last descriptor of it, so epoll forgets it */
  r->fd = -1;
  r->len = 0;
  if (r->pid > 0) kill(r->pid, SIGKILL);
}

static void reap(struct reader *r) {
  struct rusage u;
  struct ni_readers *all = r->all;
  if (!r->pid || wait4(r->pid, NULL, WNOHANG, &u) == 0) return;
  all->cpu_ns += (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * S;
  all->cpu_ns += (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
  r->pid = 0;
  r->wait = all->now - r->began > WAIT_MAX_S * S || !r->wait ? 1 : 2 * r->wait < WAIT_MAX_S ? 2 * r->wait : WAIT_MAX_S;
  r->next = all->now + r->wait * S;
}

/* May it say so? What is another user's is not for it to tell of. */
static bool its_own(const struct reader *r, const struct ni_live_batch *b) {
  const struct ni_live_file *f = b->kind == NI_LIVE_LOGS ? ni_live_file_of(r->all->live, b->file.dev, b->file.ino) : NULL;
  if ((b->kind == NI_LIVE_LOGS ? b->file.uid : b->uid) != r->uid || (f && f->uid != r->uid && b->file.from)) return false;
  for (uint32_t i = 0; i < b->n_processes; i++)
    if (b->processes[i].uid != r->uid) return false;
  return true;
}

bool ni_readers_ready(struct ni_readers *all, void *pipe, uint64_t unix_ns, uint64_t mono_ns) {
  struct reader *r = pipe;
  bool changed = false;
  size_t took = 0;
  int e = 0;
  all->now = mono_ns;
  if (r->fd < 0) return false;
  if (r->len == r->cap) { /* a batch that does not fit; its length was found to be possible */
    size_t cap = r->cap ? 2 * r->cap : LEAST_BYTES;
    char *more = cap <= NI_LIVE_BATCH_MAX ? realloc(r->bytes, cap) : NULL;
    if (more) r->cap = cap, r->bytes = more;
  }
  ssize_t n = r->len < r->cap ? read(r->fd, r->bytes + r->len, r->cap - r->len) : 0;
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (n > 0) r->len += (size_t)n;
  for (struct ni_live_batch b; n > 0 && (e = ni_live_decode(&b, r->bytes, r->len, &took)) == 1;) {
    if (!its_own(r, &b) || ni_live_apply(all->live, &b, unix_ns, mono_ns) < 0) {
      e = -EBADMSG;
      break;
    }
    changed = true;
    r->heard = mono_ns;
    if (b.kind == NI_LIVE_LOOK) r->looked = mono_ns, r->settled |= b.behind == 0;
    memmove(r->bytes, r->bytes + took, r->len -= took);
  }
  if (n <= 0 || e < 0) end(r), reap(r);
  return changed;
}

/* ---- all of them ---- */

int ni_readers_open(struct ni_readers **out, const struct ni_agent_options *o, const char *node, struct ni_live *live, int epoll) {
  struct ni_readers *all = *out = calloc(1, sizeof *all);
  if (all) *all = (struct ni_readers){.o = o, .node = node, .live = live, .epoll = epoll};
  return all ? 0 : -ENOMEM;
}

static void use(struct ni_readers *all, uint32_t uid) {
  size_t i = 0;
  while (i < all->n && all->reader[i]->uid != uid) i++;
  if (i == all->n && (i == USERS_MAX || !(all->reader[i] = calloc(1, sizeof **all->reader)))) return;
  if (i == all->n) *all->reader[all->n++] = (struct reader){.all = all, .uid = uid, .fd = -1, .heard = all->now};
  all->reader[i]->used = all->now;
}

static bool is_log(const void *arg, const char *name) { return ni_find_log(((const struct ni_readers *)arg)->node, name); }
static void found_box(void *arg, const char *dir, const char *name, const struct stat *st) { (void)dir, (void)name, use(arg, st->st_uid); }
static void found_log(void *arg, const char *dir, const char *name, const struct stat *st) {
  if ((uint64_t)st->st_mtim.tv_sec + IDLE_S > ni_now_ns(CLOCK_REALTIME) / S) found_box(arg, dir, name, st);
}

uint64_t ni_readers_tick(struct ni_readers *all, uint64_t mono_ns) {
  bool root = geteuid() == 0, first = !all->now;
  all->now = mono_ns;
  if (first) all->first = mono_ns;
  if (!root) use(all, geteuid());
  else (void)ni_find(all->o->box_dir ? all->o->box_dir : NI_BOX_DIR, 0, ni_find_box, found_box, all);
  if (root && (first || mono_ns - all->logs_at >= LOGS_EVERY_S * S)) {
    all->logs_at = mono_ns;
    for (size_t i = 0; i < all->o->log_dirs.n; i++) (void)ni_find(all->o->log_dirs.path[i], 1, is_log, found_log, all);
  }
  for (size_t i = 0; root && first && i < all->live->n_files; i++)
    if (ni_live_file_open(&all->live->file[i], ni_now_ns(CLOCK_REALTIME))) use(all, all->live->file[i].uid);
  for (size_t i = all->n; i-- > 0;) {
    struct reader *r = all->reader[i];
    bool idle = mono_ns - r->used > IDLE_S * S;
    if (r->fd >= 0 && (idle || mono_ns - r->looked > SILENT_S * S)) end(r);
    if (r->fd < 0) reap(r);
    if (!r->pid && idle) {
      free(r->bytes);
      free(r);
      all->reader[i] = all->reader[--all->n];
    } else if (!r->pid && mono_ns >= r->next) {
      all->restarts += r->next > 0;
      if (!begin(r)) r->next = mono_ns + S;
    }
  }
  return all->restarts;
}

bool ni_readers_settled(const struct ni_readers *all) {
  for (size_t i = 0; i < all->n; i++)
    if (!all->reader[i]->settled && all->now - all->reader[i]->heard < SETTLE_S * S && all->now - all->first < FIRST_S * S) return false;
  return all->now > 0;
}

void ni_readers_cost(const struct ni_readers *all, uint64_t *cpu_ns, uint64_t *resident_bytes, uint64_t *descriptors) {
  *cpu_ns = all->cpu_ns;
  *resident_bytes = *descriptors = 0;
  for (size_t i = 0; i < all->n; i++) {
    char path[64];
    struct stat st;
    unsigned long long user = 0, sys = 0, pages = 0;
    if (!all->reader[i]->pid) continue;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)all->reader[i]->pid);
    FILE *f = fopen(path, "re");
    /* Fields 14, 15 and 24: times and resident pages. The name, in brackets, is our own. */
    if (f && fscanf(f, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %*u %*u %llu", &user,
                    &sys, &pages) == 3) {
      *cpu_ns += (user + sys) * S / (uint64_t)sysconf(_SC_CLK_TCK);
      *resident_bytes += pages * (uint64_t)sysconf(_SC_PAGESIZE);
    }
    if (f) fclose(f);
    snprintf(path, sizeof path, "/proc/%d/fd", (int)all->reader[i]->pid);
    if (stat(path, &st) == 0) *descriptors += (uint64_t)st.st_size; /* since Linux 6.2 */
  }
}

void ni_readers_close(struct ni_readers *all) {
  for (size_t i = 0; all && i < all->n; i++) {
    struct reader *r = all->reader[i];
    end(r);
    if (r->pid && ni_child_ended(r->pid, 1000)) reap(r);
    free(r->bytes);
    free(r);
  }
  free(all);
}
