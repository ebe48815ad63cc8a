/*
 * What cells and ranks have summed, added up along a tree whose root is rank 0: from rank 1 to 0, 3 to 2,
 * ...; then 2 to 0, ...
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/model/sums/reading/tables.h"
#include "team.h"

/* wire stores what the rank has, or adds what another had. */
static int along_tree(const struct ni_team *t, int (*wire)(struct ni_wire *w, void *arg), void *arg) {
  for (int k = 1; k < t->size; k <<= 1) {
    struct ni_wire w = {0};
    struct ni_bytes got = {0};
    int e;
    if (t->rank & k) {
      if ((e = wire(&w, arg)) == 0)
        e = w.bad ? -ENOMEM : t->swap(t->rank - k, &w, -1, NULL);
      ni_wire_free(&w);
      return e;
    }
    if (t->rank + k >= t->size)
      continue;
    if ((e = t->swap(-1, NULL, t->rank + k, &got)) < 0)
      return e;
    w = ni_wire_load(got.at, got.n);
    e = wire(&w, arg);
    if (e == 0 && !ni_wire_over(&w))
      e = -EINVAL;
    free(got.at);
    if (e < 0)
      return e;
  }
  return 0;
}

/* ---- a cell -------------------------------------------------------------------------------------------- */

/* Loaded: added. */
static int wire_dist(struct ni_wire *w, struct ni_dist *d) {
  struct ni_dist got = {0};
  if (!w->load)
    return ni_dist_wire(w, d);
  int e = ni_dist_wire(w, &got);
  if (e == 0)
    e = ni_dist_merge(d, &got);
  ni_dist_free(&got);
  return e;
}

static int wire_counts(struct ni_wire *w, uint64_t *to, size_t n) {
  for (size_t i = 0; i < n; i++) {
    uint64_t v = to[i];
    ni_wire_u64(w, &v);
    if (w->load)
      to[i] += v;
  }
  return w->bad ? -EINVAL : 0;
}
#define COUNTS(w, all) wire_counts(w, all, sizeof(all) / sizeof *(all))

static int wire_values(struct ni_wire *w, struct ni_value_sums *v) {
  int e = COUNTS(w, v->added);
  if (e == 0)
    e = wire_dist(w, &v->us);
  return e < 0 ? e : wire_dist(w, &v->busbw);
}

/* Those that there are, with their numbers. */
static int wire_slices(struct ni_wire *w, struct ni_value_sums **at, size_t n) {
  uint32_t there = 0, i = 0;
  int e = 0;
  for (size_t k = 0; !w->load && k < n; k++)
    there += at[k] != NULL;
  ni_wire_u32(w, &there);
  for (uint32_t k = 0; e == 0 && k < there; k++, i++) {
    while (!w->load && !at[i])
      i++;
    ni_wire_u32(w, &i);
    struct ni_value_sums *v = ni_slice_of(&at[i]);
    e = v ? wire_values(w, v) : -ENOMEM;
  }
  return e;
}

/* Codes of algorithm and protocol are each rank's own: by their texts. */
static int wire_mixes(struct ni_wire *w, struct ni_run *r, uint64_t *mix) {
  uint32_t n = 0;
  for (unsigned i = 0; !w->load && i <= NI_MIX_MAX; i++)
    n += mix[i] > 0;
  ni_wire_u32(w, &n);
  for (unsigned i = 0, k = 0; k < n && !w->bad; k++, i++) {
    while (!w->load && !mix[i])
      i++;
    uint32_t algo = w->load ? 0 : r->mix[i].algo, proto = w->load ? 0 : r->mix[i].proto;
    uint64_t records = w->load ? 0 : mix[i];
    uint8_t code = 0;
    ni_wire_name(w, &r->names, &algo);
    ni_wire_name(w, &r->names, &proto);
    ni_wire_u64(w, &records);
    if (!w->load)
      continue;
    int e = ni_find_or_add_mix(r, algo, proto, &code);
    if (e < 0)
      return e;
    mix[code] += records;
  }
  return 0;
}

static int wire_group(struct ni_wire *w, struct ni_cell_sums *c, struct ni_group_sums *g) {
  const struct ni_summary *s = c->s;
  struct ni_dist *const dist[] = {&g->us, &g->busbw, &g->transfer, &g->job};
  uint64_t numbers[] = {g->records, g->operations, g->no_bandwidth, g->tails, g->tail_ns};
  uint32_t slow = g->n_slow;
  int e = 0;
  ni_wire_u64s(w, numbers, 5);
  if (w->load) {
    g->records += numbers[0];
    g->operations += numbers[1];
    g->no_bandwidth += numbers[2];
  }
  if (w->load) {
    g->tails += numbers[3];
    g->tail_ns += numbers[4];
  }
  for (size_t i = 0; e == 0 && i < sizeof dist / sizeof *dist; i++)
    e = wire_dist(w, dist[i]);
  if (e == 0)
    e = wire_mixes(w, c->r, g->mix);
  for (uint32_t i = 0; e == 0 && g->bin && i < s->n_bins; i++)
    e = wire_values(w, &g->bin[i]);
  if (e == 0 && g->comm)
    e = wire_slices(w, g->comm, s->n_comms);
  if (e == 0 && g->process)
    e = wire_slices(w, g->process, s->n_processes);
  ni_wire_u32(w, &slow);
  for (uint32_t i = 0; e == 0 && i < slow; i++) {
    const uint8_t *at = ni_wire_bytes(w, &g->slow[i], sizeof *g->slow);
    struct ni_outlier o;
    if (!at)
      return -ENOMEM;
    if (!w->load)
      continue;
    memcpy(&o, at, sizeof o);
    ni_keep_worst(g->slow, &g->n_slow, &o);
  }
  return e;
}

static int wire_cell(struct ni_wire *w, void *arg) {
  struct ni_cell_sums *c = arg;
  uint64_t numbers[] = {c->records, c->operations, c->stride};
  uint32_t points = c->n_points;
  int e = 0;
  ni_wire_u64s(w, numbers, 3);
  if (!numbers[1])
    return 0;
  if (w->load) {
    c->records += numbers[0];
    c->operations += numbers[1];
  }
  for (unsigned t = 0; e == 0 && t < NI_TIMING_COUNT; t++) {
    bool there = c->group[t] != NULL;
    ni_wire_bool(w, &there);
    struct ni_group_sums *g = there ? ni_group_of(c, t) : NULL;
    if (there)
      e = g ? wire_group(w, c, g) : -ENOMEM;
  }
  if (e == 0)
    e = wire_dist(w, &c->busbw);
  ni_wire_u32(w, &points);
  const uint8_t *at = e == 0 ? ni_wire_bytes(w, c->point, points * sizeof *c->point) : NULL;
  if (e == 0 && !at)
    e = -ENOMEM;
  return e == 0 && w->load && points ? ni_points_add(c, at, points, numbers[2]) : e;
}

int ni_team_cell(struct ni_cell_sums *c) { return along_tree(c->r->team, wire_cell, c); }

/* ---- of processes, communicators and buckets ----------------------------------------------------------- */

struct all_sums {
  struct ni_run *r;
  struct ni_summary *s;
  struct ni_sums *t;
  int64_t *heat_ppm;
};

static int wire_comms(struct ni_wire *w, struct ni_sums *t, size_t n) {
  int e = 0;
  for (size_t i = 0; e == 0 && i < n; i++) {
    struct ni_comm_sums x = t->comm[i], y = x;
    NI_WIRE(w, &y.max_ranks, &y.first_ns, &y.last_ns, &y.first_us, &y.last_us, &y.no_start, &y.any);
    if (w->load) {
      memset(y.added, 0, sizeof y.added);
      e = COUNTS(w, y.added);
      ni_comm_sums_add(&t->comm[i], &y);
    } else {
      e = COUNTS(w, y.added);
    }
  }
  return e;
}

static int wire_rows(struct ni_wire *w, struct all_sums *a, struct ni_bucket_table *t) {
  uint64_t n = t->n;
  int e = 0;
  ni_wire_u64(w, &n);
  for (uint64_t i = 0; e == 0 && i < n; i++) {
    struct ni_bucket_row k = w->load ? (struct ni_bucket_row){0} : t->row[i];
    uint64_t half[2] = {(uint64_t)k.bytes_per_s, (uint64_t)(k.bytes_per_s >> 64)};
    NI_WIRE(w, &k.bucket, &k.comm, &k.log_group, &k.kind, &k.timing);
    ni_wire_u64s(w, k.added, sizeof k.added / sizeof *k.added);
    NI_WIRE(w, &k.max_ns, &half[0], &half[1]);
    ni_wire_kept(w, &a->r->names, &k.func);
    if (!w->load)
      continue;
    k.bytes_per_s = (unsigned __int128)half[1] << 64 | half[0];
    e = w->bad || !k.func ? -EINVAL : ni_bucket_merge(t, &(struct ni_bucket_table){.row = &k, .n = 1});
  }
  return e;
}

static int wire_sums(struct ni_wire *w, void *arg) {
  struct all_sums *a = arg;
  struct ni_sums *t = a->t;
  const struct ni_heat *h = &a->s->heat;
  uint64_t late = t->n_late;
  int e = COUNTS(w, t->all);
  for (size_t i = 0; e == 0 && i < a->s->n_processes; i++)
    e = COUNTS(w, t->process[i].all);
  if (e == 0)
    e = wire_comms(w, t, a->s->n_comms);
  for (size_t i = 0; e == 0 && i < a->s->n_seats; i++)
    e = COUNTS(w, t->seat[i].all);
  ni_wire_u64(w, &late);
  for (uint64_t i = 0; e == 0 && i < late; i++) {
    struct ni_outlier o;
    const uint8_t *at = ni_wire_bytes(w, &t->late[i], sizeof o);
    if (!at)
      return -EINVAL;
    if (w->load)
      ni_sums_keep_late(t, memcpy(&o, at, sizeof o));
  }
  if (e == 0)
    e = wire_rows(w, a, &t->buckets);
  struct ni_tag_sums got = {0}, *tags = w->load ? &got : &t->tags;
  ni_wire_bool(w, &tags->too_many);
  if (e == 0)
    e = wire_rows(w, a, &tags->rows);
  if (e == 0 && w->load)
    e = ni_tag_sums_merge(&t->tags, &got);
  ni_tag_sums_free(&got);
  for (size_t i = 0; e == 0 && i < (size_t)h->rows * h->bins; i++) {
    uint32_t n = h->count[i];
    int64_t ppm = a->heat_ppm[i];
    NI_WIRE(w, &n, &ppm);
    if (w->load) {
      h->count[i] += n;
      a->heat_ppm[i] += ppm;
    }
  }
  return w->bad ? -EINVAL : e;
}

int ni_team_sums(struct ni_run *r, struct ni_summary *s, struct ni_sums *t, int64_t *heat_ppm) {
  struct all_sums a = {r, s, t, heat_ppm};
  return along_tree(r->team, wire_sums, &a);
}
