#include "with.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/input/kineto/kineto.h"
#include "format/names.h"

enum { KERNELS_MAX = 1 << 20, PLACES_MAX = 1 << 14 }; /* of a rank to compare; tracks with names */

struct kineto_reading {
  struct ni_tr *r;
  struct ni_tr_with *w;
};

/* Sends and receives are one. */
static enum ni_func read_func(const struct ni_kineto_event *k) {
  return k->what != NI_KINETO_KERNEL     ? NI_FUNC_OTHER
      : strcmp(k->func, "SendRecv") == 0 ? NI_FUNC_SEND
                                         : ni_func_from_name(k->func);
}

const char *ni_tr_with_place(const struct ni_tr *r, const struct ni_tr_with *w, uint64_t key) {
  int64_t name = ni_map_get(&w->places, key, 0);
  return name < 0 ? NULL : ni_name_text(&r->names, (uint32_t)name);
}

static int add_kineto_event(void *arg, const struct ni_kineto_event *k) {
  struct ni_tr_with *w = ((struct kineto_reading *)arg)->w;
  if (k->what == NI_KINETO_FILE) {
    if (k->base_ns != INT64_MIN)
      w->base_ns = k->base_ns;
    if (w->rank < 0)
      w->rank = k->rank;
  }
  bool process = strcmp(k->name, "process_labels") == 0, thread = strcmp(k->name, "thread_name") == 0;
  const bool is_label = k->phase == 'M' && (process || thread);
  if (is_label && *k->label && w->places.n < PLACES_MAX) {
    struct ni_tr *r = ((struct kineto_reading *)arg)->r;
    uint32_t name;
    int e = ni_name(&r->names, &r->cache, k->label, &name);
    int64_t is = e < 0 ? e : ni_map_find_or_add(&w->places, process ? k->process : k->place, 0, name);
    return is < 0 ? (int)is : 0;
  }
  enum ni_func f = read_func(k);
  if (f == NI_FUNC_OTHER || w->n_theirs == KERNELS_MAX)
    return 0;
  if (!ni_array_room(w->theirs, w->n_theirs, w->cap_theirs))
    return -ENOMEM;
  w->theirs[w->n_theirs++] = (struct ni_kernel){k->ts_ns, f};
  return 0;
}

/* For a fit; relative times are, too. */
static bool is_possible_time(int64_t ns) { return ns >= 0 && ns < INT64_C(4100000000000000000); }

static int read_kineto_file(struct ni_tr *r, struct ni_tr_with *w) {
  uint64_t bad = 0;
  w->error = ni_kineto_read(w->path, add_kineto_event, &(struct kineto_reading){r, w}, &bad, NULL);
  if (w->error == -ENOMEM || w->error == -ENOSPC)
    return w->error;
  if (w->rank < 0)
    w->rank = ni_rank_in_name(w->path, NULL);
  size_t kept = 0;
  for (size_t i = 0; i < w->n_theirs; i++) {
    struct ni_kernel *k = &w->theirs[i];
    bool over = __builtin_add_overflow(k->start_ns, w->base_ns, &k->start_ns);
    if (!over && is_possible_time(k->start_ns))
      w->theirs[kept++] = *k;
  }
  w->n_theirs = kept;
  for (uint32_t i = 0; w->unit == NI_TR_NONE && w->rank >= 0 && i < r->n_units; i++)
    if (r->unit[i].rank == w->rank)
      w->unit = i;
  if (w->unit != NI_TR_NONE)
    r->unit[w->unit].with = true;
  return 0;
}

int ni_tr_with_find(struct ni_tr *r) {
  int e = 0;
  for (size_t i = 0; e == 0 && i < r->opt.with.n; i++) {
    char *path = r->opt.with.path[i], *rest;
    long rank = strtol(path, &rest, 10);
    bool stated = rest > path && *rest == '=' && rank >= 0 && rank <= INT32_MAX;
    struct ni_files found = {.wanted = ni_kineto_is_trace};
    if (stated)
      path = rest + 1;
    e = ni_discover(&found, &path, 1);
    if (e == 0 && (found.n_bad || found.n == 0))
      e = ni_tr_fail(r, -ENOENT, "--with %s: %s", path,
                     found.n_bad ? ni_unreadable_why(&found.bad[0]) : "no .json or .json.gz in it");
    for (size_t k = 0; e == 0 && k < found.n; k++) {
      struct ni_tr_with w = {
          .path = strdup(found.file[k].path), .rank = stated ? (int32_t)rank : -1, .unit = NI_TR_NONE};
      if (!w.path || !ni_array_room(r->with, r->n_with, r->cap_with))
        e = -ENOMEM;
      else
        r->with[r->n_with++] = w;
    }
    ni_files_free(&found);
  }
  return e < 0 ? ni_tr_fail(r, e, "--with: %s", strerror(-e)) : 0;
}

int ni_tr_with_scan(struct ni_tr *r) {
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < r->n_with; i++)
    e = read_kineto_file(r, &r->with[i]);
  return e < 0 ? ni_tr_fail(r, e, "--with: %s", strerror(-e)) : 0;
}

int ni_tr_with_note(struct ni_tr *r, uint32_t unit, int64_t start_ns, const struct ni_record *o) {
  struct ni_tr_unit *u = &r->unit[unit];
  enum ni_func f = ni_func_from_name(o->func);
  if (!u->with || u->n_started == KERNELS_MAX || !is_possible_time(start_ns))
    return 0;
  if (!ni_array_room(u->started, u->n_started, u->cap_started))
    return -ENOMEM;
  u->started[u->n_started++] = (struct ni_kernel){start_ns, f == NI_FUNC_RECV ? NI_FUNC_SEND : f};
  return 0;
}

int ni_tr_with_fit(struct ni_tr *r) {
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < r->n_with; i++) {
    struct ni_tr_with *w = &r->with[i];
    struct ni_tr_unit *u = w->unit == NI_TR_NONE ? NULL : &r->unit[w->unit];
    if (u)
      e = ni_kernel_fit(u->started, u->n_started, w->theirs, w->n_theirs, &w->fit);
  }
  return e;
}

int64_t ni_tr_with_time(const struct ni_tr *r, const struct ni_tr_with *w, int64_t ts_ns) {
  int64_t t;
  if (__builtin_add_overflow(ts_ns, w->base_ns, &t) || !is_possible_time(t))
    return NI_TR_NO_TIME;
  if (!w->fit.good)
    return ni_tr_aligned(r, r->process[r->unit[w->unit].process].host, t);
  return t + w->fit.offset_ns + (int64_t)(w->fit.drift * (double)(t - w->fit.epoch_ns));
}
