#include "order.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/base/order.h"
#include "exporter/base/sets/disjoint.h"
#include "knot.h"
#include "program.h"

#define OWED 64 /* operations that one rank is missing from, which are compared */

static size_t count_waiting(const struct ni_hang_knot *k) {
  return ni_hang_count_inside(k) + k->count[NI_HANG_QUEUED];
}

static int by_weight(const void *a, const void *b) {
  const struct ni_hang_knot *x = a, *y = b;
  if (x->hangs != y->hangs)
    return x->hangs ? -1 : 1;
  if (x->past != y->past)
    return x->past ? 1 : -1;
  if (x->root != y->root)
    return x->root ? -1 : 1;
  if (ni_hang_is_told(x) != ni_hang_is_told(y))
    return ni_hang_is_told(x) ? -1 : 1;
  if (!x->ring != !y->ring)
    return !x->ring ? -1 : 1;
  if (x->root && x->weight != y->weight)
    return x->weight > y->weight ? -1 : 1;
  if (x->ring != y->ring)
    return x->ring < y->ring ? -1 : 1;
  if (x->ring && x->behind != y->behind)
    return y->behind ? -1 : 1;
  if (x->ring && ni_hang_is_one_too_many(x) != ni_hang_is_one_too_many(y))
    return ni_hang_is_one_too_many(x) ? -1 : 1;
  if (x->ring && x->missing != y->missing)
    return x->missing < y->missing ? -1 : 1;
  if (x->ring && x->went_on_ns != y->went_on_ns)
    return x->went_on_ns > y->went_on_ns ? -1 : 1;
  if (x->root && x->cause_ns != y->cause_ns)
    return x->cause_ns < y->cause_ns ? -1 : 1;
  if (x->root && x->cause != y->cause)
    return x->cause < y->cause ? -1 : 1;
  if (x->comes_first != y->comes_first)
    return x->comes_first ? -1 : 1;
  /*
   * One side of a transfer may come to it long before the other side. The ranks of a collective come to it
   * together.
   */
  if (x->root && x->kind != y->kind)
    return x->kind == NI_KIND_COLL ? -1 : 1;
  size_t p = count_waiting(x), q = count_waiting(y);
  if (p != q)
    return p > q ? -1 : 1;
  if (x->root && x->owed_ns != y->owed_ns)
    return x->owed_ns < y->owed_ns ? -1 : 1;
  if (x->first_ns != y->first_ns)
    return x->first_ns < y->first_ns ? -1 : 1;
  if (x->any->who->hash != y->any->who->hash)
    return x->any->who->hash < y->any->who->hash ? -1 : 1;
  return (int)x->kind - (int)y->kind;
}

/* leads_to names a place in the array that is about to be sorted. */
static int sort_knots(struct ni_hang_verdict *v) {
  int32_t *now = calloc(v->n + 1, sizeof *now);
  if (!now)
    return -ENOMEM;
  for (size_t i = 0; i < v->n; i++)
    v->knot[i].id = (uint32_t)i;
  if (v->n > 1)
    qsort(v->knot, v->n, sizeof *v->knot, by_weight);
  for (size_t i = 0; i < v->n; i++)
    now[v->knot[i].id] = (int32_t)i;
  for (size_t i = 0; i < v->n; i++)
    if (v->knot[i].leads_to >= 0)
      v->knot[i].leads_to = now[v->knot[i].leads_to];
  free(now);
  return 0;
}

/*
 * A rank that is a cause of a root. Among the roots that have a cause in common, the earliest call comes
 * first.
 */
struct owed {
  uint64_t seat;
  uint32_t knot;
};

static NI_ORDER_BY(by_seat, struct owed, seat, knot);

static bool is_lone_root(const struct ni_hang_knot *k) { return !k->past && k->root && !k->ring; }

/*
 * Roots that miss the same rank have one cause. They get its number, and the weight of all of them together.
 */
static int join_causes(struct ni_hang_verdict *v) {
  size_t n = 0, cap = 0;
  for (size_t i = 0; i < v->n; i++)
    cap += is_lone_root(&v->knot[i]) ? v->knot[i].n : 0;
  struct owed *at = malloc((cap + 1) * sizeof *at);
  uint32_t *cause = malloc((v->n + 1) * sizeof *cause);
  uint64_t *weight = calloc(v->n + 1, sizeof *weight);
  int e = at && cause && weight ? 0 : -ENOMEM;
  if (e == 0)
    ni_disjoint_begin(cause, (uint32_t)v->n);
  for (size_t i = 0; e == 0 && i < v->n; i++) {
    struct ni_hang_knot *k = &v->knot[i];
    k->cause_ns = UINT64_MAX;
    for (size_t j = 0; is_lone_root(k) && j < k->n; j++)
      if (ni_hang_is_cause(k, &k->view[j]))
        at[n++] = (struct owed){k->view[j].seat, (uint32_t)i};
  }
  if (e == 0 && n > 1)
    qsort(at, n, sizeof *at, by_seat);
  for (size_t i = 1; e == 0 && i < n; i++)
    if (at[i].seat == at[i - 1].seat)
      ni_disjoint_join(cause, at[i].knot, at[i - 1].knot);
  for (size_t i = 0; e == 0 && i < v->n; i++) {
    struct ni_hang_knot *of = &v->knot[ni_disjoint_root(cause, (uint32_t)i)];
    weight[of - v->knot] += v->knot[i].weight;
    of->cause_ns = ni_hang_least(of->cause_ns, v->knot[i].owed_ns);
  }
  for (size_t i = 0; e == 0 && i < v->n; i++) {
    struct ni_hang_knot *k = &v->knot[i];
    k->cause = ni_disjoint_root(cause, (uint32_t)i);
    k->cause_ns = v->knot[k->cause].cause_ns;
    if (is_lone_root(k))
      k->weight = weight[k->cause];
  }
  free(at);
  free(cause);
  free(weight);
  return e;
}

/*
 * Among roots that miss the same rank: finds the one to which the program of that rank comes first, if its
 * peers show that; else the one that most ranks wait in, as the order already has it. v->knot is in order:
 * those of one cause stand together.
 */
static int find_first_owed(struct ni_hang_verdict *v) {
  struct ni_hang_program p;
  int e = ni_hang_program_of(&p, v);
  for (size_t i = 0, end; e == 0 && i < v->n; i = end) {
    struct ni_hang_knot *first = &v->knot[i];
    for (end = i + 1; end < v->n && is_lone_root(first) && v->knot[end].cause == v->knot[i].cause; end++) {
      if (end >= i + OWED || !is_lone_root(&v->knot[end]) ||
          ni_hang_is_told(&v->knot[end]) != ni_hang_is_told(first))
        continue;
      if (ni_hang_comes_before(&p, &v->knot[end], first) > 0)
        first = &v->knot[end];
    }
    first->comes_first = true;
  }
  free(p.by_process);
  return e;
}

int ni_hang_order(struct ni_hang_verdict *v) {
  int e = join_causes(v);
  if (e == 0)
    e = sort_knots(v);
  if (e == 0)
    e = find_first_owed(v);
  return e ? e : sort_knots(v);
}
