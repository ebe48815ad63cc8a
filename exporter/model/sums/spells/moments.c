#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/order.h"
#include "exporter/model/sums/blame/peer_groups.h"
#include "exporter/model/sums/ranks/quantile.h"
#include "moments.h"

#define PLACE_NEAR 0.03f /* of the operations of a step: so near to each other moments have one place in it */
/* A pause has its place in the step if so many of ten moments come before the same operation. */
enum { IN_PLACE_OF_TEN = 9 };

int ni_moments_by_step(const void *a, const void *b) {
  const struct ni_spell_moment *x = a, *y = b;
  if (x->step != y->step)
    return x->step < y->step ? -1 : 1;
  return x->us < y->us ? -1 : x->us > y->us;
}

int ni_moments_gather(struct ni_rank_moments *p, const struct ni_blame_rank *o) {
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
  qsort(p->at, n, sizeof *p->at, ni_moments_by_step);
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
    if (o->incident[i].is_pause && at <= step + NI_MOMENTS_SAME_STEPS && at + NI_MOMENTS_SAME_STEPS >= step)
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
void ni_moments_drop_waits(const struct ni_blame *b, struct ni_rank_moments *p, uint32_t rank) {
  const bool nobody_knows = b->waits_unseen && b->rank[rank].team == NI_BLAME_NONE;
  uint32_t kept = 0;
  for (uint32_t k = 0; k < p->n; k++)
    if (!nobody_knows && !ni_is_team_wait(b, rank, p->at[k].step))
      p->at[kept++] = p->at[k];
  p->n = kept;
}

static NI_FIRST_FROM(find_first_from, struct ni_spell_moment, uint32_t, x->step < from);

const struct ni_spell_moment *ni_moments_find(const struct ni_rank_moments *p, uint32_t step) {
  const size_t i = find_first_from(p->at, p->n, step);
  return i < p->n && p->at[i].step == step ? &p->at[i] : NULL;
}

/* The moment of a rank in this step or, where ranks end theirs elsewhere, in the next one. */
static const struct ni_spell_moment *find_moment_in(const struct ni_rank_moments *p, uint32_t step,
                                                    bool or_next) {
  const struct ni_spell_moment *m = ni_moments_find(p, step);
  return m || !or_next ? m : ni_moments_find(p, step + 1);
}

static void count_pausing(struct ni_pause_judge *w) {
  for (uint32_t i = 0; i < w->b->n_ranks; i++)
    for (uint32_t k = 0; k < w->of[i].n; k++)
      if (w->of[i].at[k].step <= w->b->steps + 1)
        w->pausing[w->of[i].at[k].step]++;
}

/* How long most ranks pause in that step; 0: not nearly all of them do. */
static float measure_common_pause(struct ni_pause_judge *w, uint32_t step, bool or_next) {
  const uint32_t most = w->pausing[step] + (or_next ? w->pausing[step + 1] : 0);
  if ((float)most < NI_MOMENTS_OF_ALL * (float)w->judged)
    return 0;
  size_t n = 0;
  for (uint32_t i = 0; i < w->b->n_ranks; i++) {
    const struct ni_spell_moment *m = find_moment_in(&w->of[i], step, or_next);
    if (m)
      w->scratch[n++] = m->us;
  }
  const bool nearly_all = n > 1 && (float)n >= NI_MOMENTS_OF_ALL * (float)w->judged;
  return nearly_all ? ni_blame_quantile(w->scratch, n, 0.5) : 0;
}

/* A pause that is far longer than that of the others is the rank's own all the same. */
static void take_common_moment(struct ni_rank_moments *p, uint32_t step, bool or_next, float us) {
  uint32_t kept = 0;
  for (uint32_t k = 0; k < p->n; k++) {
    const bool then = p->at[k].step == step || (or_next && p->at[k].step == step + 1);
    if (then && NI_MOMENTS_SAME_LENGTH * p->at[k].us <= us) {
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
int ni_moments_split_off_common(struct ni_pause_judge *w) {
  const struct ni_blame *b = w->b;
  struct ni_rank_moments *all = &w->all;
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
uint32_t ni_moments_count_common(const struct ni_rank_moments *x, const struct ni_rank_moments *y,
                                 bool periodic, uint32_t near) {
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

/*
 * A pause is seen where the GPU idles. Others may wait for it in the next step, or end theirs elsewhere. But
 * of pauses each third step no bins would be left without.
 */
void ni_moments_mark(const struct ni_pause_judge *w, const struct ni_rank_moments *p, bool periodic,
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
int ni_moments_fill_cause(const struct ni_pause_judge *w, struct ni_cause *c, const bool *member,
                          bool periodic) {
  const struct ni_blame *b = w->b;
  float *most = calloc(b->bins + 1, sizeof *most);
  c->at = calloc(b->bins + 1, sizeof *c->at);
  int e = most && c->at ? 0 : -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++) {
    if (!member[i])
      continue;
    ni_moments_mark(w, &w->of[i], periodic, c, most);
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

/*
 * All but one in ten of its moments come before the same operation of the step, or the next one to it:
 * streams change places.
 */
bool ni_moments_have_fixed_place(const struct ni_rank_moments *p, const struct ni_blame_rank *o,
                                 bool periodic, float *scratch) {
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
