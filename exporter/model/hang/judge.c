/*
 * Which knots hang, which of them explain the others, and how certain that is.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "fate.h"
#include "knot.h"
#include "knots.h"

#define EDGES 64     /* of what one rank waits in */
#define DEEPEST 8192 /* knots that lead to one another: each takes room on the stack */
#define ENDS 64      /* of the graph, each with those who wait for it: a bit each */

/* ---- pending ---- */

/* Newest start or end of an operation of each process, in whatever communicator. By process number. */
static uint64_t *activity(const struct ni_hang_model *m) {
  uint64_t *t = calloc(m->n_processes + 1, sizeof *t);
  for (size_t i = 0; t && i < m->n_members; i++) ni_hang_raise(&t[m->member[i]->who->process], m->member[i]->active_ns);
  return t;
}

uint64_t ni_hang_known_until(const struct ni_hang_verdict *v, const struct ni_hang_view *w) {
  const struct ni_hang_process *p = ni_hang_process_at(v, w);
  /* A box is one look at everything. A log's stuck line is newer than what its dump_stats lines said before. */
  bool whole = p->has_box || !w->op || w->op->seen_ns <= w->member->open_ns;
  if (w->member->open_ns && whole)
    return p->life == NI_HANG_DEAD && p->alive_ns > w->member->open_ns ? p->alive_ns : w->member->open_ns;
  /* From a log: a stuck line, and no record since, as long as the process still writes. */
  return w->op && w->op->seen_ns > p->alive_ns ? w->op->seen_ns : p->alive_ns;
}

static uint64_t since(uint64_t now, uint64_t then) { return now > then ? now - then : 0; }

static bool waits(const struct ni_hang_view *w) {
  return w->where == NI_HANG_INSIDE || w->where == NI_HANG_QUEUED || w->where == NI_HANG_API_ONLY;
}

/* pending by those who wait alone; of the knot, by all who matter, which is never more. */
static uint64_t pending_of(const struct ni_hang_verdict *v, struct ni_hang_knot *k, const uint64_t *active, uint64_t *inside_known) {
  uint64_t known = UINT64_MAX, known_in = UINT64_MAX, moved = k->newest_ns;
  for (size_t i = 0; i < k->n; i++) {
    const struct ni_hang_view *w = &k->view[i];
    const struct ni_hang_process *p = ni_hang_process_at(v, w);
    bool blocks = ni_hang_blocks(k, w);
    uint64_t t = w->where == NI_HANG_GONE ? p->alive_ns : p->several ? w->member->active_ns : active[w->member->who->process];
    if (blocks && t > moved) moved = t;
    if ((!waits(w) && !blocks) || w->where == NI_HANG_GONE || w->where == NI_HANG_HAS_LEFT) continue;
    uint64_t u = ni_hang_known_until(v, w);
    if (u < known) known = u;
    if (waits(w) && u < known_in) known_in = u;
  }
  k->until_ns = known == UINT64_MAX ? 0 : known;
  k->pending_ns = since(k->until_ns, moved);
  *inside_known = known_in;
  return known_in == UINT64_MAX ? 0 : since(known_in, moved);
}

static void is_now(struct ni_hang_knot *k, struct ni_hang_view *w, enum ni_hang_where where) {
  k->count[w->where]--;
  k->count[where]++;
  w->where = where;
}

/*
 * A rank of which nothing was heard since long before those who wait were seen last: that it had not called then says
 * nothing about now.
 */
static void forget_stale(const struct ni_hang_verdict *v, struct ni_hang_knot *k, uint64_t inside_known) {
  for (size_t i = 0; i < k->n; i++) {
    struct ni_hang_view *w = &k->view[i];
    if (w->where != NI_HANG_NEVER || ni_hang_known_until(v, w) + NI_HANG_OUTLIVED_NS >= inside_known) continue;
    is_now(k, w, NI_HANG_NO_DATA);
  }
}

static bool hopeless(const struct ni_hang_knot *k) {
  return k->count[NI_HANG_GONE] || k->count[NI_HANG_HAS_LEFT] || k->call_mismatch || k->size_mismatch ||
         k->type_mismatch || k->root_mismatch;
}

static void wait_of(struct ni_hang_verdict *v, struct ni_hang_knot *k, const uint64_t *active) {
  uint64_t limit = hopeless(k) && v->after_ns > NI_HANG_GRACE_NS ? NI_HANG_GRACE_NS : v->after_ns, inside_known;
  uint64_t half = k->op.timeout_ns / 2 < NI_HANG_GRACE_NS ? NI_HANG_GRACE_NS : k->op.timeout_ns / 2;
  if (k->op.timeout_ns && half < limit) limit = half;
  if (!v->model->boxes) limit -= limit / 20; /* logs tell of each rank once, when its own call is so old */
  for (struct ni_hang_view *w = k->view; w < k->view + k->n; w++)
    if ((waits(w) || w->where == NI_HANG_NEVER) && ni_hang_silent(v, ni_hang_process_at(v, w))) is_now(k, w, NI_HANG_NO_DATA);
  uint64_t alone = pending_of(v, k, active, &inside_known);
  if (k->pending_ns < limit && alone >= limit) {
    forget_stale(v, k, inside_known);
    (void)pending_of(v, k, active, &inside_known);
  }
  k->hangs = !k->past && k->count[NI_HANG_INSIDE] + k->count[NI_HANG_QUEUED] > 0 && k->pending_ns >= limit;
  v->n_hangs += k->hangs;
}

/* Has the communicator o that hangs the ranks of k, which is a dump's process group? Each has the same number in both. */
static bool same_ranks(const struct ni_hang_knot *k, const struct ni_hang_knot *o) {
  if (o->any->dump || !o->hangs || o->kind != k->kind || o->any->who->n_ranks != k->any->who->n_ranks) return false;
  for (size_t i = 0; i < o->n; i++) {
    const struct ni_hang_view *w = ni_hang_view_of(k, o->view[i].rank);
    if (!w || w->seat != o->view[i].seat) return false;
  }
  return true;
}

/* One hang counts once: where all of its ranks have data of ours, what the dumps say of it is not needed; else it says more. */
static void drop_doubles(struct ni_hang_verdict *v) {
  for (size_t i = 0; v->model->dumps && i < v->n; i++)
    for (size_t j = 0; v->knot[i].any->dump && v->knot[i].hangs && j < v->n; j++) {
      if (!same_ranks(&v->knot[i], &v->knot[j])) continue;
      struct ni_hang_knot *drop = v->knot[j].count[NI_HANG_NO_DATA] ? &v->knot[j] : &v->knot[i];
      drop->hangs = false;
      v->n_hangs--;
    }
}

/* ---- graph ---- */

struct edge {
  uint64_t seat, since_ns; /* when it called it; 0: not known */
  uint32_t knot;
  bool inside; /* in the kernel */
};

static NI_ORDER_BY(by_edge, struct edge, seat, since_ns, knot)

struct graph {
  struct ni_hang_verdict *v;
  struct edge *inside; /* who waits where */
  size_t n_inside;
  struct node {          /* of Tarjan's, by knot: its number from 1, the lowest one reached */
    uint32_t index, low;
    bool on_stack, leaves;
    uint64_t ends; /* that it leads to, as bits */
  } *node;
  uint32_t *stack;
  uint32_t counter, depth, rings, n_ends;
};

/* Is it inside, in the operation or in what it called instead? */
static bool is_inside(const struct ni_hang_view *w) {
  return w->where == NI_HANG_INSIDE || (w->where == NI_HANG_OTHER_CALL && w->op && ni_hang_where_of(w->op) == NI_HANG_INSIDE);
}

static int gather_edges(struct graph *g) {
  size_t n = 0;
  for (size_t i = 0; i < g->v->n; i++) n += g->v->knot[i].n;
  g->inside = malloc((n + 1) * sizeof *g->inside);
  if (!g->inside) return -ENOMEM;
  for (size_t i = 0; i < g->v->n; i++) {
    const struct ni_hang_knot *k = &g->v->knot[i];
    for (size_t j = 0; k->hangs && j < k->n; j++) {
      const struct ni_hang_view *w = &k->view[j];
      if (is_inside(w) || w->where == NI_HANG_QUEUED)
        g->inside[g->n_inside++] = (struct edge){w->seat, w->op ? w->op->enqueue_ns : 0, (uint32_t)i, is_inside(w)};
    }
  }
  if (g->n_inside > 1) qsort(g->inside, g->n_inside, sizeof *g->inside, by_edge);
  return 0;
}

static bool is_queued(const struct ni_hang_view *w) {
  return w->where == NI_HANG_QUEUED || (w->where == NI_HANG_OTHER_CALL && !is_inside(w));
}

/* May others wait for it because it waits elsewhere? Also if it has not been seen to call, and if all are queued. */
static bool may_wait_elsewhere(const struct ni_hang_knot *k, const struct ni_hang_view *w) {
  if (is_inside(w)) return false;
  if (k->kind == NI_KIND_P2P && k->count[NI_HANG_INSIDE]) return w->awaited;
  return ni_hang_blocks(k, w) || is_queued(w) || w->where == NI_HANG_NO_DATA;
}

/* Does it wait there? A kernel that is not started waits for what its GPU is inside, if that was not called long after it, and
 * for what was called before it. A rank that has not called may wait on its host for anything. */
static bool waits_there(const struct ni_hang_view *w, const struct edge *e) {
  if (!is_queued(w) || !w->op) return true;
  return e->inside ? e->since_ns <= w->op->enqueue_ns + NI_HANG_GRACE_NS : e->since_ns < w->op->enqueue_ns;
}

/* One knot and all that it leads to. Of what one rank waits in the oldest count: a file may say that it waits everywhere. */
static void visit(struct graph *g, uint32_t at) {
  struct ni_hang_knot *k = &g->v->knot[at];
  struct node *own = &g->node[at];
  *own = (struct node){++g->counter, g->counter, true, false, 0};
  g->stack[g->depth++] = at;
  for (size_t j = 0; j < k->n; j++) {
    if (!may_wait_elsewhere(k, &k->view[j])) continue;
    size_t first;
    ni_array_search(first, g->n_inside, g->inside[first].seat < k->view[j].seat);
    for (size_t e = first; e < g->n_inside && e < first + EDGES && g->inside[e].seat == k->view[j].seat; e++) {
      uint32_t to = g->inside[e].knot;
      if (to == at || !waits_there(&k->view[j], &g->inside[e])) continue;
      if (k->leads_to < 0) k->leads_to = (int32_t)to;
      if (k->view[j].where == NI_HANG_NO_DATA) is_now(k, &k->view[j], NI_HANG_ELSEWHERE);
      k->behind |= is_queued(&k->view[j]);
      if (g->inside[e].since_ns > k->first_ns) ni_hang_raise(&k->went_on_ns, g->inside[e].since_ns - k->first_ns);
      const struct node *there = &g->node[to];
      if (!there->index && g->depth < DEEPEST) {
        visit(g, to);
        if (there->low < own->low) own->low = there->low;
        own->leaves |= !there->on_stack;
        own->ends |= there->ends;
      } else if (there->on_stack) {
        if (there->index < own->low) own->low = there->index;
      } else {
        own->leaves = true; /* to a part of the graph that is done: this one is a consequence */
        own->ends |= there->ends;
      }
    }
  }
  if (own->low != own->index) return;
  /* A whole ring, or a knot by itself, is on top of the stack. */
  uint32_t from = g->depth;
  bool leaves = false;
  uint64_t ends = 0;
  do {
    leaves |= g->node[g->stack[--from]].leaves;
    ends |= g->node[g->stack[from]].ends;
  } while (g->stack[from] != at);
  if (!leaves) ends = g->n_ends < ENDS ? UINT64_C(1) << g->n_ends++ : 0;
  uint32_t ring = g->depth - from > 1 ? ++g->rings : 0;
  while (g->depth > from) {
    uint32_t i = g->stack[--g->depth];
    g->node[i].on_stack = false;
    g->node[i].ends = ends;
    g->v->knot[i].ring = ring;
    g->v->knot[i].root = !leaves;
  }
}

/* Counts for the ends of the graph who is inside them, and inside what leads to them. */
static void weigh(const struct graph *g) {
  uint64_t weight[ENDS] = {0};
  for (size_t i = 0; i < g->v->n; i++)
    for (int end = 0; end < ENDS; end++)
      if (g->node[i].ends >> end & 1) weight[end] += g->v->knot[i].count[NI_HANG_INSIDE];
  for (size_t i = 0; i < g->v->n; i++) {
    struct ni_hang_knot *k = &g->v->knot[i];
    long long end = k->root ? (long long)g->node[i].ends : 0;
    k->weight = end ? weight[ffsll(end) - 1] : k->count[NI_HANG_INSIDE];
  }
}

static int connect(struct ni_hang_verdict *v) {
  struct graph g = {.v = v};
  int e = gather_edges(&g);
  g.node = calloc(v->n + 1, sizeof *g.node);
  g.stack = calloc(v->n + 1, sizeof *g.stack);
  if (!g.node || !g.stack) e = -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < v->n; i++)
    if (v->knot[i].hangs && !g.node[i].index) visit(&g, i);
  if (e == 0) weigh(&g);
  free(g.inside);
  free(g.node);
  free(g.stack);
  return e;
}

/* ---- verdict ---- */

static size_t waiting(const struct ni_hang_knot *k) { return k->count[NI_HANG_INSIDE] + k->count[NI_HANG_QUEUED]; }

static int by_weight(const void *a, const void *b) {
  const struct ni_hang_knot *x = a, *y = b;
  if (x->hangs != y->hangs) return x->hangs ? -1 : 1;
  if (x->past != y->past) return x->past ? 1 : -1;
  if (x->root != y->root) return x->root ? -1 : 1;
  if (!x->ring != !y->ring) return !x->ring ? -1 : 1;
  if (x->root && x->weight != y->weight) return x->weight > y->weight ? -1 : 1;
  if (x->ring != y->ring) return x->ring < y->ring ? -1 : 1;
  if (x->ring && x->behind != y->behind) return y->behind ? -1 : 1;
  if (x->ring && x->went_on_ns != y->went_on_ns) return x->went_on_ns > y->went_on_ns ? -1 : 1;
  size_t p = waiting(x), q = waiting(y);
  if (p != q) return p > q ? -1 : 1;
  if (x->first_ns != y->first_ns) return x->first_ns < y->first_ns ? -1 : 1;
  if (x->any->who->hash != y->any->who->hash) return x->any->who->hash < y->any->who->hash ? -1 : 1;
  return (int)x->kind - (int)y->kind;
}

/* leads_to names a place in the array that is about to be sorted. */
static int sort_knots(struct ni_hang_verdict *v) {
  int32_t *now = calloc(v->n + 1, sizeof *now);
  if (!now) return -ENOMEM;
  for (size_t i = 0; i < v->n; i++) v->knot[i].id = (uint32_t)i;
  if (v->n > 1) qsort(v->knot, v->n, sizeof *v->knot, by_weight);
  for (size_t i = 0; i < v->n; i++) now[v->knot[i].id] = (int32_t)i;
  for (size_t i = 0; i < v->n; i++)
    if (v->knot[i].leads_to >= 0) v->knot[i].leads_to = now[v->knot[i].leads_to];
  free(now);
  return 0;
}

int ni_hang_judge(struct ni_hang_verdict *v, const struct ni_hang_model *m, uint64_t after_ns) {
  *v = (struct ni_hang_verdict){.model = m, .after_ns = after_ns};
  for (size_t i = 0; i < m->n_processes; i++) {
    const struct ni_hang_process *p = &m->process[i];
    ni_hang_raise(&v->now_ns, p->alive_ns);
    ni_hang_raise(&v->now_ns, p->look_ns);
  }
  uint64_t *active = activity(m);
  int e = active ? ni_hang_find_fate(v) : -ENOMEM;
  if (e == 0) e = ni_hang_find_knots(v);
  for (size_t i = 0; e == 0 && i < v->n; i++) wait_of(v, &v->knot[i], active);
  free(active);
  drop_doubles(v);
  if (e == 0) e = connect(v);
  for (size_t i = 0; i < v->n; i++) v->n_roots += v->knot[i].hangs && v->knot[i].root;
  if (e == 0) e = sort_knots(v);
  v->answer = v->n_hangs ? NI_HANG_LIKELY : NI_HANG_NO_HANG;
  v->cannot_tell = !v->n_hangs && !v->fate.over && m->n_processes && (v->fate.dark || v->fate.unseen || m->unreadable);
  return e;
}

void ni_hang_verdict_free(struct ni_hang_verdict *v) {
  for (size_t i = 0; i < v->n; i++) free(v->knot[i].view);
  free(v->knot);
  free(v->earlier);
  *v = (struct ni_hang_verdict){0};
}

bool ni_hang_complete(const struct ni_hang_verdict *v) {
  const struct ni_hang_model *m = v->model;
  if (v->n_hangs == 0 || m->unreadable) return false;
  for (size_t i = 0; i < v->n_hangs; i++) {
    const struct ni_hang_knot *k = &v->knot[i];
    if (k->root && (k->count[NI_HANG_NO_DATA] || k->blind || k->unsure)) return false;
  }
  return true;
}

bool ni_hang_agree(const struct ni_hang_verdict *a, const struct ni_hang_verdict *b) {
  if (a->n_hangs == 0 || b->n == 0) return false;
  const struct ni_hang_knot *x = &a->knot[0];
  for (size_t i = 0; i < b->n; i++) {
    const struct ni_hang_knot *y = &b->knot[i];
    if (x->any->who->hash != y->any->who->hash || x->kind != y->kind || x->n != y->n || x->op.sn != y->op.sn ||
        strcmp(ni_hang_text(a->model, x->op.func), ni_hang_text(b->model, y->op.func)) != 0)
      continue;
    for (size_t j = 0; j < x->n; j++)
      if (x->view[j].rank != y->view[j].rank || x->view[j].where != y->view[j].where || !ni_hang_process_at(b, &y->view[j])->has_box)
        return false; /* a log of now is no look of then */
    return true;
  }
  return false;
}
