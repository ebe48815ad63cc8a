#include "judge.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "match.h"
#include "stat.h"

/* Parts of the error between two runs that no spread can tell: of a rank or a link, and of a mean over many. */
#define FLOOR_ONE 0.004
#define FLOOR_MEAN 0.0025

static double step_us(const struct ni_diff *d) {
  const struct ni_diff_row *r = d->blind ? NULL : ni_diff_step(d, NI_DIFF_TYPICAL);
  return r ? r->item[0]->value : NAN;
}

/* Known well, but for what lies between two runs. */
static bool steady(const struct ni_diff_row *r, enum ni_diff_kind kind) {
  return r->item[0]->kind == kind && ni_diff_own_error(r) < NI_DIFF_LEAST;
}

/* How far rows of one kind that are alike differ in their change: 1.48 times the median distance from the median of their like,
 * of all with like 0. Only what is known well itself. 0: fewer than 6 of them. */
static double spread(const struct ni_diff *d, enum ni_diff_kind kind, uint64_t like, double *x, double *all) {
  size_t n_all = 0;
  for (size_t i = 0; i < d->n; i++) {
    const struct ni_diff_item *o = d->row[i].item[0];
    size_t n = 0, before = 0;
    for (size_t k = 0; k < d->n && steady(&d->row[i], kind) && (!like || o->like == like); k++)
      if (steady(&d->row[k], kind) && d->row[k].item[0]->like == o->like) {
        if (k < i) before++;
        x[n++] = d->row[k].change;
      }
    if (before || n < 3) continue;
    double middle = ni_diff_median(x, n);
    for (size_t k = 0; k < n; k++) all[n_all++] = fabs(x[k] - middle);
  }
  return n_all >= 6 ? 1.4826 * 1.1 * ni_diff_median(all, n_all) : 0;
}

static double moved(const struct ni_diff_row *r) { return r ? r->item[1]->value - r->item[0]->value : 0; }

/* The part of each row's error that is not of steps. */
static int spreads(struct ni_diff *d) {
  double *x = malloc((2 * d->n + 2) * sizeof *x), *all = x ? x + d->n + 1 : NULL;
  if (!x) return -ENOMEM;
  double ranks = fmax(spread(d, NI_DIFF_RANK, 0, x, all), FLOOR_ONE), n = 0, links = 0;
  const struct ni_diff_row *compute = ni_diff_step(d, NI_DIFF_COMPUTE);
  for (size_t i = 0; i < d->n; i++)
    if (steady(&d->row[i], NI_DIFF_RANK)) x[(size_t)n++] = d->row[i].change;
  /* What a step leaves beside operations is computing as far as ranks say so, too. */
  double said = n > 0 ? ni_diff_median(x, (size_t)n) : 0, apart = 0;
  if (n > 0 && compute && said / compute->change < 0.5) apart = fabs(compute->change - said) / 2;
  /* One rises and the other falls: a run took operations as beside the computing that the other took as in line with it. */
  double out = moved(ni_diff_step(d, NI_DIFF_EXPOSED)), in = moved(ni_diff_step(d, NI_DIFF_HIDDEN)),
         traded = out * in < 0 ? fmin(fabs(out), fabs(in)) : 0;
  uint64_t last = 0;
  for (size_t i = 0; i < d->n; i++) {
    struct ni_diff_row *r = &d->row[i];
    const struct ni_diff_item *o = r->item[0];
    double floor = o->kind == NI_DIFF_RANK || o->kind == NI_DIFF_LINK ? 0 : FLOOR_MEAN, own = 0;
    switch (o->kind) {
      case NI_DIFF_RANK: own = ranks; break;
      case NI_DIFF_HOST: own = ranks / sqrt(o->members); break;
      case NI_DIFF_LINK:
      case NI_DIFF_ROLE:
        if (o->like != last) links = fmax(spread(d, NI_DIFF_LINK, o->like, x, all), FLOOR_ONE);
        last = o->like;
        own = o->kind == NI_DIFF_LINK ? links : links / sqrt(o->members);
        break;
      case NI_DIFF_STEP: /* the slowest rank decides how long others wait and how long a step takes */
        if (!compute) break;
        own = ranks * compute->item[0]->value / o->value;
        if (o->key == NI_DIFF_COMPUTE) own = fmax(ranks / sqrt(fmax(n, 1)), apart);
        if (o->key == NI_DIFF_EXPOSED || o->key == NI_DIFF_HIDDEN) own = traded / o->value;
        break;
      default: break;
    }
    r->spread = sqrt(own * own + floor * floor);
  }
  free(x);
  return 0;
}

static int by_p(const void *a, const void *b) {
  const struct ni_diff_row *x = a, *y = b;
  if (x->p != y->p) return x->p < y->p ? -1 : 1;
  return x->item[0] < y->item[0] ? -1 : x->item[0] > y->item[0];
}

/* Of a part of the step the least change that is called one is a part of the step: of 1 us of waiting 2 are nothing. */
static double least_us(const struct ni_diff_item *o, double step) {
  if (isnan(step)) return 0;
  if (o->kind != NI_DIFF_STEP || o->key == NI_DIFF_TYPICAL || o->key == NI_DIFF_MEAN || o->key == NI_DIFF_COMPUTE)
    return NI_DIFF_OF_STEP * step;
  return (o->key == NI_DIFF_EXPOSED || o->key == NI_DIFF_HIDDEN ? 0.5 : 1) * NI_DIFF_LEAST * step;
}

static int verdicts(struct ni_diff *d) {
  double step = step_us(d), *p = malloc((d->n + 1) * sizeof *p);
  if (!p) return -ENOMEM;
  for (size_t i = 0; i < d->n; i++) {
    struct ni_diff_row *r = &d->row[i];
    const struct ni_diff_item *a = r->item[0], *b = r->item[1];
    double of_a = (1 + r->change) * a->se / a->value, of_b = b->se / a->value, s = r->spread;
    r->se = hypot(ni_diff_own_error(r), s);
    r->df = pow(r->se, 4) / (pow(of_a, 4) / a->df + pow(of_b, 4) / b->df + pow(s, 4) / 60);
    double half = ni_diff_t95(r->df) * r->se;
    r->low = r->change - half;
    r->high = r->change + half;
    r->p = r->se > 0 ? ni_diff_p(r->change / r->se, r->df) : 1;
    if (a->per_step > 0) r->step_us = b->value * b->per_step - a->value * a->per_step;
  }
  qsort(d->row, d->n, sizeof *d->row, by_p);
  for (size_t i = 0; i < d->n; i++) p[i] = d->row[i].p;
  ni_diff_holm(p, d->n);
  for (size_t i = 0; i < d->n; i++) {
    struct ni_diff_row *r = &d->row[i];
    double least = d->blind ? NI_DIFF_LEAST_BLIND : NI_DIFF_LEAST;
    bool matters = fabs(r->change) >= least && (isnan(r->step_us) || fabs(r->step_us) >= least_us(r->item[0], step));
    r->p = p[i];
    r->verdict = matters && r->p < NI_DIFF_LEVEL              ? (r->change > 0 ? NI_DIFF_SLOWER : NI_DIFF_FASTER)
                 : r->low > -2 * least && r->high < 2 * least ? NI_DIFF_SAME
                                                              : NI_DIFF_UNCLEAR;
    d->changed += r->verdict >= NI_DIFF_SLOWER;
  }
  free(p);
  return 0;
}

static int by_weight(const void *a, const void *b) {
  const struct ni_diff_row *x = a, *y = b;
  bool cx = x->verdict >= NI_DIFF_SLOWER, cy = y->verdict >= NI_DIFF_SLOWER;
  if (cx != cy) return cx ? -1 : 1;
  bool sx = x->item[0]->kind == NI_DIFF_STEP, sy = y->item[0]->kind == NI_DIFF_STEP;
  if (sx != sy) return sx ? -1 : 1;
  if (sx) return x->item[0]->key < y->item[0]->key ? -1 : 1;
  bool ax = ni_diff_is_all(x->item[0]), ay = ni_diff_is_all(y->item[0]);
  if (ax != ay) return ax ? -1 : 1;
  double wx = isnan(x->step_us) ? fabs(x->change) : fabs(x->step_us),
         wy = isnan(y->step_us) ? fabs(y->change) : fabs(y->step_us);
  if (wx != wy) return wx > wy ? -1 : 1;
  return x->item[0] < y->item[0] ? -1 : x->item[0] > y->item[0];
}

int ni_diff_judge(struct ni_diff *d) {
  int e = spreads(d);
  if (e == 0) e = verdicts(d);
  if (e == 0) qsort(d->row, d->n, sizeof *d->row, by_weight);
  return e;
}

const struct ni_diff_row *ni_diff_gate(const struct ni_diff *d, double limit) {
  const struct ni_diff_row *worst = NULL;
  double all = 0;
  bool steps = ni_diff_step(d, NI_DIFF_TYPICAL) != NULL;
  for (size_t i = 0; i < d->n; i++)
    all += d->row[i].item[0]->kind == NI_DIFF_FUNC ? d->row[i].item[0]->value * d->row[i].item[0]->per_step : 0;
  for (size_t i = 0; i < d->n; i++) {
    const struct ni_diff_row *r = &d->row[i];
    const struct ni_diff_item *o = r->item[0];
    bool felt = steps ? o->kind == NI_DIFF_STEP && o->key <= NI_DIFF_MEAN
                      : o->kind == NI_DIFF_FUNC && o->value * o->per_step >= all / 10;
    if (felt && r->change > limit && r->low > 0 && (!worst || r->change > worst->change)) worst = r;
  }
  return worst;
}
