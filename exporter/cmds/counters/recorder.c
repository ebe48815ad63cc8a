#include "recorder.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/now.h"
#include "exporter/base/text/amount_text.h"
#include "exporter/base/text/plural.h"

enum { LOOK_EVERY = 60 }; /* samples */

int ni_take_time(const struct ni_opt *o, void *into, const char *arg) {
  static const struct {
    const char *unit;
    uint64_t ns;
  } units[] = {{"ms", 1000000}, {"s", 1000000000}, {"m", 60000000000}, {"min", 60000000000}, {"h", 3600000000000}};
  char *end;
  double v = strtod(arg, &end);
  if (end == arg || !(v > 0 && v < 1e6)) return -EINVAL;
  for (size_t i = 0; i < sizeof units / sizeof *units; i++)
    if (strcmp(end, units[i].unit) == 0) {
      uint64_t ns = (uint64_t)(v * (double)units[i].ns + 0.5);
      if (ns < 10000000 || (o->def && ns > units[4].ns)) return -EINVAL;
      memcpy((char *)into + o->at, &ns, sizeof ns);
      return 0;
    }
  return -EINVAL;
}

const char **ni_record_patterns(const struct ni_words *w) {
  const char **list = w->n ? calloc(w->n + 1, sizeof *list) : NULL;
  for (size_t i = 0; list && i < w->n; i++) list[i] = w->word[i].text;
  return list;
}

/* ---- sweeps ---- */

static void read_all(struct ni_collector *c, struct ni_reading *out, unsigned threads, struct ni_series_sweep *when) {
  when->real_ns = (int64_t)ni_now_ns(CLOCK_REALTIME);
  when->mono_ns = (int64_t)ni_now_ns(CLOCK_MONOTONIC);
  (void)ni_collector_read(c, out, threads);
  when->ns = ni_now_ns(CLOCK_MONOTONIC) - (uint64_t)when->mono_ns;
}

bool ni_sweep_all(struct ni_collector **c, struct ni_reading **out, unsigned threads, struct ni_series_sweep *when) {
  *out = NULL;
  *when = (struct ni_series_sweep){0};
  if (ni_collector_open(c, &(struct ni_wanted){.all = true}) < 0) return false;
  if (!(*out = calloc(ni_collector_set(*c)->n_counters + 1, sizeof **out))) return false;
  read_all(*c, *out, threads, when);
  return true;
}

/* What the disk does not take is said once; a file without a name ends it. */
static void flush(struct ni_recorder *r) {
  int e = ni_series_flush(r->writer);
  if (e < 0 && !r->said)
    ni_say(stderr, "%s: %s: %s\n", r->who, ni_series_path(r->writer),
           e == -ESTALE ? "the file is gone, or its folder: recording ends here" : strerror(-e));
  r->said = e < 0;
  if (e == -ESTALE) r->error = e;
}

static void put(struct ni_recorder *r, struct ni_series_set *of, const struct ni_set *set, const struct ni_reading *at,
                const struct ni_series_sweep *when) {
  int e = ni_series_put(r->writer, of, set, at, when);
  if (e < 0) r->error = e;
}

static void sweep(struct ni_recorder *r) {
  struct ni_collector *c = NULL;
  struct ni_reading *at = NULL;
  struct ni_series_sweep when;
  if (!r->o->all && ni_sweep_all(&c, &at, 1, &when) && ni_collector_set(c)->n_counters) put(r, &r->full, ni_collector_set(c), at, &when);
  free(at);
  ni_collector_close(c);
}

/* Finds what there is; the old descriptors go when the new ones are there. */
static int look(struct ni_recorder *r) {
  struct ni_collector *c;
  const struct ni_wanted wanted = {.all = r->o->all, .counters = r->patterns};
  int e = ni_collector_open(&c, &wanted);
  if (e < 0) return e;
  size_t n = ni_collector_set(c)->n_counters;
  if (r->cap_readings <= n && !ni_array_more(&r->reading, &r->cap_readings, n + 1, sizeof *r->reading)) {
    ni_collector_close(c);
    return -ENOMEM;
  }
  ni_collector_close(r->collector);
  r->collector = c;
  r->n_counters = n;
  r->n_entities = ni_collector_set(c)->n_entities;
  return 0;
}

static void sample(struct ni_recorder *r, uint64_t missed) {
  struct ni_series_sweep when = {0};
  read_all(r->collector, r->reading, 1, &when);
  when.missed = missed;
  put(r, &r->sampled, ni_collector_set(r->collector), r->reading, &when);
  r->samples++;
  r->missed += missed;
}

/* ---- the thread ---- */

static void be_idle(const struct ni_ranks *cpus, bool idle) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (size_t i = 0; i < cpus->n; i++)
    for (int64_t k = cpus->span[i].from; k <= cpus->span[i].to && k < CPU_SETSIZE; k++) CPU_SET((size_t)k, &set);
  if (cpus->n) (void)sched_setaffinity(0, sizeof set, &set);
  (void)sched_setscheduler(0, idle ? SCHED_IDLE : SCHED_OTHER, &(struct sched_param){0});
}

/* Until then, or until it is told to stop: true. */
static bool wait_until(const struct ni_recorder *r, uint64_t at) {
  struct pollfd p = {.fd = r->stop, .events = POLLIN};
  for (uint64_t now; (now = ni_now_ns(CLOCK_MONOTONIC)) < at;) {
    struct timespec left = {.tv_sec = (time_t)((at - now) / 1000000000), .tv_nsec = (long)((at - now) % 1000000000)};
    if (ppoll(&p, 1, &left, NULL) > 0) return true;
  }
  return poll(&p, 1, 0) > 0;
}

static void *work(void *arg) {
  struct ni_recorder *r = arg;
  uint64_t every = r->o->every_ns, missed = 0, next;
  be_idle(&r->o->cpus, true);
  sweep(r);
  next = ni_now_ns(CLOCK_MONOTONIC);
  for (unsigned n = 1; !r->error; n++) {
    sample(r, missed);
    if (ni_series_due(r->writer)) flush(r);
    if (n % LOOK_EVERY == 0 || ni_collector_changed(r->collector)) (void)look(r);
    uint64_t now = ni_now_ns(CLOCK_MONOTONIC);
    next += every;
    missed = now > next ? (now - next) / every : 0;
    next += missed * every;
    if (r->error || wait_until(r, next)) break;
  }
  be_idle(&r->o->cpus, false); /* the end is waited for */
  if (r->error != -ESTALE) {
    sample(r, missed);
    sweep(r);
    flush(r);
  }
  (void)!write(r->done, &(uint64_t){1}, 8);
  return NULL;
}

static void free_recorder(struct ni_recorder *r) {
  ni_series_set_free(&r->full);
  ni_series_set_free(&r->sampled);
  ni_collector_close(r->collector);
  (void)ni_series_close(r->writer);
  free(r->reading);
  free(r->patterns);
  if (r->stop > 0) close(r->stop);
  if (r->done > 0) close(r->done);
  *r = (struct ni_recorder){0};
}

/* Nothing to sample: why. */
static void say_nothing(const struct ni_recorder *r) {
  const struct ni_set *s = ni_collector_set(r->collector);
  ni_say(stderr, "%s: nothing to record: no counter of a NIC, a GPU or the host can be read here\n", r->who);
  for (size_t i = 0; i < s->n_unread && i < 8; i++) ni_say(stderr, "  %s: %s\n", s->unread[i].path, s->unread[i].why);
}

int ni_recorder_start(struct ni_recorder *r, const struct ni_record_options *o, const char *who, bool quiet) {
  char why[512], every[32];
  *r = (struct ni_recorder){.o = o, .who = who, .quiet = quiet, .sampled.interval_ns = o->every_ns, .patterns = ni_record_patterns(&o->counters)};
  int e = look(r);
  if (e == 0 && !r->n_counters) {
    say_nothing(r);
    free_recorder(r);
    return NI_EXIT_INCOMPLETE;
  }
  if (e == 0 && ni_series_create(&r->writer, o->dir, why, sizeof why) < 0) {
    ni_say(stderr, "%s: %s: %s\n", who, o->dir, why);
    free_recorder(r);
    return NI_EXIT_COULD_NOT_RUN;
  }
  if (e == 0 && ((r->stop = eventfd(0, EFD_CLOEXEC)) < 0 || (r->done = eventfd(0, EFD_CLOEXEC)) < 0)) e = -errno;
  if (e == 0) e = -pthread_create(&r->thread, NULL, work, r);
  if (e < 0) {
    ni_say(stderr, "%s: %s\n", who, strerror(-e));
    free_recorder(r);
    return NI_EXIT_COULD_NOT_RUN;
  }
  if (!quiet) ni_say(stderr, "%s: %zu counters of %zu %s every %s into %s; whoever kills this loses 10 s at most\n", who, r->n_counters,
         r->n_entities, ni_plural(r->n_entities, "source", "sources"), ni_duration_text((double)o->every_ns / 1e3, every),
         ni_series_path(r->writer));
  return NI_EXIT_FINE;
}

bool ni_recorder_stop(struct ni_recorder *r) {
  char size[32];
  if (!r->writer) return true;
  (void)!write(r->stop, &(uint64_t){1}, 8);
  pthread_join(r->thread, NULL);
  struct ni_series_totals t = ni_series_totals(r->writer);
  bool whole = !r->error && !r->said && !t.lost;
  if (whole && r->quiet) return free_recorder(r), true;
  ni_say(stderr, "%s: %" PRIu64 " %s of %zu counters, %" PRIu64 " missed", r->who, r->samples, ni_plural(r->samples, "sample", "samples"),
         r->n_counters, r->missed);
  if (!whole) ni_say(stderr, "; not all of them are in the file: %s", r->error ? strerror(-r->error) : "it could not be written");
  ni_say(stderr, "; %s in %s\n", ni_bytes_text(t.bytes, size), ni_series_path(r->writer));
  free_recorder(r);
  return whole;
}
