#include "uneven.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "peer_groups.h"
#include "exporter/base/order.h"
#include "exporter/base/sets/disjoint.h"
#include "exporter/model/sums/ranks/usual_step.h"
#include "exporter/model/sums/ranks/quantile.h"

/* Bytes of a step of one rank on its slots of one shape. */
struct load {
  uint32_t cls;
  uint64_t shape;
  uint32_t rank;
  float bytes;
};
static NI_ORDER_BY(by_like, struct load, cls, shape, rank);

#define ALL_MESSAGES 0 /* the shape of messages: how many go to which peer says nothing */

static bool is_peer_load(const struct load *a, const struct load *b) {
  return a->cls == b->cls && a->shape == b->shape;
}

static size_t gather_loads(const struct ni_blame *b, struct load *load) {
  size_t n = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    const struct ni_blame_rank *o = &b->rank[i];
    double messages = 0;
    if (!o->judged || o->cls == NI_BLAME_NONE)
      continue;
    for (uint32_t k = 0; k < o->n_slots; k++) {
      const struct ni_blame_slot *s = &o->slot[k];
      if (s->kind != NI_BLAME_COLL)
        messages += (double)s->bytes;
      else if (s->bytes)
        load[n++] = (struct load){o->cls, s->shape, i, (float)((double)s->bytes / o->n_steps)};
    }
    if (messages > 0)
      load[n++] = (struct load){o->cls, ALL_MESSAGES, i, (float)(messages / o->n_steps)};
  }
  return n;
}

/*
 * Of ranks with the same work: who has more than the lower quartile, and more than chance gives. x: room for
 * n.
 */
static void compare_loads(const struct load *load, size_t n, float *x, float *more) {
  for (size_t i = 0; i < n; i++)
    x[i] = load[i].bytes;
  const float baseline = ni_blame_quantile(x, n, n == 2 ? 0 : NI_CAUSE_BASELINE);
  if (n < 2 || !(baseline > 0))
    return;
  /* Those that have more are no measure of how far the others lie apart. */
  size_t below = 0;
  for (size_t i = 0; i < n; i++)
    if (load[i].bytes <= baseline * (1 + NI_UNEVEN_BYTES))
      x[below++] = fabsf(load[i].bytes - baseline);
  const float apart = ni_blame_quantile(x, below, 0.5);
  for (size_t i = 0; i < n; i++) {
    float over = load[i].bytes - baseline;
    const bool has_more = over >= NI_UNEVEN_APART * apart && over >= NI_UNEVEN_REPLICA * baseline;
    if (has_more)
      more[load[i].rank] = fmaxf(more[load[i].rank], over / baseline);
  }
}

int ni_uneven_find(const struct ni_blame *b, float *more) {
  size_t slots = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    slots += b->rank[i].n_slots + 1;
    more[i] = 0;
  }
  struct load *load = malloc((slots + 1) * sizeof *load);
  float *x = malloc((slots + 1) * sizeof *x);
  int e = load && x ? 0 : -ENOMEM;
  size_t n = e == 0 ? gather_loads(b, load) : 0;
  if (n)
    qsort(load, n, sizeof *load, by_like);
  for (size_t from = 0, to; from < n; from = to) {
    for (to = from + 1; to < n && is_peer_load(&load[to], &load[from]); to++) {}
    compare_loads(load + from, to - from, x, more);
  }
  free(load);
  free(x);
  return e;
}

/* Messages to many peers (experts) join nobody: each rank has its own share there. */
static bool joins_replica(const struct ni_blame *b, const struct ni_blame_link *l, const bool *uneven) {
  const struct ni_blame_rank *o = &b->rank[l->rank[0]];
  bool all = l->n_ranks > 1;
  for (uint32_t i = 0; i < l->n_ranks; i++)
    all &= uneven[l->rank[i]];
  for (uint32_t k = 0; all && l->from >= 0 && k < o->n_slots; k++)
    if (o->slot[k].link != NI_BLAME_NONE && &b->link[o->slot[k].link] == l)
      all = !ni_places_is_group(o, k);
  return all;
}

void ni_uneven_find_replicas(const struct ni_blame *b, const bool *uneven, uint32_t *part) {
  for (uint32_t i = 0; i < b->n_ranks; i++)
    part[i] = uneven[i] ? i : NI_BLAME_NONE;
  for (uint32_t k = 0; k < b->n_links; k++) {
    const struct ni_blame_link *l = &b->link[k];
    const bool joined = joins_replica(b, l, uneven);
    for (uint32_t i = 1; joined && i < l->n_ranks; i++)
      ni_disjoint_join(part, l->rank[0], l->rank[i]);
  }
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (uneven[i])
      part[i] = ni_disjoint_root(part, i);
}
