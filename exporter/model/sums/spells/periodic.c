/* What comes each so many steps: of ranks, of hosts, of all. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/model/sums/blame/peer_groups.h"
#include "moments.h"

static bool pause_together(const struct ni_rank_moments *x, const struct ni_rank_moments *y) {
  if (!y->period.steps || !(y->period.us >= NI_MOMENTS_SAME_LENGTH * x->period.us))
    return false;
  return ni_moments_count_common(x, y, true, NI_MOMENTS_SAME_STEPS) * 4 >=
      x->period.n * NI_MOMENTS_TOGETHER_OF_FOUR &&
      ni_moments_count_common(y, x, true, NI_MOMENTS_SAME_STEPS) * 4 >=
      y->period.n * NI_MOMENTS_TOGETHER_OF_FOUR;
}

static bool is_of_host(const struct ni_pause_judge *w, const bool *member, uint32_t first, uint32_t n) {
  const uint32_t host = ni_blame_host(w->b, first);
  uint32_t there = 0, of_it = 0;
  for (uint32_t i = 0; i < w->b->n_ranks; i++) {
    if (!w->b->rank[i].judged || ni_blame_host(w->b, i) != host)
      continue;
    there++;
    of_it += member[i];
  }
  return n > 1 && of_it == n && (float)n >= NI_MOMENTS_OF_ALL * (float)there;
}

/* Fills a cause that is the job's: when it is at work, and who takes part. */
static int fill_common_cause(const struct ni_pause_judge *w, struct ni_cause *c, bool periodic) {
  const struct ni_blame *b = w->b;
  c->n_peers = w->judged;
  c->to = b->bins;
  float *most = calloc(b->bins + 1, sizeof *most);
  c->at = calloc(b->bins + 1, sizeof *c->at);
  int e = most && c->at ? 0 : -ENOMEM;
  if (e == 0)
    ni_moments_mark(w, &w->all, periodic, c, most);
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++)
    if (w->of[i].job * 4 >= w->all.n * NI_MOMENTS_TOGETHER_OF_FOUR)
      e = ni_cause_add_item(c, i);
  free(most);
  return e;
}

/* What nearly all ranks do each so many steps. */
static int name_common_period(struct ni_pause_judge *w, struct ni_causes *out) {
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
static int name_uneven_steps(struct ni_pause_judge *w, struct ni_causes *out) {
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
static bool is_own_of_host(const struct ni_pause_judge *w, uint32_t host) {
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
static bool is_own_of_rank(const struct ni_pause_judge *w, uint32_t rank) {
  const struct ni_blame *b = w->b;
  bool has_first = false;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    has_first |= b->rank[i].judged && ni_blame_global(b, i) == 0;
  return has_first && ni_blame_global(b, rank) != 0;
}

/* The moments of all ranks of a host, one for each step. x: its `at` and `in` are the caller's to free. */
static int gather_host_moments(const struct ni_pause_judge *w, uint32_t host, struct ni_rank_moments *x) {
  const struct ni_blame *b = w->b;
  uint32_t n = 0;
  *x = (struct ni_rank_moments){0};
  for (uint32_t i = 0; i < b->n_ranks; i++)
    n += ni_blame_host(b, i) == host ? w->of[i].n : 0;
  x->at = malloc((n + 1) * sizeof *x->at);
  x->in = calloc(n + 1, sizeof *x->in);
  if (!x->at || !x->in)
    return -ENOMEM;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    for (uint32_t k = 0; ni_blame_host(b, i) == host && k < w->of[i].n; k++)
      x->at[x->n++] = w->of[i].at[k];
  qsort(x->at, x->n, sizeof *x->at, ni_moments_by_step);
  n = x->n;
  x->n = 0;
  for (uint32_t k = 0; k < n; k++) { /* the longest of a step is its last one */
    const bool is_same = x->n && x->at[x->n - 1].step == x->at[k].step;
    x->at[is_same ? x->n - 1 : x->n++] = x->at[k];
  }
  return 0;
}

/* The rank pauses in this moment of its host, by about as much. */
static bool takes_part(const struct ni_rank_moments *p, const struct ni_spell_moment *of_host,
                       float usual_us) {
  const struct ni_spell_moment *m = ni_moments_find(p, of_host->step);
  return m && m->us >= NI_MOMENTS_SAME_LENGTH * usual_us;
}

static uint32_t count_taken_part(const struct ni_rank_moments *p, const struct ni_rank_moments *host) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < host->n; k++)
    n += host->in[k] && takes_part(p, &host->at[k], host->period.us);
  return n;
}

/* Its moments of the host's period, and no other, are those of its own period. */
static void take_host_period(struct ni_rank_moments *p, const struct ni_rank_moments *host) {
  memset(p->in, 0, p->n * sizeof *p->in);
  for (uint32_t k = 0; k < host->n; k++) {
    const struct ni_spell_moment *m = ni_moments_find(p, host->at[k].step);
    if (m && host->in[k] && m->us >= NI_MOMENTS_SAME_LENGTH * host->period.us)
      p->in[m - p->at] = true;
  }
  p->period = host->period;
  p->of_host = true;
}

/*
 * Nearly all ranks of a host pause in half of the moments of one period or more. Whoever of them is not the
 * last one in a step has less to wait for, so that none of them may have all moments: together they do.
 */
static void find_host_period(struct ni_pause_judge *w, const struct ni_rank_moments *host, uint32_t of) {
  const struct ni_blame *b = w->b;
  uint32_t ranks = 0, members = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    if (!b->rank[i].judged || ni_blame_host(b, i) != of)
      continue;
    ranks++;
    members += count_taken_part(&w->of[i], host) * 2 >= host->period.n;
  }
  if (members < 2 || (float)members < NI_MOMENTS_OF_ALL * (float)ranks)
    return;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (b->rank[i].judged && ni_blame_host(b, i) == of &&
        count_taken_part(&w->of[i], host) * 2 >= host->period.n)
      take_host_period(&w->of[i], host);
}

int ni_periodic_find_of_hosts(struct ni_pause_judge *w) {
  int e = 0;
  for (uint32_t h = 0; e == 0 && h < w->b->s->n_hosts; h++) {
    struct ni_rank_moments host;
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

static bool are_of_one_host(const struct ni_pause_judge *w, uint32_t rank, uint32_t other) {
  return w->of[rank].of_host && w->of[other].of_host &&
      ni_blame_host(w->b, rank) == ni_blame_host(w->b, other);
}

/* The rank whose period is the longest in time, and all that pause with it. */
static int name_period(struct ni_pause_judge *w, uint32_t first, bool *member, struct ni_causes *out) {
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
  c->in_place = w->of[first].period.exact &&
      ni_moments_have_fixed_place(&w->of[first], &b->rank[first], true, w->scratch);
  c->of_host_alone = host && is_own_of_host(w, of);
  c->of_rank_alone = n == 1 && is_own_of_rank(w, of);
  return ni_moments_fill_cause(w, c, member, true);
}

static int name_periods(struct ni_pause_judge *w, bool *member, struct ni_causes *out) {
  const struct ni_blame *b = w->b;
  for (int e = 0; e == 0;) {
    uint32_t longest = NI_BLAME_NONE;
    for (uint32_t i = 0; i < b->n_ranks; i++) {
      const struct ni_rank_moments *p = &w->of[i];
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

bool ni_spells_is_note(const struct ni_cause *c) {
  if (c->kind != NI_FIND_PERIODIC)
    return false;
  const bool is_program = c->in_place && !c->of_host_alone;
  const bool is_checkpoint = c->excess_us >= NI_SPELLS_NOTE_US && !c->of_rank_alone;
  return c->level == NI_LEVEL_JOB || is_program || is_checkpoint;
}

int ni_periodic_name(struct ni_pause_judge *w, bool *member, struct ni_causes *out) {
  int e = name_common_period(w, out);
  if (e == 0)
    e = name_uneven_steps(w, out);
  return e == 0 ? name_periods(w, member, out) : e;
}
