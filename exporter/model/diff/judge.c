#include "judge.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"
#include "exporter/model/sums/blame/peer_groups.h"
#include "stat.h"
#include "exporter/model/sums/ranks/quantile.h"

/*
 * Parts of the error between two runs that no spread can tell: of a rank or a link, and of a mean over many.
 */
#define FLOOR_ONE 0.004
#define FLOOR_MEAN 0.0025
/* own times of ranks that lie further apart are what operations leave of them: GPUs differ less */
#define MOST_ONE 0.005

/* changes that tell how far such changes lie apart; as well as this is known, of some 30 */
enum { FEW = 6, SPREAD_DF = 60 };

/* Pairs each quantity of A with one of B. */
static int by_name(const struct ni_diff_item *x, const struct ni_diff_item *y) {
  return NI_BY(x, y, kind, key);
}

/* Two communicators of the same ranks are told apart by the size of what they carry. */
static int by_key(const void *a, const void *b) {
  const struct ni_diff_item *x = a, *y = b;
  double less = x->bytes != y->bytes ? x->bytes - y->bytes : x->per_step - y->per_step;
  int order = by_name(x, y);
  return order ? order : less < 0 ? -1 : less > 0;
}

static int in_order(const void *a, const void *b) {
  const struct ni_diff_item *x = ((const struct ni_diff_row *)a)->item[0],
                            *y = ((const struct ni_diff_row *)b)->item[0];
  if (x->kind == y->kind && x->like != y->like)
    return x->like < y->like ? -1 : 1;
  return by_key(x, y);
}

/* For a step with its pauses, and for pauses and waiting, all values count; elsewhere a tenth is trimmed. */
static void measure_means(struct ni_diff_run *r, float *scratch) {
  NI_EACH(struct ni_diff_item, x, r->item, r->n) {
    bool all = x->kind == NI_DIFF_STEP &&
        (x->key == NI_DIFF_MEAN || x->key == NI_DIFF_OUTSIDE || x->key == NI_DIFF_WAITING);
    if (!x->x)
      continue;
    struct ni_diff_mean m = ni_diff_mean(x->x, r->bins, all ? 0 : 0.1, scratch);
    x->value = m.mean;
    x->se = m.se;
    x->df = m.df;
  }
}

const struct ni_diff_row *ni_diff_step(const struct ni_diff *d, uint64_t part) {
  for (size_t i = 0; i < d->n; i++)
    if (d->row[i].item[0]->kind == NI_DIFF_STEP && d->row[i].item[0]->key == part)
      return &d->row[i];
  return NULL;
}

/* From places *a of A and *b of B on to the next one that both have. False: there is none. */
static bool find_common_place(struct ni_diff_item *const x[2], uint32_t *a, uint32_t *b) {
  while (*a < x[0]->n_places && *b < x[1]->n_places) {
    const struct ni_blame_place *p = &x[0]->place[*a], *q = &x[1]->place[*b];
    if (p->name == q->name)
      return true;
    *a += p->name < q->name;
    *b += q->name < p->name;
  }
  return false;
}

static double find_typical_ratio(struct ni_diff_item *const x[2]) {
  float ratio[NI_BLAME_KEYS];
  size_t n = 0;
  for (uint32_t a = 0, b = 0; find_common_place(x, &a, &b) && n < NI_BLAME_KEYS; a++, b++)
    ratio[n++] = (float)(x[1]->place[b].mean_us / x[0]->place[a].mean_us);
  return ni_blame_quantile(ratio, n, 0.5);
}

/*
 * The sums of both over common places. One whose ratio is far from the typical one is another place: on some
 * hosts places are numbered from another operation on.
 */
static void sum_common_places(struct ni_diff_item *const x[2], double typical, double sum[2]) {
  sum[0] = sum[1] = 0;
  for (uint32_t a = 0, b = 0; find_common_place(x, &a, &b); a++, b++) {
    const struct ni_blame_place *p = &x[0]->place[a], *q = &x[1]->place[b];
    const double ratio = q->mean_us / p->mean_us;
    if (ratio < 1.5 * typical && typical < 1.5 * ratio) {
      sum[0] += p->mean_us;
      sum[1] += q->mean_us;
    }
  }
}

/*
 * Sets the computing of a rank in a step to that in the places that both runs have, NAN where these are less
 * than half of A's computing. It varies at least as much as the computing of all ranks does.
 */
static void take_common_places(struct ni_diff *d, struct ni_diff_item *x[2]) {
  double all = 0, sum[2] = {0, 0};
  if (x[0]->place)
    sum_common_places(x, find_typical_ratio(x), sum);
  for (uint32_t a = 0; a < x[0]->n_places; a++)
    all += x[0]->place[a].mean_us;
  for (int k = 0; k < 2; k++) {
    const struct ni_diff_item *step = d->run[k].item,
                              *of = step +
        (step[NI_DIFF_COMPUTE].value > 0 ? NI_DIFF_COMPUTE : NI_DIFF_TYPICAL);
    double error = x[k]->se / x[k]->value, common = of->se / of->value;
    if (x[0]->place)
      x[k]->value = sum[0] > all / 2 ? sum[k] : NAN;
    x[k]->se = x[k]->value * (error > common ? error : common);
    x[k]->df = of->df;
  }
}

/* Adds the mean of rows [from, end) of ranks or links. Their steps vary together. */
static void average_group(struct ni_diff *d, size_t from, size_t end, enum ni_diff_kind kind, uint64_t like) {
  struct ni_diff_row *row = &d->row[d->n++], *first = &d->row[from];
  double n = (double)(end - from);
  *row = (struct ni_diff_row){.step_us = NAN};
  for (int k = 0; k < 2; k++) {
    struct ni_diff_item *g = row->item[k] = &d->group[d->n_groups++], *one = first->item[k];
    *g = (struct ni_diff_item){
        .kind = kind, .like = like, .key = like, .members = (uint32_t)(end - from), .df = one->df};
    if (kind == NI_DIFF_ROLE)
      snprintf(g->name, sizeof g->name, "%s", one->group);
    else if (like == NI_DIFF_ALL_RANKS)
      snprintf(g->name, sizeof g->name, "all ranks");
    else
      snprintf(g->name, sizeof g->name, "%.48s (ranks %" PRIu64 " to %" PRIu64 ")", one->group, one->key,
               d->row[end - 1].item[k]->key);
    for (size_t i = from; i < end; i++) {
      g->value += d->row[i].item[k]->value / n;
      g->per_step += d->row[i].item[k]->per_step / n;
      g->se += d->row[i].item[k]->se / n;
    }
  }
  row->change = row->item[1]->value / row->item[0]->value - 1;
}

/* A host counts if the same ranks are on it in both runs. */
static void average_groups(struct ni_diff *d) {
  size_t n = d->n, ranks[2] = {0, 0};
  for (size_t i = 0, end; i < n; i = end) {
    struct ni_diff_item **one = d->row[i].item;
    bool same = true;
    for (end = i;
         end < n && d->row[end].item[0]->kind == one[0]->kind && d->row[end].item[0]->like == one[0]->like;
         end++)
      same &= d->row[end].item[1]->like == one[1]->like;
    if (one[0]->kind == NI_DIFF_RANK) {
      if (!ranks[1])
        ranks[0] = i;
      ranks[1] = end;
    }
    if (one[0]->kind == NI_DIFF_LINK)
      average_group(d, i, end, NI_DIFF_ROLE, one[0]->like);
    else if (one[0]->kind == NI_DIFF_RANK && same)
      average_group(d, i, end, NI_DIFF_HOST, one[0]->like);
  }
  if (ranks[1])
    average_group(d, ranks[0], ranks[1], NI_DIFF_HOST, NI_DIFF_ALL_RANKS);
}

/* false: only one run has it, or it is next to nothing. */
static bool pair_items(struct ni_diff *d, struct ni_diff_item *x[2]) {
  double least = x[0]->kind == NI_DIFF_STEP ? NI_DIFF_OF_STEP * d->run[0].item[NI_DIFF_TYPICAL].value : 0;
  if (d->blind && x[0]->kind <= NI_DIFF_RANK)
    return true;
  if (x[0]->kind == NI_DIFF_RANK)
    take_common_places(d, x);
  if (x[0]->value < least && x[1]->value < least)
    return true;
  if (!(x[0]->value > 0 && x[1]->value > 0))
    return false;
  d->row[d->n++] =
      (struct ni_diff_row){.item = {x[0], x[1]}, .change = x[1]->value / x[0]->value - 1, .step_us = NAN};
  return true;
}

static int match_items(struct ni_diff *d) {
  struct ni_diff_run *a = &d->run[0], *b = &d->run[1];
  float *scratch = malloc((a->bins + b->bins + 1) * 2 * sizeof *scratch);
  d->row = calloc(2 * a->n + 1, sizeof *d->row);
  d->group = calloc(2 * a->n + 2, sizeof *d->group);
  if (scratch && d->row && d->group) {
    for (int k = 0; k < 2; k++) {
      measure_means(&d->run[k], scratch);
      qsort(d->run[k].item, d->run[k].n, sizeof *a->item, by_key);
    }
    for (size_t i = 0, k = 0; i < a->n || k < b->n;) {
      struct ni_diff_item *x[2] = {&a->item[i], &b->item[k]};
      int order = i == a->n ? 1 : k == b->n ? -1 : by_name(x[0], x[1]);
      bool both = order == 0 && pair_items(d, x);
      d->only[0] += order <= 0 && !both;
      d->only[1] += order >= 0 && !both;
      i += order <= 0;
      k += order >= 0;
    }
    qsort(d->row, d->n, sizeof *d->row, in_order);
    average_groups(d);
    qsort(d->row, d->n, sizeof *d->row, in_order);
  }
  free(scratch);
  return d->row && d->group && scratch ? 0 : -ENOMEM;
}

/* Finds what changed for certain. */
static enum ni_diff_kind kind_of(const struct ni_diff_row *r) { return r->item[0]->kind; }

/* By steps, as a part of A. */
static double error_by_steps(const struct ni_diff_row *r) {
  return hypot((1 + r->change) * r->item[0]->se, r->item[1]->se) / r->item[0]->value;
}

/*
 * How far the changes of n rows lie apart, each from the median of its like: half of them, and for ranks 19
 * of 20. NAN: too few rows.
 */
static double measure_change_spread(const struct ni_diff_row *row, size_t n, float *x) {
  float *off = x + n;
  size_t have = 0, most = 0;
  for (int whole = 0; whole < 2 && have < FEW; whole++) /* hosts of one rank are like each other */
    for (size_t i = have = 0, end; i < n; i = end) {
      for (end = i; end < n && (whole || row[end].item[0]->like == row[i].item[0]->like); end++)
        x[end - i] = (float)row[end].change;
      float middle = ni_blame_quantile(x, most = end - i, 0.5);
      for (size_t k = i; most > 2 && k < end; k++)
        off[have++] = (float)fabs(row[k].change - middle);
    }
  if (have < FEW)
    return NAN;
  float half = ni_blame_quantile(off, have, 0.5); /* sorts */
  return kind_of(row) == NI_DIFF_LINK ? 1.4826 * half
                                      : fmax(1.4826 * half, off[(size_t)(0.95 * (double)(have - 1))] / 1.96);
}

static double difference_of(const struct ni_diff_row *r) {
  return r ? r->item[1]->value - r->item[0]->value : 0;
}

/* The error that comes from the slowest rank: it decides how long others wait, and how long a step takes. */
static double effect_on_step(const struct ni_diff *d, const struct ni_diff_item *o, double ranks,
                             double said) {
  const struct ni_diff_row *compute = ni_diff_step(d, NI_DIFF_COMPUTE);
  /*
   * If one rises and the other falls, one run took operations for overlapped that the other run took for
   * exposed.
   */
  double out = difference_of(ni_diff_step(d, NI_DIFF_EXPOSED)),
         in = difference_of(ni_diff_step(d, NI_DIFF_HIDDEN));
  if (o->key == NI_DIFF_EXPOSED || o->key == NI_DIFF_HIDDEN)
    return out * in < 0 ? fmin(fabs(out), fabs(in)) / o->value : 0;
  if (!compute)
    return 0;
  /* What a step leaves outside of operations is compute time, too, as far as the ranks agree. */
  if (o->key == NI_DIFF_COMPUTE)
    return said / compute->change < 0.5 ? fabs(compute->change - said) / 2 : 0;
  return fmin(ranks, MOST_ONE) * compute->item[0]->value / o->value;
}

/*
 * Ranks and hosts are compared with all ranks: what all ranks do more of is not due to one rank. The baseline
 * is the middle of the quartiles, as one half may be slower.
 */
static void compare_with_all_ranks(struct ni_diff *d, size_t rank, size_t end, float *x) {
  for (size_t i = rank; i < end; i++)
    x[i - rank] = (float)d->row[i].change;
  double low = ni_blame_quantile(x, end - rank, 0.25),
         all = end - rank < FEW ? 0 : (low + ni_blame_quantile(x, end - rank, 0.75)) / 2;
  for (size_t i = 0; i < end; i++)
    if (kind_of(&d->row[i]) != NI_DIFF_STEP && !ni_diff_is_all(d->row[i].item[0]))
      d->row[i].change -= all;
}

/* Estimates errors of rows [i, end), which are of one kind; links and roles also have the same `like`. */
static void estimate_errors(struct ni_diff *d, size_t i, size_t end, double apart, double said) {
  for (; i < end; i++) {
    struct ni_diff_row *r = &d->row[i];
    const struct ni_diff_item *a = r->item[0], *b = r->item[1];
    bool one = a->kind == NI_DIFF_RANK || a->kind == NI_DIFF_LINK;
    double error = 0;
    if (a->kind == NI_DIFF_STEP)
      error = effect_on_step(d, a, apart, said);
    else if (one)
      error = apart;
    else if (a->members)
      error = apart / sqrt(a->members);
    double s = one ? error : hypot(error, FLOOR_MEAN), of_a = (1 + r->change) * a->se / a->value,
           of_b = b->se / a->value;
    r->se = a->kind == NI_DIFF_RANK
        ? fmax(error_by_steps(r), s)
        : hypot(error_by_steps(r), s); /* how ranks lie apart has their steps in it */
    double df = pow(r->se, 4) / (pow(of_a, 4) / a->df + pow(of_b, 4) / b->df + pow(s, 4) / SPREAD_DF),
           half = ni_diff_t95(df) * r->se;
    r->low = r->change - half;
    r->high = r->change + half;
    r->p = r->se > 0 ? ni_diff_p(r->change / r->se, df) : 1;
    if (a->per_step > 0)
      r->step_us = one || a->members ? r->change * a->value * a->per_step
                                     : b->value * b->per_step - a->value * a->per_step;
  }
}

static int estimate_all_errors(struct ni_diff *d) {
  size_t at[NI_DIFF_KINDS + 1] = {0};
  float *x = malloc((2 * d->n + 1) * sizeof *x);
  if (!x)
    return -ENOMEM;
  for (int k = 0; k < NI_DIFF_KINDS; k++)
    for (at[k + 1] = at[k]; at[k + 1] < d->n && (int)kind_of(&d->row[at[k + 1]]) == k;)
      at[k + 1]++;
  size_t ranks = at[NI_DIFF_RANK + 1] - at[NI_DIFF_RANK];
  struct ni_diff_row *all = &d->row[at[NI_DIFF_HOST]]; /* all ranks are the first */
  double apart = measure_change_spread(&d->row[at[NI_DIFF_RANK]], ranks, x), said = ranks ? all->change : 0;
  if (isnan(apart))
    apart = ranks ? error_by_steps(all) * sqrt((double)ranks) : 0;
  compare_with_all_ranks(d, at[NI_DIFF_RANK], at[NI_DIFF_RANK + 1], x);
  estimate_errors(d, 0, at[NI_DIFF_ROLE], fmax(apart, FLOOR_ONE), said);
  for (size_t i = at[NI_DIFF_LINK], role = at[NI_DIFF_ROLE], end; i < at[NI_DIFF_FUNC]; i = end, role++) {
    for (end = i; end < at[NI_DIFF_FUNC] && d->row[end].item[0]->like == d->row[i].item[0]->like;)
      end++;
    apart =
        fmax(FLOOR_ONE, measure_change_spread(&d->row[i], end - i, x)); /* of NAN and a number the number */
    estimate_errors(d, i, end, apart, 0);
    estimate_errors(d, role, role + 1, apart, 0);
  }
  estimate_errors(d, at[NI_DIFF_FUNC], d->n, 0, 0);
  free(x);
  return 0;
}

static int by_p(const void *a, const void *b) {
  const struct ni_diff_row *x = a, *y = b;
  return x->p != y->p ? (x->p < y->p ? -1 : 1) : in_order(a, b);
}

/*
 * The least change that counts, for a part of the step: it is a part of the step. 2 us of waiting instead of
 * 1 are nothing.
 */
static double least_relevant_us(const struct ni_diff_item *o, double step) {
  if (o->kind != NI_DIFF_STEP || o->key <= NI_DIFF_COMPUTE)
    return NI_DIFF_OF_STEP * step;
  return (o->key == NI_DIFF_EXPOSED || o->key == NI_DIFF_HIDDEN ? 0.5 : 1) * NI_DIFF_LEAST * step;
}

static int judge_rows(struct ni_diff *d) {
  const struct ni_diff_row *typical = d->blind ? NULL : ni_diff_step(d, NI_DIFF_TYPICAL);
  double step = typical ? typical->item[0]->value : 0, *p = malloc((d->n + 1) * sizeof *p);
  if (!p)
    return -ENOMEM;
  qsort(d->row, d->n, sizeof *d->row, by_p);
  for (size_t i = 0; i < d->n; i++)
    p[i] = d->row[i].p;
  ni_diff_holm(p, d->n);
  for (size_t i = 0; i < d->n; i++) {
    struct ni_diff_row *r = &d->row[i];
    double least = d->blind ? NI_DIFF_LEAST_BLIND : NI_DIFF_LEAST;
    bool matters = fabs(r->change) >= least && !(fabs(r->step_us) < least_relevant_us(r->item[0], step));
    r->p = p[i];
    if (matters && r->p < NI_DIFF_LEVEL)
      r->verdict = r->change > 0 ? NI_DIFF_SLOWER : NI_DIFF_FASTER;
    else
      r->verdict = r->low > -2 * least && r->high < 2 * least ? NI_DIFF_SAME : NI_DIFF_UNCLEAR;
    d->changed += r->verdict >= NI_DIFF_SLOWER;
  }
  free(p);
  return 0;
}

/*
 * What changed comes first, then steps, then all ranks, then others. Among these, what makes up most of a
 * step.
 */
static int by_weight(const void *a, const void *b) {
  const struct ni_diff_row *r[2] = {a, b};
  int of[2];
  double w[2];
  for (int k = 0; k < 2; k++) {
    of[k] = (r[k]->verdict < NI_DIFF_SLOWER) * 3 +
        (kind_of(r[k]) == NI_DIFF_STEP       ? 0
             : ni_diff_is_all(r[k]->item[0]) ? 1
                                             : 2);
    w[k] = of[k] % 3 < 2 ? 0 : isnan(r[k]->step_us) ? fabs(r[k]->change) : fabs(r[k]->step_us);
  }
  if (of[0] != of[1])
    return of[0] - of[1];
  if (w[0] != w[1])
    return w[0] > w[1] ? -1 : 1;
  return in_order(a, b);
}

int ni_diff_judge(struct ni_diff *d) {
  int e = match_items(d);
  if (e == 0 && d->n)
    e = estimate_all_errors(d);
  if (e == 0)
    e = judge_rows(d);
  if (e == 0)
    qsort(d->row, d->n, sizeof *d->row, by_weight);
  return e;
}

const struct ni_diff_row *ni_diff_gate(const struct ni_diff *d, double limit) {
  const struct ni_diff_row *worst = NULL;
  double all = 0;
  bool steps = ni_diff_step(d, NI_DIFF_TYPICAL) != NULL;
  NI_EACH(const struct ni_diff_row, r, d->row, d->n)
  if (kind_of(r) == NI_DIFF_FUNC)
    all += r->item[0]->value * r->item[0]->per_step;
  NI_EACH(const struct ni_diff_row, r, d->row, d->n) {
    const struct ni_diff_item *o = r->item[0];
    bool felt = steps ? o->kind == NI_DIFF_STEP && o->key <= NI_DIFF_MEAN
                      : o->kind == NI_DIFF_FUNC && o->value * o->per_step >= all / 10;
    const bool is_worse = !worst || r->change > worst->change;
    const bool is_certain = r->change > limit && r->low > 0;
    if (felt && is_worse && is_certain)
      worst = r;
  }
  return worst;
}
