#include "readers.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exporter/base/process/as_user.h"
#include "exporter/base/now.h"
#include "exporter/base/out_file.h"
#include "exporter/input/box/life.h"
#include "boxes.h"
#include "hang_turn.h"
#include "watch.h"

enum { USERS_MAX = 256, LISTERS = 2, LEAST_BYTES = 256 << 10, MEMORY = 1 << 30 };
enum { BOXES_ASKED_MAX = 1024, PROVED_S = 10 };
enum {
  SILENT_S = 120,
  SETTLE_S = 30,
  FIRST_S = 600,
  IDLE_S = 600,
  WAIT_MAX_S = 60,
  LOGS_EVERY_S = 5,
  YOUNG_S = 3
};
static const uint64_t S = 1000000000;
/* "uids" of listers, which no user has; BOXES also ends a list */
static const uint32_t BOXES = UINT32_MAX, LOGS = UINT32_MAX - 1;

struct user_reader {
  struct ni_readers *all;
  uint32_t uid;
  pid_t pid; /* 0: none; with fd -1 it was killed, or has ended */
  int fd;
  char *bytes;
  size_t len, cap;
  /* of a lister: users without a reader in its newest list, and in the one that comes */
  uint64_t left_out, leaving;
  /* CLOCK_MONOTONIC: begun, its newest look, when it may begin again (wait: s), work seen */
  uint64_t began, looked, next, wait, used;
  uint64_t heard; /* ... and when it, or one before it, last said anything */
  /* when a lister said last that a process of that user lives; 0: never */
  uint64_t proved;
  bool settled;
  bool barred; /* the agent may not become that user */
  /* its place was another user's, whose process may not be reaped yet; its own was not begun */
  bool fresh;
};
struct ni_readers {
  const struct ni_agent_options *o;
  const char *node;
  struct ni_live *live;
  int epoll;
  struct user_reader *reader[LISTERS + USERS_MAX];
  size_t n;
  uint64_t now, first, restarts, cpu_ns; /* cpu_ns: of those that are over */
};

/* ---- the child ---- */

struct batch_telling {
  int fd;
  struct ni_watch *watch;
  struct ni_hang_watch *hang;
};

static int send_batch(void *arg, const struct ni_live_batch *b) {
  struct batch_telling *t = arg;
  struct ni_live_batch out = *b;
  struct ni_live_hang said;
  size_t left;
  if (t->hang && b->kind == NI_LIVE_LOOK &&
      ni_hang_watch_turn(t->hang, b, ni_boxes_log_dirs(ni_watch_boxes(t->watch)), ni_now_ns(CLOCK_MONOTONIC),
                         &said)) {
    out.hangs = &said;
    out.n_hangs = 1;
  }
  char *bytes = ni_live_encode(&out, &left);
  int e = bytes ? ni_write_all(t->fd, bytes, left, -1) : -ENOMEM;
  free(bytes);
  return e;
}

static const char *box_dir(const struct ni_readers *all) {
  return all->o->box_dir ? all->o->box_dir : NI_BOX_DIR;
}

static int read_in_child(void *arg) {
  const struct user_reader *r = arg;
  const struct ni_readers *all = r->all;
  const struct ni_agent_options *o = all->o;
  const struct ni_watch_settings s = {.uid = r->uid,
                                      .box_dir = box_dir(all),
                                      .node = all->node,
                                      .log_dir = o->log_dirs.path,
                                      .n_log_dirs = o->log_dirs.n,
                                      .stuck_ns = o->stuck_ns,
                                      .nvidia = o->nvidia_names};
  const struct ni_hang_settings h = {
      .box_dir = box_dir(all), .node = all->node, .stacks = o->stacks, .stuck_ns = o->stuck_ns};
  struct batch_telling t = {.fd = r->fd};
  bool more;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  struct rlimit most;
  /* hang_turn.h's commands may raise it again */
  if (getrlimit(RLIMIT_AS, &most) == 0 && most.rlim_max >= MEMORY) {
    most.rlim_cur = MEMORY;
    (void)setrlimit(RLIMIT_AS, &most);
  }
#endif
  if (ni_watch_open(&t.watch, &s, all->live) < 0 || (!o->watch_only && ni_hang_watch_open(&t.hang, &h) < 0))
    return 1;
  for (;;) {
    uint64_t began = ni_now_ns(CLOCK_MONOTONIC);
    if (ni_watch_turn(t.watch, send_batch, &t, &more) != 0)
      return 1;
    if (!more)
      ni_boxes_wait(ni_watch_boxes(t.watch), began, false);
  }
}

/* ---- the child that lists users, with our own rights: names and owners, and how a box begins ---- */

struct listed {
  uint32_t uid;
  uint32_t lives; /* a box of that user names a process of that user, which runs */
  uint32_t asked; /* boxes that were asked for it */
};
struct user_list {
  const struct user_reader *r;
  struct listed user[NI_LIVE_USERS_MAX];
  size_t n;
  bool young; /* a box is new, and nothing is in it yet */
};
struct said { /* through the pipe */
  uint32_t uid, lives;
};

static void send_user(const struct user_list *l, uint32_t uid, uint32_t lives) {
  const struct said said = {uid, lives};
  if (ni_write_all(l->r->fd, &said, sizeof said, -1) < 0)
    _exit(1);
}

static struct listed *find_listed(struct user_list *l, uint32_t uid) {
  size_t i = 0;
  while (i < l->n && l->user[i].uid != uid)
    i++;
  return i < l->n ? &l->user[i] : NULL;
}

/* If the list is full, a user with a living process replaces one without. */
static void add_listed(struct user_list *l, struct listed new) {
  size_t i = 0;
  if (l->n < NI_LIVE_USERS_MAX) {
    l->user[l->n++] = new;
    return;
  }
  while (new.lives && i < l->n && l->user[i].lives)
    i++;
  if (new.lives && i < l->n)
    l->user[i] = new;
}

static bool is_log(const void *arg, const char *name) {
  return ni_find_log(((const struct user_list *)arg)->r->all->node, name);
}

static void list_log(void *arg, const char *dir, const char *name, const struct stat *st) {
  struct user_list *l = arg;
  bool written = st->st_size && (uint64_t)st->st_mtim.tv_sec + IDLE_S > ni_now_ns(CLOCK_REALTIME) / S;
  (void)dir;
  (void)name;
  if (!written || find_listed(l, st->st_uid))
    return;
  add_listed(l, (struct listed){.uid = st->st_uid});
  send_user(l, st->st_uid, false); /* at once: the next folder may not answer */
}

/*
 * Only the user says what is in a box: anybody may make one that claims a living process. So the kernel is
 * asked whether the process belongs to that user. One box of a user is enough; of dead ones BOXES_ASKED_MAX
 * are asked.
 */
static void list_box(void *arg, const char *dir, const char *name, const struct stat *st) {
  struct user_list *l = arg;
  struct stat is;
  char path[PATH_MAX], magic[sizeof NI_BOX_MAGIC - 1];
  struct listed *known = find_listed(l, st->st_uid);
  bool settled = known && (known->lives || known->asked++ >= BOXES_ASKED_MAX);
  if (settled || snprintf(path, sizeof path, "%s/%s", dir, name) >= (int)sizeof path)
    return;
  int fd = ni_plain_open(AT_FDCWD, path, &is);
  bool sound = fd < 0
      ? fd == -EACCES && st->st_size
      : pread(fd, magic, sizeof magic, 0) == sizeof magic && memcmp(magic, NI_BOX_MAGIC, sizeof magic) == 0;
  bool lives =
      fd >= 0 && sound && is.st_uid == st->st_uid && ni_life_of_file(fd, is.st_uid).life == NI_LIFE_ALIVE;
  l->young |= !sound && (uint64_t)st->st_ctim.tv_sec + YOUNG_S > ni_now_ns(CLOCK_REALTIME) / S;
  if (fd >= 0)
    close(fd);
  if (!sound)
    return;
  if (known)
    known->lives = lives;
  else
    add_listed(l, (struct listed){st->st_uid, lives, 1});
}

static int list_in_child(void *arg) {
  static struct user_list l;
  const struct ni_readers *all = (l.r = arg)->all;
  struct ni_boxes *boxes;
  if (ni_boxes_open(&boxes, box_dir(all), 0, 0) < 0)
    return 1;
  for (;; l.n = 0, l.young = false) {
    uint64_t began = ni_now_ns(CLOCK_MONOTONIC);
    bool logs = l.r->uid == LOGS;
    if (!logs) {
      (void)ni_boxes_stirred(boxes);
      (void)ni_find(box_dir(all), 0, ni_find_box, list_box, &l);
    }
    for (size_t i = 0; logs && i < all->o->log_dirs.n; i++)
      (void)ni_find(all->o->log_dirs.path[i], 1, is_log, list_log, &l);
    for (size_t i = 0; !logs && i < l.n; i++)
      send_user(&l, l.user[i].uid, l.user[i].lives);
    send_user(&l, BOXES, false);
    if (logs)
      (void)poll(NULL, 0, LOGS_EVERY_S * 1000);
    else
      ni_boxes_wait(boxes, began, l.young);
  }
}

static int run_child(void *arg) {
  const struct user_reader *r = arg;
  sigset_t none;
  (void)setpriority(PRIO_PROCESS, 0, 10);
  /*
   * What it writes lies beside the user's logs, for whom these are: not as closed as the agent's own files
   * (UMask= of its unit).
   */
  (void)umask(022);
  (void)sigprocmask(SIG_SETMASK, (sigemptyset(&none), &none), NULL);
  return (r->uid >= LOGS ? list_in_child : read_in_child)(arg);
}

/* ---- one of them ---- */

static bool begin_reader(struct user_reader *r) {
  struct ni_readers *all = r->all;
  struct epoll_event ev = {.events = EPOLLIN, .data.ptr = r};
  int pipes[2];
  if (pipe2(pipes, O_CLOEXEC) != 0)
    return false;
  r->fd = pipes[1];
  pid_t pid = ni_as_owner_start(r->uid >= LOGS ? geteuid() : r->uid, pipes[1], run_child, r);
  close(pipes[1]);
  r->fd = pipes[0];
  (void)fcntl(pipes[0], F_SETFL, O_NONBLOCK);
  r->began = r->looked = all->now;
  r->len = r->leaving = 0;
  r->settled = false;
  if (pid > 0 && epoll_ctl(all->epoll, EPOLL_CTL_ADD, pipes[0], &ev) == 0) {
    r->pid = pid;
    return true;
  }
  if (pid > 0)
    kill(r->pid = pid, SIGKILL);
  close(pipes[0]);
  r->fd = -1;
  return false;
}

/*
 * Ends the reader without waiting for it, as it may hang in a file system. What it had not reported
 * completely is read again by the next one.
 */
static void end_reader(struct user_reader *r) {
  if (r->fd >= 0)
    close(r->fd); /* the last descriptor of it, so epoll forgets it */
  r->fd = -1;
  r->len = 0;
  if (r->pid > 0)
    kill(r->pid, SIGKILL);
}

static void reap_reader(struct user_reader *r) {
  struct rusage u;
  int status;
  struct ni_readers *all = r->all;
  if (!r->pid || wait4(r->pid, &status, WNOHANG, &u) == 0)
    return;
  if (WIFEXITED(status) && WEXITSTATUS(status) == NI_CANNOT_BECOME && !r->barred) {
    r->barred = true;
    ni_say(stderr, "nccl-inspector agent: cannot become uid %u, whose jobs are not told: ", r->uid);
    ni_say(stderr, "that needs CAP_SETUID and CAP_SETGID, or an agent of that user\n");
  }
  all->cpu_ns += (uint64_t)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * S;
  all->cpu_ns += (uint64_t)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1000;
  r->pid = 0;
  if (r->fresh)
    return; /* the next user's reader does not wait for that one */
  r->wait = all->now - r->began > WAIT_MAX_S * S || !r->wait ? 1
      : 2 * r->wait < WAIT_MAX_S                             ? 2 * r->wait
                                                             : WAIT_MAX_S;
  r->next = all->now + r->wait * S;
}

/* May this reader say so? It must not speak for other users. */
static bool may_tell(const struct user_reader *r, const struct ni_live_batch *b) {
  const struct ni_live_file *f =
      b->kind == NI_LIVE_LOGS ? ni_live_file_of(r->all->live, b->file.dev, b->file.ino) : NULL;
  const bool is_anothers = f && f->uid != r->uid && b->file.from;
  if ((b->kind == NI_LIVE_LOGS ? b->file.uid : b->uid) != r->uid || is_anothers)
    return false;
  for (uint32_t i = 0; i < b->n_processes; i++)
    if (b->processes[i].uid != r->uid)
      return false;
  return true;
}

static bool is_user_alive(const struct user_reader *r) {
  return r->proved && r->all->now - r->proved < PROVED_S * S;
}

/*
 * Claims the place of a user without a living process, for a user with one; NULL: there is none. What was
 * reported for the former user is dropped.
 */
static struct user_reader *claim_place(struct ni_readers *all) {
  size_t i = 0;
  for (; i < all->n; i++) {
    const bool is_another = all->reader[i]->uid < LOGS && all->reader[i]->uid != geteuid();
    if (is_another && !is_user_alive(all->reader[i]))
      break;
  }
  if (i == all->n)
    return NULL;
  struct user_reader *r = all->reader[i];
  const struct ni_live_batch nothing = {.kind = NI_LIVE_LOOK, .uid = r->uid};
  (void)ni_live_apply(all->live, &nothing, ni_now_ns(CLOCK_REALTIME), all->now);
  end_reader(r);
  r->fresh = true;
  r->settled = r->barred = false;
  r->wait = 0;
  r->next = r->heard = r->looked = all->now;
  return r;
}

/* living: a process of that user is known to run. false: there is no place for that user. */
static bool find_or_add_reader(struct ni_readers *all, uint32_t uid, bool living) {
  size_t i = 0;
  struct user_reader *r;
  while (i < all->n && all->reader[i]->uid != uid)
    i++;
  if (i < all->n) {
    r = all->reader[i];
  } else if (i < LISTERS + USERS_MAX) {
    if (!(r = calloc(1, sizeof *r)))
      return false;
    *r = (struct user_reader){.all = all, .uid = uid, .fd = -1, .heard = all->now};
    if (!begin_reader(all->reader[all->n++] = r))
      r->next = all->now + S;
  } else {
    if (!living || !(r = claim_place(all)))
      return false;
    r->uid = uid; /* the next tick begins its reader, once the one before is reaped */
  }
  r->used = all->now;
  if (living)
    r->proved = all->now;
  return true;
}

/* Reads what a lister says: users, as they are found, and that these were all. */
static void read_list(struct user_reader *r) {
  struct said said;
  size_t at = 0;
  for (; r->len - at >= sizeof said; at += sizeof said) {
    memcpy(&said, r->bytes + at, sizeof said);
    if (said.uid != BOXES) {
      r->leaving += !find_or_add_reader(r->all, said.uid, said.lives);
      continue;
    }
    r->heard = r->looked = r->all->now;
    r->settled = true;
    r->left_out = r->leaving;
    r->leaving = 0;
  }
  memmove(r->bytes, r->bytes + at, r->len -= at);
}

bool ni_readers_ready(struct ni_readers *all, void *pipe, uint64_t unix_ns, uint64_t mono_ns) {
  struct user_reader *r = pipe;
  bool changed = false;
  size_t took = 0;
  int e = 0;
  all->now = mono_ns;
  if (r->fd < 0)
    return false;
  if (r->len == r->cap) { /* a batch that does not fit; its length was found to be possible */
    size_t cap = r->cap ? 2 * r->cap : LEAST_BYTES;
    char *more = cap <= NI_LIVE_BATCH_MAX ? realloc(r->bytes, cap) : NULL;
    if (more) {
      r->cap = cap;
      r->bytes = more;
    }
  }
  ssize_t n = r->len < r->cap ? read(r->fd, r->bytes + r->len, r->cap - r->len) : 0;
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return false;
  if (n > 0)
    r->len += (size_t)n;
  if (n > 0 && r->uid >= LOGS)
    read_list(r);
  else
    for (struct ni_live_batch b; n > 0 && (e = ni_live_decode(&b, r->bytes, r->len, &took)) == 1;) {
      if (!may_tell(r, &b) || ni_live_apply(all->live, &b, unix_ns, mono_ns) < 0) {
        e = -EBADMSG;
        break;
      }
      changed = true;
      r->heard = mono_ns;
      if (b.kind == NI_LIVE_LOOK) {
        r->looked = mono_ns;
        r->settled |= b.behind == 0;
      }
      memmove(r->bytes, r->bytes + took, r->len -= took);
    }
  if (n <= 0 || e < 0) {
    end_reader(r);
    reap_reader(r);
  }
  return changed;
}

/* ---- all of them ---- */

int ni_readers_open(struct ni_readers **out, const struct ni_agent_options *o, const char *node,
                    struct ni_live *live, int epoll) {
  struct ni_readers *all = *out = calloc(1, sizeof *all);
  if (all)
    *all = (struct ni_readers){.o = o, .node = node, .live = live, .epoll = epoll};
  return all ? 0 : -ENOMEM;
}

void ni_readers_tick(struct ni_readers *all, uint64_t mono_ns) {
  bool root = geteuid() == 0, first = !all->now;
  all->now = mono_ns;
  if (first)
    all->first = mono_ns;
  (void)find_or_add_reader(all, root ? BOXES : geteuid(), false);
  if (root && all->o->log_dirs.n)
    (void)find_or_add_reader(all, LOGS, false);
  for (size_t i = 0; root && first && i < all->live->n_files; i++)
    if (ni_live_file_open(&all->live->file[i], mono_ns))
      (void)find_or_add_reader(all, all->live->file[i].uid, false);
  for (size_t i = all->n; i-- > 0;) {
    struct user_reader *r = all->reader[i];
    bool idle = mono_ns - r->used > IDLE_S * S;
    if (r->fd >= 0 && (idle || mono_ns - r->looked > SILENT_S * S))
      end_reader(r);
    if (r->fd < 0)
      reap_reader(r);
    if (!r->pid && idle) {
      free(r->bytes);
      free(r);
      all->reader[i] = all->reader[--all->n];
    } else if (!r->pid && mono_ns >= r->next) {
      all->restarts += !r->fresh;
      r->fresh = false;
      if (!begin_reader(r))
        r->next = mono_ns + S;
    }
  }
}

bool ni_readers_settled(const struct ni_readers *all) {
  for (size_t i = 0; i < all->n; i++)
    if (!all->reader[i]->settled && all->now - all->reader[i]->heard < SETTLE_S * S &&
        all->now - all->first < FIRST_S * S)
      return false;
  return all->now > 0;
}

/* Adds the costs that /proc states for it. */
static void add_cost(pid_t pid, struct ni_agent_self *s) {
  char path[64];
  struct stat st;
  unsigned long long user = 0, sys = 0, pages = 0;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  FILE *f = fopen(path, "re");
  /* Fields 14, 15 and 24: times and resident pages. The name, in brackets, is our own. */
  if (f &&
      fscanf(f,
             "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %*u "
             "%*u %llu",
             &user, &sys, &pages) == 3) {
    s->cpu_ns += (user + sys) * S / (uint64_t)sysconf(_SC_CLK_TCK);
    s->resident_bytes += pages * (uint64_t)sysconf(_SC_PAGESIZE);
  }
  if (f)
    fclose(f);
  snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
  DIR *d = opendir(path);
  if (!d && stat(path, &st) == 0)
    s->descriptors += (uint64_t)st.st_size; /* since Linux 6.2 */
  for (const struct dirent *e; d && (e = readdir(d));)
    s->descriptors += e->d_name[0] != '.';
  if (d)
    closedir(d);
}

void ni_readers_figures(const struct ni_readers *all, struct ni_agent_self *s) {
  s->cpu_ns = all ? all->cpu_ns : 0;
  s->resident_bytes = s->descriptors = s->users_left_out = 0;
  add_cost(getpid(), s);
  uint64_t barred = 0;
  for (size_t i = 0; all && i < all->n; i++) {
    const struct user_reader *r = all->reader[i];
    if (r->pid)
      add_cost(r->pid, s);
    if (s->users_left_out < r->left_out)
      s->users_left_out = r->left_out;
    barred += r->barred;
  }
  s->users_left_out += barred;
  if (all)
    s->reader_restarts = all->restarts;
}

void ni_readers_close(struct ni_readers *all) {
  for (size_t i = 0; all && i < all->n; i++) {
    struct user_reader *r = all->reader[i];
    end_reader(r);
    if (r->pid && ni_child_ended(r->pid, 1000))
      reap_reader(r);
    free(r->bytes);
    free(r);
  }
  free(all);
}
