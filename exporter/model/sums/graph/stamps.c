#include "stamps.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/model/sums/ranks/quantile.h"

/* A place of a step, of one rank: own time before it. */
struct place_sums {
  float sum, squares;
  uint32_t n;
};

struct stamps {
  struct ni_graph *g;
  uint32_t *first, *of_join; /* of each join: its nodes in of_join, in order of their ranks */
  uint32_t *rank;            /* of each node */
  float *off;                /* of each node: its end's stamp later than it ended; NAN: not known */
  float *scratch;            /* ranks */
  struct place_sums *place;  /* of the rank at hand */
  uint32_t *at;              /* by node of it */
};

static void list_joins(struct stamps *x) {
  struct ni_graph *g = x->g;
  memset(x->first, 0, ((size_t)g->n_joins + 2) * sizeof *x->first);
  for (uint32_t i = 0; i < g->n_nodes; i++)
    x->first[g->node[i].join + 2]++;
  for (uint32_t k = 0; k < g->n_joins; k++)
    x->first[k + 2] += x->first[k + 1];
  for (uint32_t r = 0; r < g->b->n_ranks; r++)
    for (uint32_t i = 0; i < g->part[r].n; i++) {
      const uint32_t node = g->part[r].first + i;
      x->rank[node] = r;
      x->of_join[x->first[g->node[node].join + 1]++] = node;
    }
}

/* Nodes from..to of of_join are a host's: how far each end is from the middle one. */
static void compare_ends(struct stamps *x, uint32_t from, uint32_t to) {
  for (uint32_t i = from; i < to; i++)
    x->scratch[i - from] = x->g->node[x->of_join[i]].end;
  const float middle = ni_blame_quantile(x->scratch, to - from, 0.5);
  for (uint32_t i = from; i < to; i++)
    x->off[x->of_join[i]] = x->g->node[x->of_join[i]].end - middle;
}

static void find_stamp_offsets(struct stamps *x) {
  const struct ni_blame *b = x->g->b;
  for (uint32_t i = 0; i < x->g->n_nodes; i++)
    x->off[i] = NAN;
  for (uint32_t k = 0; k < x->g->n_joins; k++)
    for (uint32_t from = x->first[k], to; from < x->first[k + 1]; from = to) {
      const uint32_t host = ni_blame_host(b, x->rank[x->of_join[from]]);
      for (to = from + 1; to < x->first[k + 1]; to++)
        if (ni_blame_host(b, x->rank[x->of_join[to]]) != host)
          break;
      if (to - from >= NI_STAMPS_PEERS)
        compare_ends(x, from, to);
    }
}

/*
 * A GPU's times may all be too late by something: that is in no gap. Returns the variance of what the rank's
 * ends are off by beside that; NAN: too few are known.
 */
static double centre_offsets(struct stamps *x, const struct ni_graph_part *s) {
  double sum = 0, squares = 0;
  uint32_t n = 0;
  for (uint32_t i = s->first; i < s->first + s->n; i++)
    if (!isnan(x->off[i])) {
      sum += x->off[i];
      n++;
    }
  for (uint32_t i = s->first; i < s->first + s->n && n; i++) {
    x->off[i] -= (float)(sum / n);
    if (!isnan(x->off[i]))
      squares += (double)x->off[i] * x->off[i];
  }
  return n >= NI_STAMPS_ENDS ? squares / n : NAN;
}

/* Numbers the places of the rank's slots: those of slot k are base[k]..base[k + 1]. */
static void number_places(struct stamps *x, const struct ni_blame_rank *o, const struct ni_graph_part *s,
                          uint32_t base[NI_BLAME_SLOTS + 1]) {
  uint32_t number[NI_BLAME_SLOTS] = {0}, most[NI_BLAME_SLOTS] = {0};
  for (uint32_t i = 0; i < s->n; i++) {
    const struct ni_blame_sampled *op = &o->sample[s->from + i];
    if (i && op->step != o->sample[s->from + i - 1].step)
      memset(number, 0, sizeof number);
    x->at[i] = number[op->slot]++;
    if (number[op->slot] > most[op->slot])
      most[op->slot] = number[op->slot];
  }
  base[0] = 0;
  for (uint32_t k = 0; k < NI_BLAME_SLOTS; k++)
    base[k + 1] = base[k] + most[k];
  for (uint32_t i = 0; i < s->n; i++)
    x->at[i] += base[o->sample[s->from + i].slot];
}

static bool is_plain_node(const struct ni_graph_node *n) {
  return n->main != NI_BLAME_NONE && !(n->pause > 0);
}

/* How much of what own time of these places lies from its mean is its own: stamps add `noise`. */
static float find_own_part(const struct place_sums *place, uint32_t n, double noise) {
  double squares = 0;
  uint32_t free = 0;
  for (uint32_t k = 0; k < n; k++) {
    const struct place_sums *p = &place[k];
    if (p->n < NI_STAMPS_TIMES)
      continue;
    squares += fmax(0, p->squares - (double)p->sum * p->sum / p->n);
    free += p->n - 1;
  }
  if (!free || !(squares > 0))
    return 1;
  return (float)sqrt(fmax((double)NI_STAMPS_LEAST * NI_STAMPS_LEAST, 1 - noise * free / squares));
}

static void denoise_rank(struct stamps *x, uint32_t rank) {
  const struct ni_blame_rank *o = &x->g->b->rank[rank];
  const struct ni_graph_part *s = &x->g->part[rank];
  uint32_t base[NI_BLAME_SLOTS + 1];
  float own[NI_BLAME_SLOTS];
  const double noise = centre_offsets(x, s);
  if (isnan(noise))
    return;
  number_places(x, o, s, base);
  memset(x->place, 0, base[NI_BLAME_SLOTS] * sizeof *x->place);
  for (uint32_t i = 0; i < s->n; i++) {
    struct ni_graph_node *n = &x->g->node[s->first + i];
    struct place_sums *p = &x->place[x->at[i]];
    if (!is_plain_node(n))
      continue;
    const float off = x->off[s->first + i - o->sample[s->from + i].main];
    if (!isnan(off))
      n->denoised = fmaxf(0, n->gap + off);
    p->sum += n->denoised;
    p->squares += n->denoised * n->denoised;
    p->n++;
  }
  for (uint32_t k = 0; k < NI_BLAME_SLOTS; k++)
    own[k] = find_own_part(x->place + base[k], base[k + 1] - base[k], noise);
  for (uint32_t i = 0; i < s->n; i++) {
    struct ni_graph_node *n = &x->g->node[s->first + i];
    const struct place_sums *p = &x->place[x->at[i]];
    const float mean = p->sum / (float)p->n;
    if (is_plain_node(n) && p->n >= NI_STAMPS_TIMES)
      n->denoised = mean + own[o->sample[s->from + i].slot] * (n->denoised - mean);
  }
}

int ni_stamps_denoise(struct ni_graph *g) {
  const size_t nodes = (size_t)g->n_nodes + 1, ranks = (size_t)g->b->n_ranks + 1;
  struct stamps x = {.g = g,
                     .first = malloc(((size_t)g->n_joins + 2) * sizeof *x.first),
                     .of_join = malloc(nodes * sizeof *x.of_join),
                     .rank = malloc(nodes * sizeof *x.rank),
                     .off = malloc(nodes * sizeof *x.off),
                     .scratch = malloc(ranks * sizeof *x.scratch),
                     .place = malloc(nodes * sizeof *x.place),
                     .at = malloc(nodes * sizeof *x.at)};
  const bool has_lists = x.first && x.of_join && x.rank;
  const bool has_places = x.off && x.place && x.at;
  const bool has_room = has_lists && has_places && x.scratch;
  if (has_room) {
    list_joins(&x);
    find_stamp_offsets(&x);
    for (uint32_t i = 0; i < g->n_nodes; i++)
      g->node[i].denoised = g->node[i].gap;
    for (uint32_t r = 0; r < g->b->n_ranks; r++)
      if (g->part[r].n)
        denoise_rank(&x, r);
  }
  free(x.first);
  free(x.of_join);
  free(x.rank);
  free(x.off);
  free(x.scratch);
  free(x.place);
  free(x.at);
  return has_room ? 0 : -ENOMEM;
}

bool ni_stamps_are_off(const struct ni_blame *b, float *scratch) {
  size_t n = 0;
  for (uint32_t r = 0; r < b->n_ranks; r++)
    if (b->rank[r].judged)
      scratch[n++] = b->rank[r].overlap_us;
  return n && ni_blame_quantile(scratch, n, 0.5) >= NI_STAMPS_OFF_US;
}
