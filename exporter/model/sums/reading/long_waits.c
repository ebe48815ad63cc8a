#include "long_waits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/bytes/wire.h"
#include "exporter/base/counts.h"
#include "exporter/model/sums/cell_figures.h"
#include "format/hist.h"

/* The first step begins at 4.2 ms: less is jitter. Buckets of a histogram are a fourth of an octave. */
#define FIRST_LOG2 22u
#define FIRST_BUCKET (1u + 4u * (FIRST_LOG2 - NI_HIST_FIRST_LOG2))
#define BUCKETS_OF_STEP 2u

_Static_assert(FIRST_BUCKET + BUCKETS_OF_STEP * (NI_LONG_STEPS - 1) == NI_HIST_BUCKETS - 1,
               "the last step is the last bucket");

/* A member has two: of collectives in which all do the same, of the rest. */
enum { OF_MEMBER = 2 };

static struct ni_long_waits *find_or_add(struct ni_run *r, uint32_t member, bool is_rest) {
  struct ni_long_table *t = &r->long_waits;
  const size_t at = (size_t)OF_MEMBER * member + is_rest, had = t->cap;
  if (at >= t->cap) {
    if (!ni_array_more(&t->item, &t->cap, at + 1, sizeof *t->item))
      return NULL;
    memset(t->item + had, 0, (t->cap - had) * sizeof *t->item);
  }
  if (!t->item[at])
    t->item[at] = calloc(1, sizeof *t->item[at]);
  return t->item[at];
}

static void add_waits(struct ni_long_waits *to, const struct ni_long_waits *x) {
  ni_add_capped(&to->count, x->count);
  ni_add_capped(&to->ns, x->ns);
  ni_add_capped(&to->unknown, x->unknown);
  for (unsigned i = 0; i < NI_LONG_STEPS; i++)
    ni_add_capped(&to->n[i], x->n[i]);
}

int ni_long_waits_add(struct ni_run *r, uint32_t member, const char *func, const struct ni_rollup_line *l) {
  const bool is_collective = strcmp(l->kind, "coll") == 0;
  uint64_t in_hist = 0;
  if (l->timing == NI_TIMING_COLLECTIVE_CPU)
    return 0;
  struct ni_long_waits *to = find_or_add(r, member, !is_collective || ni_func_has_root(func));
  if (!to)
    return -ENOMEM;
  struct ni_long_waits x = {.count = l->count, .ns = l->sum_ns};
  for (unsigned i = 0; i < NI_HIST_BUCKETS; i++) {
    ni_add_capped(&in_hist, l->hist[i]);
    if (i >= FIRST_BUCKET)
      ni_add_capped(&x.n[(i - FIRST_BUCKET) / BUCKETS_OF_STEP], l->hist[i]);
  }
  x.unknown = in_hist < l->count ? l->count - in_hist : 0;
  add_waits(to, &x);
  return 0;
}

void ni_long_waits_wire(struct ni_wire *w, struct ni_run *r, const struct ni_partial_numbers *x) {
  for (size_t i = 0; i < OF_MEMBER * x->member.n && !w->bad; i++) {
    const uint32_t member = x->member.number[i / OF_MEMBER];
    const size_t at = (size_t)OF_MEMBER * member + i % OF_MEMBER;
    struct ni_long_waits v = {0};
    bool any = !w->load && at < r->long_waits.cap && r->long_waits.item[at];
    if (any)
      v = *r->long_waits.item[at];
    ni_wire_bool(w, &any);
    if (!any)
      continue;
    NI_WIRE(w, &v.count, &v.ns, &v.unknown);
    ni_wire_u64s(w, v.n, NI_LONG_STEPS);
    if (!w->load || w->bad)
      continue;
    struct ni_long_waits *to = find_or_add(r, member, i % OF_MEMBER);
    if (to)
      add_waits(to, &v);
    else
      w->bad = true;
  }
}

int ni_long_waits_build(const struct ni_run *r, struct ni_summary *s) {
  const struct ni_long_table *t = &r->long_waits;
  const bool is_part = r->opt.filter.coll.n || r->opt.filter.comm.n;
  s->has_left_out = ni_run_has_left_out(r, NI_KIND_COLL) || ni_run_has_left_out(r, NI_KIND_P2P) || is_part;
  if (!t->cap || is_part)
    return 0;
  s->long_waits = calloc(s->n_seats + 1, sizeof *s->long_waits);
  if (!s->long_waits)
    return -ENOMEM;
  for (uint32_t i = 0; i < r->who.n_members; i++) {
    struct ni_seat_waits *x = &s->long_waits[r->seat_at[i]];
    for (size_t k = 0; k < OF_MEMBER; k++) {
      const size_t at = (size_t)OF_MEMBER * i + k;
      if (at < t->cap && t->item[at])
        add_waits(k ? &x->rest : &x->alike, t->item[at]);
    }
  }
  return 0;
}

void ni_long_waits_free(struct ni_run *r) {
  for (size_t i = 0; i < r->long_waits.cap; i++)
    free(r->long_waits.item[i]);
  free(r->long_waits.item);
  r->long_waits = (struct ni_long_table){0};
}

double ni_long_waits_edge_us(unsigned step) {
  return (double)ni_hist_edge(FIRST_BUCKET + BUCKETS_OF_STEP * step) / 1e3;
}

double ni_long_waits_middle_us(unsigned step) {
  const double from = ni_long_waits_edge_us(step);
  return step + 1 < NI_LONG_STEPS ? (from + ni_long_waits_edge_us(step + 1)) / 2 : from;
}
