#include "way.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/base/array.h"

bool ni_way_is_unchanged(const struct ni_way *w, const struct ni_graph *g) {
  if (g->denoised)
    return false; /* another way may be the longest */
  for (uint32_t i = 0; i < w->n; i++) {
    const struct ni_way_part *p = &w->part[i];
    if (g->join[p->join].us < g->op[p->join].transfer)
      return false;
    if (p->node != NI_BLAME_NONE &&
        ni_graph_changed_gap(g, &g->part[p->rank].change, &g->node[p->node]) < g->node[p->node].gap)
      return false;
  }
  return true;
}

int ni_way_follow(struct ni_way *w, const struct ni_graph *g, double end) {
  uint32_t at = 0, by;
  for (uint32_t i = 1; i < g->n_joins; i++)
    if (g->join[i].end > g->join[at].end)
      at = i;
  w->n = 0;
  for (uint32_t i = 0; i < g->n_nodes; i++, at = by) { /* each at most once */
    const struct ni_graph_op *o = &g->op[at];
    const struct ni_graph_node *n = &g->node[o->last];
    double began = ni_graph_find_start(g, &g->part[o->rank], n, &by), pause = by == n->main ? n->pause : 0;
    bool first = by == NI_BLAME_NONE; /* before the first operation of the block all is own time */
    if (!ni_array_room(w->part, w->n, w->cap))
      return -ENOMEM;
    w->part[w->n++] = (struct ni_way_part){at, !first && by == n->main ? o->last : NI_BLAME_NONE, o->rank};
    w->transfer += end - g->join[at].start;
    w->path[g->b->link[o->link].comm] += end - g->join[at].start;
    end = first ? 0 : g->join[by].end;
    w->pauses += pause;
    w->own += began - end - pause;
    if (first)
      break;
  }
  return 0;
}

/*
 * By how much a part of the longest way is shorter in the scenario: its transfer, and the own time before it.
 * Call it before ni_graph_run().
 */
static double count_saving(const struct ni_graph *g, const struct ni_way_part *p) {
  double us = fmax(0, g->op[p->join].transfer - g->join[p->join].us);
  if (p->node == NI_BLAME_NONE)
    return us;
  const struct ni_graph_node *n = &g->node[p->node];
  return us + fmax(0, ni_graph_own_time(g, n) - ni_graph_changed_gap(g, &g->part[p->rank].change, n));
}

static double sum_savings(const struct ni_way *w, const struct ni_graph *g) {
  double all = 0;
  for (uint32_t i = 0; i < w->n; i++)
    all += count_saving(g, &w->part[i]);
  return all;
}

double ni_way_attribute(const struct ni_way *w, struct ni_graph *g, double took, double *lost) {
  const double all = sum_savings(w, g), saved = took - ni_graph_run(g);
  for (uint32_t i = 0; i < w->n && all > 0; i++)
    lost[g->b->link[g->op[w->part[i].join].link].comm] += count_saving(g, &w->part[i]) * saved / all;
  return saved;
}

int ni_way_begin(struct ni_way *w, const struct ni_blame *b) {
  w->path = calloc(b->s->n_comms + 1, sizeof *w->path);
  return w->path ? 0 : -ENOMEM;
}

void ni_way_free(struct ni_way *w) {
  free(w->part);
  free(w->path);
}
