#include "scenario.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/base/array.h"

#define TRANSFER_LEAST_US 0.1 /* of which a logarithm is taken: less is nothing but the timer's resolution */

#define SPOTS_TELL 0.5    /* of what a rank is late by: places that explain less say nothing of it */
#define SPOTS_SHORTER 0.1 /* of what it takes longer in its places: so much may it take shorter by chance */

void ni_scenario_reset(struct ni_scenario *x) {
  x->g.quicker = false;
  for (uint32_t i = 0; i < x->g.n_joins; i++)
    x->g.join[i].us = x->g.op[i].transfer;
  for (uint32_t r = 0; r < x->g.b->n_ranks; r++)
    x->g.part[r].change = (struct ni_graph_change){.factor = 1};
}

static bool is_at_work(const struct ni_scenario *x, uint32_t cause, uint32_t link, uint32_t bin) {
  return x->causes_of[link] >> cause & 1 && ni_cause_is_active(&x->causes->item[cause], bin);
}

/* Transfers as they usually are: each one as long as those of its size on like links. */
static void quicken_transfers(struct ni_scenario *x, uint32_t cause) {
  /*
   * A cause that comes and goes is counted by the clock. The replay only bounds that, and must not be too
   * low.
   */
  if (x->causes->item[cause].n_unmatched)
    x->g.quicker = true;
  for (uint32_t i = 0; i < x->g.n_joins; i++) {
    const struct ni_graph_op *w = &x->g.op[i];
    const struct ni_graph_peers *s = &x->g.peers[w->peers];
    if (!is_at_work(x, cause, w->link, w->bin))
      continue;
    if (s->n >= NI_GRAPH_PEERS_MIN)
      x->g.join[i].us = (float)exp(s->log_us / s->n);
    else
      x->g.join[i].us /= 1 + x->causes->item[cause].share;
  }
}

static void count_usual(struct ni_graph_spot *p, const struct ni_graph_node *n) {
  p->usual_us += n->gap - n->pause;
  p->beside_us += n->beside;
  p->n_usual++;
}

static void count_slow(struct ni_graph_spot *p, const struct ni_graph_node *n) {
  p->n_slow++;
  if (!n->launched_late)
    return;
  p->late_us += n->gap - n->pause;
  p->n_late++;
}

static void count_late(const struct ni_scenario *x, uint32_t rank, const struct ni_graph_node *n) {
  if (n->late_spot == NI_BLAME_NONE || !ni_cause_is_active(&x->causes->item[x->late_by[rank]], n->bin))
    return;
  x->g.late_spot[n->late_spot].own_us += n->gap - n->pause;
  x->g.late_spot[n->late_spot].n++;
}

static void count_spots(struct ni_scenario *x) {
  for (uint32_t r = 0; r < x->g.b->n_ranks; r++)
    for (uint32_t i = 0; i < x->g.part[r].n; i++) {
      const struct ni_graph_node *n = &x->g.node[x->g.part[r].first + i];
      if (n->main == NI_BLAME_NONE)
        continue;
      if (x->g.is_late[r])
        count_late(x, r, n);
      else if (x->launch_late[r])
        count_slow(&x->g.spot[n->spot], n);
      else
        count_usual(&x->g.spot[n->spot], n);
    }
}

/*
 * How much less a CPU that is not slow takes from launch to launch, by the places in which others compute and
 * do not wait.
 */
static void set_launch_factor(struct ni_graph *g) {
  double usual_us = 0, late_us = 0;
  for (uint32_t i = 0; i < g->n_spots; i++) {
    const struct ni_graph_spot *p = &g->spot[i];
    if (p->n_usual < NI_GRAPH_PEERS_MIN || p->n_late < NI_GRAPH_PEERS_MIN || ni_graph_hides(p))
      continue;
    usual_us += p->usual_us / p->n_usual;
    late_us += p->late_us / p->n_late;
  }
  g->launch_factor = late_us > 0 ? (float)fmin(1, usual_us / late_us) : 0;
}

/* How much longer the rank's own time is there than that of ranks that are not slow; NAN: not known. */
static double get_late_us(const struct ni_graph *g, const struct ni_graph_late_spot *p) {
  const struct ni_graph_spot *s = &g->spot[p->spot];
  if (p->n < NI_GRAPH_PEERS_MIN || s->n_usual < NI_GRAPH_PEERS_MIN)
    return NAN;
  return p->own_us - s->usual_us / s->n_usual * p->n;
}

/* Of a late rank, sums over its places. */
struct late_sums {
  double own_us, longer_us, shorter_us;
};

/*
 * The share of its cause says how late a rank is, its places say where. So all of them together take away no
 * more than that share. They say nothing if the rank takes shorter than its like in some of them: then it
 * waits for something else than these do. Nor do they if they explain too little of the share.
 */
static int set_late_spots(struct ni_scenario *x) {
  struct ni_graph *g = &x->g;
  struct late_sums *sums = calloc(g->b->n_ranks + 1, sizeof *sums);
  if (!sums)
    return -ENOMEM;
  NI_EACH(const struct ni_graph_late_spot, p, g->late_spot, g->n_late_spots) {
    const double late_us = get_late_us(g, p);
    if (isnan(late_us))
      continue;
    sums[p->rank].own_us += p->own_us;
    sums[p->rank].longer_us += fmax(0, late_us);
    sums[p->rank].shorter_us += fmax(0, -late_us);
  }
  NI_EACH(struct ni_graph_late_spot, p, g->late_spot, g->n_late_spots) {
    const struct late_sums *of = &sums[p->rank];
    const double of_gaps = x->causes->item[x->late_by[p->rank]].of_gaps;
    const double usual_less = 1 - 1 / (1 + of_gaps);
    const double said_us = of->own_us * usual_less, late_us = get_late_us(g, p);
    const bool is_like = of->shorter_us <= SPOTS_SHORTER * of->longer_us;
    g->is_late[p->rank] &= is_like && of->longer_us - of->shorter_us >= SPOTS_TELL * said_us;
    if (isnan(late_us) || of->longer_us <= 0 || p->own_us <= 0)
      p->less = (float)usual_less;
    else
      p->less = (float)(fmax(0, late_us) / p->own_us * fmin(1, said_us / of->longer_us));
  }
  free(sums);
  return 0;
}

/*
 * Once through the sample, to its begin again: how long transfers take where no cause is at work, and what
 * lies before operations.
 */
static int find_baselines(struct ni_scenario *x, uint32_t blocks) {
  int got = 0;
  for (uint32_t k = 0; got >= 0 && k < blocks; k++) {
    if (k % x->g.b->sample_every || (got = ni_graph_load(&x->g, k)) <= 0)
      continue;
    for (uint32_t i = 0; i < x->g.n_joins; i++) {
      const struct ni_graph_op *w = &x->g.op[i];
      bool touched = false;
      for (uint64_t of = x->causes_of[w->link]; of && !touched; of &= of - 1)
        touched = ni_cause_is_active(&x->causes->item[__builtin_ctzll(of)], w->bin);
      if (touched || !x->g.compares)
        continue;
      x->g.peers[w->peers].log_us += log(fmax(w->transfer, TRANSFER_LEAST_US));
      x->g.peers[w->peers].n++;
    }
    if (x->g.launches || x->g.any_late)
      count_spots(x);
  }
  set_launch_factor(&x->g);
  ni_graph_rewind(&x->g);
  return got < 0 ? got : set_late_spots(x);
}

/*
 * A rank computes longer, by a cause that is replayed. Not where operations hide most of what
 * it does (c->rest): there others get ahead of it from place to place, and these say nothing. Nor do they of
 * what comes and goes: it is counted by the clock.
 */
static bool is_late_in_places(const struct ni_scenario *x, const struct ni_cause *c) {
  const bool computes =
      c->kind == NI_FIND_LATE_RANK || c->kind == NI_FIND_SLOW_HOST || c->kind == NI_FIND_UNEVEN;
  return computes && !c->launch && !c->rest && !ni_cause_comes_and_goes(x->g.b, c);
}

static void set_late_ranks(struct ni_scenario *x) {
  for (uint32_t i = x->causes->n; i-- > 0;) {
    const struct ni_cause *c = &x->causes->item[i];
    for (uint32_t k = 0; is_late_in_places(x, c) && k < c->n_items; k++) {
      x->late_by[c->item[k]] = i;
      x->g.is_late[c->item[k]] = x->g.any_late = true;
    }
  }
}

int ni_scenario_learn(struct ni_scenario *x, uint32_t blocks) {
  const struct ni_causes *c = x->causes;
  set_late_ranks(x);
  for (uint32_t i = 0; i < c->n; i++) {
    x->g.compares |= c->item[i].links;
    for (uint32_t k = 0; c->item[i].links && k < c->item[i].n_items; k++)
      x->causes_of[c->item[i].item[k]] |= UINT64_C(1) << i;
    for (uint32_t k = 0; k < c->item[i].n_unmatched; k++)
      x->causes_of[c->item[i].unmatched[k]] |= UINT64_C(1) << i;
    x->g.launches |= c->item[i].launch;
    for (uint32_t k = 0; c->item[i].launch && k < c->item[i].n_items; k++)
      x->launch_late[c->item[i].item[k]] = true;
  }
  for (uint32_t r = 0; r < x->g.b->n_ranks; r++) {
    const bool is_like = x->g.b->rank[r].judged && x->g.b->rank[r].cls != NI_BLAME_NONE;
    if (is_like && !x->launch_late[r] && !x->g.is_late[r])
      x->g.has_peers[x->g.b->rank[r].cls] = true;
  }
  return x->g.compares || x->g.launches || x->g.any_late ? find_baselines(x, blocks) : 0;
}

/*
 * Uneven work: which links carry less without it. These are its ranks' messages, and communicators that have
 * no other ranks.
 */
static bool is_link_of_ranks(const struct ni_cause *c, const struct ni_blame_link *l) {
  uint32_t there = 0;
  for (uint32_t k = 0; k < l->n_ranks; k++)
    for (uint32_t i = 0; i < c->n_items; i++)
      there += c->item[i] == l->rank[k];
  return l->from < 0 ? there == l->n_ranks : there > 0;
}

static void shorten_messages(struct ni_scenario *x, const struct ni_cause *c) {
  for (uint32_t i = 0; i < x->g.n_joins; i++) {
    const struct ni_graph_op *w = &x->g.op[i];
    if (ni_cause_is_active(c, w->bin) && is_link_of_ranks(c, &x->g.b->link[w->link]))
      x->g.join[i].us /= 1 + c->more_bytes;
  }
}

bool ni_scenario_shortens_own_time(const struct ni_cause *c) {
  return !c->links && c->kind != NI_FIND_PAUSES && c->kind != NI_FIND_PERIODIC;
}

void ni_scenario_remove(struct ni_scenario *x, uint32_t cause) {
  const struct ni_cause *c = &x->causes->item[cause];
  if (c->links)
    quicken_transfers(x, cause);
  if (c->kind == NI_FIND_UNEVEN)
    shorten_messages(x, c);
  for (uint32_t i = 0; i < c->n_items && !c->links; i++) {
    struct ni_graph_change *s = &x->g.part[c->item[i]].change;
    const bool by_spot = x->g.is_late[c->item[i]] && x->late_by[c->item[i]] == cause;
    if (c->kind == NI_FIND_PAUSES || c->kind == NI_FIND_PERIODIC)
      s->no_pauses = true;
    else
      *s = (struct ni_graph_change){.factor = 1 / (1 + c->of_gaps),
                                    .from = c->from,
                                    .to = c->to,
                                    .at = c->at,
                                    .pauses_at = c->pauses_at,
                                    .no_pauses = s->no_pauses,
                                    .launches = c->launch,
                                    .by_spot = by_spot};
  }
}

int ni_scenario_begin(struct ni_scenario *x, const struct ni_blame *b, const struct ni_causes *causes) {
  *x = (struct ni_scenario){.causes = causes,
                            .causes_of = calloc(b->n_links + 1, sizeof *x->causes_of),
                            .late_by = malloc((b->n_ranks + 1) * sizeof *x->late_by),
                            .launch_late = calloc(b->n_ranks + 1, sizeof *x->launch_late)};
  const int e = ni_graph_begin(&x->g, b);
  return x->causes_of && x->launch_late && x->late_by ? e : -ENOMEM;
}

void ni_scenario_free(struct ni_scenario *x) {
  ni_graph_free(&x->g);
  free(x->causes_of);
  free(x->launch_late);
  free(x->late_by);
}
