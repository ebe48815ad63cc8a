/*
 * A clock for every host: the reference is the host of the lowest rank; every other is compared with one that is one
 * step nearer to it and has the most collectives in common with it, so that errors add up over as few steps as can be.
 *
 * GPU times are first put right by the clock lines (gpu_clock.h). Over the ranks of a host the latest start and the
 * earliest end of a collective count; where even these contradict each other, the GPUs' clocks are off by so much.
 */
#include "align.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/model/clocks/line_fit.h"

/* Memory for the table of pairs; a timeline of more hosts than that is beyond any viewer. */
enum { HOSTS_MAX = 2048 };

struct side {
  int64_t start, end;          /* latest, earliest */
  bool there;
};

struct edge {
  struct ni_line_bound *b;
  size_t n, cap;
};

struct work {
  struct ni_tr *r;
  uint32_t *shared;            /* [n][n]: collectives in common */
  struct side *side;           /* of the operation at hand */
  uint32_t *list, n_list;
  struct edge *edge;           /* to via */
  bool windowed;               /* only what runs between --since and --until: clocks are straight for a short time */
  uint32_t *order, n_order;    /* hosts, nearest first */
};

/* What to add to GPU times that were written with the stated offset. */
static int64_t correction(const struct ni_tr *r, uint32_t member, int64_t stated, int64_t t) {
  int64_t better;
  if (stated == NI_NO_OFFSET || !ni_gpu_clock_at(&r->unit[r->member[member].unit].clock, t, &better)) return 0;
  return better - stated;
}

/* By the clock of the reference where it took part, else of whoever stands first. */
static bool in_window(const struct work *w, const struct ni_match_op *op) {
  const struct ni_tr *r = w->r;
  const struct ni_match_entry *by = &r->match.entry[op->first - 1];
  for (uint32_t i = op->first; i; i = r->match.entry[i - 1].next)
    if (ni_tr_host_of(r, &r->member[r->match.entry[i - 1].member]) == r->reference) by = &r->match.entry[i - 1];
  return by->end_ns >= r->since_ns && by->start_ns <= r->until_ns;
}

static void gather(struct work *w, const struct ni_match_op *op) {
  struct ni_tr *r = w->r;
  for (uint32_t i = 0; i < w->n_list; i++) w->side[w->list[i]].there = false;
  w->n_list = 0;
  if (w->windowed && !in_window(w, op)) return;
  for (uint32_t i = op->first; i; i = r->match.entry[i - 1].next) {
    const struct ni_match_entry *e = &r->match.entry[i - 1];
    if (!r->unit[r->member[e->member].unit].shown) continue;
    uint32_t host = ni_tr_host_of(r, &r->member[e->member]);
    int64_t add = correction(r, e->member, e->stated_ns, e->start_ns);
    int64_t start = e->start_ns + add, end = e->end_ns + add;
    struct side *s = &w->side[host];
    if (!s->there) {
      *s = (struct side){start, end, true};
      w->list[w->n_list++] = host;
      continue;
    }
    if (start > s->start) s->start = start;
    if (end < s->end) s->end = end;
  }
}

static int each_operation(struct work *w, int (*visit)(struct work *)) {
  const struct ni_match *m = &w->r->match;
  int e = 0;
  for (uint32_t i = 0; e == 0 && i <= m->mask; i++)
    if (m->op[i].n) {
      gather(w, &m->op[i]);
      e = visit(w);
    }
  return e;
}

static int count_pairs(struct work *w) {
  uint32_t n = w->r->n_hosts;
  for (uint32_t i = 0; i < w->n_list; i++) {
    struct side *s = &w->side[w->list[i]];
    int64_t against = s->start - s->end;
    if (against > 0 && against < 1000000000) {
      if (against > w->r->contradiction_ns) w->r->contradiction_ns = against;
      if (against > w->r->host[w->list[i]].gpu_ns) w->r->host[w->list[i]].gpu_ns = against;
    }
    for (uint32_t k = 0; k < i; k++) {
      w->shared[(size_t)w->list[i] * n + w->list[k]]++;
      w->shared[(size_t)w->list[k] * n + w->list[i]]++;
    }
  }
  return 0;
}

/* Breadth first from the reference; then each level's hosts choose the nearer host they share most with. */
static void choose(struct work *w) {
  struct ni_tr *r = w->r;
  uint32_t n = r->n_hosts, *level = calloc(n, sizeof *level);
  if (!level) return;
  r->host[r->reference].via = r->reference;
  r->host[r->reference].aligned = true;
  w->order[w->n_order++] = r->reference;
  for (uint32_t i = 0; i < w->n_order; i++)
    for (uint32_t h = 0, x = w->order[i]; h < n; h++)
      if (w->shared[(size_t)x * n + h] && r->host[h].via == NI_TR_NONE) {
        level[h] = level[x] + 1;
        r->host[h].via = x;
        w->order[w->n_order++] = h;
      }
  for (uint32_t i = 1; i < w->n_order; i++)
    for (uint32_t h = w->order[i], x = 0; x < n; x++)
      if (level[x] + 1 == level[h] && r->host[x].via != NI_TR_NONE &&
          w->shared[(size_t)x * n + h] > w->shared[(size_t)r->host[h].via * n + h])
        r->host[h].via = x;
  free(level);
}

static int collect(struct work *w) {
  struct ni_tr *r = w->r;
  for (uint32_t i = 0; i < w->n_list; i++) {
    uint32_t h = w->list[i], via = r->host[h].via;
    if (h == r->reference || via == NI_TR_NONE || !w->side[via].there) continue;
    struct edge *x = &w->edge[h];
    if (!ni_array_room(x->b, x->n, x->cap)) return -ENOMEM;
    const struct side *here = &w->side[h], *there = &w->side[via];
    x->b[x->n++] = (struct ni_line_bound){here->end - r->epoch_ns, here->start - there->end, here->end - there->start};
  }
  return 0;
}

static void fit(struct work *w) {
  struct ni_tr *r = w->r;
  for (uint32_t i = 1; i < w->n_order; i++) {
    struct ni_tr_host *h = &r->host[w->order[i]];
    const struct ni_tr_host *via = &r->host[h->via];
    struct edge *x = &w->edge[w->order[i]];
    struct ni_line_fit f;
    ni_line_fit(x->b, x->n, &f);
    /* The line is over h's clock, via's is over its own; products of drifts vanish. */
    h->offset_ns = f.offset_ns + via->offset_ns - via->drift * f.offset_ns;
    h->drift = f.drift + via->drift;
    h->room_ns = via->room_ns + (int64_t)f.error_ns + 1;
    h->error_ns = h->room_ns + h->gpu_ns + r->host[r->reference].gpu_ns;
    /* Bounds may cross by what the GPUs' clocks are off; beyond that it is the hosts' that do not run straight. */
    h->contradiction = -f.room_ns > (double)(h->gpu_ns + via->gpu_ns) || via->contradiction;
    h->matched = f.used;
    h->rejected = f.rejected;
    h->aligned = true;
  }
}

/* The host of the lowest rank that is shown. */
static uint32_t reference_of(const struct ni_tr *r) {
  uint32_t best = NI_TR_NONE;
  for (uint32_t i = 0; i < r->n_units; i++)
    if (r->unit[i].shown && (best == NI_TR_NONE || r->unit[i].rank < r->unit[best].rank)) best = i;
  return best == NI_TR_NONE ? NI_TR_NONE : r->process[r->unit[best].process].host;
}

static void free_work(struct work *w) {
  for (uint32_t i = 0; w->edge && i < w->r->n_hosts; i++) free(w->edge[i].b);
  free(w->shared);
  free(w->side);
  free(w->list);
  free(w->edge);
  free(w->order);
}

static void set_gpu_errors(struct ni_tr *r) {
  for (uint32_t i = 0; i < r->n_hosts; i++) r->host[i].gpu_ns = 0;
  for (uint32_t i = 0; i < r->n_units; i++) {
    struct ni_tr_host *h = &r->host[r->process[r->unit[i].process].host];
    if (r->unit[i].shown && r->unit[i].clock.spread_ns > h->gpu_ns) h->gpu_ns = r->unit[i].clock.spread_ns;
  }
}

static int align(struct ni_tr *r, bool windowed) {
  uint32_t n = r->n_hosts;
  struct work w = {.r = r, .windowed = windowed, .shared = calloc((size_t)n * n, sizeof *w.shared),
                   .side = calloc(n, sizeof *w.side), .list = calloc(n, sizeof *w.list), .edge = calloc(n, sizeof *w.edge),
                   .order = calloc(n, sizeof *w.order)};
  int e = w.shared && w.side && w.list && w.edge && w.order ? 0 : -ENOMEM;
  r->contradiction_ns = 0;
  set_gpu_errors(r);
  for (uint32_t i = 0; i < n; i++) {
    r->host[i].via = NI_TR_NONE;
    r->host[i].aligned = false;
  }
  if (e == 0) e = each_operation(&w, count_pairs);
  if (e == 0) {
    choose(&w);
    e = each_operation(&w, collect);
  }
  if (e == 0) fit(&w);
  free_work(&w);
  return e;
}

int ni_tr_align(struct ni_tr *r) {
  r->epoch_ns = r->first_ns == INT64_MAX ? 0 : r->first_ns / 2 + r->last_ns / 2;
  r->reference = reference_of(r);
  if (r->reference == NI_TR_NONE) return 0;
  if (r->n_hosts > HOSTS_MAX)
    return ni_tr_fail(r, -E2BIG, "%u hosts: clocks can be aligned for %d; choose some with --host or --rank", r->n_hosts,
                      HOSTS_MAX);
  bool windowed = r->since_ns != INT64_MIN || r->until_ns != INT64_MAX;
  int e = align(r, windowed);
  /* A short window may hold nothing that joins all hosts: then the whole run has to do. */
  bool all = true;
  for (uint32_t i = 0; i < r->n_units; i++) all &= !r->unit[i].shown || r->host[r->process[r->unit[i].process].host].aligned;
  if (e == 0 && windowed && !all) e = align(r, false);
  ni_match_free(&r->match);
  return e < 0 ? ni_tr_fail(r, e, "%s", strerror(-e)) : 0;
}
