#include "boxes.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/now.h"
#include "exporter/base/text/safe_text.h"
#include "exporter/input/discover.h"
#include "exporter/input/parse/parse.h"
#include "exporter/base/index.h"
#include "exporter/model/hang/limit.h"
#include "exporter/model/hang/read_boxes.h"
#include "ni_box.h"

/* ---- files by their names ---- */

int ni_find(const char *path, int depth, ni_find_wanted *wanted, ni_find_found *found, void *arg) {
  int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
  DIR *d = fd < 0 ? NULL : fdopendir(fd);
  struct dirent *x;
  struct stat st;
  char below[PATH_MAX];
  if (!d)
    return fd < 0 ? -errno : (close(fd), -ENOMEM);
  while ((x = readdir(d))) {
    bool folder = depth > 0 && x->d_name[0] != '.' && (x->d_type == DT_DIR || x->d_type == DT_UNKNOWN);
    if ((!folder && !wanted(arg, x->d_name)) || fstatat(fd, x->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
      continue;
    if (S_ISREG(st.st_mode) && wanted(arg, x->d_name))
      found(arg, path, x->d_name, &st);
    if (folder && S_ISDIR(st.st_mode) &&
        snprintf(below, sizeof below, "%s/%s", path, x->d_name) < (int)sizeof below)
      (void)ni_find(below, depth - 1, wanted, found, arg);
  }
  closedir(d);
  return 0;
}

bool ni_find_box(const void *arg, const char *name) {
  size_t n = strlen(name), suffix = sizeof NI_BOX_SUFFIX - 1;
  return strncmp(name, NI_BOX_PREFIX, sizeof NI_BOX_PREFIX - 1) == 0 && n > suffix &&
      strcmp(name + n - suffix, NI_BOX_SUFFIX) == 0;
}

bool ni_find_log(const void *node, const char *name) {
  size_t n = strlen(node), stem = ni_log_stem(name, NULL);
  return strncmp(name, node, n) == 0 && strncmp(name + n, "-pid", 4) == 0 &&
      (strstr(name + stem, ".log") || strstr(name + stem, ".jsonl"));
}

/* ---- boxes ---- */

enum { TURN_MS = 1000, SOONEST_MS = 50, YOUNG_MS = 3000 };
static const uint64_t MS = 1000000;

struct box {
  char *path, *dir, *stem; /* dir, stem: of its log; NULL: it has none yet */
  ino_t ino;
  uint64_t found_ns; /* CLOCK_MONOTONIC */
  int pidfd;
  bool seen, dead, bad;
  uint64_t job;     /* of its job's name and attempt, as a number */
  uint64_t started; /* operations so far, and when that rose (Unix ns): anything of it moved */
  uint64_t moved_ns;
  uint64_t longest_ns; /* the longest operation or pause that it has had; 0: it does not say */
  uint64_t limit_ns;   /* from when on an operation of the job is stuck, as of the look before */
  struct ni_live_process p;
  struct ni_live_open *left; /* of one that was killed: what it was in then */
  size_t n_left;
};
struct ni_boxes {
  const char *box_dir;
  uint32_t uid;
  uint64_t stuck_ns, pid_namespace;
  int epoll, inotify;
  /* of the newest look: there is a box that may be about to say where its log lies */
  bool young;
  struct box *box;
  struct ni_live_process *process;
  struct ni_live_open *open;
  const char **log_dir;
  size_t n, cap, n_processes, cap_processes, n_open, cap_open, cap_log_dirs;
  struct ni_rows *rows;
};

int ni_boxes_open(struct ni_boxes **out, const char *box_dir, uint32_t uid, uint64_t stuck_ns) {
  struct ni_boxes *x = *out = calloc(1, sizeof *x);
  struct stat st;
  if (!x)
    return -ENOMEM;
  *x = (struct ni_boxes){.box_dir = box_dir, .uid = uid, .stuck_ns = stuck_ns};
  if (stat("/proc/self/ns/pid", &st) == 0)
    x->pid_namespace = st.st_ino;
  x->epoll = epoll_create1(EPOLL_CLOEXEC);
  x->inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  struct epoll_event ev = {.events = EPOLLIN, .data.fd = x->inotify};
  if (x->inotify >= 0)
    (void)epoll_ctl(x->epoll, EPOLL_CTL_ADD, x->inotify, &ev);
  return x->epoll < 0 ? -errno : 0;
}

static void drop_box(struct ni_boxes *x, struct box *b) {
  if (b->pidfd >= 0)
    close(b->pidfd);
  free(b->path);
  free(b->dir);
  free(b->stem);
  free(b->left);
  *b = x->box[--x->n];
}

void ni_boxes_close(struct ni_boxes *x) {
  if (!x)
    return;
  while (x->n)
    drop_box(x, &x->box[x->n - 1]);
  if (x->epoll >= 0)
    close(x->epoll);
  if (x->inotify >= 0)
    close(x->inotify);
  free(x->box);
  free(x->process);
  free(x->open);
  free(x->log_dir);
  free(x);
}

int ni_boxes_fd(const struct ni_boxes *x) { return x->epoll; }
const char *const *ni_boxes_log_dirs(const struct ni_boxes *x) { return x->log_dir; }

bool ni_boxes_log(const struct ni_boxes *x, const char *dir, const char *name) {
  size_t n = ni_log_stem(name, NULL);
  for (size_t i = 0; i < x->n; i++) {
    const struct box *b = &x->box[i];
    const bool is_name = b->stem && strlen(b->stem) == n && memcmp(b->stem, name, n) == 0;
    if (!is_name)
      continue;
    if (!dir || (!b->dead && strcmp(b->dir, dir) == 0))
      return true;
  }
  return false;
}

void ni_boxes_each_log_dir(const struct ni_boxes *x, void (*fn)(void *arg, const char *dir), void *arg) {
  for (size_t i = 0; i < x->n; i++)
    if (x->box[i].dir)
      fn(arg, x->box[i].dir);
}

/* ---- one box ---- */

struct live_taking {
  struct ni_boxes *x;
  const struct ni_box *b;
  uint64_t now; /* CLOCK_MONOTONIC */
  uint64_t limit_ns;
  struct {
    struct ni_box_comm c;
    int64_t row; /* -1: over */
    uint64_t oldest;
  } *comm;
};

static int add_open_op(const struct ni_box_op *op, void *arg) {
  struct live_taking *t = arg;
  int64_t i = ni_box_comm_of(t->b, op);
  if (i < 0 || t->comm[i].row < 0 || !ni_hang_is_box_op(op, t->comm[i].c.kind[op->kind].started))
    return 0;
  struct ni_live_open *o = &t->x->open[t->comm[i].row];
  uint64_t open, since = ni_box_monotonic_ns(t->b, op->ticks_start);
  struct ni_box_net net;
  o->in_flight++;
  o->stuck += t->now > since && t->now - since > t->limit_ns;
  if (*o->func && op->ticks_start >= t->comm[i].oldest)
    return 0;
  t->comm[i].oldest = op->ticks_start;
  ni_safe_text(op->func, o->func, sizeof o->func);
  o->kind = (uint8_t)op->kind;
  o->state = (uint8_t)ni_hang_box_state(t->b, (size_t)i, op, &open, &net);
  o->sn = op->sn;
  o->rec_sn = op->rec_sn;
  o->bytes = op->bytes > INT64_MAX ? INT64_MAX : op->bytes;
  o->since_ns = ni_box_unix_ns(t->b, op->ticks_start) & INT64_MAX;
  o->peer = op->root;
  return 0;
}

static int add_comms(struct live_taking *t, const struct ni_live_process *p) {
  struct ni_boxes *x = t->x;
  struct ni_box_comm c;
  size_t n = 0;
  int e = 0;
  while (ni_box_comm_at(t->b, n, &c))
    n++;
  if (!(t->comm = calloc(n + 1, sizeof *t->comm)))
    return -ENOMEM;
  for (size_t i = 0; e == 0 && i < n && ni_box_comm_at(t->b, i, &c); i++) {
    t->comm[i].c = c;
    t->comm[i].row = -1;
    const bool is_possible = c.id.n_ranks > 0 && c.id.rank >= 0 && c.id.rank < c.id.n_ranks;
    if (c.phase == 0 || !is_possible || x->n_open == NI_LIVE_LOOKS_MAX)
      continue;
    if (!ni_array_room(x->open, x->n_open, x->cap_open))
      return -ENOMEM;
    struct ni_live_open *o = &x->open[t->comm[i].row = (int64_t)x->n_open++];
    *o = (struct ni_live_open){.pid = p->pid,
                               .hash = c.id.comm_hash,
                               .comm_rank = c.id.rank,
                               .n_ranks = c.id.n_ranks,
                               .nnodes = c.id.nnodes,
                               .peer = -1};
    memcpy(o->who.job, p->job, sizeof p->job);
    memcpy(o->who.attempt, p->attempt, sizeof p->attempt);
    o->who.rank = p->rank >= 0 ? p->rank : c.id.rank;
    o->who.gpu = c.gpu_index < 0 ? -1 : c.gpu_index;
    ni_safe_text(c.id.comm_name, o->who.comm, sizeof o->who.comm);
    ni_rows_pci(c.gpu_pci, o->who.gpu_pci);
    for (int k = 0; k < NI_KIND_COUNT; k++)
      o->started[k] = c.kind[k].started & INT64_MAX;
    e = ni_rows_comm(x->rows, p->pid, p->start_ns, c.id.comm_hash, c.id.rank, c.gpu_index, c.gpu_pci,
                     &o->who);
  }
  return e < 0 ? e : n ? ni_box_each_in_flight(t->b, add_open_op, t) : 0;
}

/* A log of the process began. */
static int add_session(struct ni_boxes *x, struct box *b, const struct ni_box_log *s) {
  size_t n = strlen(s->line);
  char *text = calloc(1, n + NI_PARSE_PADDING);
  int e = -ENOMEM;
  free(b->dir);
  free(b->stem);
  b->dir = strdup(s->dir);
  b->stem = strndup(ni_path_name(s->file), ni_log_stem(ni_path_name(s->file), NULL));
  ni_safe_text(ni_path_name(s->dir), memset(b->p.job, 0, sizeof b->p.job), sizeof b->p.job);
  strncpy(b->p.attempt, "0", sizeof b->p.attempt); /* to its end */
  const struct ni_line *l = text ? ni_scan_text(x->rows->scan, memcpy(text, s->line, n), n, &e) : NULL;
  if (l && l->kind == NI_LINE_PROCESS)
    ni_rows_job(&l->process, b->p.job, b->p.attempt);
  free(text);
  return b->dir && b->stem ? e : -ENOMEM;
}

static void note_moved(const struct ni_boxes *x, struct box *at, size_t from) {
  uint64_t started = 0;
  for (size_t i = from; i < x->n_open; i++)
    for (int kind = 0; kind < NI_KIND_COUNT; kind++)
      started += x->open[i].started[kind];
  if (started != at->started)
    at->moved_ns = ni_now_ns(CLOCK_REALTIME);
  at->started = started;
}

/* What a killed process was in stays to be shown, behind the rows of those that live. Nothing of it is
 * stuck: nobody waits there. */
static int keep_left(struct ni_boxes *x, struct box *at, size_t from) {
  size_t n = x->n_open - from;
  free(at->left);
  at->n_left = 0;
  if (!(at->left = calloc(n + 1, sizeof *at->left)))
    return -ENOMEM;
  for (; at->n_left < n; at->n_left++) {
    at->left[at->n_left] = x->open[from + at->n_left];
    at->left[at->n_left].stuck = 0;
  }
  x->n_open = from;
  return 0;
}

static int show_left(struct ni_boxes *x) {
  NI_EACH(const struct box, b, x->box, x->n)
  for (size_t i = 0; i < b->n_left && x->n_open < NI_LIVE_LOOKS_MAX; i++) {
    if (!ni_array_room(x->open, x->n_open, x->cap_open))
      return -ENOMEM;
    x->open[x->n_open++] = b->left[i];
  }
  return 0;
}

/* What is usual in a job its processes here say together (limit.h), each of which has met something else. */
static void find_limits(struct ni_boxes *x) {
  NI_EACH(struct box, b, x->box, x->n) {
    uint64_t longest = 0, first = UINT64_MAX, moved = 0;
    for (const struct box *o = x->box; !b->dead && o < x->box + x->n; o++) {
      if (o->job != b->job)
        continue;
      if (o->longest_ns > longest)
        longest = o->longest_ns;
      if (o->p.start_ns && o->p.start_ns < first)
        first = o->p.start_ns;
      if (o->moved_ns > moved)
        moved = o->moved_ns;
    }
    b->limit_ns = ni_hang_limit(x->stuck_ns, longest, moved > first ? moved - first : 0);
  }
}

static int read_box(struct ni_boxes *x, struct box *at) {
  struct live_taking t = {.x = x, .now = ni_now_ns(CLOCK_MONOTONIC)};
  struct ni_box *b;
  struct ni_box_log s;
  struct ni_live_process *p = &at->p;
  char why[256];
  int e = ni_box_open(&b, at->path, NI_BOX_ROOT_BYTES, why, sizeof why);
  at->bad = e < 0;
  if (e < 0)
    return 0;
  const struct ni_box_header *h = ni_box_header(t.b = b);
  if (ni_box_session(b, &s) && s.start_ns && s.start_ns != p->start_ns) {
    p->start_ns = s.start_ns & INT64_MAX;
    e = add_session(x, at, &s);
  }
  p->pid = h->pid < 0 ? 0 : h->pid;
  p->uid = x->uid;
  p->rank = h->rank >= 0 && h->rank < INT32_MAX ? (int32_t)h->rank : -1;
  p->world = h->world_size > 0 && h->world_size < INT32_MAX ? (int32_t)h->world_size : -1;
  p->life = (uint8_t)ni_box_life(b);
  p->sign_ns = ni_box_seen_ns(b) & INT64_MAX;
  ni_safe_text(h->hostname, p->host, sizeof p->host);
  ni_safe_text(h->exe, p->exe, sizeof p->exe);
  at->dead = ni_life_gone(p->life);
  at->job = ni_hash_text(ni_hash_text(0, p->job), p->attempt);
  at->longest_ns = h->longest_operation_ns > h->longest_gap_ns ? h->longest_operation_ns : h->longest_gap_ns;
  t.limit_ns = at->limit_ns ? at->limit_ns : x->stuck_ns;
  if (at->pidfd < 0 && p->life == NI_LIFE_ALIVE && h->pid_namespace == x->pid_namespace) {
    struct epoll_event ev = {.events = EPOLLIN,
                             .data.fd = at->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)h->pid, 0)};
    if (at->pidfd >= 0)
      (void)epoll_ctl(x->epoll, EPOLL_CTL_ADD, at->pidfd, &ev);
  }
  bool shown = p->life != NI_LIFE_ENDED && h->state == NI_BOX_LIVE;
  size_t before = x->n_open;
  if (e == 0 && *p->job && shown)
    e = add_comms(&t, p);
  note_moved(x, at, before);
  if (e == 0 && at->dead)
    e = keep_left(x, at, before);
  free(t.comm);
  ni_box_close(b);
  return e;
}

/* ---- all of them ---- */

static void visit_box(void *arg, const char *dir, const char *name, const struct stat *st) {
  struct ni_boxes *x = arg;
  struct box b = {.ino = st->st_ino, .found_ns = ni_now_ns(CLOCK_MONOTONIC), .pidfd = -1, .seen = true};
  if (st->st_uid != x->uid)
    return;
  for (size_t i = 0; i < x->n; i++)
    if (x->box[i].ino == st->st_ino && strcmp(ni_path_name(x->box[i].path), name) == 0) {
      x->box[i].seen = true;
      return;
    }
  if (x->n < NI_LIVE_LOOKS_MAX && ni_array_room(x->box, x->n, x->cap) &&
      asprintf(&b.path, "%s/%s", dir, name) >= 0)
    x->box[x->n++] = b;
}

bool ni_boxes_stirred(struct ni_boxes *x) {
  struct epoll_event ev[32];
  union {
    struct inotify_event event;
    char bytes[4096];
  } u;
  bool stirred = false;
  int n = epoll_wait(x->epoll, ev, 32, 0);
  /* the folder may be new */
  (void)inotify_add_watch(x->inotify, x->box_dir, IN_CREATE | IN_DELETE | IN_MOVED_TO);
  for (int i = 0; i < n; i++) {
    bool ended = ev[i].data.fd != x->inotify;
    stirred |= ended;
    if (ended)
      (void)epoll_ctl(x->epoll, EPOLL_CTL_DEL, ev[i].data.fd, NULL); /* it would say so for ever */
    for (ssize_t got; !ended && (got = read(x->inotify, &u, sizeof u)) > 0;)
      for (const char *p = u.bytes; p < u.bytes + got;
           p += sizeof u.event + ((const struct inotify_event *)(const void *)p)->len)
        /* /dev/shm is busy with other files */
        stirred |= ni_find_box(NULL, p + offsetof(struct inotify_event, name));
  }
  return stirred;
}

void ni_boxes_wait(struct ni_boxes *x, uint64_t began_ns, bool soon) {
  struct pollfd p = {.fd = x->epoll, .events = POLLIN};
  int left;
  do {
    (void)poll(NULL, 0, SOONEST_MS);
    left = soon || x->young ? 0 : TURN_MS - (int)((ni_now_ns(CLOCK_MONOTONIC) - began_ns) / MS);
  } while (left > 0 && poll(&p, 1, left) > 0 && !ni_boxes_stirred(x));
}

int ni_boxes_look(struct ni_boxes *x, struct ni_live_batch *b, struct ni_rows *rows) {
  int e = 0;
  x->rows = rows;
  x->n_processes = x->n_open = 0;
  x->young = false;
  (void)ni_boxes_stirred(x);
  for (size_t i = 0; i < x->n; i++)
    x->box[i].seen = false;
  (void)ni_find(x->box_dir, 0, ni_find_box, visit_box, x);
  uint64_t now = ni_now_ns(CLOCK_MONOTONIC);
  for (size_t i = x->n; i-- > 0;)
    if (!x->box[i].seen)
      drop_box(x, &x->box[i]);
  for (size_t i = 0; e == 0 && i < x->n; i++) {
    struct box *at = &x->box[i];
    if (!at->dead && (e = read_box(x, at)) < 0)
      break;
    b->unread += at->bad;
    x->young |= !*at->p.job && !at->dead && now - at->found_ns < YOUNG_MS * MS;
    if (!*at->p.job)
      continue; /* no log of it has begun */
    if (!ni_array_room(x->process, x->n_processes, x->cap_processes) ||
        !ni_array_room(x->log_dir, x->n_processes, x->cap_log_dirs))
      return -ENOMEM;
    x->log_dir[x->n_processes] = at->dir ? at->dir : "";
    x->process[x->n_processes++] = at->p;
  }
  if (e == 0)
    e = show_left(x);
  find_limits(x);
  b->boxes = b->n_processes = (uint32_t)x->n_processes;
  b->processes = x->process;
  b->n_open = (uint32_t)x->n_open;
  b->open = x->open;
  return e;
}
