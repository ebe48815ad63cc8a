#include "writer.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/now.h"
#include "exporter/base/out_file.h"
#include "folder.h"

struct item {
  struct item *next;
  int64_t tick;
  uint64_t since_ns;
  bool late;
  struct ni_buffer text;
  size_t n, left; /* left: of how many it is not on the disk, or let go */
  struct {
    struct ni_written *to;
    uint64_t id;
    bool done;
  } of[];
};

struct ni_writer {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t moved; /* the queue, or what became of it */
  /* below the lock, as all of these; last: of the queue, NULL: it is empty */
  struct item *first, **end, *last;
  size_t held;
  int64_t safe;
  int event;
  bool quit;
  char degraded[256];
  struct ni_buffer file; /* to be made anew: with this text, */
  const char *name;      /* as this one of this folder */
  int dir;
  struct item *batch; /* the thread's: what is being written, or waits for another try */
};

static int open_late(struct ni_written *to) {
  char last = '\n';
  int fd = ni_session_file(to->store, to->id, "late.jsonl", O_RDWR | O_CREAT);
  off_t end = fd < 0 ? fd : lseek(fd, 0, SEEK_END);
  if (fd < 0)
    return fd;
  if (end < 0 || (end && pread(fd, &last, 1, end - 1) != 1)) {
    int e = errno ? -errno : -EIO;
    close(fd);
    return e;
  }
  to->fd[NI_LATE] = fd;
  /* a failed batch is written over, and the file stays open */
  to->at[NI_LATE] = to->now[NI_LATE] = end;
  /* behind a torn line, which readers pass over */
  return last == '\n' ? 0 : ni_write_all(fd, "\n", 1, to->now[NI_LATE]++);
}

static int append(struct ni_written *to, enum ni_file file, const char *before, const struct ni_buffer *text,
                  const char *after) {
  const char *part[] = {before, text->text, after};
  int e = 0;
  to->dirty[file] = true;
  for (int i = 0; i < 3 && e == 0; i++) {
    size_t n = i == 1 ? text->n : strlen(part[i]);
    e = ni_write_all(to->fd[file], part[i], n, to->now[file]);
    to->now[file] += (off_t)n;
  }
  return e;
}

static int write_one(const struct item *it, size_t i) {
  char before[320];
  struct ni_written *to = it->of[i].to;
  int e = 0;
  if (it->late) {
    snprintf(before, sizeof before, "{\"tick_ns\":%" PRId64 ",", it->tick);
    if (to->fd[NI_LATE] < 0)
      e = open_late(to);
    if (e == -ENOENT)
      return 0; /* somebody removed the session's folder: nobody wants it */
    return e ? e : append(to, NI_LATE, before, &it->text, "\n");
  }
  snprintf(before, sizeof before,
           "{\"session_id\":\"%s\",\"session_name\":\"%s\",\"tick_ns\":%" PRId64 ",\"frame_id\":%" PRIu64 ",",
           to->id, to->name, it->tick, it->of[i].id);
  e = append(to, NI_FRAMES, before, &it->text, "\n");
  snprintf(before, sizeof before, "%s{\"frame_id\":%" PRIu64 ",", to->now[NI_PART] > to->head ? ",\n" : "",
           it->of[i].id);
  return e || to->fd[NI_PART] < 0 ? e : append(to, NI_PART, before, &it->text, "");
}

int ni_written_join(struct ni_written *to) {
  int64_t from = atomic_load(&to->joins); /* pairs with build() of entry.c */
  if (to->fd[NI_PART] >= 0 || !from)
    return 0;
  off_t at = to->part_at;
  int e = ni_past_copy(to->store, to->id, from, to->at[NI_FRAMES], to->part, &at);
  if (e == 0) {
    to->fd[NI_PART] = to->part;
    to->at[NI_PART] = to->now[NI_PART] = at;
  }
  return e;
}

/* Each target of each item that is not done yet. */
#define EACH(it, first, i) \
  for (struct item *it = (first); it; it = it->next) \
    for (size_t i = 0; i < it->n; i++) \
      if (!it->of[i].done)

static void sync_one(struct ni_written *to, enum ni_file f) {
  int *e = &to->error[f == NI_LATE];
  if (!to->dirty[f])
    return;
  to->dirty[f] = false;
  /* made anew after a kill: it only begins its way */
  if (f == NI_PART)
    (void)sync_file_range(to->fd[f], to->at[f], 0, SYNC_FILE_RANGE_WRITE);
  else if (fdatasync(to->fd[f]) < 0 && !*e)
    *e = -errno;
}

/*
 * Each file is synced once. What is on the disk then is done. The last error, and whose, NULL: of several;
 * *done: how much.
 */
static int write_batch(struct item *first, uint64_t now, const struct ni_written **whose, size_t *done) {
  int e = 0;
  *done = 0;
  EACH(it, first, i) {
    struct ni_written *to = it->of[i].to;
    memcpy(to->now, to->at, sizeof to->at);
    if (now >= to->again_ns)
      to->error[0] = to->error[1] = 0;
  }
  EACH(it, first, i) {
    int *bad = &it->of[i].to->error[it->late];
    if (!*bad && !it->late)
      *bad = ni_written_join(it->of[i].to);
    if (!*bad)
      *bad = write_one(it, i);
  }
  EACH(it, first, i) for (enum ni_file f = 0; f < NI_FILES; f++) sync_one(it->of[i].to, f);
  EACH(it, first, i) {
    struct ni_written *to = it->of[i].to;
    int bad = to->error[it->late];
    if (bad && now >= to->again_ns)
      to->again_ns = now + UINT64_C(1000000000);
    if (bad) {
      *whose = e && *whose != to ? NULL : to;
      e = bad;
    }
    atomic_store(&to->refused, to->error[0] ? to->error[0] : to->error[1]);
    if (bad)
      continue;
    for (enum ni_file f = it->late ? NI_LATE : NI_FRAMES; f <= (it->late ? NI_LATE : NI_PART); f++)
      to->at[f] = to->now[f];
    atomic_store(&to->whole, to->at[NI_FRAMES]);
    if (it->late && to->fd[NI_LATE] >= 0) {
      close(to->fd[NI_LATE]);
      to->fd[NI_LATE] = -1;
    }
    it->of[i].done = true;
    to->lets_go[it->late] = false;
    ++*done;
  }
  return e;
}

/* What waits too long, where others were written. */
static void let_go(struct item *first, uint64_t now, bool full) {
  EACH(it, first, i) {
    struct ni_written *to = it->of[i].to;
    if (!to->error[it->late])
      continue;
    if ((full || now - it->since_ns > NI_WRITER_WAITS_S * UINT64_C(1000000000)))
      to->lets_go[it->late] = true;
    if (!to->lets_go[it->late])
      continue;
    it->of[i].done = true;
    atomic_fetch_add(&to->gone, 1);
  }
}

/* What is done leaves the batch; locked. */
static void settle(struct ni_writer *w) {
  bool all = true;
  for (struct item **at = &w->batch, *it; (it = *at);) {
    size_t left = 0;
    for (size_t i = 0; i < it->n; i++)
      left += !it->of[i].done;
    for (size_t i = 0; left < it->left && i < it->n; i++)
      if (it->of[i].done && it->of[i].to) {
        it->of[i].to->waits--;
        it->left--;
        it->of[i].to = NULL;
      }
    all = all && !left;
    if (all && !it->late)
      w->safe = it->tick;
    if (left) {
      at = &it->next;
      continue;
    }
    w->held -= it->text.cap;
    *at = it->next;
    free(it->text.text);
    free(it);
  }
}

static void wait_moved(struct ni_writer *w, unsigned ms) {
  uint64_t until = ni_now_ns(CLOCK_REALTIME) + ms * UINT64_C(1000000);
  struct timespec t = {(time_t)(until / 1000000000), (long)(until % 1000000000)};
  pthread_cond_timedwait(&w->moved, &w->lock, &t);
}

static void free_items(struct item *it) {
  for (struct item *next; it; it = next) {
    next = it->next;
    free(it->text.text);
    free(it);
  }
}

static void make_file(struct ni_writer *w) {
  struct ni_buffer text = w->file;
  struct ni_out_file o;
  w->file = (struct ni_buffer){0};
  pthread_mutex_unlock(&w->lock);
  if (ni_out_begin(&o, w->dir, 0600) == 0) { /* who knows a client's uuid could speak for it */
    if (ni_write_all(o.fd, text.text, text.n, 0) == 0)
      (void)ni_out_commit(&o, w->name, true);
    else
      ni_out_drop(&o);
  }
  free(text.text);
  pthread_mutex_lock(&w->lock);
}

static void *run(void *arg) {
  struct ni_writer *w = arg;
  pthread_mutex_lock(&w->lock);
  for (;;) {
    if (w->file.text)
      make_file(w);
    struct item **end = &w->batch;
    while (*end)
      end = &(*end)->next;
    *end = w->first; /* what comes meanwhile is of the next one */
    w->first = w->last = NULL;
    w->end = &w->first;
    if (!w->batch && w->quit)
      break;
    if (!w->batch) {
      pthread_cond_wait(&w->moved, &w->lock);
      continue;
    }
    bool full = w->held > NI_STORE_HELD_MAX / 2;
    pthread_mutex_unlock(&w->lock);
    const struct ni_written *whose = NULL;
    uint64_t now = ni_now_ns(CLOCK_MONOTONIC);
    size_t done;
    int e = write_batch(w->batch, now, &whose, &done);
    if (e && done)
      let_go(w->batch, now, full);
    pthread_mutex_lock(&w->lock);
    *w->degraded = 0;
    if (e && whose)
      snprintf(w->degraded, sizeof w->degraded, "session %s is not written: %s", whose->name, strerror(-e));
    else if (e)
      snprintf(w->degraded, sizeof w->degraded, "sessions are not written: %s", strerror(-e));
    settle(w);
    (void)!write(w->event, &(uint64_t){1}, 8);
    pthread_cond_broadcast(&w->moved);
    if (e && w->quit)
      break;
    if (w->batch && !w->first)
      wait_moved(w, 1000);
  }
  pthread_mutex_unlock(&w->lock);
  return NULL;
}

int ni_writer_new(struct ni_writer **out) {
  struct ni_writer *w = *out = calloc(1, sizeof *w);
  if (!w)
    return -ENOMEM;
  w->end = &w->first;
  pthread_mutex_init(&w->lock, NULL);
  pthread_cond_init(&w->moved, NULL);
  w->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  int e = w->event < 0 ? errno : pthread_create(&w->thread, NULL, run, w);
  if (e == 0)
    return 0;
  if (w->event >= 0)
    close(w->event);
  free(w);
  *out = NULL;
  return -e;
}

void ni_writer_free(struct ni_writer *w) {
  if (!w)
    return;
  pthread_mutex_lock(&w->lock);
  w->quit = true;
  pthread_cond_broadcast(&w->moved);
  pthread_mutex_unlock(&w->lock);
  pthread_join(w->thread, NULL);
  free_items(w->batch);
  free_items(w->first);
  free(w->file.text);
  close(w->event);
  free(w);
}

int ni_writer_put(struct ni_writer *w, struct ni_written *const *to, const uint64_t *id, size_t n,
                  int64_t tick_ns, bool late, struct ni_buffer *text) {
  struct item *it = text->failed ? NULL : calloc(1, sizeof *it + n * sizeof *it->of);
  if (it && text->cap > text->n)
    ni_array_fit(text->text, text->n, text->cap); /* it may wait */
  pthread_mutex_lock(&w->lock);
  int e = !it ? -ENOMEM : n && w->held + text->cap > NI_STORE_HELD_MAX ? -ENOBUFS : 0;
  /* nobody wants the tick: one says it for those before */
  bool more = e == 0 && !n && w->last && !w->last->n;
  if (more) {
    w->last->tick = tick_ns;
  } else if (e == 0) {
    *it = (struct item){.tick = tick_ns,
                        .since_ns = ni_now_ns(CLOCK_MONOTONIC),
                        .late = late,
                        .text = *text,
                        .n = n,
                        .left = n};
    for (size_t i = 0; i < n; i++) {
      it->of[i].to = to[i];
      it->of[i].id = id ? id[i] : 0;
      to[i]->waits++;
    }
    w->held += text->cap;
    *w->end = w->last = it;
    w->end = &it->next;
    pthread_cond_broadcast(&w->moved);
  }
  pthread_mutex_unlock(&w->lock);
  if (e || more) {
    free(text->text);
    free(it);
  }
  *text = (struct ni_buffer){0};
  return e;
}

void ni_writer_file(struct ni_writer *w, int dir, const char *name, struct ni_buffer *text) {
  if (text->failed)
    return free(text->text);
  pthread_mutex_lock(&w->lock);
  free(w->file.text);
  w->file = *text;
  w->dir = dir;
  w->name = name;
  pthread_cond_broadcast(&w->moved);
  pthread_mutex_unlock(&w->lock);
}

int ni_writer_flushed(struct ni_writer *w, const struct ni_written *to) {
  pthread_mutex_lock(&w->lock);
  int e = !to->waits ? 0 : atomic_load(&to->refused) ? atomic_load(&to->refused) : -EAGAIN;
  pthread_mutex_unlock(&w->lock);
  return e;
}

int64_t ni_writer_safe(struct ni_writer *w, char degraded[256]) {
  uint64_t moved;
  (void)!read(w->event, &moved, sizeof moved);
  pthread_mutex_lock(&w->lock);
  int64_t safe = w->safe;
  memcpy(degraded, w->degraded, sizeof w->degraded);
  pthread_mutex_unlock(&w->lock);
  return safe;
}

int ni_writer_fd(const struct ni_writer *w) { return w->event; }

size_t ni_writer_held(struct ni_writer *w) {
  pthread_mutex_lock(&w->lock);
  size_t held = w->held;
  pthread_mutex_unlock(&w->lock);
  return held;
}
