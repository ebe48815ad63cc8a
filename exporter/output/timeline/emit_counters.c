#include "emit_counters.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "event.h"
#include "exporter/base/array.h"
#include "exporter/model/counters/series_pairs.h"

/* One file of samples, while it is read. */
struct series {
  struct ni_tr *r;
  uint32_t device, host;    /* in r->device; in r->host, NI_TR_NONE: the job was not there */
  double *shown;            /* of each counter: what its track shows; NAN: nothing yet */
  uint32_t *name;           /* of each counter; 0: it did not move so far */
  bool *unknown;            /* of each counter: said that it has no number */
  size_t cap_shown, cap_name, cap_unknown;
};

static int find_device(struct series *x, const char *host) {
  struct ni_tr *r = x->r;
  uint32_t name;
  int e = ni_name(&r->names, &r->cache, host, &name);
  if (e < 0) return e;
  x->host = NI_TR_NONE;
  for (uint32_t i = r->n_hosts; i-- > 0;)
    if (r->host[i].name == name) x->host = i;
  for (x->device = 0; x->device < r->n_devices; x->device++)
    if (r->device[x->device].host == name) return 0;
  if (!ni_array_room(r->device, r->n_devices, r->cap_devices)) return -ENOMEM;
  r->device[r->n_devices++] = (struct ni_tr_device){.host = name};
  return 0;
}

static int set(void *arg, const char *host, const struct ni_set *s) {
  struct series *x = arg;
  if (!ni_array_room(x->shown, s->n_counters, x->cap_shown) || !ni_array_room(x->name, s->n_counters, x->cap_name) ||
      !ni_array_room(x->unknown, s->n_counters, x->cap_unknown))
    return -ENOMEM;
  for (size_t i = 0; i < s->n_counters; i++) {
    x->shown[i] = NAN;
    x->name[i] = 0;
    x->unknown[i] = false;
  }
  return find_device(x, host);
}

/* What a unit is shown as, and what a second of it is multiplied with. */
static double shown_as(const struct ni_metric *m, const char **unit) {
  bool gauge = m->kind == NI_METRIC_GAUGE;
  *unit = m->unit;
  if (gauge) return m->scale;
  if (strcmp(m->unit, "bytes") == 0) return *unit = "GB/s", m->scale / 1e9;
  if (strcmp(m->unit, "cycles") == 0) return *unit = "% of time", 100 / 1e9;
  if (strcmp(m->unit, "us") == 0) return *unit = "% of time", 100 / 1e6;
  return *unit = *m->unit ? m->unit : "per second", m->scale;
}

static int name_track(struct series *x, const struct ni_series_sample *s, uint32_t k, const char *unit) {
  const struct ni_counter *c = &s->set->counter[k];
  char text[400];
  bool per_s = c->what.kind != NI_METRIC_GAUGE && *c->what.unit && strcmp(unit, c->what.unit) == 0;
  snprintf(text, sizeof text, "%s %s%s%s%s", s->set->entity[c->entity].name, c->name, *unit ? " " : "", unit, per_s ? "/s" : "");
  return ni_name(&x->r->names, &x->r->cache, text, &x->name[k]);
}

static int put(struct series *x, uint32_t k, int64_t ns, double v) {
  struct ni_tr_event e = {.phase = NI_TR_COUNTER, .category = NI_TR_C_COUNTER, .track = x->device, .name = x->name[k],
                          .ts = x->host == NI_TR_NONE ? ns : ni_tr_aligned(x->r, x->host, ns)};
  ni_tr_f64(&e, NI_TR_K_VALUE, v);
  x->shown[k] = v;
  return ni_tr_put(x->r, &e);
}

/* A mark of the process where there is no number. */
static int put_unknown(struct series *x, const struct ni_series_sample *s, uint32_t k, const struct ni_change *c) {
  static const char *const why[] = {[NI_CHANGE_RESET] = "began anew", [NI_CHANGE_STUCK] = "at its maximum", [NI_CHANGE_UNREADABLE] = "unreadable",
                                    [NI_CHANGE_GONE] = "gone"};
  const struct ni_counter *n = &s->set->counter[k];
  char text[400];
  struct ni_tr_event e = {.phase = NI_TR_COUNTER, .category = NI_TR_C_COUNTER, .track = x->device};
  int64_t ns = s->real_ns;
  snprintf(text, sizeof text, "%s %s: %s", s->set->entity[n->entity].name, n->name, why[c->state]);
  e.ts = x->host == NI_TR_NONE ? ns : ni_tr_aligned(x->r, x->host, ns);
  int err = ni_name(&x->r->names, &x->r->cache, text, &e.name);
  return err < 0 ? err : ni_tr_put(x->r, &e);
}

static int pair(void *arg, const struct ni_series_sample *after, const struct ni_reading *before) {
  struct series *x = arg;
  int e = 0;
  for (uint32_t k = 0; e == 0 && k < after->set->n_counters; k++) {
    const struct ni_metric *m = &after->set->counter[k].what;
    const struct ni_reading *now = &after->reading[k];
    struct ni_change c = ni_change_of(m, &before[k], now, after->set->entity[after->set->counter[k].entity].link_bytes_s);
    const char *unit;
    double v = shown_as(m, &unit) * (m->kind == NI_METRIC_GAUGE ? (double)(int64_t)now->value : ni_change_rate(&c));
    bool unknown = c.state == NI_CHANGE_RESET || c.state == NI_CHANGE_STUCK || c.state == NI_CHANGE_UNREADABLE || c.state == NI_CHANGE_GONE;
    if (unknown) v = 0;
    if (unknown && !x->unknown[k] && (e = put_unknown(x, after, k, &c)) < 0) return e;
    x->unknown[k] = unknown;
    if (x->shown[k] == v || (isnan(x->shown[k]) && v == 0)) continue;
    bool first = !x->name[k];
    if (first) e = name_track(x, after, k, unit);
    if (e == 0 && first) e = put(x, k, before[k].real_ns - 1000, 0); /* a track begins where it moves */
    if (e == 0) e = put(x, k, m->kind == NI_METRIC_GAUGE ? now->real_ns : before[k].real_ns, v);
  }
  return e;
}

/* Processes of their own, behind those of the ranks. */
static void number_devices(struct ni_tr *r) {
  uint32_t pid = 1;
  for (uint32_t i = 0; i < r->n_units; i++)
    if (r->unit[i].out_pid >= pid) pid = r->unit[i].out_pid + 1;
  for (uint32_t i = 0; i < r->n_devices; i++) r->device[i].out_pid = pid++;
}

int ni_tr_emit_counters(struct ni_tr *r) {
  struct series x = {.r = r};
  int e = 0;
  for (size_t i = 0; e == 0 && i < r->files.n; i++) {
    struct ni_series_end end;
    if (ni_is_series(r->files.file[i].path)) e = ni_series_pairs(r->files.file[i].path, &(struct ni_series_pairs){&x, set, pair}, &end);
  }
  number_devices(r);
  free(x.shown);
  free(x.name);
  free(x.unknown);
  return e;
}
