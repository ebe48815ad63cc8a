#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/model/sums/blame/peer_groups.h"
#include "exporter/model/sums/ranks/quantile.h"
#include "spells.h"

/* Ranks pause together if they do so within so many steps, */
#define SAME_STEPS 2u
#define SAME_MOMENT 1u /* the same of pauses without a period, which can be frequent */
/*
 * and if the shorter pause has this part of the longer one. Below that the shorter one waits for it in
 * another way.
 */
#define SAME_LENGTH 0.4f
#define OF_ALL 0.75f /* of the ranks pause together: it is the job; of a host's ranks: it is the host */
/* A rank is named if chance would give it as many pauses as it has with less than this probability. */
#define CHANCE_MANY 1e-6
/* The same for three long pauses or more, which have to cost NI_SPELLS_LONG_COST as well, */
#define CHANCE_LONG 1e-4
/* for two that are longer still, and for three or more where most ranks of the host do so. */
#define CHANCE_TWO 3e-3
#define GROUPED 1.5      /* times as many as others have are chance still: pauses come in groups */
#define MANY_MIN 5u      /* of fewer pauses of any length nothing is said */
#define PLACE_NEAR 0.03f /* of the operations of a step: so near to each other moments have one place in it */
/* What chance does is told by this quantile of the other ranks: a few of them may pause as well. */
#define OTHERS_BELOW 0.75
/* Two ranks pause for one reason if each has so many of four moments in common with the other. */
enum { TOGETHER_OF_FOUR = 3 };
/* A pause has its place in the step if so many of ten moments come before the same operation. */
enum { IN_PLACE_OF_TEN = 9 };

enum { LENGTHS = 4, LENGTH_OF_TWO = 2 };
static const float lengths_us[LENGTHS] = {0, 2e4f, 8e4f, 3.2e5f};

struct rank_pauses { /* one rank */
  struct ni_spell_moment *at;
  bool *in; /* of its period */
  uint32_t n;
  double job_us; /* what it paused when nearly all did, in `job` moments: of no rank */
  uint32_t job;
  struct ni_period period;
  uint32_t longer[LENGTHS]; /* moments without a period that are longer than lengths_us */
  bool told;                /* its period belongs to a cause */
  bool of_host;             /* its period is that of its host */
  bool often;               /* it pauses in most steps */
  bool many, few;           /* it pauses more often than others; few: it has a few long pauses */
  bool may;                 /* it may have, if most ranks of its host have: chance does not do that to all */
};

struct pause_judge {
  const struct ni_blame *b;
  struct rank_pauses *of; /* by rank */
  struct rank_pauses all; /* moments in which nearly all ranks pause */
  uint32_t judged;
  uint32_t *pausing; /* ranks that pause in a step, at most: few steps are worth a look at all ranks */
  float *scratch;
};

static int by_step(const void *a, const void *b) {
  const struct ni_spell_moment *x = a, *y = b;
  if (x->step != y->step)
    return x->step < y->step ? -1 : 1;
  return x->us < y->us ? -1 : x->us > y->us;
}

static int gather_moments(struct rank_pauses *p, const struct ni_blame_rank *o) {
  p->at = malloc((o->n_incidents + 1) * sizeof *p->at);
  p->in = calloc(o->n_incidents + 1, sizeof *p->in);
  if (!p->at || !p->in)
    return -ENOMEM;
  uint32_t n = 0;
  for (uint32_t i = 0; i < o->n_incidents; i++) {
    const struct ni_blame_incident *x = &o->incident[i];
    if (!x->is_pause)
      continue;
    p->at[n++] = (struct ni_spell_moment){x->step + (uint32_t)o->shift, x->us, x->in_step};
  }
  qsort(p->at, n, sizeof *p->at, by_step);
  for (uint32_t i = 0; i < n; i++) {
    if (p->n && p->at[p->n - 1].step == p->at[i].step) {
      p->at[p->n - 1].us += p->at[i].us;
      p->at[p->n - 1].in_step = p->at[i].in_step; /* they come by length */
    } else
      p->at[p->n++] = p->at[i];
  }
  return 0;
}

static bool has_pause_at(const struct ni_blame_rank *o, uint32_t step) {
  for (uint32_t i = 0; i < o->n_incidents; i++) {
    const uint32_t at = o->incident[i].step + (uint32_t)o->shift;
    if (o->incident[i].is_pause && at <= step + SAME_STEPS && at + SAME_STEPS >= step)
      return true;
  }
  return false;
}

bool ni_is_team_wait(const struct ni_blame *b, uint32_t rank, uint32_t step) {
  uint32_t team = 0, paused = 0;
  const bool may_wait = b->waits_unseen || b->teams_wait_unseen;
  if (!may_wait || b->rank[rank].team == NI_BLAME_NONE)
    return false;
  for (uint32_t r = 0; r < b->n_ranks; r++) {
    if (!b->rank[r].judged || b->rank[r].team != b->rank[rank].team)
      continue;
    team++;
    paused += r == rank || has_pause_at(&b->rank[r], step);
  }
  return team > 1 && paused * 2 > team;
}

/* Of a rank without a team nobody knows which of its pauses are waits. */
static void drop_waits(const struct ni_blame *b, struct rank_pauses *p, uint32_t rank) {
  const bool nobody_knows = b->waits_unseen && b->rank[rank].team == NI_BLAME_NONE;
  uint32_t kept = 0;
  for (uint32_t k = 0; k < p->n; k++)
    if (!nobody_knows && !ni_is_team_wait(b, rank, p->at[k].step))
      p->at[kept++] = p->at[k];
  p->n = kept;
}

static const struct ni_spell_moment *find_moment(const struct rank_pauses *p, uint32_t step) {
  uint32_t lo = 0, hi = p->n;
  while (lo < hi) {
    const uint32_t mid = (lo + hi) / 2;
    if (p->at[mid].step < step)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo < p->n && p->at[lo].step == step ? &p->at[lo] : NULL;
}

/* The moment of a rank in this step or, where ranks end theirs elsewhere, in the next one. */
static const struct ni_spell_moment *find_moment_in(const struct rank_pauses *p, uint32_t step,
                                                    bool or_next) {
  const struct ni_spell_moment *m = find_moment(p, step);
  return m || !or_next ? m : find_moment(p, step + 1);
}

static void count_pausing(struct pause_judge *w) {
  for (uint32_t i = 0; i < w->b->n_ranks; i++)
    for (uint32_t k = 0; k < w->of[i].n; k++)
      if (w->of[i].at[k].step <= w->b->steps + 1)
        w->pausing[w->of[i].at[k].step]++;
}

/* How long most ranks pause in that step; 0: not nearly all of them do. */
static float measure_common_pause(struct pause_judge *w, uint32_t step, bool or_next) {
  const uint32_t most = w->pausing[step] + (or_next ? w->pausing[step + 1] : 0);
  if ((float)most < OF_ALL * (float)w->judged)
    return 0;
  size_t n = 0;
  for (uint32_t i = 0; i < w->b->n_ranks; i++) {
    const struct ni_spell_moment *m = find_moment_in(&w->of[i], step, or_next);
    if (m)
      w->scratch[n++] = m->us;
  }
  const bool nearly_all = n > 1 && (float)n >= OF_ALL * (float)w->judged;
  return nearly_all ? ni_blame_quantile(w->scratch, n, 0.5) : 0;
}

/* A pause that is far longer than that of the others is the rank's own all the same. */
static void take_common_moment(struct rank_pauses *p, uint32_t step, bool or_next, float us) {
  uint32_t kept = 0;
  for (uint32_t k = 0; k < p->n; k++) {
    const bool then = p->at[k].step == step || (or_next && p->at[k].step == step + 1);
    if (then && SAME_LENGTH * p->at[k].us <= us) {
      p->job_us += p->at[k].us;
      p->job++;
    } else
      p->at[kept++] = p->at[k];
  }
  p->n = kept;
}

/*
 * What nearly all ranks do at once (the first steps, an evaluation, a checkpoint of shards) is of none of
 * them: it goes to w->all. With it a rank would have other distances between its pauses, and all others as
 * many as the one that pauses.
 */
static int split_off_common(struct pause_judge *w) {
  const struct ni_blame *b = w->b;
  struct rank_pauses *all = &w->all;
  all->at = malloc((b->steps + 2) * sizeof *all->at);
  all->in = calloc(b->steps + 2, sizeof *all->in);
  w->pausing = calloc(b->steps + 3, sizeof *w->pausing);
  if (!all->at || !all->in || !w->pausing)
    return -ENOMEM;
  count_pausing(w);
  for (uint32_t step = 0; w->judged > 1 && step <= b->steps; step++) {
    float us = measure_common_pause(w, step, false);
    const bool or_next = us <= 0 && measure_common_pause(w, step + 1, false) <= 0;
    if (or_next)
      us = measure_common_pause(w, step, true);
    if (us <= 0)
      continue;
    all->at[all->n++] = (struct ni_spell_moment){step, us, 1};
    for (uint32_t i = 0; i < b->n_ranks; i++)
      take_common_moment(&w->of[i], step, or_next, us);
  }
  all->period = ni_find_period(all->at, all->n, all->in);
  return 0;
}

/* Moments of x that y has as well, `near` steps apart at most: those of their periods, or those of none. */
static uint32_t count_common_moments(const struct rank_pauses *x, const struct rank_pauses *y, bool periodic,
                                     uint32_t near) {
  uint32_t n = 0;
  for (uint32_t i = 0, k = 0; i < x->n; i++) {
    if (x->in[i] != periodic)
      continue;
    while (k < y->n && (y->in[k] != periodic || y->at[k].step + near < x->at[i].step))
      k++;
    n += k < y->n && y->at[k].step <= x->at[i].step + near;
  }
  return n;
}

static bool pause_together(const struct rank_pauses *x, const struct rank_pauses *y) {
  if (!y->period.steps || !(y->period.us >= SAME_LENGTH * x->period.us))
    return false;
  return count_common_moments(x, y, true, SAME_STEPS) * 4 >= x->period.n * TOGETHER_OF_FOUR &&
      count_common_moments(y, x, true, SAME_STEPS) * 4 >= y->period.n * TOGETHER_OF_FOUR;
}

/*
 * A pause is seen where the GPU idles. Others may wait for it in the next step, or end theirs elsewhere. But
 * of pauses each third step no bins would be left without.
 */
static void mark_moments(const struct pause_judge *w, const struct rank_pauses *p, bool periodic,
                         struct ni_cause *c, float *most) {
  const struct ni_blame *b = w->b;
  uint32_t moments = 0;
  for (uint32_t i = 0; i < p->n; i++)
    moments += p->in[i] == periodic;
  const bool is_rare = (float)(3 * moments) <= NI_CAUSE_NOW_AND_THEN * (float)b->bins;
  const uint32_t beside = is_rare && c->kind != NI_FIND_UNEVEN;
  for (uint32_t i = 0; i < p->n; i++) {
    uint32_t bin = p->at[i].step / b->bin_steps;
    if (p->in[i] != periodic || bin >= b->bins)
      continue;
    if (p->at[i].us > most[bin])
      most[bin] = p->at[i].us;
    for (uint32_t k = bin > beside ? bin - beside : 0; k <= bin + beside && k < b->bins; k++)
      c->at[k] = true;
  }
}

/* Not all pauses of the rank are kept, but the longest: each bin says how long it paused in all. */
static void mark_all_bins(const struct ni_blame *b, uint32_t rank, struct ni_cause *c, float *most) {
  for (uint32_t k = 0; k < b->bins; k++) {
    const struct ni_blame_cell *x = ni_blame_cell_at(b, rank, k);
    if (!x || !(x->burst > NI_BLAME_BURST_US))
      continue;
    c->at[k] = true;
    most[k] = fmaxf(most[k], x->burst);
  }
}

/* Adds ranks to a cause, and what it can cost at most: of ranks that pause together the longest. */
static int fill_pause_cause(const struct pause_judge *w, struct ni_cause *c, const bool *member,
                            bool periodic) {
  const struct ni_blame *b = w->b;
  float *most = calloc(b->bins + 1, sizeof *most);
  c->at = calloc(b->bins + 1, sizeof *c->at);
  int e = most && c->at ? 0 : -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++) {
    if (!member[i])
      continue;
    mark_moments(w, &w->of[i], periodic, c, most);
    if (!periodic && b->rank[i].incidents > b->rank[i].n_incidents)
      mark_all_bins(b, i, c, most);
    e = ni_cause_add_item(c, i);
  }
  for (uint32_t k = 0; e == 0 && k < b->bins; k++)
    c->most_us += most[k];
  c->to = b->bins;
  free(most);
  return e;
}

static bool is_of_host(const struct pause_judge *w, const bool *member, uint32_t first, uint32_t n) {
  const uint32_t host = ni_blame_host(w->b, first);
  uint32_t there = 0, of_it = 0;
  for (uint32_t i = 0; i < w->b->n_ranks; i++) {
    if (!w->b->rank[i].judged || ni_blame_host(w->b, i) != host)
      continue;
    there++;
    of_it += member[i];
  }
  return n > 1 && of_it == n && (float)n >= OF_ALL * (float)there;
}

/*
 * All but one in ten of its moments come before the same operation of the step, or the next one to it:
 * streams change places.
 */
static bool has_fixed_place(const struct rank_pauses *p, const struct ni_blame_rank *o, bool periodic,
                            float *scratch) {
  const float near = fmaxf(1, PLACE_NEAR * (float)o->ops / (float)o->n_steps);
  uint32_t n = 0, there = 0;
  for (uint32_t i = 0; i < p->n; i++)
    if (p->in[i] == periodic)
      scratch[n++] = (float)p->at[i].in_step;
  const float middle = ni_blame_quantile(scratch, n, 0.5);
  for (uint32_t i = 0; i < n; i++)
    there += fabsf(scratch[i] - middle) <= near;
  return there * 10 >= n * IN_PLACE_OF_TEN;
}

/* Fills a cause that is the job's: when it is at work, and who takes part. */
static int fill_common_cause(const struct pause_judge *w, struct ni_cause *c, bool periodic) {
  const struct ni_blame *b = w->b;
  c->n_peers = w->judged;
  c->to = b->bins;
  float *most = calloc(b->bins + 1, sizeof *most);
  c->at = calloc(b->bins + 1, sizeof *c->at);
  int e = most && c->at ? 0 : -ENOMEM;
  if (e == 0)
    mark_moments(w, &w->all, periodic, c, most);
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++)
    if (w->of[i].job * 4 >= w->all.n * TOGETHER_OF_FOUR)
      e = ni_cause_add_item(c, i);
  free(most);
  return e;
}

/* What nearly all ranks do each so many steps. */
static int name_common_period(struct pause_judge *w, struct ni_causes *out) {
  if (!w->all.period.steps)
    return 0;
  struct ni_cause *c = ni_cause_add(out, NI_FIND_PERIODIC, NI_LEVEL_JOB, 0);
  if (!c)
    return 0;
  c->period = w->all.period.steps;
  c->bins_hit = w->all.period.n;
  c->excess_us = w->all.period.us;
  return fill_common_cause(w, c, true);
}

/*
 * What nearly all ranks do in some steps, as far from each other as chance has it: these have more to do than
 * others, as where the longest of a batch says how long all of it takes (ni_settle_uneven_steps()).
 */
static int name_uneven_steps(struct pause_judge *w, struct ni_causes *out) {
  double sum_us = 0;
  uint32_t n = 0;
  for (uint32_t i = 0; i < w->all.n; i++) {
    n += !w->all.in[i];
    sum_us += w->all.in[i] ? 0 : w->all.at[i].us;
  }
  struct ni_cause *c =
      n >= NI_SPELLS_UNEVEN_LEAST ? ni_cause_add(out, NI_FIND_UNEVEN, NI_LEVEL_JOB, 0) : NULL;
  if (!c)
    return 0;
  c->excess_us = (float)(sum_us / n);
  return fill_common_cause(w, c, false);
}

/*
 * Of what all ranks of a host do, and nobody else: has the program no reason to ask it of this host? What it
 * does each so many steps is done by rank 0 and who shares its model (a checkpoint), by one rank of each
 * host, or by a stage (metrics). Else it is the host's own, as input that comes late: that shows where a rank
 * has nothing launched ahead, so each time that the program has waited for its GPU.
 */
static bool is_own_of_host(const struct pause_judge *w, uint32_t host) {
  const struct ni_blame *b = w->b;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (b->rank[i].judged && ni_blame_host(b, i) == host && ni_blame_global(b, i) == 0)
      return false;
  return !b->stages;
}

/*
 * Of what one rank does and no other: a checkpoint is written by rank 0, by the first rank of each host or of
 * each model, or by all. So one rank alone writes none, unless rank 0 has no log.
 */
static bool is_own_of_rank(const struct pause_judge *w, uint32_t rank) {
  const struct ni_blame *b = w->b;
  bool has_first = false;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    has_first |= b->rank[i].judged && ni_blame_global(b, i) == 0;
  return has_first && ni_blame_global(b, rank) != 0;
}

/* The moments of all ranks of a host, one for each step. x: its `at` and `in` are the caller's to free. */
static int gather_host_moments(const struct pause_judge *w, uint32_t host, struct rank_pauses *x) {
  const struct ni_blame *b = w->b;
  uint32_t n = 0;
  *x = (struct rank_pauses){0};
  for (uint32_t i = 0; i < b->n_ranks; i++)
    n += ni_blame_host(b, i) == host ? w->of[i].n : 0;
  x->at = malloc((n + 1) * sizeof *x->at);
  x->in = calloc(n + 1, sizeof *x->in);
  if (!x->at || !x->in)
    return -ENOMEM;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    for (uint32_t k = 0; ni_blame_host(b, i) == host && k < w->of[i].n; k++)
      x->at[x->n++] = w->of[i].at[k];
  qsort(x->at, x->n, sizeof *x->at, by_step);
  n = x->n;
  x->n = 0;
  for (uint32_t k = 0; k < n; k++) { /* the longest of a step is its last one */
    const bool is_same = x->n && x->at[x->n - 1].step == x->at[k].step;
    x->at[is_same ? x->n - 1 : x->n++] = x->at[k];
  }
  return 0;
}

/* The rank pauses in this moment of its host, by about as much. */
static bool takes_part(const struct rank_pauses *p, const struct ni_spell_moment *of_host, float usual_us) {
  const struct ni_spell_moment *m = find_moment(p, of_host->step);
  return m && m->us >= SAME_LENGTH * usual_us;
}

static uint32_t count_taken_part(const struct rank_pauses *p, const struct rank_pauses *host) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < host->n; k++)
    n += host->in[k] && takes_part(p, &host->at[k], host->period.us);
  return n;
}

/* Its moments of the host's period, and no other, are those of its own period. */
static void take_host_period(struct rank_pauses *p, const struct rank_pauses *host) {
  memset(p->in, 0, p->n * sizeof *p->in);
  for (uint32_t k = 0; k < host->n; k++) {
    const struct ni_spell_moment *m = find_moment(p, host->at[k].step);
    if (m && host->in[k] && m->us >= SAME_LENGTH * host->period.us)
      p->in[m - p->at] = true;
  }
  p->period = host->period;
  p->of_host = true;
}

/*
 * Nearly all ranks of a host pause in half of the moments of one period or more. Whoever of them is not the
 * last one in a step has less to wait for, so that none of them may have all moments: together they do.
 */
static void find_host_period(struct pause_judge *w, const struct rank_pauses *host, uint32_t of) {
  const struct ni_blame *b = w->b;
  uint32_t ranks = 0, members = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    if (!b->rank[i].judged || ni_blame_host(b, i) != of)
      continue;
    ranks++;
    members += count_taken_part(&w->of[i], host) * 2 >= host->period.n;
  }
  if (members < 2 || (float)members < OF_ALL * (float)ranks)
    return;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (b->rank[i].judged && ni_blame_host(b, i) == of &&
        count_taken_part(&w->of[i], host) * 2 >= host->period.n)
      take_host_period(&w->of[i], host);
}

static int find_host_periods(struct pause_judge *w) {
  int e = 0;
  for (uint32_t h = 0; e == 0 && h < w->b->s->n_hosts; h++) {
    struct rank_pauses host;
    e = gather_host_moments(w, h, &host);
    if (e == 0)
      host.period = ni_find_period(host.at, host.n, host.in);
    if (e == 0 && host.period.steps)
      find_host_period(w, &host, h);
    free(host.at);
    free(host.in);
  }
  return e;
}

static bool are_of_one_host(const struct pause_judge *w, uint32_t rank, uint32_t other) {
  return w->of[rank].of_host && w->of[other].of_host &&
      ni_blame_host(w->b, rank) == ni_blame_host(w->b, other);
}

/* The rank whose period is the longest in time, and all that pause with it. */
static int name_period(struct pause_judge *w, uint32_t first, bool *member, struct ni_causes *out) {
  const struct ni_blame *b = w->b;
  uint32_t n = 0, lowest = first;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    member[i] = i == first ||
        (!w->of[i].told && (are_of_one_host(w, first, i) || pause_together(&w->of[first], &w->of[i])));
    if (!member[i])
      continue;
    n++;
    w->of[i].told = true;
    if (ni_blame_global(b, i) < ni_blame_global(b, lowest))
      lowest = i;
  }
  const bool host = is_of_host(w, member, lowest, n);
  const enum ni_finding_level level = host ? NI_LEVEL_HOST : NI_LEVEL_RANK;
  const uint32_t of = host ? ni_blame_host(b, first) : lowest;
  struct ni_cause *c = ni_cause_add(out, NI_FIND_PERIODIC, level, of);
  if (!c)
    return 0;
  c->period = w->of[first].period.steps;
  c->bins_hit = w->of[first].period.n;
  c->excess_us = w->of[first].period.us;
  c->n_peers = w->judged;
  c->in_place =
      w->of[first].period.exact && has_fixed_place(&w->of[first], &b->rank[first], true, w->scratch);
  c->of_host_alone = host && is_own_of_host(w, of);
  c->of_rank_alone = n == 1 && is_own_of_rank(w, of);
  return fill_pause_cause(w, c, member, true);
}

static int name_periods(struct pause_judge *w, bool *member, struct ni_causes *out) {
  const struct ni_blame *b = w->b;
  for (int e = 0; e == 0;) {
    uint32_t longest = NI_BLAME_NONE;
    for (uint32_t i = 0; i < b->n_ranks; i++) {
      const struct rank_pauses *p = &w->of[i];
      if (!p->period.steps || p->told)
        continue;
      if (longest == NI_BLAME_NONE || p->period.us > w->of[longest].period.us)
        longest = i;
    }
    if (longest == NI_BLAME_NONE)
      return 0;
    if (out->n >= NI_CAUSES_MAX / 4) { /* room for others */
      w->of[longest].told = true;
      out->left_out++;
    } else if ((e = name_period(w, longest, member, out)) < 0)
      return e;
  }
  return 0;
}

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
static void count_longer(const struct ni_blame_rank *o, struct rank_pauses *p, bool all) {
  uint32_t periodic = 0, pauses = 0;
  for (uint32_t i = 0; i < p->n; i++)
    for (uint32_t k = 0; k < LENGTHS; k++) {
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
static bool is_compared_with(const struct pause_judge *w, uint32_t rank, uint32_t other) {
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
static bool do_peers_pause_as_often(const struct pause_judge *w, uint32_t rank) {
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
static bool is_usual_pause(struct pause_judge *w, uint32_t rank) {
  const struct rank_pauses *p = &w->of[rank];
  if (!p->often)
    return false;
  return do_peers_pause_as_often(w, rank) || has_fixed_place(p, &w->b->rank[rank], false, w->scratch);
}

static void judge_length(struct pause_judge *w, uint32_t rank, uint32_t k) {
  struct rank_pauses *p = &w->of[rank];
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

static int name_pauses(struct pause_judge *w, bool *member, enum ni_finding_level level, uint32_t of,
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
  return fill_pause_cause(w, c, member, false);
}

static bool pauses_too_much(const struct rank_pauses *p) { return p->many || p->few; }

static int name_pausing_hosts(struct pause_judge *w, bool *member, struct ni_causes *out) {
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

static uint32_t count_moments(const struct rank_pauses *p) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < p->n; i++)
    n += !p->in[i];
  return n;
}

/* Most of what a rank pauses without a period comes in the steps of another host's rank that does so, too. */
static bool is_one_of_many(const struct pause_judge *w, uint32_t rank) {
  const struct rank_pauses *x = &w->of[rank];
  for (uint32_t i = 0; i < w->b->n_ranks; i++) {
    const struct rank_pauses *y = &w->of[i];
    if (!pauses_too_much(y) || ni_blame_host(w->b, i) == ni_blame_host(w->b, rank))
      continue;
    if (count_common_moments(x, y, false, SAME_MOMENT) * 4 >= count_moments(x) * TOGETHER_OF_FOUR)
      return true;
  }
  return false;
}

/*
 * Ranks of several hosts that pause together wait for each other in what is not in the logs: between their
 * operations others would not have waited for one of them. Nobody knows which of them it is.
 */
static void clear_pausing_together(struct pause_judge *w, bool *member) {
  for (uint32_t i = 0; i < w->b->n_ranks; i++)
    member[i] = pauses_too_much(&w->of[i]) && is_one_of_many(w, i);
  for (uint32_t i = 0; i < w->b->n_ranks; i++)
    if (member[i])
      w->of[i].many = w->of[i].few = false;
}

static int name_pausing_ranks(struct pause_judge *w, bool *member, struct ni_causes *out) {
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
  struct pause_judge w = {.b = b,
                          .of = calloc(b->n_ranks + 1, sizeof *w.of),
                          .scratch = malloc((b->n_ranks + NI_BLAME_INCIDENTS + 1) * sizeof *w.scratch)};
  bool *member = calloc(b->n_ranks + 1, sizeof *member);
  int e = w.of && w.scratch && member ? 0 : -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++) {
    w.judged += b->rank[i].judged;
    if (b->rank[i].judged && !b->rank[i].gaps_unknown)
      e = gather_moments(&w.of[i], &b->rank[i]);
  }
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++)
    drop_waits(b, &w.of[i], i);
  if (e == 0)
    e = split_off_common(&w);
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++)
    w.of[i].period = ni_find_period(w.of[i].at, w.of[i].n, w.of[i].in);
  if (e == 0)
    e = find_host_periods(&w);
  if (e == 0)
    e = name_common_period(&w, out);
  if (e == 0)
    e = name_uneven_steps(&w, out);
  if (e == 0)
    e = name_periods(&w, member, out);
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++) {
    if (!b->rank[i].judged || b->rank[i].gaps_unknown)
      continue;
    count_longer(&b->rank[i], &w.of[i], !b->waits_unseen);
    w.of[i].often = pauses_in_most_steps(&b->rank[i]);
  }
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++)
    for (uint32_t k = 0; b->rank[i].judged && k < LENGTHS; k++)
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

bool ni_spells_is_note(const struct ni_cause *c) {
  if (c->kind != NI_FIND_PERIODIC)
    return false;
  const bool is_program = c->in_place && !c->of_host_alone;
  const bool is_checkpoint = c->excess_us >= NI_SPELLS_NOTE_US && !c->of_rank_alone;
  return c->level == NI_LEVEL_JOB || is_program || is_checkpoint;
}
