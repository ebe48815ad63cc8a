#include "straight.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "line_fit.h"

enum { ROUNDS = 8 };
#define NO_WAY 0x3fffffffu

struct host_side {
  int64_t start, end; /* latest, earliest */
  bool there, receives;
};

/*
 * From a host to another: what ends on the latter ends so long after it began on the former, or a bit more.
 */
struct host_way {
  /* fitted: the error, both ways; bent: no straight line, at either host */
  uint32_t ns : 30, fitted : 1, bent : 1;
};

struct host_edge { /* to via */
  struct ni_line_bound *b;
  size_t n, cap;
  struct ni_line_fit fit;
  uint32_t via; /* of the fit */
};

struct straight_work {
  struct ni_straight *r;
  struct host_way *way;   /* [n][n] */
  struct host_side *side; /* of the operation at hand */
  uint32_t *list, n_list;
  bool message; /* the operation at hand is one */
  struct host_edge *edge;
  int64_t *far; /* from the reference, by the errors on the way */
  /* only what runs between --since and --until: clocks are straight for a short time */
  bool windowed;
  uint32_t *order, n_order; /* hosts, nearest first */
};

/* By the clock of the reference if it took part, else by the clock of the first one. */
static bool is_in_window(const struct straight_work *w, const struct ni_match *m,
                         const struct ni_match_op *op) {
  const struct ni_straight *r = w->r;
  const struct ni_match_entry *by = &m->entry[op->first - 1];
  for (uint32_t i = op->first; i; i = m->entry[i - 1].next)
    if (r->host_of(r->arg, m->entry[i - 1].member) == r->reference)
      by = &m->entry[i - 1];
  return by->end_ns >= r->since_ns && by->start_ns <= r->until_ns;
}

static void gather_members(struct straight_work *w, const struct ni_match *m, const struct ni_match_op *op) {
  struct ni_straight *r = w->r;
  for (uint32_t i = 0; i < w->n_list; i++)
    w->side[w->list[i]].there = false;
  w->n_list = 0;
  if (w->windowed && !is_in_window(w, m, op))
    return;
  for (uint32_t i = op->first; i; i = m->entry[i - 1].next) {
    const struct ni_match_entry *e = &m->entry[i - 1];
    uint32_t host = r->host_of(r->arg, e->member);
    if (host == NI_CLOCK_NONE)
      continue;
    int64_t add = r->better ? r->better(r->arg, e) : 0;
    int64_t start = e->start_ns + add, end = e->end_ns + add;
    struct host_side *s = &w->side[host];
    if (!s->there) {
      *s = (struct host_side){start, end, true, e->receives};
      w->list[w->n_list++] = host;
      continue;
    }
    if (start > s->start)
      s->start = start;
    if (end < s->end)
      s->end = end;
  }
}

static int visit_operations(struct straight_work *w, int (*visit)(struct straight_work *)) {
  int e = 0;
  for (int k = 0; k < 2; k++) {
    const struct ni_match *m = k ? w->r->messages : w->r->match;
    w->message = k;
    const bool has_operations = m && m->op;
    for (uint32_t i = 0; e == 0 && has_operations && i <= m->mask; i++) {
      if (!m->op[i].n)
        continue;
      gather_members(w, m, &m->op[i]);
      bool pair =
          w->n_list == 2 && m->op[i].n == 2 && w->side[w->list[0]].receives != w->side[w->list[1]].receives;
      if (!w->message || pair)
        e = visit(w);
    }
  }
  return e;
}

static void shorten_way(struct straight_work *w, uint32_t from, uint32_t to, int64_t ns) {
  struct host_way *x = &w->way[(size_t)from * w->r->n_hosts + to];
  if (ns < x->ns)
    x->ns = ns > 0 ? (uint32_t)ns : 0;
}

/*
 * At best, what is left between the bounds is as long as the operation took for those who waited for nobody.
 */
static int guess_ways(struct straight_work *w) {
  for (uint32_t i = 0; i < w->n_list; i++) {
    const struct host_side *s = &w->side[w->list[i]];
    struct ni_host_clock *h = &w->r->clock[w->list[i]];
    int64_t against = s->start - s->end;
    if (against > 0 && against < 1000000000) {
      if (against > w->r->contradiction_ns)
        w->r->contradiction_ns = against;
      if (against > h->gpu_ns)
        h->gpu_ns = against;
    }
    for (uint32_t k = 0; k < w->n_list; k++) {
      const struct host_side *to = &w->side[w->list[k]];
      if (k == i || (w->message && s->receives))
        continue;
      int64_t here = s->end - s->start, there = to->end - to->start;
      shorten_way(w, w->list[i], w->list[k], w->message && there < here ? there : here);
    }
  }
  return 0;
}

/* Dijkstra's algorithm, over a full table of hosts. True: these are the ways that are fitted already. */
static bool choose_ways(struct straight_work *w, bool last) {
  struct ni_straight *r = w->r;
  uint32_t n = r->n_hosts;
  bool same = true;
  for (uint32_t i = 0; i < n; i++) {
    r->clock[i].via = NI_CLOCK_NONE;
    r->clock[i].aligned = false;
    w->far[i] = INT64_MAX;
  }
  w->far[r->reference] = w->n_order = 0;
  r->clock[r->reference].via = r->reference;
  for (;;) {
    uint32_t x = NI_CLOCK_NONE;
    for (uint32_t i = 0; i < n; i++) {
      const bool is_nearer = x == NI_CLOCK_NONE || w->far[i] < w->far[x];
      if (!r->clock[i].aligned && w->far[i] != INT64_MAX && is_nearer)
        x = i;
    }
    if (x == NI_CLOCK_NONE)
      return same;
    r->clock[x].aligned = true;
    w->order[w->n_order++] = x;
    /*
     * A looser pair would only hide that a clock is not straight: it keeps this one, but leads elsewhere as a
     * last resort.
     */
    if (w->way[(size_t)r->clock[x].via * n + x].bent)
      w->far[x] += NO_WAY;
    same &= x == r->reference || w->edge[x].via == r->clock[x].via;
    for (uint32_t h = 0; h < n; h++) {
      struct host_way to = w->way[(size_t)x * n + h], back = w->way[(size_t)h * n + x];
      const bool has_way = to.ns != NO_WAY && back.ns != NO_WAY, is_unfitted = last && !to.fitted;
      if (r->clock[h].aligned || !has_way || is_unfitted)
        continue;
      int64_t error = (to.ns + (int64_t)back.ns) / 2 + r->clock[h].gpu_ns;
      /* no step more for a small gain */
      int64_t far = w->far[x] + (x == r->reference ? error : error + error / 2);
      if (far >= w->far[h])
        continue;
      w->far[h] = far;
      r->clock[h].via = x;
    }
  }
}

/* The shortest time that one of them took is the upper limit. */
static int64_t find_shortest_transfer(const struct straight_work *w) {
  int64_t least = INT64_MAX;
  for (uint32_t i = 0; i < w->n_list; i++) {
    const struct host_side *s = &w->side[w->list[i]];
    if (s->end - s->start < least)
      least = s->end - s->start;
  }
  return least > 1 ? least : 1;
}

static int collect_bounds(struct straight_work *w) {
  struct ni_straight *r = w->r;
  const int64_t transfer = find_shortest_transfer(w);
  for (uint32_t i = 0; i < w->n_list; i++) {
    uint32_t h = w->list[i], via = r->clock[h].via;
    struct host_edge *x = &w->edge[h];
    const bool is_done = via == NI_CLOCK_NONE || x->via == via;
    if (h == r->reference || is_done || !w->side[via].there)
      continue;
    if (!ni_array_room(x->b, x->n, x->cap))
      return -ENOMEM;
    const struct host_side *here = &w->side[h], *there = &w->side[via];
    struct ni_line_bound b = {here->end - r->epoch_ns, here->start - there->end, here->end - there->start,
                              here->end - there->end, transfer};
    if (w->message && here->receives)
      b.low = INT64_MIN;
    if (w->message && !here->receives)
      b = (struct ni_line_bound){here->start - r->epoch_ns, b.low, INT64_MAX, 0, 0};
    x->b[x->n++] = b;
  }
  return 0;
}

static bool contradicts(const struct ni_straight *r, const struct ni_line_fit *f, uint32_t h, uint32_t via) {
  /*
   * Bounds may cross by what the GPUs' clocks are off; beyond that it is the hosts' that do not run straight.
   */
  return -f->room_ns > (double)(r->clock[h].gpu_ns + r->clock[via].gpu_ns);
}

static int fit_ways(struct straight_work *w) {
  struct ni_straight *r = w->r;
  for (uint32_t i = 1; i < w->n_order; i++) {
    uint32_t h = w->order[i], via = r->clock[h].via;
    struct host_edge *x = &w->edge[h];
    if (x->via == via)
      continue;
    const struct ni_host_clock *of = &r->clock[h];
    int64_t from = w->windowed && r->since_ns > of->first_ns ? r->since_ns : of->first_ns;
    int64_t to = w->windowed && r->until_ns < of->last_ns ? r->until_ns : of->last_ns;
    int e = ni_line_fit(x->b, x->n, from - r->epoch_ns, to - r->epoch_ns, of->gpu_ns + r->clock[via].gpu_ns,
                        &x->fit);
    if (e < 0)
      return e;
    x->via = via;
    x->n = 0;
    struct host_way *back = &w->way[(size_t)h * r->n_hosts + via],
                    *there = &w->way[(size_t)via * r->n_hosts + h];
    /* the other way round: much the same, and what changes no more comes to an end */
    if (back->fitted)
      continue;
    back->fitted = true;
    if (!x->fit.used)
      back->ns = NO_WAY;
    else if (contradicts(r, &x->fit, h, via)) {
      back->bent = true;
      back->ns = (back->ns + there->ns) / 2;
    } else
      back->ns = (uint32_t)fmin(x->fit.error_ns, NO_WAY - 1);
    *there = *back;
  }
  return 0;
}

static void place_on_reference(struct straight_work *w) {
  struct ni_straight *r = w->r;
  for (uint32_t i = 1; i < w->n_order; i++) {
    struct ni_host_clock *h = &r->clock[w->order[i]];
    const struct ni_host_clock *via = &r->clock[h->via];
    const struct ni_line_fit *f = &w->edge[w->order[i]].fit;
    /* The line is over h's clock, via's is over its own; products of drifts vanish. */
    h->offset_ns = f->offset_ns + via->offset_ns - via->drift * f->offset_ns;
    h->drift = f->drift + via->drift;
    h->room_ns = via->room_ns + (int64_t)f->error_ns + 1;
    h->spread_ns = via->spread_ns + (int64_t)f->spread_ns + 1;
    h->error_ns = h->room_ns + h->gpu_ns + r->clock[r->reference].gpu_ns;
    h->contradiction = contradicts(r, f, w->order[i], h->via) || via->contradiction;
    h->matched = f->used - f->one_sided;
    h->messages = f->one_sided;
    h->rejected = f->rejected;
    h->aligned = f->used && via->aligned;
  }
}

static void free_work(struct straight_work *w) {
  for (uint32_t i = 0; w->edge && i < w->r->n_hosts; i++)
    free(w->edge[i].b);
  free(w->way);
  free(w->far);
  free(w->side);
  free(w->list);
  free(w->edge);
  free(w->order);
}

/* The clock of the reference is right by definition. Nothing is known of the others yet. */
static void begin_with_reference(struct ni_straight *r) {
  r->contradiction_ns = 0;
  for (uint32_t i = 0; i < r->n_hosts; i++) {
    struct ni_host_clock *c = &r->clock[i];
    c->offset_ns = c->drift = 0;
    c->epoch_ns = r->epoch_ns;
    c->error_ns = c->room_ns = c->spread_ns = 0;
    c->contradiction = false;
    c->matched = c->messages = c->rejected = 0;
  }
}

int ni_straight_fit(struct ni_straight *r) {
  uint32_t n = r->n_hosts;
  if (n > NI_STRAIGHT_HOSTS)
    return -E2BIG;
  const bool windowed = r->since_ns != INT64_MIN || r->until_ns != INT64_MAX;
  struct straight_work w = {.r = r,
                            .windowed = windowed,
                            .way = malloc((size_t)n * n * sizeof *w.way),
                            .far = calloc(n, sizeof *w.far),
                            .side = calloc(n, sizeof *w.side),
                            .list = calloc(n, sizeof *w.list),
                            .edge = calloc(n, sizeof *w.edge),
                            .order = calloc(n, sizeof *w.order)};
  const bool has_memory = w.way && w.far && w.side && w.list && w.edge && w.order;
  int e = has_memory ? 0 : -ENOMEM;
  begin_with_reference(r);
  for (size_t i = 0; e == 0 && i < (size_t)n * n; i++)
    w.way[i] = (struct host_way){.ns = NO_WAY};
  for (uint32_t i = 0; e == 0 && i < n; i++)
    w.edge[i].via = NI_CLOCK_NONE;
  if (e == 0)
    e = visit_operations(&w, guess_ways);
  for (int round = 1; e == 0 && !choose_ways(&w, round >= ROUNDS); round++) {
    e = visit_operations(&w, collect_bounds);
    if (e == 0)
      e = fit_ways(&w);
  }
  if (e == 0)
    place_on_reference(&w);
  free_work(&w);
  return e;
}
