#include "graph.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "knot.h"

#define EDGES 64     /* of what one rank waits in */
#define DEEPEST 8192 /* knots that lead to one another: each takes room on the stack */
#define ENDS 64      /* of the graph, each with those who wait for it: a bit each */

struct wait_edge {
  uint64_t seat, since_ns; /* when it called it; 0: not known */
  uint32_t knot;
  bool inside; /* in the kernel */
};

static NI_ORDER_BY(by_edge, struct wait_edge, seat, since_ns, knot);

struct wait_graph {
  struct ni_hang_verdict *v;
  struct wait_edge *inside; /* who waits where */
  size_t n_inside;
  struct node { /* of Tarjan's, by knot: its number from 1, the lowest one reached */
    uint32_t index, low;
    bool on_stack, leaves;
    uint64_t ends; /* that it leads to, as bits */
  } *node;
  uint32_t *stack;
  uint32_t counter, depth, rings, n_ends;
};

/* Is it inside, in the operation or in what it called instead? */
static bool is_inside(const struct ni_hang_view *w) {
  return w->where == NI_HANG_INSIDE || w->where == NI_HANG_IN_REPLAY ||
      (w->where == NI_HANG_OTHER_CALL && w->op && ni_hang_where_of(w->op) == NI_HANG_INSIDE);
}

static int gather_edges(struct wait_graph *g) {
  size_t n = 0;
  for (size_t i = 0; i < g->v->n; i++)
    n += g->v->knot[i].n;
  g->inside = malloc((n + 1) * sizeof *g->inside);
  if (!g->inside)
    return -ENOMEM;
  for (size_t i = 0; i < g->v->n; i++) {
    const struct ni_hang_knot *k = &g->v->knot[i];
    for (size_t j = 0; !k->past && j < k->n; j++) {
      const struct ni_hang_view *w = &k->view[j];
      const struct ni_hang_op *op = w->later ? w->later : w->op;
      bool inside = is_inside(w) || (w->later && ni_hang_where_of(w->later) == NI_HANG_INSIDE);
      if (inside || w->later || w->where == NI_HANG_QUEUED)
        g->inside[g->n_inside++] = (struct wait_edge){w->seat, op ? op->enqueue_ns : 0, (uint32_t)i, inside};
    }
  }
  if (g->n_inside > 1)
    qsort(g->inside, g->n_inside, sizeof *g->inside, by_edge);
  return 0;
}

static bool is_queued(const struct ni_hang_view *w) {
  return w->where == NI_HANG_QUEUED || (w->where == NI_HANG_OTHER_CALL && !is_inside(w));
}

/*
 * May others wait for this rank because it waits elsewhere? This also holds if it was not seen to call, and
 * if all are queued.
 */
static bool may_wait_elsewhere(const struct ni_hang_knot *k, const struct ni_hang_view *w) {
  if (is_inside(w))
    return false;
  if (k->kind == NI_KIND_P2P && k->count[NI_HANG_INSIDE])
    return w->awaited;
  return ni_hang_blocks(k, w) || is_queued(w) || w->where == NI_HANG_NO_DATA;
}

/*
 * Does this rank wait there? A kernel that has not started waits for what its GPU is inside, unless that was
 * called long after it, and for what was called before it. A rank that has not called may wait on its host
 * for anything.
 */
static bool waits_there(const struct ni_hang_view *w, const struct wait_edge *e) {
  if (!is_queued(w) || !w->op)
    return true;
  return e->inside ? e->since_ns <= w->op->enqueue_ns + NI_HANG_GRACE_NS : e->since_ns < w->op->enqueue_ns;
}

/* Takes a whole ring, or a knot by itself, off the top of the stack, down to that knot. */
static void close_ring(struct wait_graph *g, uint32_t at) {
  uint32_t from = g->depth;
  bool leaves = false;
  uint64_t ends = 0;
  do {
    leaves |= g->node[g->stack[--from]].leaves;
    ends |= g->node[g->stack[from]].ends;
  } while (g->stack[from] != at);
  if (!leaves)
    ends = g->n_ends < ENDS ? UINT64_C(1) << g->n_ends++ : 0;
  uint32_t ring = g->depth - from > 1 ? ++g->rings : 0;
  while (g->depth > from) {
    uint32_t i = g->stack[--g->depth];
    g->node[i].on_stack = false;
    g->node[i].ends = ends;
    g->v->knot[i].ring = ring;
    g->v->knot[i].root = !leaves;
  }
}

static void visit_knot(struct wait_graph *g, uint32_t at);

/* The knot leads to that one by a rank of it: what Tarjan's algorithm learns from the way there. */
static void follow_to(struct wait_graph *g, struct node *node, uint32_t to) {
  const struct node *there = &g->node[to];
  if (!there->index && g->depth < DEEPEST) {
    visit_knot(g, to);
    if (there->low < node->low)
      node->low = there->low;
    node->leaves |= !there->on_stack;
    node->ends |= there->ends;
  } else if (there->on_stack) {
    if (there->index < node->low)
      node->low = there->index;
  } else {
    node->leaves = true; /* to a part of the graph that is done: this one is a consequence */
    node->ends |= there->ends;
  }
}

/* Notes in both knots that a rank of k waits in the other one. */
static void note_wait(struct wait_graph *g, struct ni_hang_knot *k, struct ni_hang_view *w,
                      const struct wait_edge *e) {
  if (k->leads_to < 0)
    k->leads_to = (int32_t)e->knot;
  g->v->knot[e->knot].needed = true;
  if (w->where == NI_HANG_NO_DATA)
    ni_hang_set_where(k, w, NI_HANG_ELSEWHERE);
  k->behind |= is_queued(w);
  if (e->since_ns > k->first_ns)
    ni_hang_raise(&k->went_on_ns, e->since_ns - k->first_ns);
}

/*
 * Visits one knot and all that it leads to. Of the operations that one rank waits in, only the oldest ones
 * count, since a file may claim that it waits everywhere.
 */
static void visit_knot(struct wait_graph *g, uint32_t at) {
  struct ni_hang_knot *k = &g->v->knot[at];
  struct node *node = &g->node[at];
  *node = (struct node){++g->counter, g->counter, true, false, 0};
  g->stack[g->depth++] = at;
  for (size_t j = 0; j < k->n; j++) {
    struct ni_hang_view *w = &k->view[j];
    if (!may_wait_elsewhere(k, w))
      continue;
    size_t first;
    ni_array_search(first, g->n_inside, g->inside[first].seat < w->seat);
    for (size_t i = first; i < g->n_inside && i < first + EDGES && g->inside[i].seat == w->seat; i++) {
      const struct wait_edge *e = &g->inside[i];
      if (e->knot == at || !waits_there(w, e))
        continue;
      note_wait(g, k, w, e);
      follow_to(g, node, e->knot);
    }
  }
  if (node->low == node->index)
    close_ring(g, at);
}

/* For the ends of the graph: counts who is inside them, and who is inside what leads to them. */
static void weigh_knots(const struct wait_graph *g) {
  uint64_t weight[ENDS] = {0};
  for (size_t i = 0; i < g->v->n; i++)
    for (int end = 0; end < ENDS; end++)
      if (g->node[i].ends >> end & 1)
        weight[end] += ni_hang_count_inside(&g->v->knot[i]);
  for (size_t i = 0; i < g->v->n; i++) {
    struct ni_hang_knot *k = &g->v->knot[i];
    long long end = k->root ? (long long)g->node[i].ends : 0;
    k->weight = end ? weight[ffsll(end) - 1] : ni_hang_count_inside(k);
  }
}

/*
 * Decides what hangs: the ends of the graph whose time is over, where a ring counts as one end, and whatever
 * leads to those.
 */
static void decide_knots(struct wait_graph *g) {
  struct ni_hang_verdict *v = g->v;
  struct {
    uint64_t pending, limit;
    bool wait;
  } end[ENDS];
  uint64_t hang = 0;
  for (int i = 0; i < ENDS; i++) {
    end[i].pending = end[i].limit = UINT64_MAX;
    end[i].wait = false;
  }
  for (size_t i = 0; i < v->n; i++) {
    const struct ni_hang_knot *k = &v->knot[i];
    if (k->past || !k->root || !g->node[i].ends)
      continue;
    int e = ffsll((long long)g->node[i].ends) - 1;
    end[e].pending = ni_hang_least(end[e].pending, k->pending_ns);
    end[e].limit = ni_hang_least(end[e].limit, k->limit_ns);
    end[e].wait |= ni_hang_is_wait(k);
  }
  for (int e = 0; e < ENDS; e++)
    if (end[e].wait && ni_hang_is_enough(v, end[e].pending, end[e].limit))
      hang |= UINT64_C(1) << e;
  bool orderly = v->fate.over &&
      !v->fate.in[NI_HANG_DEAD]; /* it hung, perhaps, and is over: that is told, and is no hang now */
  for (size_t i = 0; i < v->n; i++) {
    struct ni_hang_knot *k = &v->knot[i];
    bool by_itself = ni_hang_is_wait(k) && ni_hang_is_enough(v, k->pending_ns, k->limit_ns);
    k->hangs = !k->past && !orderly &&
        (g->node[i].ends ? (g->node[i].ends & hang) != 0 && ni_hang_is_wait(k) : by_itself);
  }
}

int ni_hang_decide(struct ni_hang_verdict *v) {
  struct wait_graph g = {.v = v};
  int e = gather_edges(&g);
  g.node = calloc(v->n + 1, sizeof *g.node);
  g.stack = calloc(v->n + 1, sizeof *g.stack);
  if (!g.node || !g.stack)
    e = -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < v->n; i++)
    if (!v->knot[i].past && !g.node[i].index)
      visit_knot(&g, i);
  if (e == 0) {
    weigh_knots(&g);
    decide_knots(&g);
  }
  free(g.inside);
  free(g.node);
  free(g.stack);
  return e;
}
