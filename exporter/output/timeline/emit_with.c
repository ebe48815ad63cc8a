#include "emit_with.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "emit.h"
#include "exporter/input/kineto/kineto.h"
#include "exporter/model/timeline/with.h"

enum { TRACKS_MAX = 4096 };

struct drawing {
  struct ni_tr *r;
  struct ni_tr_with *w;
  uint32_t tracks;             /* begun before this file */
};

static int track_of(const struct drawing *d, const struct ni_kineto_event *k, uint32_t *out) {
  const char *label = ni_tr_with_place(d->r, d->w, k->process), *name = ni_tr_with_place(d->r, d->w, k->place);
  char text[300];
  uint32_t code;
  if (d->r->n_tracks - d->tracks >= TRACKS_MAX) label = name = NULL; /* nobody looks at so many */
  snprintf(text, sizeof text, "PyTorch%s%s: %s", label ? " " : "", label ? label : "", name ? name : "other");
  int e = ni_name(&d->r->names, &d->r->cache, text, &code);
  return e < 0 ? e : ni_tr_track(d->r, d->w->unit, NI_TR_NONE, NI_TR_T_OTHER, code, out);
}

static int take(void *arg, const struct ni_kineto_event *k) {
  struct drawing *d = arg;
  bool slice = k->phase == 'X';
  if (!k->phase || strchr("Msf", k->phase)) return 0;
  if ((!slice && k->phase != 'i') || k->ts_ns == INT64_MIN) return d->w->left_out++, 0;
  struct ni_tr_event ev = {.phase = slice ? NI_TR_SLICE : NI_TR_INSTANT, .category = NI_TR_C_PYTORCH,
                           .ts = ni_tr_with_time(d->r, d->w, k->ts_ns), .dur = slice && k->dur_ns > 0 ? k->dur_ns : 0};
  int e = ni_name(&d->r->names, &d->r->cache, *k->name ? k->name : "PyTorch", &ev.name);
  if (e == 0) e = track_of(d, k, &ev.track);
  d->w->events++;
  return e < 0 ? e : ni_tr_put(d->r, &ev);
}

int ni_tr_emit_with(struct ni_tr *r) {
  int e = ni_tr_with_fit(r);
  for (uint32_t i = 0; e == 0 && i < r->n_with; i++) {
    struct drawing d = {r, &r->with[i], r->n_tracks};
    if (d.w->unit == NI_TR_NONE || !r->unit[d.w->unit].shown) continue;
    int read = ni_kineto_read(d.w->path, take, &d, &d.w->left_out);
    e = read == -EBADMSG ? 0 : read;
  }
  return e < 0 ? ni_tr_fail(r, e, "--with: %s", strerror(-e)) : 0;
}
