#include "buckets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "exporter/collect/set.h"
#include "exporter/model/counters/series.h"
#include "exporter/model/sums/state.h"

static uint64_t hash_bucket_key(const struct ni_bucket_row *k) {
  return ni_hash(
      ni_hash(ni_hash((uint64_t)k->bucket, (uint64_t)k->comm << 32 | k->log_group), (uintptr_t)k->func),
      (uint64_t)k->kind << 8 | k->timing);
}

static bool is_same_bucket(const struct ni_bucket_row *a, const struct ni_bucket_row *b) {
  return a->bucket == b->bucket && a->comm == b->comm && a->log_group == b->log_group && a->func == b->func &&
      a->kind == b->kind && a->timing == b->timing;
}

int ni_bucket_find_or_add(struct ni_bucket_table *t, const struct ni_bucket_row *key,
                          struct ni_bucket_row **out) {
  const uint64_t hash = hash_bucket_key(key);
  uint32_t k;
  for (size_t at = 0; (k = ni_index_next(&t->at_hash, hash, &at)) != NI_INDEX_NONE;)
    if (is_same_bucket(&t->row[k], key)) {
      *out = &t->row[k];
      return 0;
    }
  if (t->n == NI_BUCKET_ROWS_MAX)
    return -E2BIG;
  if (!ni_array_room(t->row, t->n, t->cap) || ni_index_add(&t->at_hash, hash, (uint32_t)t->n) < 0)
    return -ENOMEM;
  *out = &t->row[t->n++];
  **out = (struct ni_bucket_row){.bucket = key->bucket,
                                 .comm = key->comm,
                                 .log_group = key->log_group,
                                 .func = key->func,
                                 .kind = key->kind,
                                 .timing = key->timing};
  return 0;
}

int ni_bucket_merge(struct ni_bucket_table *to, const struct ni_bucket_table *from) {
  int e = 0;
  for (size_t i = 0; i < from->n; i++) {
    const struct ni_bucket_row *y = &from->row[i];
    struct ni_bucket_row *x;
    if ((e = ni_bucket_find_or_add(to, y, &x)) < 0)
      return e;
    ni_add_sums(x->added, y->added);
    x->bytes_per_s += y->bytes_per_s;
    if (y->max_ns > x->max_ns)
      x->max_ns = y->max_ns;
  }
  return 0;
}

static int compare_buckets_by_time(const void *a, const void *b) {
  const struct ni_bucket_row *x = a, *y = b;
  int k = NI_BY(x, y, bucket, log_group, comm, kind);
  if (k == 0)
    k = strcmp(x->func, y->func);
  return k ? k : NI_BY(x, y, timing);
}

void ni_bucket_sort(struct ni_bucket_table *t) {
  if (t->n)
    qsort(t->row, t->n, sizeof *t->row, compare_buckets_by_time);
  ni_index_free(&t->at_hash);
}

void ni_bucket_free(struct ni_bucket_table *t) {
  ni_index_free(&t->at_hash);
  free(t->row);
  *t = (struct ni_bucket_table){0};
}

/* ---- counters of hosts ---- */

static bool is_same_host_bucket(const struct ni_host_bucket *a, const struct ni_host_bucket *b) {
  return a->bucket == b->bucket && a->host == b->host && a->source == b->source && a->device == b->device &&
      a->counter == b->counter;
}

static uint64_t hash_host_bucket(const struct ni_host_bucket *k) {
  const uint64_t host = ni_hash(ni_hash((uint64_t)k->bucket, (uintptr_t)k->host), (uintptr_t)k->source);
  return ni_hash(ni_hash(host, (uintptr_t)k->device), (uintptr_t)k->counter);
}

static int find_or_add_host_bucket(struct ni_host_buckets *t, const struct ni_host_bucket *key,
                                   struct ni_host_bucket **out) {
  const uint64_t hash = hash_host_bucket(key);
  uint32_t k;
  for (size_t at = 0; (k = ni_index_next(&t->at_hash, hash, &at)) != NI_INDEX_NONE;)
    if (is_same_host_bucket(&t->row[k], key)) {
      *out = &t->row[k];
      return 0;
    }
  if (t->n == NI_BUCKET_ROWS_MAX)
    return -E2BIG;
  if (!ni_array_room(t->row, t->n, t->cap) || ni_index_add(&t->at_hash, hash, (uint32_t)t->n) < 0)
    return -ENOMEM;
  *out = &t->row[t->n++];
  **out = *key;
  (*out)->samples = 0;
  (*out)->sum = 0;
  (*out)->seconds = 0;
  return 0;
}

/* What a counter did in its bucket becomes a row; not where it stood still. */
static int flush_counter(struct ni_host_buckets *t, struct ni_host_bucket *x) {
  struct ni_host_bucket *row;
  int e = 0;
  const bool has_moved = x->samples && (x->kind == NI_METRIC_GAUGE || x->sum);
  if (has_moved && (e = find_or_add_host_bucket(t, x, &row)) == 0) {
    row->samples += x->samples;
    row->sum += x->sum;
    row->seconds += x->seconds;
    if (x->min < row->min)
      row->min = x->min;
    if (x->max > row->max)
      row->max = x->max;
  }
  x->samples = 0;
  x->sum = 0;
  x->seconds = 0;
  x->min = INT64_MAX;
  x->max = INT64_MIN;
  return e;
}

int ni_host_buckets_flush(struct ni_host_buckets *t) {
  int e = 0;
  for (size_t i = 0; e == 0 && i < t->n_now; i++)
    e = flush_counter(t, &t->now[i]);
  t->n_now = 0;
  return e;
}

int ni_host_buckets_begin_set(struct ni_run *r, struct ni_host_buckets *t, const char *host,
                              const struct ni_set *set) {
  int e = ni_host_buckets_flush(t);
  if (e < 0)
    return e;
  if (set->n_counters > t->cap_now && !ni_array_exact(&t->now, &t->cap_now, set->n_counters, sizeof *t->now))
    return -ENOMEM;
  for (size_t k = 0; e == 0 && k < set->n_counters; k++) {
    const struct ni_counter *c = &set->counter[k];
    const struct ni_entity *of = &set->entity[c->entity];
    const char *text[] = {host, ni_source_name(of->source), of->name, c->name, c->what.unit};
    uint32_t code[5];
    for (size_t i = 0; e == 0 && i < 5; i++)
      e = ni_name(&r->names, NULL, text[i], &code[i]);
    if (e < 0)
      break;
    for (size_t i = 0; i < 5; i++)
      text[i] = ni_name_text(&r->names, code[i]);
    t->now[k] = (struct ni_host_bucket){.host = text[0],
                                        .source = text[1],
                                        .device = text[2],
                                        .counter = text[3],
                                        .unit = text[4],
                                        .kind = c->what.kind,
                                        .scale = c->what.scale,
                                        .min = INT64_MAX,
                                        .max = INT64_MIN};
    t->n_now = k + 1;
  }
  return e;
}

int ni_host_buckets_add(struct ni_host_buckets *t, uint64_t width_ns, const struct ni_series_sample *after,
                        const struct ni_reading *before) {
  int e = 0;
  for (size_t k = 0; e == 0 && k < t->n_now; k++) {
    struct ni_host_bucket *x = &t->now[k];
    const struct ni_counter *c = &after->set->counter[k];
    const struct ni_change d =
        ni_change_of(&c->what, &before[k], &after->reading[k], after->set->entity[c->entity].link_bytes_s);
    const bool is_gauge = x->kind == NI_METRIC_GAUGE;
    const bool has_value =
        d.state == NI_CHANGE_NONE || d.state == NI_CHANGE_CHANGED || d.state == NI_CHANGE_LEVEL;
    const int64_t bucket = ni_bucket_of(after->reading[k].real_ns - !is_gauge, width_ns);
    const int64_t value = is_gauge ? (int64_t)after->reading[k].value : d.delta;
    if (!has_value)
      continue;
    if (x->samples && x->bucket != bucket)
      e = flush_counter(t, x);
    x->bucket = bucket;
    x->samples++;
    x->sum += value;
    x->seconds += d.seconds;
    if (is_gauge && value < x->min)
      x->min = value;
    if (is_gauge && value > x->max)
      x->max = value;
  }
  return e;
}

static int compare_host_buckets(const void *a, const void *b) {
  const struct ni_host_bucket *x = a, *y = b;
  const char *const p[] = {x->host, x->source, x->device, x->counter},
                    *const q[] = {y->host, y->source, y->device, y->counter};
  int k = NI_BY(x, y, bucket);
  for (size_t i = 0; k == 0 && i < 4; i++)
    k = strcmp(p[i], q[i]);
  return k;
}

void ni_buckets_fail_too_many(struct ni_run *r, const char *file, const char *each) {
  ni_run_fail(r, -E2BIG,
              "--time-granularity: more than %u rows in %s.csv, one for each bucket, %s; give wider buckets, "
              "or a part "
              "of the run by --since and --until",
              NI_BUCKET_ROWS_MAX, file, each);
}

void ni_buckets_end(struct ni_run *r, struct ni_summary *s) {
  struct ni_buckets *b = &s->buckets;
  if (!b->width_ns)
    return;
  b->origin_ns = r->tally.origin_ns;
  const int64_t first = ni_bucket_of(b->origin_ns, b->width_ns);
  b->first_ns = first * (int64_t)b->width_ns;
  b->rolled = r->rolled;
  r->rolled = (struct ni_bucket_table){0};
  struct ni_bucket_table *tables[] = {&b->records, &b->rolled};
  for (int t = 0; t < 2; t++) {
    ni_bucket_sort(tables[t]);
    for (size_t i = 0; i < tables[t]->n; i++) {
      tables[t]->row[i].bucket -= first;
      s->capped += ni_capped(tables[t]->row[i].added, sizeof tables[t]->row[i].added / sizeof(uint64_t));
    }
  }
  if (b->hosts.n)
    qsort(b->hosts.row, b->hosts.n, sizeof *b->hosts.row, compare_host_buckets);
  for (size_t i = 0; i < b->hosts.n; i++)
    b->hosts.row[i].bucket -= first;
}
