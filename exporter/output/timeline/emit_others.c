#include "emit_others.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/input/kineto/kineto.h"
#include "exporter/model/counters/series.h"
#include "exporter/model/timeline/with.h"
#include "emit.h"
#include "event.h"

/* One file of samples, while it is read. */
struct counter_series {
  struct ni_tr *r;
  uint32_t device, host; /* in r->device; in r->host, NI_TR_NONE: the job was not there */
  struct track {         /* of each counter */
    double shown;        /* NAN: nothing yet */
    uint32_t name, unit; /* 0: it did not move so far */
    bool unknown;        /* said that it has no number */
  } *at;
  size_t cap;
};

static int find_or_add_device(struct counter_series *x, const char *host) {
  struct ni_tr *r = x->r;
  uint32_t name;
  int e = ni_name(&r->names, &r->cache, host, &name);
  if (e < 0)
    return e;
  x->host = NI_TR_NONE;
  for (uint32_t i = r->n_hosts; i-- > 0;)
    if (r->host[i].name == name)
      x->host = i;
  for (x->device = 0; x->device < r->n_devices; x->device++)
    if (r->device[x->device].host == name)
      return 0;
  if (!ni_array_room(r->device, r->n_devices, r->cap_devices))
    return -ENOMEM;
  r->device[r->n_devices++] = (struct ni_tr_device){.host = name};
  return 0;
}

static int begin_set(void *arg, const char *host, const struct ni_set *s) {
  struct counter_series *x = arg;
  if (!ni_array_room(x->at, s->n_counters, x->cap))
    return -ENOMEM;
  for (size_t i = 0; i < s->n_counters; i++)
    x->at[i] = (struct track){.shown = NAN};
  return find_or_add_device(x, host);
}

/* What a unit is shown as, and what a second of it is multiplied with. */
static double choose_scale(const struct ni_metric *m, const char **unit) {
  *unit = m->unit;
  if (m->kind == NI_METRIC_GAUGE)
    return m->scale;
  if (strcmp(m->unit, "bytes") == 0) {
    *unit = "GB/s";
    return m->scale / 1e9;
  }
  if (strcmp(m->unit, "cycles") == 0) {
    *unit = "% of time";
    return 100 / 1e9;
  }
  if (strcmp(m->unit, "us") == 0) {
    *unit = "% of time";
    return 100 / 1e6;
  }
  *unit = *m->unit ? m->unit : "per second";
  return m->scale;
}

/* Viewers call a track by the event's name and the key of its value, which is the unit. */
static int name_track(struct counter_series *x, const struct ni_series_sample *s, uint32_t k,
                      const char *unit) {
  const struct ni_counter *c = &s->set->counter[k];
  char text[400], per[80];
  bool per_s = c->what.kind != NI_METRIC_GAUGE && *c->what.unit && strcmp(unit, c->what.unit) == 0;
  snprintf(text, sizeof text, "%s %s", s->set->entity[c->entity].name, c->name);
  snprintf(per, sizeof per, "%s%s", *unit ? unit : "value", per_s ? "/s" : "");
  int e = ni_name(&x->r->names, &x->r->cache, text, &x->at[k].name);
  return e < 0 ? e : ni_name(&x->r->names, &x->r->cache, per, &x->at[k].unit);
}

static struct ni_tr_event make_event(const struct counter_series *x, uint32_t name, int64_t ns) {
  return (struct ni_tr_event){.phase = NI_TR_COUNTER,
                              .category = NI_TR_C_COUNTER,
                              .track = x->device,
                              .name = name,
                              .ts = x->host == NI_TR_NONE ? ns : ni_tr_aligned(x->r, x->host, ns)};
}

static int put_sample(struct counter_series *x, uint32_t k, int64_t ns, double v) {
  struct ni_tr_event e = make_event(x, x->at[k].name, ns);
  ni_tr_u64(&e, NI_TR_K_UNIT, x->at[k].unit);
  ni_tr_f64(&e, NI_TR_K_VALUE, v);
  x->at[k].shown = v;
  return ni_tr_put(x->r, &e);
}

/* Why there is no number; NULL: there is one. */
static const char *explain_unknown(const struct ni_change *c) {
  switch (c->state) {
    case NI_CHANGE_RESET:
      return "began anew";
    case NI_CHANGE_STUCK:
      return "at its maximum";
    case NI_CHANGE_UNREADABLE:
      return "unreadable";
    case NI_CHANGE_GONE:
      return "gone";
    default:
      return NULL;
  }
}

/* A mark of the process. */
static int put_unknown(struct counter_series *x, const struct ni_series_sample *s, uint32_t k,
                       const char *why) {
  const struct ni_counter *n = &s->set->counter[k];
  char text[400];
  uint32_t name = 0;
  snprintf(text, sizeof text, "%s %s: %s", s->set->entity[n->entity].name, n->name, why);
  int e = ni_name(&x->r->names, &x->r->cache, text, &name);
  struct ni_tr_event mark = make_event(x, name, s->real_ns);
  return e < 0 ? e : ni_tr_put(x->r, &mark);
}

static int put_pair(void *arg, const struct ni_series_sample *after, const struct ni_reading *before) {
  struct counter_series *x = arg;
  int e = 0;
  for (uint32_t k = 0; e == 0 && k < after->set->n_counters; k++) {
    const struct ni_counter *counter = &after->set->counter[k];
    bool gauge = counter->what.kind == NI_METRIC_GAUGE;
    const struct ni_reading *now = &after->reading[k];
    struct ni_change c =
        ni_change_of(&counter->what, &before[k], now, after->set->entity[counter->entity].link_bytes_s);
    struct track *t = &x->at[k];
    const char *unit, *why = explain_unknown(&c);
    double v =
        choose_scale(&counter->what, &unit) * (gauge ? (double)(int64_t)now->value : ni_change_rate(&c));
    if (c.state == NI_CHANGE_STALE)
      continue; /* no newer than the one before: that one holds */
    if (why)
      v = 0;
    if (why && !t->unknown && (e = put_unknown(x, after, k, why)) < 0)
      return e;
    t->unknown = why != NULL;
    if (t->shown == v || (isnan(t->shown) && v == 0))
      continue;
    if (!t->name) { /* a track begins where it moves */
      e = name_track(x, after, k, unit);
      if (e == 0)
        e = put_sample(x, k, before[k].real_ns - 1000, 0);
    }
    if (e == 0)
      e = put_sample(x, k, gauge ? now->real_ns : before[k].real_ns, v);
  }
  return e;
}

/* Processes of their own, behind those of the ranks. */
static void number_devices(struct ni_tr *r) {
  uint32_t pid = 1;
  for (uint32_t i = 0; i < r->n_units; i++)
    if (r->unit[i].out_pid >= pid)
      pid = r->unit[i].out_pid + 1;
  for (uint32_t i = 0; i < r->n_devices; i++)
    r->device[i].out_pid = pid++;
}

int ni_tr_emit_counters(struct ni_tr *r) {
  struct counter_series x = {.r = r};
  int e = 0;
  for (size_t i = 0; e == 0 && i < r->files.n; i++) {
    struct ni_series_end end;
    if (ni_is_series(r->files.file[i].path))
      e = ni_series_pairs(r->files.file[i].path, &(struct ni_series_pairs){&x, begin_set, put_pair}, &end);
  }
  number_devices(r);
  free(x.at);
  return e;
}

enum { TRACKS_MAX = 4096 };

struct drawing {
  struct ni_tr *r;
  struct ni_tr_with *w;
  uint32_t tracks; /* begun before this file */
};

static int find_or_add_track(const struct drawing *d, const struct ni_kineto_event *k, uint32_t *out) {
  const char *label = ni_tr_with_place(d->r, d->w, k->process),
             *name = ni_tr_with_place(d->r, d->w, k->place);
  char text[300];
  uint32_t code;
  if (d->r->n_tracks - d->tracks >= TRACKS_MAX)
    label = name = NULL; /* nobody looks at so many */
  snprintf(text, sizeof text, "PyTorch%s%s: %s", label ? " " : "", label ? label : "", name ? name : "other");
  int e = ni_name(&d->r->names, &d->r->cache, text, &code);
  return e < 0 ? e : ni_tr_track(d->r, d->w->unit, NI_TR_NONE, NI_TR_T_OTHER, code, out);
}

static int emit_kineto_event(void *arg, const struct ni_kineto_event *k) {
  struct drawing *d = arg;
  bool slice = k->phase == 'X';
  if (!k->phase || strchr("Msf", k->phase))
    return 0;
  if ((!slice && k->phase != 'i') || k->ts_ns == INT64_MIN) {
    d->w->left_out++;
    return 0;
  }
  struct ni_tr_event ev = {.phase = slice ? NI_TR_SLICE : NI_TR_INSTANT,
                           .category = NI_TR_C_PYTORCH,
                           .ts = ni_tr_with_time(d->r, d->w, k->ts_ns),
                           .dur = slice && k->dur_ns > 0 ? k->dur_ns : 0};
  int e = ni_name(&d->r->names, &d->r->cache, *k->name ? k->name : "PyTorch", &ev.name);
  if (e == 0)
    e = find_or_add_track(d, k, &ev.track);
  d->w->events++;
  return e < 0 ? e : ni_tr_put(d->r, &ev);
}

int ni_tr_emit_with(struct ni_tr *r) {
  int e = ni_tr_with_fit(r);
  for (uint32_t i = 0; e == 0 && i < r->n_with; i++) {
    struct drawing d = {r, &r->with[i], r->n_tracks};
    if (d.w->unit == NI_TR_NONE || !r->unit[d.w->unit].shown)
      continue;
    int read = ni_kineto_read(d.w->path, emit_kineto_event, &d, &d.w->left_out, NULL);
    e = read == -EBADMSG ? 0 : read;
  }
  return e < 0 ? ni_tr_fail(r, e, "--with: %s", strerror(-e)) : 0;
}
