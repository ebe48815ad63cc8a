#include "sampler.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/now.h"
#include "exporter/cmds/counters/recorder.h"

struct ni_sampler {
  struct ni_record_options o;
  struct ni_ring *ring;
  struct ni_sampling now;
  pthread_t thread;
  int wake, ready; /* eventfd */
  _Atomic bool ended;
  pthread_mutex_t lock; /* of what follows: the thread changes it, ni_sampler_copy() reads it */
  struct ni_running running;
  struct ni_sampler_totals totals;
  /* Below no lock: a thread that has no processor would hold it against whoever tells them. One that is older
   * than the other is put right by `wake`, which is written behind both. */
  _Atomic int64_t tick_ns;
  _Atomic uint64_t period_ns; /* 0: as the options say */
  _Atomic bool bandwidth;     /* read before each sample */
};

static void take_sample(struct ni_sampler *s, uint64_t missed) {
  const struct ni_set *set = s->now.c ? ni_collector_set(s->now.c) : NULL;
  bool any = set && set->n_counters;
  int64_t began = (int64_t)ni_now_ns(CLOCK_MONOTONIC);
  if (any) {
    ni_sampling_read(&s->now, 1);
    s->now.when.missed = missed;
    ni_ring_put(s->ring, set, s->now.at, &s->now.when);
  }
  ni_ring_turn(s->ring, ni_now_ns(CLOCK_MONOTONIC));
  pthread_mutex_lock(&s->lock);
  /* -ENOMEM: the next sample tells it */
  if (set)
    (void)ni_running_add(&s->running, set, s->now.at, s->now.when.real_ns);
  s->totals.samples += any;
  s->totals.at_mono_ns = began;
  s->totals.missed += missed;
  s->totals.ring = *ni_ring_totals(s->ring);
  pthread_mutex_unlock(&s->lock);
  (void)!write(s->ready, &(uint64_t){1}, 8);
}

/*
 * Waits until the sample after that of *at is due, and sets *at to it. If new times are set meanwhile, they
 * count at once. false: it ended.
 */
static bool wait_for_next(struct ni_sampler *s, uint64_t *at, uint64_t *missed) {
  int64_t next = 0;
  for (bool news = true; news;) {
    uint64_t told_ns = s->period_ns;
    int64_t period = (int64_t)(told_ns ? told_ns : s->o.every_ns), tick = told_ns ? s->tick_ns : (int64_t)*at;
    if (s->ended)
      return false;
    uint64_t due = *at;
    *missed = ni_sampling_due(&due, (uint64_t)period);
    int64_t off = (tick - (int64_t)due) % period; /* to the tick that is nearest */
    next = (int64_t)due + off - (off > period / 2 ? period : off < -period / 2 ? -period : 0);
    news = ni_wait_until(&(struct pollfd){.fd = s->wake, .events = POLLIN}, 1, (uint64_t)next);
    if (news)
      (void)!read(s->wake, &(uint64_t){0}, 8);
  }
  *at = (uint64_t)next;
  return true;
}

static void *sample_in_thread(void *arg) {
  struct ni_sampler *s = arg;
  uint64_t missed = 0, at;
  ni_sampling_idle(&s->o.cpus, true);
  if (s->ended)
    ni_sampling_idle(&s->o.cpus, false); /* so soon that it was hurried before */
  /* here: it takes seconds where the driver of GPUs has to wake up */
  (void)ni_sampling_open(&s->now, &s->o);
  at = ni_now_ns(CLOCK_MONOTONIC);
  unsigned n = 1;
  do {
    if (s->bandwidth != s->o.pcie) {
      s->o.pcie = !s->o.pcie;
      (void)ni_sampling_open(&s->now, &s->o);
    }
    take_sample(s, missed);
    ni_sampling_look(&s->now, &s->o, n++);
  } while (wait_for_next(s, &at, &missed));
  ni_sampling_idle(&s->o.cpus, false); /* the end is waited for */
  ni_ring_close(s->ring);
  s->ring = NULL;
  ni_sampling_close(&s->now);
  return NULL;
}

static void free_sampler(struct ni_sampler *s) {
  ni_ring_close(s->ring);
  ni_running_free(&s->running);
  if (s->wake >= 0)
    close(s->wake);
  if (s->ready >= 0)
    close(s->ready);
  free(s);
}

int ni_sampler_start(struct ni_sampler **out, uint64_t every_ns, const char *ring, uint64_t ring_bytes) {
  struct ni_sampler *s = *out = calloc(1, sizeof *s);
  if (!s)
    return -ENOMEM;
  *s = (struct ni_sampler){
      .o.every_ns = every_ns, .lock = PTHREAD_MUTEX_INITIALIZER, .wake = eventfd(0, EFD_CLOEXEC)};
  s->ready = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  int e = s->wake < 0 || s->ready < 0 ? -errno : 0;
  ni_collector_raise_limit();
  if (e == 0)
    e = ni_ring_open(&s->ring, ring, ring_bytes, every_ns, ni_now_ns(CLOCK_MONOTONIC));
  if (e == 0)
    s->totals.ring = *ni_ring_totals(s->ring);
  if (e == 0)
    e = -pthread_create(&s->thread, NULL, sample_in_thread, s);
  if (e < 0) {
    free_sampler(s);
    *out = NULL;
  }
  return e;
}

void ni_sampler_follow(struct ni_sampler *s, int64_t tick_mono_ns, uint64_t period_ns, bool bandwidth) {
  s->bandwidth = bandwidth;
  s->tick_ns = tick_mono_ns;
  bool other = atomic_exchange(&s->period_ns, period_ns) != period_ns;
  if (other)
    (void)!write(s->wake, &(uint64_t){1}, 8);
}

int ni_sampler_fd(const struct ni_sampler *s) { return s->ready; }

int ni_sampler_copy(struct ni_sampler *s, struct ni_running *r, struct ni_sampler_totals *t) {
  (void)!read(s->ready, &(uint64_t){0}, 8);
  if (pthread_mutex_trylock(&s->lock) != 0)
    return 0; /* it writes to `ready` when it is done */
  const struct ni_running *from = &s->running;
  bool room = from->n <= r->cap || ni_array_more(&r->value, &r->cap, from->n, sizeof *r->value);
  if (room && from->n)
    memcpy(r->value, from->value, from->n * sizeof *r->value);
  if (room) {
    r->n = from->n;
    r->at_ns = from->at_ns;
  }
  *t = s->totals;
  pthread_mutex_unlock(&s->lock);
  return room ? 0 : -ENOMEM;
}

void ni_sampler_stop(struct ni_sampler *s) {
  if (!s)
    return;
  struct timespec until;
  s->ended = true;
  (void)!write(s->wake, &(uint64_t){1}, 8);
  ni_sampling_hurry(s->thread);
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += 5;
  if (pthread_timedjoin_np(s->thread, NULL, &until) == 0)
    free_sampler(s);
  else
    pthread_detach(s->thread); /* in a driver that does not come back: it keeps what it uses */
}
