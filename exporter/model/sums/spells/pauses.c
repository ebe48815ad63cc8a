#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/model/sums/blame/peer_groups.h"
#include "exporter/model/sums/ranks/quantile.h"
#include "moments.h"

#define SAME_MOMENT 1u /* steps; pauses without a period, which can be frequent, come together within these */
/* A rank is named if chance would give it as many pauses as it has with less than this probability. */
#define CHANCE_MANY 1e-6
/* The same for three long pauses or more, which have to cost NI_SPELLS_LONG_COST as well, */
#define CHANCE_LONG 1e-4
/* for two that are longer still, and for three or more where most ranks of the host do so. */
#define CHANCE_TWO 3e-3
#define GROUPED 1.5 /* times as many as others have are chance still: pauses come in groups */
#define MANY_MIN 5u /* of fewer pauses of any length nothing is said */
/* What chance does is told by this quantile of the other ranks: a few of them may pause as well. */
#define OTHERS_BELOW 0.75

enum { LENGTH_OF_TWO = 2 };
static const float lengths_us[NI_MOMENTS_LENGTHS] = {0, 2e4f, 8e4f, 3.2e5f};

/* Chance of n or more where `mean` are usual. */
static double compute_chance(uint32_t n, double mean) {
  double p = exp(-mean), below = 0;
  for (uint32_t i = 0; i < n && i < 10000; i++) {
    below += p;
    p *= mean / (i + 1);
  }
  return below < 1 - 1e-12 ? 1 - below : p; /* beyond, the first term that is left is nearly all */
}

/* all: not only those moments that were kept; of most that is not known where some are waits. */
static void count_longer(const struct ni_blame_rank *o, struct ni_rank_moments *p, bool all) {
  uint32_t periodic = 0, pauses = 0;
  for (uint32_t i = 0; i < p->n; i++)
    for (uint32_t k = 0; k < NI_MOMENTS_LENGTHS; k++) {
      p->longer[k] += !p->in[i] && p->at[i].us > lengths_us[k];
      periodic += k == 0 && p->in[i];
    }
  if (!all)
    return;
  for (uint32_t i = 0; i < o->n_incidents; i++)
    pauses += o->incident[i].is_pause;
  pauses += (uint32_t)o->incidents - o->n_incidents; /* not all are kept, but the longest */
  p->longer[0] = pauses > periodic + p->job ? pauses - periodic - p->job : 0;
}

/* Ranks that a rank is compared with: those of other hosts, as one host can pause as a whole. */
static bool is_compared_with(const struct ni_pause_judge *w, uint32_t rank, uint32_t other) {
  if (rank == other || !w->b->rank[other].judged)
    return false;
  return w->b->s->n_hosts < 2 || ni_blame_host(w->b, rank) != ni_blame_host(w->b, other);
}

/* By bins: one step in which all takes longer holds many gaps that do. */
static bool pauses_in_most_steps(const struct ni_blame_rank *o) {
  uint32_t with = 0;
  for (uint32_t k = 0; k < o->n_bins; k++)
    with += o->cell[k].burst > 0;
  return with * 2 > o->n_bins;
}

/* Ranks with the same work, others than this one, of which most pause in most steps as well. */
static bool do_peers_pause_as_often(const struct ni_pause_judge *w, uint32_t rank) {
  const struct ni_blame *b = w->b;
  uint32_t peers = 0, often = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    if (i == rank || !b->rank[i].judged || b->rank[i].cls != b->rank[rank].cls)
      continue;
    peers++;
    often += w->of[i].often;
  }
  return often * 2 >= peers; /* also where there are none */
}

/*
 * What comes in most steps is what is usual there, and no pause: steps were found that are none, or what a
 * place waits for was not. That is so for ranks with the same work, too, or it has its place in the step.
 * What stops one rank every so many milliseconds, wherever it is in its step, is a pause.
 */
static bool is_usual_pause(struct ni_pause_judge *w, uint32_t rank) {
  const struct ni_rank_moments *p = &w->of[rank];
  if (!p->often)
    return false;
  return do_peers_pause_as_often(w, rank) ||
      ni_moments_have_fixed_place(p, &w->b->rank[rank], false, w->scratch);
}

static void judge_length(struct ni_pause_judge *w, uint32_t rank, uint32_t k) {
  struct ni_rank_moments *p = &w->of[rank];
  const uint32_t n = p->longer[k];
  size_t others = 0;
  double sum = 0;
  if (n < (k ? 2 : MANY_MIN) || is_usual_pause(w, rank))
    return;
  for (uint32_t i = 0; i < w->b->n_ranks; i++) {
    if (!is_compared_with(w, rank, i))
      continue;
    w->scratch[others++] = (float)w->of[i].longer[k];
    sum += w->of[i].longer[k];
  }
  if (!others)
    return;
  const float baseline = ni_blame_quantile(w->scratch, others, OTHERS_BELOW);
  const double mean = GROUPED * fmax(baseline, k ? (sum + 1) / (double)(others + 1) : 1),
               p_value = compute_chance(n, mean);
  if (p_value < CHANCE_MANY)
    p->many = true;
  else if (k) {
    /* two of them are named where nobody else has one as long */
    const bool is_two = n == 2 && k >= LENGTH_OF_TWO && sum < 1;
    p->few |= p_value < CHANCE_LONG || (is_two && p_value < CHANCE_TWO);
    p->may |= n > 2 && p_value < CHANCE_TWO;
  }
}

static int name_pauses(struct ni_pause_judge *w, bool *member, enum ni_finding_level level, uint32_t of,
                       struct ni_causes *out) {
  const struct ni_blame *b = w->b;
  struct ni_cause *c = ni_cause_add(out, NI_FIND_PAUSES, level, of);
  double burst = 0;
  uint32_t n = 0, ranks = 0;
  if (!c)
    return 0;
  c->few = true;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    const struct ni_blame_rank *o = &b->rank[i];
    if (!member[i])
      continue;
    ranks++;
    c->few &= !w->of[i].many;
    n += w->of[i].longer[0];
    for (uint32_t k = 0; k < o->n_bins; k++)
      burst += o->cell[k].burst;
    burst -= w->of[i].job_us;
    for (uint32_t k = 0; k < w->of[i].n; k++)
      burst -= w->of[i].in[k] ? w->of[i].at[k].us : 0;
    w->of[i].many = w->of[i].few = w->of[i].may = false;
  }
  c->bins_hit = n;
  c->excess_us = n ? (float)(burst / n) : 0; /* of a pause */
  c->n_peers = b->n_ranks;
  return ni_moments_fill_cause(w, c, member, false);
}

static bool pauses_too_much(const struct ni_rank_moments *p) { return p->many || p->few; }

static int name_pausing_hosts(struct ni_pause_judge *w, bool *member, struct ni_causes *out) {
  const struct ni_blame *b = w->b;
  int e = 0;
  for (uint32_t h = 0; e == 0 && h < b->s->n_hosts; h++) {
    uint32_t there = 0, n = 0, most = 0, sum = 0;
    for (uint32_t i = 0; i < b->n_ranks; i++) {
      const bool pauses = pauses_too_much(&w->of[i]) || w->of[i].may;
      member[i] = b->rank[i].judged && ni_blame_host(b, i) == h && pauses;
      there += b->rank[i].judged && ni_blame_host(b, i) == h;
      n += member[i];
      sum += member[i] ? w->of[i].longer[0] : 0;
      most = member[i] && w->of[i].longer[0] > most ? w->of[i].longer[0] : most;
    }
    if (n < 2 || (float)n < NI_CAUSE_OF_HOST * (float)there ||
        (float)(most * n) > NI_CAUSE_OF_HOST_MOST * (float)sum)
      continue;
    e = name_pauses(w, member, NI_LEVEL_HOST, h, out);
  }
  return e;
}

static uint32_t count_moments(const struct ni_rank_moments *p) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->n; i++)
    n += !p->in[i];
  return n;
}

/* y does something else each so many steps, and this is one of them. */
static bool is_in_period(const struct ni_rank_moments *y, uint32_t step) {
  for (uint32_t k = 0; k < y->n; k++)
    if (y->in[k] && y->at[k].step <= step + SAME_MOMENT && step <= y->at[k].step + SAME_MOMENT)
      return true;
  return false;
}

/* Most of what x pauses without a period, by its length, lies in the steps of y's period. */
static bool shares_period(const struct ni_rank_moments *x, const struct ni_rank_moments *y) {
  double all_us = 0, shared_us = 0;
  for (uint32_t i = 0; i < x->n; i++) {
    all_us += x->in[i] ? 0 : x->at[i].us;
    shared_us += !x->in[i] && is_in_period(y, x->at[i].step) ? x->at[i].us : 0;
  }
  return shared_us > 0 && shared_us * 4 >= all_us * NI_MOMENTS_TOGETHER_OF_FOUR;
}

/* The same by their number: y has no period, either. */
static bool pauses_with(const struct ni_rank_moments *x, const struct ni_rank_moments *y) {
  return ni_moments_count_common(x, y, false, SAME_MOMENT) * 4 >=
      count_moments(x) * NI_MOMENTS_TOGETHER_OF_FOUR;
}

/*
 * Most of what a rank pauses without a period comes in the steps of another host's rank that does so, too, or
 * that does something else each so many steps, as checkpoints: this one has missed some of them.
 */
static bool is_one_of_many(const struct ni_pause_judge *w, uint32_t rank) {
  const struct ni_rank_moments *x = &w->of[rank];
  for (uint32_t i = 0; i < w->b->n_ranks; i++) {
    const struct ni_rank_moments *y = &w->of[i];
    if (ni_blame_host(w->b, i) == ni_blame_host(w->b, rank))
      continue;
    if ((pauses_too_much(y) && pauses_with(x, y)) || (y->period.steps && shares_period(x, y)))
      return true;
  }
  return false;
}

/*
 * Ranks of several hosts that pause together wait for each other in what is not in the logs: between their
 * operations others would not have waited for one of them. Nobody knows which of them it is.
 */
static void clear_pausing_together(struct ni_pause_judge *w, bool *member) {
  for (uint32_t i = 0; i < w->b->n_ranks; i++)
    member[i] = pauses_too_much(&w->of[i]) && is_one_of_many(w, i);
  for (uint32_t i = 0; i < w->b->n_ranks; i++)
    if (member[i])
      w->of[i].many = w->of[i].few = false;
}

static int name_pausing_ranks(struct ni_pause_judge *w, bool *member, struct ni_causes *out) {
  const struct ni_blame *b = w->b;
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++) {
    if (!pauses_too_much(&w->of[i]))
      continue;
    if (out->n >= NI_CAUSES_MAX / 2) {
      out->left_out++;
      continue;
    }
    for (uint32_t k = 0; k < b->n_ranks; k++)
      member[k] = k == i;
    e = name_pauses(w, member, NI_LEVEL_RANK, i, out);
  }
  return e;
}

int ni_find_pauses(const struct ni_blame *b, struct ni_causes *out) {
  struct ni_pause_judge w = {.b = b,
                             .of = calloc(b->n_ranks + 1, sizeof *w.of),
                             .scratch = malloc((b->n_ranks + NI_BLAME_INCIDENTS + 1) * sizeof *w.scratch)};
  bool *member = calloc(b->n_ranks + 1, sizeof *member);
  int e = w.of && w.scratch && member ? 0 : -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++) {
    w.judged += b->rank[i].judged;
    if (b->rank[i].judged && !b->rank[i].gaps_unknown)
      e = ni_moments_gather(&w.of[i], &b->rank[i]);
  }
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++)
    ni_moments_drop_waits(b, &w.of[i], i);
  if (e == 0)
    e = ni_moments_split_off_common(&w);
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++)
    w.of[i].period = ni_find_period(w.of[i].at, w.of[i].n, w.of[i].in);
  if (e == 0)
    e = ni_periodic_find_of_hosts(&w);
  if (e == 0)
    e = ni_periodic_name(&w, member, out);
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++) {
    if (!b->rank[i].judged || b->rank[i].gaps_unknown)
      continue;
    count_longer(&b->rank[i], &w.of[i], !b->waits_unseen);
    w.of[i].often = pauses_in_most_steps(&b->rank[i]);
  }
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++)
    for (uint32_t k = 0; b->rank[i].judged && k < NI_MOMENTS_LENGTHS; k++)
      judge_length(&w, i, k);
  if (e == 0)
    e = name_pausing_hosts(&w, member, out);
  if (e == 0)
    clear_pausing_together(&w, member);
  if (e == 0)
    e = name_pausing_ranks(&w, member, out);
  for (uint32_t i = 0; w.of && i < b->n_ranks; i++) {
    free(w.of[i].at);
    free(w.of[i].in);
  }
  free(w.all.at);
  free(w.all.in);
  free(w.pausing);
  free(w.of);
  free(w.scratch);
  free(member);
  return e;
}
