#include "replay.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "peer_groups.h"
#include "exporter/model/sums/ranks/quantile.h"
#include "exporter/model/sums/graph/graph.h"
#include "exporter/model/sums/graph/stamps.h"

#define DOUBT_OF_MODEL 0.05    /* of any cost: the graph does not know what operations share */
#define DOUBT_OF_BASELINE 0.01 /* a baseline may be off by so much */
#define TRANSFER_LEAST_US 0.1  /* of which a logarithm is taken: less is nothing but the timer's resolution */
#define OTHERS_WAIT 0.1        /* this part of the other ranks may wait for a shorter time */
#define SPOTS_TELL 0.5         /* of what a rank is late by: places that explain less say nothing of it */
#define SPOTS_SHORTER 0.1 /* of what it takes longer in its places: so much may it take shorter by chance */

/*
 * A part of the longest way through the block as recorded: a join, and the node that came last to it, whose
 * own time is on the way as well (NI_BLAME_NONE: it is not).
 */
struct way_part {
  uint32_t join, node, rank;
};

struct replay {
  struct ni_graph g;
  const struct ni_causes *causes;
  struct way_part *way;
  uint32_t n_way;
  size_t cap_way;
  double *ended; /* of a join, as recorded; where waits may not be in the logs */
  size_t cap_ended;
  uint64_t *causes_of; /* of a link: bit i: cause i */
  bool *launch_late;   /* of a rank: its CPU is slow */
  uint32_t *late_by;   /* of a rank that is late (g.is_late): the first cause by which it is */
  /* stamps are off: causes are taken away where own time is without that (stamps.h) */
  bool denoises;
  double own, pauses, transfer, recorded, replayed;
  /*
   * By communicator: transfers on the longest way; what all causes together cost there, those apart whose
   * cost is counted by the clock.
   */
  double *path, *lost, *lost_now_and_then;
};

static void reset_scenario(struct replay *x) {
  x->g.quicker = false;
  for (uint32_t i = 0; i < x->g.n_joins; i++)
    x->g.join[i].us = x->g.op[i].transfer;
  for (uint32_t r = 0; r < x->g.b->n_ranks; r++)
    x->g.part[r].change = (struct ni_graph_change){.factor = 1};
}

static bool is_at_work(const struct replay *x, uint32_t cause, uint32_t link, uint32_t bin) {
  return x->causes_of[link] >> cause & 1 && ni_cause_is_active(&x->causes->item[cause], bin);
}

/* Transfers as they usually are: each one as long as those of its size on like links. */
static void quicken_transfers(struct replay *x, uint32_t cause) {
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

static void count_late(const struct replay *x, uint32_t rank, const struct ni_graph_node *n) {
  if (n->late_spot == NI_BLAME_NONE || !ni_cause_is_active(&x->causes->item[x->late_by[rank]], n->bin))
    return;
  x->g.late_spot[n->late_spot].own_us += n->gap - n->pause;
  x->g.late_spot[n->late_spot].n++;
}

static void count_spots(struct replay *x) {
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
static int set_late_spots(struct replay *x) {
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
static int find_baselines(struct replay *x, uint32_t blocks) {
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
static bool is_late_in_places(const struct replay *x, const struct ni_cause *c) {
  const bool computes =
      c->kind == NI_FIND_LATE_RANK || c->kind == NI_FIND_SLOW_HOST || c->kind == NI_FIND_UNEVEN;
  return computes && !c->launch && !c->rest && !ni_cause_comes_and_goes(x->g.b, c);
}

static void set_late_ranks(struct replay *x) {
  for (uint32_t i = x->causes->n; i-- > 0;) {
    const struct ni_cause *c = &x->causes->item[i];
    for (uint32_t k = 0; is_late_in_places(x, c) && k < c->n_items; k++) {
      x->late_by[c->item[k]] = i;
      x->g.is_late[c->item[k]] = x->g.any_late = true;
    }
  }
}

static int prepare_baseline(struct replay *x, uint32_t blocks) {
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

static void shorten_messages(struct replay *x, const struct ni_cause *c) {
  for (uint32_t i = 0; i < x->g.n_joins; i++) {
    const struct ni_graph_op *w = &x->g.op[i];
    if (ni_cause_is_active(c, w->bin) && is_link_of_ranks(c, &x->g.b->link[w->link]))
      x->g.join[i].us /= 1 + c->more_bytes;
  }
}

static bool shortens_own_time(const struct ni_cause *c) {
  return !c->links && c->kind != NI_FIND_PAUSES && c->kind != NI_FIND_PERIODIC;
}

/* Only a cause that is told by own time is hidden by stamps that are off. */
static int check_stamps(struct replay *x) {
  float *scratch = malloc((x->g.b->n_ranks + 1) * sizeof *scratch);
  if (!scratch)
    return -ENOMEM;
  bool own = false;
  for (uint32_t i = 0; i < x->causes->n; i++)
    own |= shortens_own_time(&x->causes->item[i]);
  x->denoises = own && ni_stamps_are_off(x->g.b, scratch);
  free(scratch);
  return 0;
}

/* Takes a cause away from the scenario. */
static void remove_cause(struct replay *x, uint32_t cause) {
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

/*
 * From here on own time is without what stamps are off by. *took: how long the block takes then, with all
 * causes.
 */
static int denoise_block(struct replay *x, double *took) {
  if (!x->denoises)
    return 0;
  const int e = ni_stamps_denoise(&x->g);
  if (e < 0)
    return e;
  x->g.denoised = true;
  *took = ni_graph_run(&x->g);
  return 0;
}

/* The longest way is as long as before. Then the block is as well, whatever else is shorter. */
static bool is_way_unchanged(const struct replay *x) {
  if (x->g.denoised)
    return false; /* another way may be the longest */
  for (uint32_t i = 0; i < x->n_way; i++) {
    const struct way_part *w = &x->way[i];
    if (x->g.join[w->join].us < x->g.op[w->join].transfer)
      return false;
    if (w->node != NI_BLAME_NONE &&
        ni_graph_changed_gap(&x->g, &x->g.part[w->rank].change, &x->g.node[w->node]) < x->g.node[w->node].gap)
      return false;
  }
  return true;
}

/* From the last operation back: what each waited for. */
static int follow_longest_way(struct replay *x, double end) {
  uint32_t at = 0, by;
  for (uint32_t i = 1; i < x->g.n_joins; i++)
    if (x->g.join[i].end > x->g.join[at].end)
      at = i;
  x->n_way = 0;
  for (uint32_t i = 0; i < x->g.n_nodes; i++, at = by) { /* each at most once */
    const struct ni_graph_op *w = &x->g.op[at];
    const struct ni_graph_node *n = &x->g.node[w->last];
    double began = ni_graph_find_start(&x->g, &x->g.part[w->rank], n, &by),
           pause = by == n->main ? n->pause : 0;
    bool first = by == NI_BLAME_NONE; /* before the first operation of the block all is own time */
    if (!ni_array_room(x->way, x->n_way, x->cap_way))
      return -ENOMEM;
    x->way[x->n_way++] = (struct way_part){at, !first && by == n->main ? w->last : NI_BLAME_NONE, w->rank};
    x->transfer += end - x->g.join[at].start;
    x->path[x->g.b->link[w->link].comm] += end - x->g.join[at].start;
    end = first ? 0 : x->g.join[by].end;
    x->pauses += pause;
    x->own += began - end - pause;
    if (first)
      break;
  }
  return 0;
}

/*
 * By how much a part of the longest way is shorter in the scenario: its transfer, and the own time before it.
 * Call between remove_cause() and ni_graph_run().
 */
static double count_saving(const struct replay *x, const struct way_part *w) {
  double us = fmax(0, x->g.op[w->join].transfer - x->g.join[w->join].us);
  if (w->node == NI_BLAME_NONE)
    return us;
  const struct ni_graph_node *n = &x->g.node[w->node];
  return us +
      fmax(0, ni_graph_own_time(&x->g, n) - ni_graph_changed_gap(&x->g, &x->g.part[w->rank].change, n));
}

static double sum_savings(const struct replay *x) {
  double all = 0;
  for (uint32_t i = 0; i < x->n_way; i++)
    all += count_saving(x, &x->way[i]);
  return all;
}

/*
 * Runs the scenario. What it saves is put down to the communicators on the longest way, by how much shorter
 * each part of it gets.
 */
static double attribute_savings(struct replay *x, double took, double *lost) {
  const double all = sum_savings(x), saved = took - ni_graph_run(&x->g);
  for (uint32_t i = 0; i < x->n_way && all > 0; i++)
    lost[x->g.b->link[x->g.op[x->way[i].join].link].comm] += count_saving(x, &x->way[i]) * saved / all;
  return saved;
}

/* What the block saves without all causes of which clocked[] is `which`; 0 where there are none. */
static double run_without(struct replay *x, const bool *clocked, bool which, double took, double *lost) {
  uint32_t n = 0;
  reset_scenario(x);
  for (uint32_t i = 0; i < x->causes->n; i++)
    if (clocked[i] == which) {
      remove_cause(x, i);
      n++;
    }
  return n ? attribute_savings(x, took, lost) : 0;
}

static void measure_model(struct replay *x) {
  uint32_t by;
  NI_EACH(const struct ni_graph_part, s, x->g.part, x->g.b->n_ranks) {
    const struct ni_graph_node *n = &x->g.node[s->first];
    if (s->n < 2)
      continue;
    x->recorded += s->took;
    x->replayed += x->g.join[n[s->n - 1].join].end - ni_graph_find_start(&x->g, s, n, &by);
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
  const struct ni_blame *b = x->g.b;
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
  if (!x->g.b->waits_unseen && !x->g.b->teams_wait_unseen)
    return 0;
  if (x->g.n_joins > x->cap_ended &&
      !ni_array_exact(&x->ended, &x->cap_ended, x->g.n_joins, sizeof *x->ended))
    return -ENOMEM;
  for (uint32_t i = 0; i < x->g.n_joins; i++)
    x->ended[i] = x->g.join[i].end;
  return 0;
}

/*
 * By how much a team gets ahead from one of its operations to the next, in all; of the team that does so
 * most. Call it after a run without the cause. Where a team meets others, who are no quicker, it waits for
 * them, and gets ahead anew.
 */
static double measure_head_start(const struct replay *x) {
  const struct ni_blame *b = x->g.b;
  double most = 0;
  for (uint32_t r = 0; r < b->n_ranks; r++) {
    const struct ni_graph_part *s = &x->g.part[r];
    double us = 0, before = 0;
    for (uint32_t i = 0; i < s->n; i++) {
      const uint32_t join = x->g.node[s->first + i].join;
      if (b->link[x->g.op[join].link].comm != b->rank[r].team)
        continue;
      const double ahead = x->ended[join] - x->g.join[join].end;
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
  const double most = (double)c->lead.part * c->excess_us * bins * x->g.b->bin_steps;
  c->cost_us = fmax(0, saved_us * (seen ? (double)bins / seen : scale));
  if (most < c->cost_us && c->lead.apart < 1)
    c->cost_us = pow(most, 1 - c->lead.apart) * pow(c->cost_us, c->lead.apart);
  c->low_us = c->cost_us * fmax(0, 1 - doubt);
  c->high_us = c->cost_us * (1 + doubt);
}

/*
 * torn: also blocks whose ranks contradict each other, as where stamps of a busy machine have changed the
 * order of operations.
 */
static int replay_blocks(struct replay *x, struct ni_causes *causes, bool torn, struct ni_replay *out) {
  const struct ni_blame *b = x->g.b;
  uint32_t blocks = b->steps / NI_BLAME_BLOCK + 1;
  uint32_t seen[NI_CAUSES_MAX] = {0};
  bool clocked[NI_CAUSES_MAX];
  double *cost = calloc((size_t)blocks * (causes->n + 1), sizeof *cost), all = 0, all_clocked = 0, base = 0;
  float *waited = malloc((b->n_ranks + 1) * sizeof *waited);
  int e = cost && waited ? prepare_baseline(x, blocks) : -ENOMEM, got = 0;
  if (e == 0)
    e = check_stamps(x);
  for (uint32_t i = 0; i < causes->n; i++)
    clocked[i] = ni_cause_comes_and_goes(b, &causes->item[i]);
  for (uint32_t k = 0; e == 0 && k < blocks; k++) {
    if (k % b->sample_every)
      continue;
    if ((got = ni_graph_load(&x->g, k)) < 0)
      e = got;
    if (got <= 0)
      continue;
    reset_scenario(x);
    x->g.denoised = false;
    double t = ni_graph_run(&x->g);
    if (x->g.torn && !torn)
      continue;
    base += t;
    if ((e = follow_longest_way(x, t)) < 0 || (e = store_ends(x)) < 0)
      break;
    measure_model(x);
    if ((e = denoise_block(x, &t)) < 0)
      break;
    for (uint32_t i = 0; i < causes->n; i++) {
      reset_scenario(x);
      remove_cause(x, i);
      double *saved = &cost[(size_t)i * blocks + out->blocks];
      const bool hides = is_hidden_from_replay(b, &causes->item[i]);
      const double took = hides || !is_way_unchanged(x) ? ni_graph_run(&x->g) : t;
      *saved = hides ? measure_head_start(x) : t - took;
      seen[i] += count_cause_bins(x, &causes->item[i], k);
    }
    all += run_without(x, clocked, false, t, x->lost);
    all_clocked += run_without(x, clocked, true, t, x->lost_now_and_then);
    out->blocks++;
  }
  out->run_us = find_run_us(b);
  if (e == 0)
    e = ni_count_clock_costs(b, causes);
  if (e == 0 && base > 0) {
    const double scale = out->run_us / base, on_way = x->own + x->pauses + x->transfer;
    double plain_us = 0, said_us = 0, clocked_us = 0;
    out->model = x->recorded > 0 ? x->replayed / x->recorded : 1;
    out->own = x->own / on_way;
    out->pauses = x->pauses / on_way;
    out->transfer = x->transfer / on_way;
    for (uint32_t i = 0; i < causes->n; i++) {
      struct ni_cause *c = &causes->item[i];
      const double *mine = &cost[(size_t)i * blocks];
      double sum = 0;
      for (uint32_t k = 0; k < out->blocks; k++)
        sum += mine[k];
      double d = estimate_doubt(c, mine, out->blocks, fmin(1, 1 / scale), out->model);
      /* Of what is at work now and then the blocks may have seen more or less than their share. */
      if (clocked[i] && !c->not_clocked) {
        bound_clocked_cost(x, c, sum, seen[i]);
        clocked_us += c->cost_us;
        continue;
      }
      fill_replayed_cost(x, c, sum, seen[i], scale, d);
      if (!c->links)
        bound_cost(c, find_others_wait(b, c, waited));
      if (c->most_us > 0)
        bound_cost(c, c->most_us);
      plain_us += sum * scale;
      said_us += c->cost_us;
    }
    /*
     * What all causes cost together is scaled as the costs of single ones were. So where there is one cause
     * both are the same number.
     */
    const double measure_of = plain_us > 0 ? scale * said_us / plain_us : 0;
    const double measure_of_clocked = all_clocked > 0 ? clocked_us / all_clocked : 0;
    out->without_us = fmax(0, out->run_us - all * measure_of - clocked_us);
    for (uint32_t i = 0; i < b->s->n_comms; i++) {
      b->s->comm[i].path_us = x->path[i] / on_way * out->run_us;
      b->s->comm[i].cost_us = x->lost[i] * measure_of + x->lost_now_and_then[i] * measure_of_clocked;
    }
  }
  free(cost);
  free(waited);
  return e;
}

int ni_replay_once(struct ni_blame *b, struct ni_causes *causes, struct ni_replay *out) {
  struct replay x = {.causes = causes,
                     .causes_of = calloc(b->n_links + 1, sizeof *x.causes_of),
                     .late_by = malloc((b->n_ranks + 1) * sizeof *x.late_by),
                     .launch_late = calloc(b->n_ranks + 1, sizeof *x.launch_late),
                     .path = calloc(b->s->n_comms + 1, sizeof *x.path),
                     .lost = calloc(b->s->n_comms + 1, sizeof *x.lost),
                     .lost_now_and_then = calloc(b->s->n_comms + 1, sizeof *x.lost_now_and_then)};
  const bool has_sums = x.path && x.lost && x.lost_now_and_then;
  const bool has_room = x.causes_of && x.launch_late && x.late_by && has_sums;
  *out = (struct ni_replay){.model = NAN};
  int e = ni_graph_begin(&x.g, b);
  if (!has_room)
    e = -ENOMEM;
  if (e == 0)
    e = replay_blocks(&x, causes, false, out);
  if (e == 0 && !out->blocks) {
    ni_graph_rewind(&x.g);
    e = replay_blocks(&x, causes, true, out);
  }
  ni_graph_free(&x.g);
  free(x.way);
  free(x.ended);
  free(x.path);
  free(x.lost);
  free(x.lost_now_and_then);
  free(x.causes_of);
  free(x.launch_late);
  free(x.late_by);
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
