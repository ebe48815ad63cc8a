#include "series_write.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exporter/base/array.h"
#include "exporter/base/index.h"
#include "exporter/base/now.h"
#include "exporter/base/out_file.h"
#include "format/line_write.h"
#include "series.h"

enum { FLUSH_S = 10, NAMES_S = 300, TEXT_MAX = 4 << 20, NAMES_TRIED = 1000 };
#define NS 1000000000

struct ni_series_writer {
  struct ni_line_prefix prefix;
  int fd;
  char *path;
  char *text;
  size_t n, cap;
  uint64_t next_set, next_sn, kept_sn, held; /* kept_sn: all before it are lost; held: samples in text */
  uint64_t lost, bytes, flushed_ns, now_us;
  int64_t at_us[NI_NUMBERS_A_LINE], value[NI_NUMBERS_A_LINE]; /* of the line that is made */
};

static int open_file(struct ni_series_writer *w, const char *dir, const char *host, char *why, size_t cap) {
  int fd = ni_out_dir(dir, true, why, cap), e = -EEXIST;
  if (fd < 0)
    return fd;
  if (!*host || strchr(host, '/'))
    host = "host"; /* a name is no path */
  uint64_t start = ni_now_ns(CLOCK_REALTIME) / NS;
  for (unsigned i = 0; e == -EEXIST && i < NAMES_TRIED; i++) {
    free(w->path);
    int n = asprintf(&w->path,
                     i ? "%s/%s-counters-%" PRIu64 ".%u.jsonl.gz" : "%s/%s-counters-%" PRIu64 ".jsonl.gz",
                     dir, host, start, i);
    if (n < 0) {
      w->path = NULL;
      e = -ENOMEM;
      break;
    }
    /* Its name at once: it is read while it grows. */
    w->fd = openat(fd, w->path + strlen(dir) + 1,
                   O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0644);
    e = w->fd < 0 ? -errno : 0;
  }
  close(fd);
  if (e < 0)
    snprintf(why, cap, "%s", strerror(-e));
  return e;
}

int ni_series_create(struct ni_series_writer **out, const char *dir, char *why, size_t cap) {
  char host[256] = "";
  struct ni_series_writer *w = *out = calloc(1, sizeof *w);
  gethostname(host, sizeof host - 1);
  /* No producer: a reader from before these lines would miss a job's process in this file. */
  const struct ni_ident id = {.rank = -1};
  const struct ni_meta meta = {.git_rev = NI_GIT_REV, .hostname = host, .pid = getpid()};
  int e = w ? ni_line_prefix_init(&w->prefix, &id, &meta) : -ENOMEM;
  if (w)
    w->fd = -1;
  if (e < 0)
    snprintf(why, cap, "%s", strerror(-e));
  else
    e = open_file(w, dir, host, why, cap);
  if (e < 0) {
    (void)ni_series_close(w);
    *out = NULL;
    return e;
  }
  w->flushed_ns = ni_now_ns(CLOCK_MONOTONIC);
  return 0;
}

const char *ni_series_path(const struct ni_series_writer *w) { return w->path; }

struct ni_series_totals ni_series_totals(const struct ni_series_writer *w) {
  return (struct ni_series_totals){w->next_sn, w->lost, w->held, w->bytes};
}

/* ---- lines ---- */

/*
 * Room for a line; NULL without memory. All lines of a member carry the same time, which then costs nothing.
 */
static char *reserve_line(struct ni_series_writer *w) {
  if (!w->n)
    w->now_us = ni_now_ns(CLOCK_REALTIME) / 1000;
  if (w->cap - w->n < NI_LINE_MAX_BYTES && !ni_array_more(&w->text, &w->cap, w->n + NI_LINE_MAX_BYTES, 1))
    return NULL;
  return w->text + w->n;
}

static int write_names(struct ni_series_writer *w, const struct ni_series_set *of, const struct ni_set *set) {
  for (size_t i = 0; i < set->n_entities; i++) {
    const struct ni_entity *e = &set->entity[i];
    uint32_t done = 0;
    do {
      struct ni_metric_name list[NI_METRICS_A_LINE];
      uint32_t n = 0;
      for (; n < NI_METRICS_A_LINE && done + n < e->n; n++) {
        const struct ni_counter *c = &set->counter[e->first + done + n];
        list[n] = (struct ni_metric_name){c->name, ni_series_kinds[c->what.kind], c->what.unit, c->what.width,
                                          c->what.scale};
      }
      const struct ni_counter_names_line l = {.set_sn = of->set_sn,
                                              .interval_ns = of->interval_ns,
                                              .entity = (uint32_t)i,
                                              .n_entities = (uint32_t)set->n_entities,
                                              .source = ni_source_name(e->source),
                                              .name = e->name,
                                              .pci = e->pci,
                                              .nearest = e->nearest,
                                              .link = e->link,
                                              .about = e->about,
                                              .link_bytes_s = e->link_bytes_s,
                                              .numa = e->numa,
                                              .first = e->first + done,
                                              .n_counters = (uint32_t)set->n_counters,
                                              .metrics = {.list = list, .n = n}};
      char *at = reserve_line(w);
      if (!at)
        return -ENOMEM;
      w->n += ni_format_counter_names(at, NI_LINE_MAX_BYTES, &w->prefix, w->now_us, &l);
      done += n;
    } while (done < e->n);
  }
  return 0;
}

/*
 * Writes the numbers of a sample: the begin of each entity, from sweep, then the value of each counter. What
 * they are goes to of->last.
 */
static int write_values(struct ni_series_writer *w, struct ni_series_set *of, const struct ni_set *set,
                        const struct ni_reading *r, const struct ni_series_sweep *sweep, uint64_t since) {
  struct ni_sample_line l = {.set_sn = of->set_sn,
                             .sample_sn = w->next_sn,
                             .since_sn = since,
                             .sweep_ns = sweep->ns,
                             .realtime_ns = (uint64_t)sweep->real_ns,
                             .monotonic_ns = (uint64_t)sweep->mono_ns,
                             .missed = sweep->missed,
                             .full = !of->interval_ns};
  size_t entities = set->n_entities < NI_NUMBERS_A_LINE ? set->n_entities : NI_NUMBERS_A_LINE, done = 0;
  for (size_t i = 0; i < entities; i++) {
    const struct ni_entity *e = &set->entity[i];
    w->at_us[i] = e->n && r[e->first].mono_ns ? (r[e->first].mono_ns - sweep->mono_ns) / 1000 : 0;
  }
  l.at_us = (struct ni_numbers){w->at_us, entities};
  do {
    size_t n = set->n_counters - done < NI_NUMBERS_A_LINE ? set->n_counters - done : NI_NUMBERS_A_LINE;
    for (size_t i = 0; i < n; i++) {
      const struct ni_reading *x = &r[done + i];
      struct ni_reading *last = &of->last[done + i];
      bool ok = x->state == NI_READ_OK, anew = since == NI_NO_SN;
      w->value[i] = !ok ? NI_NO_NUMBER : (int64_t)(x->value - (anew ? 0 : last->value));
      if (w->value[i] != NI_NO_NUMBER)
        *last = *x;
      else if (anew)
        last->state = NI_READ_UNREADABLE;
    }
    l.first = (uint32_t)done;
    l.values = (struct ni_numbers){w->value, n};
    char *at = reserve_line(w);
    if (!at)
      return -ENOMEM;
    w->n += ni_format_counters(at, NI_LINE_MAX_BYTES, &w->prefix, w->now_us, &l);
    l.at_us.n = 0;
    l.missed = 0;
    done += n;
  } while (done < set->n_counters);
  return 0;
}

/* ---- samples ---- */

static uint64_t digest_set(const struct ni_set *set) {
  uint64_t h = ni_hash(0, set->n_counters);
  for (size_t i = 0; i < set->n_entities; i++) {
    h = ni_hash_text(ni_hash(h, set->entity[i].source), set->entity[i].name);
    for (uint32_t k = 0; k < set->entity[i].n; k++)
      h = ni_hash_text(h, set->counter[set->entity[i].first + k].name);
  }
  return h;
}

/*
 * Would a difference be no number of events? That is so after a reset, and for a counter that had no value
 * since values were written.
 */
static bool breaks_continuity(const struct ni_series_set *of, const struct ni_set *set,
                              const struct ni_reading *r) {
  for (size_t i = 0; i < of->n; i++) {
    const struct ni_reading *last = &of->last[i];
    if (r[i].state != NI_READ_OK || (last->state == NI_READ_OK && r[i].value >= last->value))
      continue;
    unsigned change = ni_change_of(&set->counter[i].what, last, &r[i], 0).state;
    if (last->state != NI_READ_OK || change == NI_CHANGE_RESET || change == NI_CHANGE_STALE)
      return true;
  }
  return false;
}

int ni_series_put(struct ni_series_writer *w, struct ni_series_set *of, const struct ni_set *set,
                  const struct ni_reading *r, const struct ni_series_sweep *sweep) {
  uint64_t digest = digest_set(set), since = of->last_sn;
  if (!of->last || of->digest != digest) { /* another set, or the first one */
    struct ni_reading *last = calloc(set->n_counters + 1, sizeof *last);
    if (!last)
      return -ENOMEM;
    free(of->last);
    of->set_sn = w->next_set++;
    of->digest = digest;
    of->last = last;
    of->n = set->n_counters;
    of->any = false;
  }
  int e = 0;
  size_t before = w->n;
  const bool is_first = !of->any || since < w->kept_sn;
  if (is_first || sweep->mono_ns - of->named_ns >= INT64_C(1) * NAMES_S * NS ||
      breaks_continuity(of, set, r)) {
    since = NI_NO_SN;
    of->any = true;
    of->named_ns = sweep->mono_ns;
    e = write_names(w, of, set);
  }
  if (e == 0)
    e = write_values(w, of, set, r, sweep, since);
  if (e < 0) { /* nothing of it; the next one begins anew */
    w->n = before;
    of->any = false;
    return e;
  }
  of->last_sn = w->next_sn++;
  w->held++;
  return 0;
}

bool ni_series_due(const struct ni_series_writer *w) {
  return w->n >= TEXT_MAX / 2 || ni_now_ns(CLOCK_MONOTONIC) - w->flushed_ns >= (uint64_t)FLUSH_S * NS;
}

int ni_series_flush(struct ni_series_writer *w) {
  struct stat st;
  w->flushed_ns = ni_now_ns(CLOCK_MONOTONIC);
  if (!w->n)
    return 0;
  int e = fstat(w->fd, &st) < 0 ? -errno : st.st_nlink ? ni_write_member(w->fd, w->text, w->n) : -ESTALE;
  if (e == 0) {
    w->bytes = fstat(w->fd, &st) == 0 ? (uint64_t)st.st_size : w->bytes;
    w->n = w->held = 0;
  } else if (e != -ESTALE) {
    (void)!ftruncate(w->fd, st.st_size); /* half a member */
  }
  if (e < 0 && w->n > TEXT_MAX) {
    w->lost += w->held;
    w->kept_sn = w->next_sn;
    w->n = w->held = 0;
  }
  return e;
}

int ni_series_close(struct ni_series_writer *w) {
  if (!w)
    return 0;
  int e = w->fd >= 0 ? ni_series_flush(w) : 0;
  if (e < 0)
    w->lost += w->held;
  if (w->fd >= 0)
    close(w->fd);
  ni_line_prefix_free(&w->prefix);
  free(w->path);
  free(w->text);
  free(w);
  return e;
}

void ni_series_set_free(struct ni_series_set *s) {
  free(s->last);
  s->last = NULL;
}
