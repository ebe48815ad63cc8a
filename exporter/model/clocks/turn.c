#include "turn.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"

enum { GAPS_BESIDE = 2048 }; /* on each side of a step: so many of them say what is usual */

struct usual_gaps { /* sorted; 0 is one of them: operations follow each other at once */
  int64_t *ns;
  size_t n;
};

static void add_gaps(struct usual_gaps *g, const int64_t *t_ns, size_t from, size_t to) {
  for (size_t i = from; i < to; i++)
    g->ns[g->n++] = t_ns[i] - t_ns[i - 1];
}

/* Those between operations of which it is clear that both are before the step, or both behind it. */
static void gather_gaps(struct usual_gaps *g, const int64_t *t_ns, size_t from, size_t unsure, size_t behind,
                        size_t n) {
  g->ns[0] = 0;
  g->n = 1;
  const size_t first = unsure - from > GAPS_BESIDE ? unsure - GAPS_BESIDE : from + 1;
  add_gaps(g, t_ns, first, unsure);
  const size_t end = n - behind > GAPS_BESIDE ? behind + GAPS_BESIDE : n;
  add_gaps(g, t_ns, behind + 1, end);
  qsort(g->ns, g->n, sizeof *g->ns, ni_by_i64);
}

double ni_clock_measure_oddness(const int64_t *usual, size_t n, int64_t x, size_t own) {
  size_t first, behind;
  ni_array_search(first, n, usual[first] < x);
  ni_array_search(behind, n, usual[behind] <= x);
  if (behind - first > own)
    return 0;
  double least = INFINITY;
  if (behind < n)
    least = (double)(usual[behind] - x);
  if (first > 0)
    least = fmin(least, (double)(x - usual[first - 1]));
  return least;
}

/*
 * How well operation i is the first one behind the step. The first one of all has no gap before it: most
 * streams begin before a clock is set back, and else the middle decides. i == n: none is behind it.
 */
static double rate_turn(const struct usual_gaps *g, const struct ni_clock_step *s, const int64_t *t_ns,
                        size_t from, size_t i, size_t n) {
  if (i == n)
    return 0;
  if (i == from)
    return s->by_ns > 0 && ni_clock_is_late(s, t_ns[i]) ? 0 : -INFINITY;
  const int64_t gap_ns = t_ns[i] - t_ns[i - 1];
  return ni_clock_measure_oddness(g->ns, g->n, gap_ns, 0) -
      ni_clock_measure_oddness(g->ns, g->n, gap_ns - s->by_ns, 0);
}

/* from: the first operation behind the step before this one. */
static size_t find_turn(const struct ni_clock_step *s, const int64_t *t_ns, size_t from, size_t n,
                        struct usual_gaps *g) {
  size_t unsure = from, behind;
  while (unsure < n && ni_clock_side(s, t_ns[unsure]) == NI_CLOCK_BEFORE)
    unsure++;
  for (behind = unsure; behind < n && ni_clock_side(s, t_ns[behind]) != NI_CLOCK_BEHIND;)
    behind++;
  if (unsure == behind)
    return unsure;
  gather_gaps(g, t_ns, from, unsure, behind, n);
  size_t best = behind;
  double most = -INFINITY;
  for (size_t i = unsure; i <= behind; i++) {
    const double rate = rate_turn(g, s, t_ns, from, i, n);
    if (rate > most) {
      most = rate;
      best = i;
    }
  }
  return best;
}

int ni_clock_find_turns(const struct ni_host_clock *c, const int64_t *t_ns, size_t n,
                        size_t turn[static NI_CLOCK_STEPS]) {
  struct usual_gaps gaps = {.ns = malloc((2 * (size_t)GAPS_BESIDE + 2) * sizeof *gaps.ns)};
  if (!gaps.ns)
    return -ENOMEM;
  size_t from = 0;
  for (uint32_t k = 0; k < c->n_steps; k++)
    turn[k] = from = find_turn(&c->step[k], t_ns, from, n, &gaps);
  free(gaps.ns);
  return 0;
}
