#include "buckets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/collect/set.h"
#include "exporter/model/counters/series.h"
#include "exporter/model/sums/state.h"

static uint64_t hash_of(const struct ni_bucket_row *k) {
  return ni_hash(ni_hash(ni_hash((uint64_t)k->bucket, (uint64_t)k->comm << 32 | k->log_group), (uintptr_t)k->func),
                 (uint64_t)k->kind << 8 | k->timing);
}

static bool same(const struct ni_bucket_row *a, const struct ni_bucket_row *b) {
  return a->bucket == b->bucket && a->comm == b->comm && a->log_group == b->log_group && a->func == b->func && a->kind == b->kind &&
         a->timing == b->timing;
}

int ni_bucket_find(struct ni_bucket_table *t, const struct ni_bucket_row *key, struct ni_bucket_row **out) {
  const uint64_t hash = hash_of(key);
  uint32_t k;
  for (size_t at = 0; (k = ni_index_next(&t->at_hash, hash, &at)) != NI_INDEX_NONE;)
    if (same(&t->row[k], key)) {
      *out = &t->row[k];
      return 0;
    }
  if (t->n == NI_BUCKET_ROWS_MAX) return -E2BIG;
  if (!ni_array_room(t->row, t->n, t->cap) || ni_index_add(&t->at_hash, hash, (uint32_t)t->n) < 0) return -ENOMEM;
  *out = &t->row[t->n++];
  **out = (struct ni_bucket_row){.bucket = key->bucket, .comm = key->comm, .log_group = key->log_group, .func = key->func,
                                 .kind = key->kind, .timing = key->timing};
  return 0;
}

int ni_bucket_merge(struct ni_bucket_table *to, const struct ni_bucket_table *from) {
  int e = 0;
  for (size_t i = 0; i < from->n; i++) {
    const struct ni_bucket_row *y = &from->row[i];
    struct ni_bucket_row *x;
    if ((e = ni_bucket_find(to, y, &x)) < 0) return e;
    x->records += y->records;
    x->operations += y->operations;
    x->bytes += y->bytes;
    x->ns += y->ns;
    x->no_bandwidth += y->no_bandwidth;
    x->late += y->late;
    x->late_ns += y->late_ns;
    x->bytes_per_s += y->bytes_per_s;
    if (y->max_ns > x->max_ns) x->max_ns = y->max_ns;
  }
  return 0;
}

#define ORDER(field) if (x->field != y->field) return x->field < y->field ? -1 : 1

static int by_time(const void *a, const void *b) {
  const struct ni_bucket_row *x = a, *y = b;
  ORDER(bucket);
  ORDER(log_group);
  ORDER(comm);
  ORDER(kind);
  int k = strcmp(x->func, y->func);
  if (k) return k;
  ORDER(timing);
  return 0;
}

void ni_bucket_sort(struct ni_bucket_table *t) {
  if (t->n) qsort(t->row, t->n, sizeof *t->row, by_time);
  ni_index_free(&t->at_hash);
}

void ni_bucket_free(struct ni_bucket_table *t) {
  ni_index_free(&t->at_hash);
  free(t->row);
  *t = (struct ni_bucket_table){0};
}

/* ---- counters of hosts ---- */

static int find_host(struct ni_host_buckets *t, const struct ni_host_bucket *key, struct ni_host_bucket **out) {
  const uint64_t hash = ni_hash(ni_hash(ni_hash(ni_hash((uint64_t)key->bucket, (uintptr_t)key->host), (uintptr_t)key->source),
                                        (uintptr_t)key->device), (uintptr_t)key->counter);
  uint32_t k;
  for (size_t at = 0; (k = ni_index_next(&t->at_hash, hash, &at)) != NI_INDEX_NONE;) {
    struct ni_host_bucket *x = &t->row[k];
    if (x->bucket != key->bucket || x->host != key->host || x->source != key->source || x->device != key->device ||
        x->counter != key->counter)
      continue;
    *out = x;
    return 0;
  }
  if (t->n == NI_BUCKET_ROWS_MAX) return -E2BIG;
  if (!ni_array_room(t->row, t->n, t->cap) || ni_index_add(&t->at_hash, hash, (uint32_t)t->n) < 0) return -ENOMEM;
  *out = &t->row[t->n++];
  **out = *key;
  return 0;
}

static int add_change(struct ni_run *r, struct ni_host_buckets *t, const struct ni_series_sample *s, const struct ni_entity *e,
                      uint32_t k, const struct ni_change *c) {
  const struct ni_counter *x = &s->set->counter[k];
  const bool level = c->state == NI_CHANGE_LEVEL;
  const int64_t at = s->reading[k].real_ns, value = level ? (int64_t)s->reading[k].value : c->delta;
  struct ni_host_bucket key = {.bucket = ni_bucket_of(level ? at : at - 1, r->opt.bucket_ns), .kind = (uint32_t)x->what.kind,
                               .scale = x->what.scale, .min = INT64_MAX, .max = INT64_MIN}, *row = NULL;
  const struct {
    const char **to, *text;
  } texts[] = {{&key.host, s->host}, {&key.source, ni_source_name(e->source)}, {&key.device, e->name}, {&key.counter, x->name},
               {&key.unit, x->what.unit}};
  int err = 0;
  for (size_t i = 0; err == 0 && i < sizeof texts / sizeof *texts; i++) {
    uint32_t code = 0;
    err = ni_name(&r->names, NULL, texts[i].text, &code);
    *texts[i].to = ni_name_text(&r->names, code);
  }
  if (err == 0) err = find_host(t, &key, &row);
  if (err < 0) return err;
  row->samples++;
  row->sum += value;
  row->seconds += level ? 0 : c->seconds;
  if (level && value < row->min) row->min = value;
  if (level && value > row->max) row->max = value;
  return 0;
}

int ni_host_buckets_add(struct ni_run *r, struct ni_host_buckets *t, const struct ni_series_sample *after,
                        const struct ni_reading *before) {
  int err = 0;
  for (size_t i = 0; err == 0 && i < after->set->n_entities; i++) {
    const struct ni_entity *e = &after->set->entity[i];
    for (uint32_t k = e->first; err == 0 && k < e->first + e->n; k++) {
      struct ni_change c = ni_change_of(&after->set->counter[k].what, &before[k], &after->reading[k], e->link_bytes_s);
      if (c.state == NI_CHANGE_CHANGED || c.state == NI_CHANGE_LEVEL) err = add_change(r, t, after, e, k, &c);
    }
  }
  return err;
}

static int by_host(const void *a, const void *b) {
  const struct ni_host_bucket *x = a, *y = b;
  ORDER(bucket);
  const char *const p[] = {x->host, x->source, x->device, x->counter}, *const q[] = {y->host, y->source, y->device, y->counter};
  for (size_t i = 0; i < 4; i++) {
    int k = strcmp(p[i], q[i]);
    if (k) return k;
  }
  return 0;
}

void ni_buckets_too_many(struct ni_run *r) {
  ni_run_fail(r, -E2BIG, "--time-granularity: more than %u rows, one for each bucket, communicator and function in which something "
              "ran; give wider buckets, or a part of the run by --since and --until", NI_BUCKET_ROWS_MAX);
}

void ni_buckets_end(struct ni_run *r, struct ni_summary *s) {
  struct ni_buckets *b = &s->buckets;
  if (!b->width_ns) return;
  b->origin_ns = r->tally.origin_ns;
  const int64_t first = ni_bucket_of(b->origin_ns, b->width_ns);
  b->first_ns = first * (int64_t)b->width_ns;
  b->rolled = r->rolled;
  r->rolled = (struct ni_bucket_table){0};
  struct ni_bucket_table *tables[] = {&b->records, &b->rolled};
  for (int t = 0; t < 2; t++) {
    ni_bucket_sort(tables[t]);
    for (size_t i = 0; i < tables[t]->n; i++) tables[t]->row[i].bucket -= first;
  }
  if (b->hosts.n) qsort(b->hosts.row, b->hosts.n, sizeof *b->hosts.row, by_host);
  for (size_t i = 0; i < b->hosts.n; i++) b->hosts.row[i].bucket -= first;
}
