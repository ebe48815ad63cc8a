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
  struct ni_tr_event e;        /* the newest, until it is known that no arrow is bound to it; track NI_TR_NONE: none */
  uint64_t place;
  int64_t ts_ns;
  uint32_t tracks;             /* begun before this file */
  char text[NI_TR_TEXT_MAX];
};

static int put(struct drawing *d) {
  bool any = d->e.track != NI_TR_NONE;
  int e = any ? ni_tr_put(d->r, &d->e) : 0;
  d->e.track = NI_TR_NONE;
  d->w->events += any;
  return e;
}

static int track_of(struct drawing *d, const struct ni_kineto_event *k) {
  const char *label = ni_tr_with_place(d->r, d->w, k->process), *name = ni_tr_with_place(d->r, d->w, k->place);
  char text[300];
  uint32_t code;
  if (d->r->n_tracks - d->tracks >= TRACKS_MAX) label = name = NULL; /* nobody looks at so many */
  snprintf(text, sizeof text, "PyTorch%s%s: %s", label ? " " : "", label ? label : "", name ? name : "other");
  int e = ni_name(&d->r->names, &d->r->cache, text, &code);
  return e < 0 ? e : ni_tr_track(d->r, d->w->unit, NI_TR_NONE, NI_TR_T_OTHER, code, &d->e.track);
}

/* Bound to the slice before it, as Kineto's are; ac2g was async_gpu until 2022. */
static void bind(struct drawing *d, const struct ni_kineto_event *k) {
  bool forward = strcmp(k->name, "fwdbwd") == 0, gpu = strcmp(k->name, "ac2g") == 0 || strcmp(k->name, "async_gpu") == 0;
  enum ni_tr_arrow_kind kind = forward ? NI_TR_A_BACKWARD : NI_TR_A_GPU;
  uint64_t id = ni_tr_arrow_id((uint32_t)(d->w - d->r->with), kind, false, (uint64_t)k->id);
  if ((!forward && !gpu) || d->e.track == NI_TR_NONE || k->place != d->place || k->ts_ns != d->ts_ns) d->w->left_out++;
  else if (!d->r->opt.no_flows) ni_tr_arrow(&d->e, kind, k->phase == 's', id);
}

static int take(void *arg, const struct ni_kineto_event *k) {
  struct drawing *d = arg;
  if (k->phase == 's' || k->phase == 'f') return bind(d, k), 0;
  int e = put(d);
  if (!k->phase || k->phase == 'M' || e < 0) return e;
  if ((k->phase != 'X' && k->phase != 'i') || k->ts_ns == INT64_MIN || k->bare_len > sizeof d->text) return d->w->left_out++, 0;
  bool slice = k->phase == 'X', whole = k->len <= sizeof d->text;
  d->e = (struct ni_tr_event){.phase = slice ? NI_TR_SLICE : NI_TR_INSTANT, .category = NI_TR_C_API, .text = d->text,
                              .n_text = (uint32_t)(whole ? k->len : k->bare_len), .ts = ni_tr_with_time(d->r, d->w, k->ts_ns),
                              .dur = slice && k->dur_ns > 0 ? k->dur_ns : 0};
  memcpy(d->text, k->text, d->e.n_text);
  d->place = k->place;
  d->ts_ns = k->ts_ns;
  d->w->bare += !whole;
  return track_of(d, k);
}

int ni_tr_emit_with(struct ni_tr *r) {
  int e = ni_tr_with_fit(r);
  for (uint32_t i = 0; e == 0 && i < r->n_with; i++) {
    struct drawing d = {.r = r, .w = &r->with[i], .e.track = NI_TR_NONE, .tracks = r->n_tracks};
    if (d.w->unit == NI_TR_NONE || !r->unit[d.w->unit].shown) continue;
    int read = ni_kineto_read(d.w->path, take, &d, &d.w->left_out);
    e = read < 0 && read != -EBADMSG ? read : put(&d);
  }
  return e < 0 ? ni_tr_fail(r, e, "--with: %s", strerror(-e)) : 0;
}
