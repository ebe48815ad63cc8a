/*
 * Granules around losses: which are wanted, and which losses are away (choose.h).
 *
 * Of the logs of one process that follow each other, the granules with operations of one member and kind
 * stand in a row. A loss goes from its place in the row to either side, up to and with the first granule
 * whose times are far enough away. Times need not ascend, so a tree over the rows has of each stretch how far
 * it reaches, and a loss takes as many steps as that is deep: log n, however much lies around it.
 */
#include <errno.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "choose.h"
#include "format/names.h"

struct loss {
  uint32_t file, member;
  struct ni_tr_gap *gap;
};

static NI_ORDER_BY(by_file, struct loss, file, member, gap);

/* A granule of a row; granule NI_TR_NONE: the border behind it. */
struct spot {
  uint32_t first, p2p, file, granule; /* first: of the member */
};

static NI_ORDER_BY(by_spot, struct spot, first, p2p, file, granule);

/*
 * The times of one granule, or of all in a stretch: the latest first_us, the earliest last_us, from when to
 * when they are drawn.
 */
struct reach {
  int64_t first_us, last_us, begin_ns, end_ns;
};

static const struct reach nothing = {INT64_MIN, INT64_MAX, INT64_MAX, INT64_MIN};
static const struct reach border = {INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN}; /* nobody gets over it */

static void extend_reach(struct reach *to, const struct reach *x) {
  if (x->first_us > to->first_us)
    to->first_us = x->first_us;
  if (x->last_us < to->last_us)
    to->last_us = x->last_us;
  if (x->begin_ns < to->begin_ns)
    to->begin_ns = x->begin_ns;
  if (x->end_ns > to->end_ns)
    to->end_ns = x->end_ns;
}

/* The rows of the logs from..to-1, one behind the other. Spot k is leaf k + 1: leaf 0 is a border. */
struct granule_rows {
  uint32_t from, to;
  struct spot *spot;
  size_t n, cap, leaves; /* leaves: a power of two */
  struct reach *tree;    /* 1 is all, 2i and 2i + 1 are the halves of i, the leaves come last */
  uint32_t *cover;       /* by leaf: how many losses want it, less how many want the one before */
};

static void free_rows(struct granule_rows *x) {
  free(x->spot);
  free(x->tree);
  free(x->cover);
}

static int add_spot(struct granule_rows *x, const struct spot *s) {
  if (!ni_array_room(x->spot, x->n, x->cap))
    return -ENOMEM;
  x->spot[x->n++] = *s;
  return 0;
}

/* Adds spots of one log: of members that have losses, by the first one of their name. */
static int add_log(struct granule_rows *x, const struct ni_tr *r, uint32_t file, const bool *asked) {
  const struct ni_granules *g = r->log[file].map;
  struct spot *of = malloc((g->n_sorts + 1) * sizeof *of); /* each sort */
  int e = of ? 0 : -ENOMEM;
  for (size_t i = 0; e == 0 && i < g->n_sorts; i++) {
    const bool op = g->sort[i].kind == NI_SORT_OP;
    const enum ni_func f = op ? ni_func_from_name(g->sort[i].func) : NI_FUNC_OTHER;
    const uint32_t first = op ? ni_tr_first_of(r, &r->log[file], g->sort[i].context) : NI_TR_NONE;
    of[i] = (struct spot){NI_TR_NONE, f == NI_FUNC_SEND || f == NI_FUNC_RECV, NI_TR_NONE, NI_TR_NONE};
    if (first == NI_TR_NONE || !asked[first])
      continue;
    of[i].first = first;
    e = add_spot(x, &of[i]); /* the border */
  }
  for (size_t k = 0; e == 0 && k < g->n; k++)
    for (uint32_t i = 0; e == 0 && i < g->item[k].n_sorts; i++) {
      struct spot s = of[g->list[g->item[k].first_sort + i]];
      s.file = file;
      s.granule = (uint32_t)k;
      if (s.first != NI_TR_NONE)
        e = add_spot(x, &s);
    }
  free(of);
  return e;
}

static int build_rows(struct granule_rows *x, const struct ni_tr *r, const bool *asked) {
  int e = 0;
  for (uint32_t file = x->from; e == 0 && file < x->to; file++)
    e = add_log(x, r, file, asked);
  if (e < 0)
    return e;
  size_t n = 0;
  if (x->n > 1)
    qsort(x->spot, x->n, sizeof *x->spot, by_spot);
  for (size_t i = 0; i < x->n; i++) /* several functions of one kind in a granule */
    if (n == 0 || by_spot(&x->spot[n - 1], &x->spot[i]) != 0)
      x->spot[n++] = x->spot[i];
  x->n = n;
  for (x->leaves = 1; x->leaves <= n;)
    x->leaves *= 2;
  x->tree = malloc(2 * x->leaves * sizeof *x->tree);
  x->cover = calloc(x->leaves + 1, sizeof *x->cover);
  if (!x->tree || !x->cover)
    return -ENOMEM;
  for (size_t i = 0; i < x->leaves; i++) {
    const struct spot *s = i && i <= n ? &x->spot[i - 1] : NULL;
    const struct ni_granule *g =
        s && s->granule != NI_TR_NONE ? &r->log[s->file].map->item[s->granule] : NULL;
    x->tree[x->leaves + i] = g ? (struct reach){g->first_us, g->last_us, g->begin_ns, g->end_ns}
        : i > n                ? nothing
                               : border;
  }
  for (size_t i = x->leaves; --i > 0;) {
    x->tree[i] = x->tree[2 * i];
    extend_reach(&x->tree[i], &x->tree[2 * i + 1]);
  }
  return 0;
}

/* When a loss was written down, in us. Whoever wrote it, it fits into a number of ns as well. */
static int64_t loss_time_us(const struct ni_tr_gap *g) {
  const int64_t most = INT64_MAX / 1000 - 1;
  return g->told_us < 0 || g->told_us > most ? most : g->told_us;
}

/* Walks from a leaf forward or back. Returns the leaf where it ends; *all: with what lies between. */
static size_t walk_leaves(const struct granule_rows *x, size_t leaf, bool on, int64_t told,
                          struct reach *all) {
  const int64_t near = NI_TR_CLOCK_NS / 1000;
  for (size_t at = x->leaves + leaf;;) {
    const struct reach *here = &x->tree[at];
    const bool over = on ? here->first_us <= told + near : here->last_us >= told - near;
    if (!over && at < x->leaves) {
      at = 2 * at + !on; /* the half that comes first */
      continue;
    }
    extend_reach(all, here);
    if (!over)
      return at - x->leaves;
    at += on ? 1 : (size_t)-1;
    /* the largest stretch that begins there; borders end a walk before it leaves the tree */
    while (at % 2 == !on)
      at /= 2;
  }
}

static void choose_loss(const struct ni_tr *r, const struct granule_rows *x, const struct loss *l) {
  const struct ni_tr_member *m = &r->member[l->member];
  struct ni_tr_gap *g = l->gap;
  const struct spot own = {m->first, g->kind != NI_KIND_COLL, g->file, g->granule};
  const int64_t told = loss_time_us(g);
  struct reach all = {.begin_ns = told * 1000, .end_ns = told * 1000};
  size_t at, from = 1, to = 0;
  ni_array_search(at, x->n, by_spot(&x->spot[at], &own) < 0);
  if (at < x->n && x->spot[at].first == own.first && x->spot[at].p2p == own.p2p) {
    const bool within = by_spot(&x->spot[at], &own) == 0;
    to = walk_leaves(x, at + 1, true, told, &all);
    from = walk_leaves(x, at + within, false, told, &all);
  }
  g->away = !ni_tr_touches(r, ni_tr_host_of(r, m), false, all.begin_ns, all.end_ns);
  if (g->away || from > to)
    return;
  x->cover[from]++;
  x->cover[to + 1]--;
}

/* Chooses losses of logs that follow each other. */
static int choose_losses_of_process(struct ni_tr *r, struct granule_rows *x, const struct loss *loss,
                                    size_t n, bool *asked) {
  for (size_t i = 0; i < n; i++)
    asked[r->member[loss[i].member].first] = true;
  int e = build_rows(x, r, asked);
  for (size_t i = 0; i < n; i++)
    asked[r->member[loss[i].member].first] = false;
  for (size_t i = 0; e == 0 && i < n; i++)
    choose_loss(r, x, &loss[i]);
  uint32_t wanted = 0;
  for (size_t i = 0; e == 0 && i < x->n; i++) {
    const struct spot *s = &x->spot[i];
    wanted += x->cover[i + 1] + (i == 0 ? x->cover[0] : 0);
    if (wanted && s->granule != NI_TR_NONE)
      r->log[s->file].wanted[s->granule] = true;
  }
  return e;
}

static bool continues_process(const struct ni_tr *r, uint32_t file) {
  const struct ni_tr_log *x = &r->log[file];
  return file + 1 < r->files.n && x[1].map && x[1].process == x->process;
}

int ni_tr_choose_losses(struct ni_tr *r) {
  struct loss *loss = NULL;
  size_t n = 0, cap = 0;
  bool *asked = calloc(r->n_members + 1, sizeof *asked);
  int e = asked ? 0 : -ENOMEM;
  for (uint32_t i = 0; i < r->n_members; i++) {
    struct ni_tr_member *m = &r->member[i];
    for (size_t k = 0; e == 0 && m->shown && k < m->n_gaps; k++) {
      if (m->gap[k].granule == NI_TR_NONE)
        continue;
      if (!ni_array_room(loss, n, cap))
        e = -ENOMEM;
      else
        loss[n++] = (struct loss){m->gap[k].file, i, &m->gap[k]};
    }
  }
  if (n > 1)
    qsort(loss, n, sizeof *loss, by_file);
  for (size_t i = 0, end; e == 0 && i < n; i = end) {
    struct granule_rows x = {.from = loss[i].file, .to = loss[i].file + 1};
    while (x.from > 0 && r->log[x.from - 1].map && continues_process(r, x.from - 1))
      x.from--;
    while (continues_process(r, x.to - 1))
      x.to++;
    for (end = i; end < n && loss[end].file < x.to; end++) {}
    e = choose_losses_of_process(r, &x, &loss[i], end - i, asked);
    free_rows(&x);
  }
  free(loss);
  free(asked);
  return e;
}
