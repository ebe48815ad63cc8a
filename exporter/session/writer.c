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
#include "store.h"

struct item {
  struct item *next;
  int64_t tick;
  bool late;
  struct ni_buffer text;
  size_t n;
  struct { struct ni_written *to; uint64_t id; } of[];
};

struct ni_writer {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t moved;             /* the queue, or what became of it */
  struct item *first, **end;        /* below the lock, as all of these */
  struct item *batch;               /* what is being written: the thread's, but for being looked whether there is one */
  size_t held;
  int64_t safe;
  int error, event;
  bool quit;
  char degraded[256];
};

static int open_late(struct ni_written *to) {
  char path[64], last = '\n';
  snprintf(path, sizeof path, "%s/late.jsonl", to->id);
  int fd = to->fd[NI_LATE] = openat(to->store, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  off_t end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
  if (end < 0 || (end && pread(fd, &last, 1, end - 1) != 1)) {
    int e = errno ? -errno : -EIO;
    if (fd >= 0) close(fd), to->fd[NI_LATE] = -1;
    return e;
  }
  to->at[NI_LATE] = to->now[NI_LATE] = end; /* a failed batch is written over, and the file stays open */
  return last == '\n' ? 0 : ni_write_all(fd, "\n", 1, to->now[NI_LATE]++); /* behind a torn line, which readers pass over */
}

static int append(struct ni_written *to, enum ni_file file, const char *before, const struct ni_buffer *text, const char *after) {
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

static int write_item(const struct item *it) {
  char before[320];
  int e = 0;
  for (size_t i = 0; i < it->n && e == 0; i++) {
    struct ni_written *to = it->of[i].to;
    if (it->late) {
      snprintf(before, sizeof before, "{\"tick_ns\":%" PRId64 ",", it->tick);
      if (to->fd[NI_LATE] < 0) e = open_late(to);
      if (e == -ENOENT && (e = 0, true)) continue; /* somebody removed the session's folder: nobody wants it */
      if (e == 0) e = append(to, NI_LATE, before, &it->text, "\n");
      continue;
    }
    snprintf(before, sizeof before, "{\"session_id\":\"%s\",\"session_name\":\"%s\",\"tick_ns\":%" PRId64 ",\"frame_id\":%" PRIu64 ",",
             to->id, to->name, it->tick, it->of[i].id);
    e = append(to, NI_FRAMES, before, &it->text, "\n");
    snprintf(before, sizeof before, "%s{\"frame_id\":%" PRIu64 ",", to->now[NI_PART] > to->head ? ",\n" : "", it->of[i].id);
    if (e == 0) e = append(to, NI_PART, before, &it->text, "");
  }
  return e;
}

/* Each file is synced once, and counts as written when all are. The part, which is made anew after a kill, only begins its way. */
static int write_batch(struct item *first) {
  int e = 0;
  for (struct item *it = first; it; it = it->next)
    for (size_t i = 0; i < it->n; i++) memcpy(it->of[i].to->now, it->of[i].to->at, sizeof it->of[i].to->at);
  for (struct item *it = first; it && e == 0; it = it->next) e = write_item(it);
  for (struct item *it = first; it && e == 0; it = it->next)
    for (size_t k = 0; k < it->n * NI_FILES && e == 0; k++) {
      struct ni_written *to = it->of[k / NI_FILES].to;
      enum ni_file f = k % NI_FILES;
      if (!to->dirty[f]) continue;
      if (f != NI_PART) e = fdatasync(to->fd[f]) < 0 ? -errno : 0;
      else (void)sync_file_range(to->fd[f], to->at[f], 0, SYNC_FILE_RANGE_WRITE);
      to->dirty[f] = false;
    }
  for (struct item *it = first; it && e == 0; it = it->next)
    for (size_t i = 0; i < it->n; i++) {
      struct ni_written *to = it->of[i].to;
      memcpy(to->at, to->now, sizeof to->at);
      if (to->fd[NI_LATE] >= 0) close(to->fd[NI_LATE]), to->fd[NI_LATE] = -1;
    }
  return e;
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

static void *run(void *arg) {
  struct ni_writer *w = arg;
  pthread_mutex_lock(&w->lock);
  for (;;) {
    if (!w->batch) {
      w->batch = w->first; /* what comes meanwhile is of the next one */
      w->first = NULL, w->end = &w->first;
    }
    if (!w->batch && w->quit) break;
    if (!w->batch) {
      pthread_cond_wait(&w->moved, &w->lock);
      continue;
    }
    pthread_mutex_unlock(&w->lock);
    int e = write_batch(w->batch);
    pthread_mutex_lock(&w->lock);
    w->error = e;
    snprintf(w->degraded, sizeof w->degraded, "%s%s", e ? "sessions are not written: " : "", e ? strerror(-e) : "");
    for (struct item *it = e ? NULL : w->batch; it; it = it->next) {
      if (!it->late) w->safe = it->tick;
      w->held -= it->text.cap;
    }
    if (e == 0) free_items(w->batch), w->batch = NULL;
    (void)!write(w->event, &(uint64_t){1}, 8);
    pthread_cond_broadcast(&w->moved);
    if (e && w->quit) break;
    if (e) wait_moved(w, 1000);
  }
  pthread_mutex_unlock(&w->lock);
  return NULL;
}

int ni_writer_new(struct ni_writer **out) {
  struct ni_writer *w = *out = calloc(1, sizeof *w);
  if (!w) return -ENOMEM;
  w->end = &w->first;
  pthread_mutex_init(&w->lock, NULL);
  pthread_cond_init(&w->moved, NULL);
  w->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  int e = w->event < 0 ? errno : pthread_create(&w->thread, NULL, run, w);
  if (e == 0) return 0;
  if (w->event >= 0) close(w->event);
  free(w);
  *out = NULL;
  return -e;
}

void ni_writer_free(struct ni_writer *w) {
  if (!w) return;
  pthread_mutex_lock(&w->lock);
  w->quit = true;
  pthread_cond_broadcast(&w->moved);
  pthread_mutex_unlock(&w->lock);
  pthread_join(w->thread, NULL);
  free_items(w->batch);
  free_items(w->first);
  close(w->event);
  free(w);
}

int ni_writer_put(struct ni_writer *w, struct ni_written *const *to, const uint64_t *id, size_t n, int64_t tick_ns, bool late,
                  struct ni_buffer *text) {
  struct item *it = text->failed ? NULL : calloc(1, sizeof *it + n * sizeof *it->of);
  if (it && text->cap > text->n) ni_array_fit(text->text, text->n, text->cap); /* it may wait */
  pthread_mutex_lock(&w->lock);
  int e = !it ? -ENOMEM : n && w->held + text->cap > NI_STORE_HELD_MAX ? -ENOBUFS : 0;
  if (e == 0) {
    *it = (struct item){.tick = tick_ns, .late = late, .text = *text, .n = n};
    for (size_t i = 0; i < n; i++) it->of[i].to = to[i], it->of[i].id = id ? id[i] : 0;
    w->held += text->cap;
    *w->end = it;
    w->end = &it->next;
    pthread_cond_broadcast(&w->moved);
  }
  pthread_mutex_unlock(&w->lock);
  if (e) free(text->text), free(it);
  *text = (struct ni_buffer){0};
  return e;
}

int ni_writer_drain(struct ni_writer *w) {
  uint64_t until = ni_now_ns(CLOCK_MONOTONIC) + UINT64_C(2000000000);
  pthread_mutex_lock(&w->lock);
  while ((w->first || w->batch) && ni_now_ns(CLOCK_MONOTONIC) < until) wait_moved(w, 100);
  int e = w->first || w->batch ? w->error ? w->error : -EBUSY : 0;
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
