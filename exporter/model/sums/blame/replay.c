#include "replay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "exporter/model/sums/graph/scenario.h"
#include "exporter/model/sums/graph/stamps.h"
#include "exporter/model/sums/graph/way.h"
#include "exporter/model/sums/ranks/quantile.h"
#include "peer_groups.h"

#define DOUBT_OF_MODEL 0.05    /* of any cost: the graph does not know what operations share */
#define DOUBT_OF_BASELINE 0.01 /* a baseline may be off by so much */
#define OTHERS_WAIT 0.1        /* this part of the other ranks may wait for a shorter time */

struct replay {
  struct ni_scenario s;
  struct ni_way way;
  double *ended; /* of a join, as recorded; where waits may not be in the logs */
  size_t cap_ended;
  /* stamps are off: causes are taken away where own time is without that (stamps.h) */
  bool denoises;
  double recorded, replayed;
  /*
   * By communicator: what all causes together cost there, those apart whose cost is counted by the clock.
   */
  double *lost, *lost_now_and_then;
};

/* Only a cause that is told by own time is hidden by stamps that are off. */
static int check_stamps(struct replay *x) {
  float *scratch = malloc((x->s.g.b->n_ranks + 1) * sizeof *scratch);
  if (!scratch)
    return -ENOMEM;
  bool own = false;
  for (uint32_t i = 0; i < x->s.causes->n; i++)
    own |= ni_scenario_shortens_own_time(&x->s.causes->item[i]);
  x->denoises = own && ni_stamps_are_off(x->s.g.b, scratch);
  free(scratch);
  return 0;
}

/*
 * From here on own time is without what stamps are off by. *took: how long the block takes then, with all
 * causes.
 */
static int denoise_block(struct replay *x, double *took) {
  if (!x->denoises)
    return 0;
  const int e = ni_stamps_denoise(&x->s.g);
  if (e < 0)
    return e;
  x->s.g.denoised = true;
  *took = ni_graph_run(&x->s.g);
  return 0;
}

/* What the block saves without all causes of which clocked[] is `which`; 0 where there are none. */
static double run_without(struct replay *x, const bool *clocked, bool which, double took, double *lost) {
  uint32_t n = 0;
  ni_scenario_reset(&x->s);
  for (uint32_t i = 0; i < x->s.causes->n; i++)
    if (clocked[i] == which) {
      ni_scenario_remove(&x->s, i);
      n++;
    }
  return n ? ni_way_attribute(&x->way, &x->s.g, took, lost) : 0;
}

static void measure_model(struct replay *x) {
  uint32_t by;
  NI_EACH(const struct ni_graph_part, s, x->s.g.part, x->s.g.b->n_ranks) {
    const struct ni_graph_node *n = &x->s.g.node[s->first];
    if (s->n < 2)
      continue;
    x->recorded += s->took;
    x->replayed += x->s.g.join[n[s->n - 1].join].end - ni_graph_find_start(&x->s.g, s, n, &by);
  }
}

static double find_run_us(const struct ni_blame *b) {
  double best = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    double us = (double)(b->rank[i].last_ns - b->rank[i].first_ns) / 1e3;
    if (b->rank[i].judged && us > best)
      best = us;
  }
  return best;
}

/*
 * How far a cost may be off, as a share: twice its standard error. That of the baseline, of the choice of
 * blocks for the sample, and of the model are in it.
 */
static double estimate_doubt(const struct ni_cause *c, const double *cost, uint32_t blocks, double part,
                             double model) {
  double sum = 0, squares = 0;
  for (uint32_t i = 0; i < blocks; i++) {
    sum += cost[i];
    squares += cost[i] * cost[i];
  }
  double mean = sum / blocks,
         sampling =
             blocks > 1 && mean > 0 ? sqrt(fmax(0, squares / blocks - mean * mean) / (blocks - 1)) / mean : 1;
  double baseline = c->share > 0 ? DOUBT_OF_BASELINE / c->share : 0;
  return 2 *
      sqrt(DOUBT_OF_MODEL * DOUBT_OF_MODEL + baseline * baseline / 4 + sampling * sampling * (1 - part) +
           (1 - model) * (1 - model));
}

/*
 * Bins in which the cause is at work: of the job; of those, the ones of block k's steps (or all: k is
 * NI_BLAME_NONE).
 */
static uint32_t count_cause_bins(const struct replay *x, const struct ni_cause *c, uint32_t k) {
  const struct ni_blame *b = x->s.g.b;
  uint32_t from = k == NI_BLAME_NONE ? 0 : k * NI_BLAME_BLOCK / b->bin_steps, n = 0;
  uint32_t to = k == NI_BLAME_NONE ? b->bins : ((k + 1) * NI_BLAME_BLOCK + b->bin_steps - 1) / b->bin_steps;
  for (uint32_t i = from > c->from ? from : c->from; i < to && i < c->to && i < b->bins; i++)
    n += ni_cause_is_active(c, i);
  return n;
}

/* bins of a cause in the sample: then the replay has a say where its cost is counted by the clock, */
enum { CLOCK_SEEN_MIN = 4 };
/*
 * which may say so many times as much: what made the links look slow may have made the steps long by itself
 */
#define CLOCK_MOST 2.0

/*
 * Waiting of a rank in the bins of a cause: what its operations took beyond their transfers. Where somebody
 * else waits for so long only, the job would be no quicker without the cause than by that.
 */
static double sum_rank_waits(const struct ni_blame *b, const struct ni_cause *c, uint32_t rank) {
  const struct ni_blame_rank *o = &b->rank[rank];
  double sum = 0;
  for (uint32_t k = c->from; k < c->to && k < b->bins; k++) {
    const struct ni_blame_cell *cell = ni_cause_is_active(c, k) ? ni_blame_cell_at(b, rank, k) : NULL;
    if (!cell)
      continue;
    const struct ni_blame_link_cell *l = &o->link_cell[(size_t)(cell - o->cell) * o->max_slots];
    for (uint32_t i = 0; i < o->n_slots; i++) {
      if (l[i].n == 0 || o->slot[i].link == NI_BLAME_NONE)
        continue;
      const double transfer = (double)b->link[o->slot[i].link].us[k] * l[i].n;
      if (l[i].exec > transfer)
        sum += l[i].exec - transfer;
    }
  }
  return sum;
}

/*
 * Nine in ten of the other ranks wait for so long or longer; INFINITY: there are none. Where waits may not be
 * in the logs only ranks of its team are asked. us: room for all ranks.
 */
static double find_others_wait(const struct ni_blame *b, const struct ni_cause *c, float *us) {
  size_t n = 0;
  for (uint32_t r = 0; r < b->n_ranks; r++) {
    bool its = !b->rank[r].judged || !b->rank[r].n_bins;
    its |= (b->waits_unseen || b->teams_wait_unseen) && b->rank[r].team != b->rank[c->item[0]].team;
    for (uint32_t i = 0; i < c->n_items && !its; i++)
      its = c->item[i] == r;
    if (!its)
      us[n++] = (float)sum_rank_waits(b, c, r);
  }
  return n ? ni_blame_quantile(us, n, OTHERS_WAIT) : INFINITY;
}

static void bound_cost(struct ni_cause *c, double most) {
  if (c->cost_us <= most)
    return;
  c->low_us *= most / c->cost_us;
  c->high_us *= most / c->cost_us;
  c->cost_us = most;
}

/*
 * What others waited for may not be in the logs. It is part of their own time then, and they would be no
 * quicker in the replay without the cause. But who takes longer delays all others. So a rank, or a host's
 * slow transfers, cost what their team gets ahead without the cause (measure_head_start()).
 */
static bool is_hidden_from_replay(const struct ni_blame *b, const struct ni_cause *c) {
  const bool is_of_team = !c->links || c->link == NI_FIND_SLOW_NVLINK;
  return is_of_team && (b->waits_unseen || b->teams_wait_unseen);
}

/* Keeps when operations ended. Call it after the run as recorded. */
static int store_ends(struct replay *x) {
  if (!x->s.g.b->waits_unseen && !x->s.g.b->teams_wait_unseen)
    return 0;
  if (x->s.g.n_joins > x->cap_ended &&
      !ni_array_exact(&x->ended, &x->cap_ended, x->s.g.n_joins, sizeof *x->ended))
    return -ENOMEM;
  for (uint32_t i = 0; i < x->s.g.n_joins; i++)
    x->ended[i] = x->s.g.join[i].end;
  return 0;
}

/*
 * By how much a team gets ahead from one of its operations to the next, in all; of the team that does so
 * most. Call it after a run without the cause. Where a team meets others, who are no quicker, it waits for
 * them, and gets ahead anew.
 */
static double measure_head_start(const struct replay *x) {
  const struct ni_blame *b = x->s.g.b;
  double most = 0;
  for (uint32_t r = 0; r < b->n_ranks; r++) {
    const struct ni_graph_part *s = &x->s.g.part[r];
    double us = 0, before = 0;
    for (uint32_t i = 0; i < s->n; i++) {
      const uint32_t join = x->s.g.node[s->first + i].join;
      if (b->link[x->s.g.op[join].link].comm != b->rank[r].team)
        continue;
      const double ahead = x->ended[join] - x->s.g.join[join].end;
      us += fmax(0, ahead - before);
      before = ahead;
    }
    most = fmax(most, us);
  }
  return most;
}

/*
 * Bounds a cost that was counted by the clock. saved_us: what the sample saved without the cause in `seen`
 * bins. Of operations that stopped it is measured what each of them lost.
 */
static void bound_clocked_cost(const struct replay *x, struct ni_cause *c, double saved_us, uint32_t seen) {
  if (c->most_us > 0)
    bound_cost(c, c->most_us);
  const bool is_replayed = (c->links && !c->stops) || c->kind == NI_FIND_THROTTLING;
  if (is_replayed && seen >= CLOCK_SEEN_MIN)
    bound_cost(c, CLOCK_MOST * saved_us * count_cause_bins(x, c, NI_BLAME_NONE) / seen);
}

/*
 * The cost of a cause by what the sample saved without it in `seen` bins. scale: how many times as long as
 * the sample the run is; it counts where the sample has no bin of the cause. doubt: estimate_doubt().
 */
static void fill_replayed_cost(const struct replay *x, struct ni_cause *c, double saved_us, uint32_t seen,
                               double scale, double doubt) {
  const uint32_t bins = count_cause_bins(x, c, NI_BLAME_NONE);
  const double most = (double)c->lead.part * c->excess_us * bins * x->s.g.b->bin_steps;
  c->cost_us = fmax(0, saved_us * (seen ? (double)bins / seen : scale));
  if (most < c->cost_us && c->lead.apart < 1)
    c->cost_us = pow(most, 1 - c->lead.apart) * pow(c->cost_us, c->lead.apart);
  c->low_us = c->cost_us * fmax(0, 1 - doubt);
  c->high_us = c->cost_us * (1 + doubt);
}

/* What the replayed blocks say, of each cause and in all; us. */
struct replayed {
  uint32_t blocks, n;           /* of the run; of these, replayed: the sample has some */
  double *saved;                /* [cause][blocks]: what the block saves without the cause */
  uint32_t seen[NI_CAUSES_MAX]; /* bins of the cause in them */
  bool clocked[NI_CAUSES_MAX];  /* it comes and goes: its cost is counted by the clock */
  double took;                  /* as recorded */
  double all, all_clocked;      /* saved without all causes, but for clocked ones; without all clocked ones */
};

/* The block at hand, as recorded and without each cause. took: as recorded. */
static int replay_block(struct replay *x, struct replayed *s, uint32_t block, double took) {
  const struct ni_causes *causes = x->s.causes;
  int e = ni_way_follow(&x->way, &x->s.g, took);
  if (e == 0)
    e = store_ends(x);
  if (e < 0)
    return e;
  measure_model(x);
  if ((e = denoise_block(x, &took)) < 0)
    return e;
  for (uint32_t i = 0; i < causes->n; i++) {
    ni_scenario_reset(&x->s);
    ni_scenario_remove(&x->s, i);
    const bool hides = is_hidden_from_replay(x->s.g.b, &causes->item[i]);
    const double now = hides || !ni_way_is_unchanged(&x->way, &x->s.g) ? ni_graph_run(&x->s.g) : took;
    s->saved[(size_t)i * s->blocks + s->n] = hides ? measure_head_start(x) : took - now;
    s->seen[i] += count_cause_bins(x, &causes->item[i], block);
  }
  s->all += run_without(x, s->clocked, false, took, x->lost);
  s->all_clocked += run_without(x, s->clocked, true, took, x->lost_now_and_then);
  s->n++;
  return 0;
}

/*
 * torn: also blocks whose ranks contradict each other, as where stamps of a busy machine have changed the
 * order of operations.
 */
static int replay_blocks(struct replay *x, struct replayed *s, bool torn) {
  int e = 0;
  for (uint32_t k = 0; e == 0 && k < s->blocks; k++) {
    if (k % x->s.g.b->sample_every)
      continue;
    const int got = ni_graph_load(&x->s.g, k);
    if (got < 0)
      return got;
    if (got == 0)
      continue;
    ni_scenario_reset(&x->s);
    x->s.g.denoised = false;
    const double took = ni_graph_run(&x->s.g);
    if (x->s.g.torn && !torn)
      continue;
    s->took += took;
    e = replay_block(x, s, k, took);
  }
  return e;
}

/*
 * Of the run: the cost of each cause, and what all of them cost together. That is scaled as the costs of
 * single ones were, so where there is one cause both are the same number. waited: room for all ranks.
 */
static void fill_costs(struct replay *x, const struct replayed *s, struct ni_causes *causes, float *waited,
                       struct ni_replay *out) {
  const struct ni_blame *b = x->s.g.b;
  const double scale = out->run_us / s->took, on_way = x->way.own + x->way.pauses + x->way.transfer;
  double plain_us = 0, said_us = 0, clocked_us = 0;
  out->model = x->recorded > 0 ? x->replayed / x->recorded : 1;
  out->own = x->way.own / on_way;
  out->pauses = x->way.pauses / on_way;
  out->transfer = x->way.transfer / on_way;
  for (uint32_t i = 0; i < causes->n; i++) {
    struct ni_cause *c = &causes->item[i];
    const double *mine = &s->saved[(size_t)i * s->blocks];
    double sum = 0;
    for (uint32_t k = 0; k < s->n; k++)
      sum += mine[k];
    const double doubt = estimate_doubt(c, mine, s->n, fmin(1, 1 / scale), out->model);
    /* Of what is at work now and then the blocks may have seen more or less than their share. */
    if (s->clocked[i] && !c->not_clocked) {
      bound_clocked_cost(x, c, sum, s->seen[i]);
      clocked_us += c->cost_us;
      continue;
    }
    fill_replayed_cost(x, c, sum, s->seen[i], scale, doubt);
    if (!c->links)
      bound_cost(c, find_others_wait(b, c, waited));
    if (c->most_us > 0)
      bound_cost(c, c->most_us);
    plain_us += sum * scale;
    said_us += c->cost_us;
  }
  const double measure_of = plain_us > 0 ? scale * said_us / plain_us : 0;
  const double measure_of_clocked = s->all_clocked > 0 ? clocked_us / s->all_clocked : 0;
  out->without_us = fmax(0, out->run_us - s->all * measure_of - clocked_us);
  for (uint32_t i = 0; i < b->s->n_comms; i++) {
    b->s->comm[i].path_us = x->way.path[i] / on_way * out->run_us;
    b->s->comm[i].cost_us = x->lost[i] * measure_of + x->lost_now_and_then[i] * measure_of_clocked;
  }
}

/* torn: see replay_blocks(). */
static int find_costs(struct replay *x, struct ni_causes *causes, bool torn, struct ni_replay *out) {
  const struct ni_blame *b = x->s.g.b;
  struct replayed s = {.blocks = b->steps / NI_BLAME_BLOCK + 1};
  float *waited = malloc((b->n_ranks + 1) * sizeof *waited);
  s.saved = calloc((size_t)s.blocks * (causes->n + 1), sizeof *s.saved);
  int e = s.saved && waited ? ni_scenario_learn(&x->s, s.blocks) : -ENOMEM;
  if (e == 0)
    e = check_stamps(x);
  for (uint32_t i = 0; i < causes->n; i++)
    s.clocked[i] = ni_cause_comes_and_goes(b, &causes->item[i]);
  if (e == 0)
    e = replay_blocks(x, &s, torn);
  out->blocks = s.n;
  out->run_us = find_run_us(b);
  if (e == 0)
    e = ni_count_clock_costs(b, causes);
  if (e == 0 && s.took > 0)
    fill_costs(x, &s, causes, waited, out);
  free(s.saved);
  free(waited);
  return e;
}

int ni_replay_once(struct ni_blame *b, struct ni_causes *causes, struct ni_replay *out) {
  struct replay x = {.lost = calloc(b->s->n_comms + 1, sizeof *x.lost),
                     .lost_now_and_then = calloc(b->s->n_comms + 1, sizeof *x.lost_now_and_then)};
  *out = (struct ni_replay){.model = NAN};
  int e = ni_scenario_begin(&x.s, b, causes);
  if (e == 0)
    e = ni_way_begin(&x.way, b);
  if (!x.lost || !x.lost_now_and_then)
    e = -ENOMEM;
  if (e == 0)
    e = find_costs(&x, causes, false, out);
  if (e == 0 && !out->blocks) {
    ni_graph_rewind(&x.s.g);
    e = find_costs(&x, causes, true, out);
  }
  ni_scenario_free(&x.s);
  ni_way_free(&x.way);
  free(x.ended);
  free(x.lost);
  free(x.lost_now_and_then);
  return e;
}

int ni_replay(struct ni_blame *b, struct ni_causes *causes, struct ni_replay *out) {
  const int e = ni_replay_once(b, causes, out);
  for (uint32_t r = 0; r < b->n_ranks; r++) {
    if (!b->rank[r].judged)
      continue; /* of another run in the folder, whose turn comes */
    free(b->rank[r].sample);
    b->rank[r].sample = NULL;
    b->rank[r].n_sample = 0;
  }
  return e;
}
