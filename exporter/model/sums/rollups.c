/*
 * Roll-ups: counts and times of all operations by kind, function, size and timing source, added up over ranks
 * and minutes.
 *
 * Nothing here is added to what the records say: the two stand side by side, and the difference in numbers is
 * told. Memory: about 1 KiB for each function and size; beyond KEYS_MAX of them the rest is one entry,
 * "(others)". Only where all of the input is asked for: with --since, --until, --sn or --size roll-ups, which
 * are of whole minutes and of all sizes of a class, are left out.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/counts.h"
#include "exporter/base/order.h"
#include "exporter/base/bytes/wire.h"
#include "reading/long_waits.h"
#include "rollups.h"
#include "format/names.h"

#define KEYS_MAX 8192u

struct rollup {
  uint32_t func;
  uint8_t kind, timing;
  uint64_t msg_bytes, msg_to_bytes;
  uint64_t count, sum_bytes, sum_ns, min_ns, max_ns, in_hist, hist[NI_HIST_BUCKETS];
};

struct ni_rollups {
  struct rollup *entry;
  size_t n, cap;
  struct ni_index at_hash;
};

static bool is_same_rollup(const struct rollup *a, const struct rollup *b) {
  return a->func == b->func && a->kind == b->kind && a->timing == b->timing && a->msg_bytes == b->msg_bytes &&
      a->msg_to_bytes == b->msg_to_bytes;
}

static struct rollup *find_rollup(struct ni_rollups *t, const struct rollup *k, uint64_t *hash) {
  *hash =
      ni_hash(ni_hash(ni_hash(k->msg_bytes, k->msg_to_bytes), k->func), (uint64_t)k->kind << 8 | k->timing);
  uint32_t i;
  for (size_t at = 0; (i = ni_index_next(&t->at_hash, *hash, &at)) != NI_INDEX_NONE;) {
    struct rollup *x = &t->entry[i];
    if (is_same_rollup(x, k))
      return x;
  }
  return NULL;
}

/* key: which one; l: what is added. */
static int add_rollup(struct ni_run *r, const struct rollup *key, const struct rollup *l) {
  if (!r->rollups && !(r->rollups = calloc(1, sizeof *r->rollups)))
    return -ENOMEM;
  struct ni_rollups *t = r->rollups;
  uint64_t hash;
  struct rollup k = *key, *e = find_rollup(t, &k, &hash);
  if (!e && t->n >= KEYS_MAX) { /* all functions and sizes of that kind and source */
    k.func = 0;
    k.msg_bytes = 0;
    k.msg_to_bytes = INT64_MAX;
    e = find_rollup(t, &k, &hash);
  }
  if (!e) {
    if (!ni_array_room(t->entry, t->n, t->cap) || ni_index_add(&t->at_hash, hash, (uint32_t)t->n) < 0)
      return -ENOMEM;
    e = &t->entry[t->n++];
    *e = (struct rollup){.func = k.func,
                         .kind = k.kind,
                         .timing = k.timing,
                         .msg_bytes = k.msg_bytes,
                         .msg_to_bytes = k.msg_to_bytes,
                         .min_ns = UINT64_MAX};
  }
  ni_add_capped(&e->count, l->count);
  ni_add_capped(&e->sum_bytes, l->sum_bytes);
  ni_add_capped(&e->sum_ns, l->sum_ns);
  if (l->min_ns < e->min_ns)
    e->min_ns = l->min_ns;
  if (l->max_ns > e->max_ns)
    e->max_ns = l->max_ns;
  for (uint32_t i = 0; i < NI_HIST_BUCKETS; i++) {
    ni_add_capped(&e->hist[i], l->hist[i]);
    ni_add_capped(&e->in_hist, l->hist[i]);
  }
  return 0;
}

/* In the bucket of the last ns that the line describes. Its histogram says nothing of parts of it. */
static int add_rollup_to_bucket(struct ni_run *r, const struct rollup *k, const struct ni_rollup_line *l) {
  const struct ni_bucket_row key = {.bucket = ni_bucket_of((int64_t)l->to_ns - 1, r->opt.bucket_ns),
                                    .comm = NI_BUCKET_NONE,
                                    .log_group = NI_BUCKET_NONE,
                                    .func = ni_name_text(&r->names, k->func),
                                    .kind = k->kind,
                                    .timing = k->timing};
  struct ni_bucket_row *x;
  int e = l->to_ns > INT64_MAX ? 0 : ni_bucket_find_or_add(&r->rolled, &key, &x);
  if (e == -E2BIG)
    ni_buckets_fail_too_many(r, "series_rollups", "function and timing source");
  if (e < 0 || l->to_ns > INT64_MAX)
    return e;
  ni_add_capped(&x->operations, l->count);
  ni_add_capped(&x->bytes, l->sum_bytes);
  ni_add_capped(&x->ns, l->sum_ns);
  if (l->max_ns > x->max_ns)
    x->max_ns = l->max_ns;
  return 0;
}

bool ni_rollups_are_wanted(const struct ni_run *r) {
  const struct ni_filters *filter = &r->opt.filter;
  const bool is_filtered = filter->sn.n || filter->size.n || filter->tag.n;
  const bool is_part = r->since_us != INT64_MIN || r->until_us != INT64_MAX;
  return !r->opt.compat && !r->opt.approximate && !is_part && !is_filtered;
}

int ni_rollups_add(struct ni_run *r, uint32_t member, uint32_t func, const struct ni_rollup_line *l) {
  if (!ni_rollups_are_wanted(r) || !l->count)
    return 0;
  struct rollup k = {.func = func,
                     .kind = ni_kind_from_name(l->kind),
                     .timing = (uint8_t)l->timing,
                     .msg_bytes = l->msg_bytes,
                     .msg_to_bytes = l->msg_to_bytes};
  k.count = l->count;
  k.sum_bytes = l->sum_bytes;
  k.sum_ns = l->sum_ns;
  k.min_ns = l->min_ns;
  k.max_ns = l->max_ns;
  memcpy(k.hist, l->hist, sizeof k.hist);
  pthread_mutex_lock(&r->lock);
  int e = add_rollup(r, &k, &k);
  if (e == 0 && r->opt.bucket_ns)
    e = add_rollup_to_bucket(r, &k, l);
  if (e == 0)
    e = ni_long_waits_add(r, member, ni_name_text(&r->names, func), l);
  pthread_mutex_unlock(&r->lock);
  return e;
}

static int compare_entries_by_name(const void *a, const void *b, void *run) {
  const struct ni_run *r = run;
  const struct rollup *x = &r->rollups->entry[*(const uint32_t *)a],
                      *y = &r->rollups->entry[*(const uint32_t *)b];
  int k = NI_BY(x, y, kind, timing, msg_bytes, msg_to_bytes);
  return k ? k : strcmp(ni_name_text(&r->names, x->func), ni_name_text(&r->names, y->func));
}

/* The same by time. Storing puts them in order, and nothing can be added then. */
static void wire_rollup_buckets(struct ni_wire *w, struct ni_run *r) {
  size_t n = r->rolled.n;
  if (!w->load)
    ni_bucket_sort(&r->rolled);
  ni_wire_count(w, &n, 8);
  for (size_t i = 0; i < n && !w->bad; i++) {
    struct ni_bucket_row k = w->load
        ? (struct ni_bucket_row){.comm = NI_BUCKET_NONE, .log_group = NI_BUCKET_NONE}
        : r->rolled.row[i],
                         *x;
    uint64_t numbers[] = {k.operations, k.bytes, k.ns, k.max_ns};
    ni_wire_i64(w, &k.bucket);
    ni_wire_below(w, &k.kind, NI_KIND_COUNT);
    ni_wire_below(w, &k.timing, NI_TIMING_COUNT);
    ni_wire_kept(w, &r->names, &k.func);
    ni_wire_u64s(w, numbers, sizeof numbers / sizeof *numbers);
    if (!w->load)
      continue;
    if (!k.func)
      w->bad = true;
    if (w->bad)
      return;
    int e = ni_bucket_find_or_add(&r->rolled, &k, &x);
    if (e == -E2BIG)
      ni_buckets_fail_too_many(r, "series_rollups", "function and timing source");
    if (e < 0)
      w->bad = true;
    if (w->bad)
      return;
    ni_add_capped(&x->operations, numbers[0]);
    ni_add_capped(&x->bytes, numbers[1]);
    ni_add_capped(&x->ns, numbers[2]);
    if (numbers[3] > x->max_ns)
      x->max_ns = numbers[3];
  }
}

void ni_rollups_wire(struct ni_wire *w, struct ni_run *r) {
  size_t n = r->rollups ? r->rollups->n : 0;
  uint32_t *order = w->load ? NULL : ni_order((uint32_t)n, compare_entries_by_name, r);
  if (!w->load && !order)
    w->bad = true;
  ni_wire_count(w, &n, 8);
  for (size_t i = 0; i < n && !w->bad; i++) {
    struct rollup k = w->load ? (struct rollup){0} : r->rollups->entry[order[i]];
    uint32_t kind = k.kind, timing = k.timing;
    ni_wire_below(w, &kind, NI_KIND_COUNT);
    ni_wire_below(w, &timing, NI_TIMING_COUNT);
    ni_wire_name(w, &r->names, &k.func);
    NI_WIRE(w, &k.msg_bytes, &k.msg_to_bytes, &k.count, &k.sum_bytes, &k.sum_ns, &k.min_ns, &k.max_ns);
    ni_wire_u64s(w, k.hist, NI_HIST_BUCKETS);
    k.kind = (uint8_t)kind;
    k.timing = (uint8_t)timing;
    if (w->load && !w->bad && add_rollup(r, &k, &k) < 0)
      w->bad = true;
  }
  free(order);
  wire_rollup_buckets(w, r);
}

/*
 * Upper edge of the bucket in which the q-th value lies, at most the maximum: never below what interpolation
 * gives.
 */
static uint64_t bound_quantile(const struct rollup *e, double q) {
  uint64_t below = 0, want = (uint64_t)ceil(q * (double)(e->in_hist - 1));
  for (uint32_t i = 0; i < NI_HIST_BUCKETS; i++) {
    below += e->hist[i];
    if (below > want)
      return ni_hist_edge(i + 1) < e->max_ns ? ni_hist_edge(i + 1) : e->max_ns;
  }
  return e->max_ns;
}

static int compare_rolled(const void *a, const void *b) {
  const struct ni_rolled *x = a, *y = b;
  int k = NI_BY(x, y, kind);
  if (k == 0)
    k = strcmp(x->func, y->func);
  return k ? k : NI_BY(x, y, msg_bytes, msg_to_bytes, timing);
}

static bool is_group_of(const struct ni_group *g, const struct ni_rolled *o) {
  return g->kind == o->kind && g->timing == o->timing && g->msg_bytes == o->msg_bytes &&
      strcmp(g->func, o->func) == 0;
}

int ni_rollups_build(struct ni_run *r, struct ni_summary *s) {
  struct ni_rollups *t = r->rollups;
  if (!t || !t->n)
    return 0;
  s->rolled = calloc(t->n, sizeof *s->rolled);
  if (!s->rolled)
    return -ENOMEM;
  for (size_t i = 0; i < t->n; i++) {
    const struct rollup *e = &t->entry[i];
    struct ni_rolled *o = &s->rolled[s->n_rolled++];
    const char *func = ni_name_text(&r->names, e->func);
    *o = (struct ni_rolled){.kind = (enum ni_kind)e->kind,
                            .timing = (enum ni_timing)e->timing,
                            .msg_bytes = e->msg_bytes,
                            .msg_to_bytes = e->msg_to_bytes,
                            .count = e->count,
                            .sum_bytes = e->sum_bytes,
                            .sum_ns = e->sum_ns,
                            .min_ns = e->min_ns,
                            .max_ns = e->max_ns,
                            .func = *func ? func : "(others)"};
    s->capped += ni_capped((const uint64_t[]){o->count, o->sum_bytes, o->sum_ns}, 3);
    if (e->in_hist) {
      o->p50_ns = bound_quantile(e, 0.5);
      o->p99_ns = bound_quantile(e, 0.99);
    }
    for (size_t g = 0; !o->msg_to_bytes && g < s->n_groups; g++)
      if (is_group_of(&s->group[g], o))
        o->records += s->group[g].records;
  }
  qsort(s->rolled, s->n_rolled, sizeof *s->rolled, compare_rolled);
  return 0;
}

void ni_rollups_free(struct ni_run *r) {
  if (!r->rollups)
    return;
  free(r->rollups->entry);
  ni_index_free(&r->rollups->at_hash);
  free(r->rollups);
  r->rollups = NULL;
}
