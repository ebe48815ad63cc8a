#include "islands.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/base/mix.h"
#include "exporter/base/sets/disjoint.h"

/* It has operations in most bins of the rank. */
static bool is_used_in_most(const struct ni_blame_rank *o, uint32_t slot) {
  uint32_t with = 0;
  for (uint32_t k = 0; slot < o->max_slots && k < o->n_bins; k++)
    with += o->link_cell[(size_t)k * o->max_slots + slot].n > 0;
  return with * 2 > o->n_bins;
}

/* first: by communicator, a rank that uses it in most steps; NI_BLAME_NONE: none does. */
static void join_ranks(const struct ni_blame *b, uint32_t *up, uint32_t *first) {
  for (uint32_t c = 0; c < b->s->n_comms; c++)
    first[c] = NI_BLAME_NONE;
  ni_disjoint_begin(up, b->n_ranks);
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    const struct ni_blame_rank *o = &b->rank[i];
    for (uint32_t k = 0; o->judged && k < o->n_slots; k++) {
      if (!is_used_in_most(o, k))
        continue;
      uint32_t *of = &first[o->slot[k].comm];
      if (*of == NI_BLAME_NONE)
        *of = i;
      ni_disjoint_join(up, i, *of);
    }
  }
}

/* Numbers the islands; island: of ranks that are not judged NI_BLAME_NONE. Returns how many there are. */
static uint32_t number_islands(const struct ni_blame *b, uint32_t *up, uint32_t *island) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    island[i] = NI_BLAME_NONE;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    if (!b->rank[i].judged)
      continue;
    uint32_t *of = &island[ni_disjoint_root(up, i)];
    if (*of == NI_BLAME_NONE)
      *of = n++;
    island[i] = *of;
  }
  return n;
}

bool ni_islands_are_joined(const struct ni_blame *b, const struct ni_blame_link *l) {
  for (uint32_t i = 1; i < l->n_ranks; i++)
    if (b->island[l->rank[i]] != b->island[l->rank[0]])
      return true;
  return false;
}

/* Kinds of links that join islands in a bin, as one number: links of one class count once. */
static void add_exchanges(const struct ni_blame *b, uint32_t cls, uint64_t *exchange) {
  for (uint32_t k = 0; k < b->bins; k++) {
    bool there = false;
    for (uint32_t i = 0; i < b->n_links && !there; i++) {
      const struct ni_blame_link *l = &b->link[i];
      there = l->cls == cls && !isnan(l->us[k]) && ni_islands_are_joined(b, l);
    }
    exchange[k] += there ? ni_mix(cls + 1) : 0;
  }
}

static bool has_any(const uint64_t *exchange, uint32_t bins) {
  for (uint32_t k = 0; k < bins; k++)
    if (exchange[k])
      return true;
  return false;
}

static void leave_out(struct ni_blame *b) {
  free(b->island);
  free(b->exchange);
  b->island = NULL;
  b->exchange = NULL;
  b->n_islands = 0;
}

/* Operations of the link in a bin, on the first rank that has them there. */
static uint32_t count_ops(const struct ni_blame *b, uint32_t link, uint32_t bin) {
  const struct ni_blame_link *l = &b->link[link];
  for (uint32_t i = 0; i < l->n_ranks; i++) {
    const struct ni_blame_rank *o = &b->rank[l->rank[i]];
    const struct ni_blame_cell *c = ni_blame_cell_at(b, l->rank[i], bin);
    for (uint32_t k = 0; c && k < o->n_slots && k < o->max_slots; k++) {
      const uint32_t n = o->link_cell[(size_t)(c - o->cell) * o->max_slots + k].n;
      if (o->slot[k].link == link && n)
        return n;
    }
  }
  return 0;
}

/*
 * What islands exchange comes in a few operations one after the other, and the rank that came last waits in
 * none of them. So all of them count, not the shortest one alone: a network that is slow for a moment slows
 * one.
 */
static void measure_exchange(const struct ni_blame *b, uint32_t link) {
  struct ni_blame_link *l = &b->link[link];
  for (uint32_t k = 0; l->within && k < b->bins; k++) {
    const uint32_t n = isnan(l->us[k]) ? 0 : count_ops(b, link, k);
    if (n)
      l->us[k] = fmaxf(l->us[k], l->within[k] / (float)n);
  }
}

int ni_islands_find(struct ni_blame *b) {
  uint32_t *up = malloc((b->n_ranks + 1) * sizeof *up);
  uint32_t *first = malloc((b->s->n_comms + 1) * sizeof *first);
  b->island = malloc((b->n_ranks + 1) * sizeof *b->island);
  const bool had_room = up && first && b->island;
  if (had_room) {
    join_ranks(b, up, first);
    b->n_islands = number_islands(b, up, b->island);
  }
  for (uint32_t i = 0; b->n_islands > 1 && i < b->n_links; i++)
    if (ni_islands_are_joined(b, &b->link[i]))
      measure_exchange(b, i);
  if (b->n_islands < 2)
    leave_out(b);
  free(up);
  free(first);
  return had_room ? 0 : -ENOMEM;
}

int ni_islands_find_exchanges(struct ni_blame *b) {
  if (!b->island)
    return 0;
  b->exchange = calloc(b->bins + 1, sizeof *b->exchange);
  if (!b->exchange)
    return -ENOMEM;
  for (uint32_t c = 0; c < NI_BLAME_LINK_CLASSES; c++)
    add_exchanges(b, c, b->exchange);
  if (!has_any(b->exchange, b->bins))
    leave_out(b);
  return 0;
}

float ni_islands_measure_wait(const struct ni_blame *b, uint32_t rank, uint32_t bin) {
  const struct ni_blame_rank *o = &b->rank[rank];
  const struct ni_blame_cell *c = ni_islands_meet(b, bin) ? ni_blame_cell_at(b, rank, bin) : NULL;
  const struct ni_blame_link_cell *at = c ? &o->link_cell[(size_t)(c - o->cell) * o->max_slots] : NULL;
  float wait = 0;
  for (uint32_t k = 0; at && k < o->n_slots && k < o->max_slots; k++) {
    const struct ni_blame_link *l = o->slot[k].link == NI_BLAME_NONE ? NULL : &b->link[o->slot[k].link];
    if (!l || !at[k].n || !ni_islands_are_joined(b, l))
      continue;
    const float transfer = l->us[bin] * (float)at[k].n;
    wait += at[k].exec > transfer ? at[k].exec - transfer : 0;
  }
  return wait;
}
