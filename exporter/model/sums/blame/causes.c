#include "causes.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "peer_groups.h"
#include "exporter/model/sums/ranks/quantile.h"
#include "exporter/base/array.h"
#include "exporter/model/sums/ranks/quantile.h"

struct ni_cause *ni_cause_add(struct ni_causes *c, enum ni_finding_kind kind, enum ni_finding_level level,
                              uint32_t of) {
  if (c->n == NI_CAUSES_MAX) {
    c->left_out++;
    return NULL;
  }
  c->item[c->n] = (struct ni_cause){
      .kind = kind, .level = level, .of = of, .other = NI_BLAME_NONE, .lead = {.part = 1, .apart = 1}};
  return &c->item[c->n++];
}

static int append_index(uint32_t **list, uint32_t *n, uint32_t x) {
  size_t cap = *n;
  if (!ni_array_exact(list, &cap, *n + 1, sizeof **list))
    return -ENOMEM;
  (*list)[(*n)++] = x;
  return 0;
}

int ni_cause_add_item(struct ni_cause *c, uint32_t item) { return append_index(&c->item, &c->n_items, item); }
int ni_cause_add_unmatched(struct ni_cause *c, uint32_t link) {
  return append_index(&c->unmatched, &c->n_unmatched, link);
}

bool ni_cause_comes_and_goes(const struct ni_blame *b, const struct ni_cause *c) {
  uint32_t n = 0;
  if (!c->links && !c->at)
    return false;
  for (uint32_t k = c->from; k < c->to && k < b->bins; k++)
    n += ni_cause_is_active(c, k);
  return n > 0 && (float)n <= NI_CAUSE_NOW_AND_THEN * (float)b->bins;
}

enum {
  LENGTHS_OF = 64, /* ranks that are asked how long a bin took */
  AROUND = 32,     /* bins on each side of a cause that say how long it is without */
  AROUND_MIN = 8,  /* at least so many of them in all, else more are asked */
  FAR_OFF = 3,     /* times their median: a bin counts for no more, since something else made it so long */
  OUTER_PART = 6   /* a sixth of them on each side lies beyond one standard deviation from their mean */
};
#define CLOCK_DOUBT 0.1 /* of a cost: ranks and steps differ in what else they do */

/* us[k]: how long bin k took; NAN: not known. The first and the last ones are not whole. */
static void measure_bin_lengths(const struct ni_blame *b, float *us) {
  uint32_t judged = 0; /* the other ranks are of another run in the folder */
  for (uint32_t r = 0; r < b->n_ranks; r++)
    judged += b->rank[r].judged;
  const uint32_t every = judged / LENGTHS_OF + 1;
  float of[LENGTHS_OF + 1];
  for (uint32_t k = 0; k < b->bins; k++) {
    uint32_t number = 0;
    size_t n = 0;
    us[k] = NAN;
    const bool is_whole = k > 0 && k + 2 < b->bins;
    for (uint32_t r = 0; is_whole && r < b->n_ranks && n < LENGTHS_OF; r++) {
      if (!b->rank[r].judged || number++ % every)
        continue;
      const struct ni_blame_cell *here = ni_blame_cell_at(b, r, k);
      const struct ni_blame_cell *next = here ? ni_blame_cell_at(b, r, k + 1) : NULL;
      if (next)
        of[n++] = (float)(next->start_ns - here->start_ns) / 1e3f;
    }
    if (n)
      us[k] = ni_blame_quantile(of, n, 0.5);
  }
}

struct clock_costs {
  const struct ni_blame *b;
  float *us;       /* of a bin */
  uint8_t *causes; /* at work there, of those that are counted by the clock */
  float *quiet;    /* scratch */
};

/* A cause is at work in this bin or in one next to it. */
static bool is_near_any_cause(const struct clock_costs *w, uint32_t bin) {
  const bool before = bin > 0 && w->causes[bin - 1];
  const bool after = bin + 1 < w->b->bins && w->causes[bin + 1];
  return before || w->causes[bin] || after;
}

static bool is_near_cause(const struct ni_cause *c, uint32_t bin) {
  return ni_cause_is_active(c, bin) || ni_cause_is_active(c, bin - 1) || ni_cause_is_active(c, bin + 1);
}

/*
 * Mean of the bins nearest to from..to in which no such cause is at work, those far off clipped; *apart: two
 * of their standard deviations.
 */
static double find_baseline_around(const struct clock_costs *w, uint32_t from, uint32_t to, float *apart) {
  size_t n = 0;
  double sum = 0;
  for (uint32_t around = AROUND; n < AROUND_MIN && around / 2 < w->b->bins; around *= 2) {
    n = 0;
    for (uint32_t k = from > around ? from - around : 0; k < to + around && k < w->b->bins; k++) {
      if (!is_near_any_cause(w, k) && !isnan(w->us[k]))
        w->quiet[n++] = w->us[k];
    }
  }
  if (!n)
    return NAN;
  const float most = FAR_OFF * ni_blame_quantile(w->quiet, n, 0.5);
  for (size_t i = 0; i < n; i++)
    sum += fminf(w->quiet[i], most);
  *apart = w->quiet[n - 1 - n / OUTER_PART] - w->quiet[n / OUTER_PART];
  return sum / (double)n;
}

static void count_clock_cost(const struct clock_costs *w, struct ni_cause *c) {
  const uint32_t bins = w->b->bins;
  double sum = 0, squares = 0;
  uint32_t seen = 0;
  for (uint32_t k = c->from ? c->from - 1 : 0, to; k <= c->to && k < bins; k = to) {
    to = k + 1;
    bool near = ni_cause_is_active(c, k) || ni_cause_is_active(c, k + 1);
    if (!near)
      continue;
    while (to < bins && is_near_cause(c, to))
      to++;
    float apart = 0;
    double baseline = find_baseline_around(w, k, to, &apart);
    for (uint32_t i = k; i < to; i++) {
      const bool of_another = w->causes[i] && !ni_cause_is_active(c, i);
      if (isnan(w->us[i]) || isnan(baseline) || of_another)
        continue;
      sum += w->us[i] - baseline;
      seen++;
      squares += apart * apart;
    }
  }
  c->not_clocked = seen == 0;
  const double doubt = sqrt(squares) + CLOCK_DOUBT * fabs(sum);
  c->cost_us = fmax(0, sum);
  c->low_us = fmax(0, sum - doubt);
  c->high_us = fmax(0, sum + doubt);
}

int ni_count_clock_costs(const struct ni_blame *b, struct ni_causes *causes) {
  struct clock_costs w = {.b = b};
  bool any = false;
  for (uint32_t i = 0; i < causes->n; i++)
    any |= ni_cause_comes_and_goes(b, &causes->item[i]);
  if (!any)
    return 0;
  w.us = malloc((2 * (size_t)b->bins + 1) * sizeof *w.us);
  w.causes = calloc(b->bins + 1, sizeof *w.causes);
  if (w.us && w.causes) {
    w.quiet = w.us + b->bins;
    measure_bin_lengths(b, w.us);
    for (uint32_t i = 0; i < causes->n; i++)
      for (uint32_t k = 0; k < b->bins && ni_cause_comes_and_goes(b, &causes->item[i]); k++)
        w.causes[k] |= ni_cause_is_active(&causes->item[i], k);
    for (uint32_t i = 0; i < causes->n; i++)
      if (ni_cause_comes_and_goes(b, &causes->item[i]))
        count_clock_cost(&w, &causes->item[i]);
  }
  const bool had_room = w.us && w.causes;
  free(w.us);
  free(w.causes);
  return had_room ? 0 : -ENOMEM;
}

void ni_causes_free(struct ni_causes *c) {
  for (uint32_t i = 0; i < c->n; i++) {
    free(c->item[i].item);
    free(c->item[i].unmatched);
    free(c->item[i].at);
  }
  free(c->crowded);
  c->crowded = NULL;
}

bool ni_find_longest_above(const float *x, uint32_t n, float floor, uint32_t *from, uint32_t *to) {
  double sum = 0, best = 0;
  uint32_t start = 0;
  *from = *to = 0;
  for (uint32_t k = 0; k < n; k++) {
    if (!isnan(x[k]))
      sum += x[k] - floor;
    if (sum <= 0) {
      sum = 0;
      start = k + 1;
    } else if (sum > best) {
      best = sum;
      *from = start;
      *to = k + 1;
    }
  }
  return best > 0;
}
