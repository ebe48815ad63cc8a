#include "gpu_clock.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/base/order.h"
#include "format/line.h"

enum { NEIGHBOURS = NI_GPU_DRIFT_POINTS }; /* so the ends of a log, too, have enough for a rate */

void ni_gpu_clock_free(struct ni_gpu_clock *c) {
  ni_gpu_points_free(&c->points);
  free(c->knot);
  *c = (struct ni_gpu_clock){0};
}

/* Is b above the line from a to c? Differences of times fit a double's 53 bits for 104 days. */
static bool above(const struct ni_gpu_point *a, const struct ni_gpu_point *b, const struct ni_gpu_point *c) {
  double slope = (double)(c->offset_ns - a->offset_ns) / (double)(c->at_ns - a->at_ns);
  return (double)(b->offset_ns - a->offset_ns) >= slope * (double)(b->at_ns - a->at_ns);
}

static double slope_of(const struct ni_gpu_point *a, const struct ni_gpu_point *b) {
  return (double)(b->offset_ns - a->offset_ns) / (double)(b->at_ns - a->at_ns);
}

/*
 * The line below point[from..to) that lies nearest to all of them, at time t. It is the edge of the lower
 * convex hull over the mean of their times, where the sum of the distances is least. The outer edges of the
 * hull hang on single points and are worth nothing. An edge steeper than any drift is deliveries that became
 * quicker: the lowest point has to do.
 */
static int64_t fit_lower_line(const struct ni_gpu_clock *c, size_t from, size_t to, struct ni_gpu_point *hull,
                              int64_t t) {
  size_t n = 0;
  int64_t lowest = c->points.item[from].offset_ns;
  double mean = 0;
  for (size_t i = from; i < to; i++) {
    const struct ni_gpu_point *p = &c->points.item[i];
    if (p->offset_ns < lowest)
      lowest = p->offset_ns;
    mean += (double)(p->at_ns - c->points.item[from].at_ns) / (double)(to - from);
    if (n && hull[n - 1].at_ns == p->at_ns)
      continue; /* sorted: the one that is there is lower */
    while (n >= 2 && above(&hull[n - 2], &hull[n - 1], p))
      n--;
    hull[n++] = *p;
  }
  if (hull[n - 1].at_ns - hull[0].at_ns < NI_GPU_DRIFT_SPAN_NS || to - from < NI_GPU_DRIFT_POINTS)
    return lowest;
  size_t k = 1;
  while (k + 1 < n && (double)(hull[k].at_ns - c->points.item[from].at_ns) < mean)
    k++;
  const struct ni_gpu_point *a = &hull[k - 1];
  const double slope = slope_of(a, &hull[k]);
  if (fabs(slope) > NI_GPU_DRIFT_MAX)
    return lowest;
  return a->offset_ns + (int64_t)(slope * (double)(t - a->at_ns));
}

static int measure_gpu_spread(struct ni_gpu_clock *c) {
  int64_t *d = malloc(c->points.n * sizeof *d), line = 0;
  if (!d)
    return -ENOMEM;
  for (size_t i = 0; i < c->points.n; i++) {
    (void)ni_gpu_clock_at(c, c->points.item[i].at_ns, &line);
    const int64_t above_ns = c->points.item[i].offset_ns - line;
    d[i] = above_ns > 0 ? above_ns : -above_ns;
    if (above_ns > c->worst_ns)
      c->worst_ns = above_ns;
  }
  qsort(d, c->points.n, sizeof *d, ni_by_i64);
  c->spread_ns = d[(c->points.n - 1) * 9 / 10];
  double span = (double)(c->points.item[c->points.n - 1].at_ns - c->points.item[0].at_ns);
  c->extends = (double)c->spread_ns <= NI_GPU_DRIFT_USUAL * span;
  free(d);
  return 0;
}

int ni_gpu_clock_finish(struct ni_gpu_clock *c) {
  if (!c->points.n)
    return 0;
  ni_gpu_points_sort(&c->points);
  /*
   * After an NTP step or a new fit the points jump; nothing here tells a jump from drift, so ends are clamped
   * by rate.
   */
  int64_t first = c->points.item[0].at_ns, last = c->points.item[c->points.n - 1].at_ns;
  size_t n = (size_t)((last - first) / NI_GPU_KNOT_NS) + 2;
  if (n > 2 * c->points.n + 2)
    n = 2 * c->points.n + 2; /* long silences need no knots of their own */
  int64_t step = (last - first) / (int64_t)(n - 1);
  if (step < 1)
    step = 1;
  c->knot = malloc(n * sizeof *c->knot);
  struct ni_gpu_point *hull = malloc(c->points.n * sizeof *hull);
  int e = c->knot && hull ? 0 : -ENOMEM;
  size_t from = 0, to = 0;
  int64_t near = NI_GPU_NEAR_KNOTS * (step > NI_GPU_KNOT_NS ? step : NI_GPU_KNOT_NS);
  for (size_t i = 0; e == 0 && i < n; i++) {
    int64_t t = first + (int64_t)i * step;
    while (from + 1 < c->points.n && c->points.item[from].at_ns < t - near)
      from++;
    if (to < from + 1)
      to = from + 1;
    while (to < c->points.n && c->points.item[to].at_ns <= t + near)
      to++;
    /* Where lines are rare, a few more on either side. */
    size_t a = from > NEIGHBOURS ? from - NEIGHBOURS : 0,
           b = c->points.n - to > NEIGHBOURS ? to + NEIGHBOURS : c->points.n;
    c->knot[i] = (struct ni_gpu_point){t, fit_lower_line(c, a, b, hull, t)};
  }
  free(hull);
  if (e < 0)
    return e;
  c->n_knots = n;
  return measure_gpu_spread(c);
}

bool ni_gpu_clock_at(const struct ni_gpu_clock *c, int64_t at_ns, int64_t *offset_ns) {
  if (!c->n_knots)
    return false;
  size_t lo = 0, hi = c->n_knots - 1;
  while (lo + 1 < hi) {
    size_t mid = (lo + hi) / 2;
    if (c->knot[mid].at_ns <= at_ns)
      lo = mid;
    else
      hi = mid;
  }
  const struct ni_gpu_point *a = &c->knot[lo], *b = &c->knot[hi];
  double slope =
      b->at_ns > a->at_ns ? (double)(b->offset_ns - a->offset_ns) / (double)(b->at_ns - a->at_ns) : 0;
  if (!c->extends && at_ns < c->knot[0].at_ns)
    at_ns = c->knot[0].at_ns;
  if (!c->extends && at_ns > b->at_ns)
    at_ns = b->at_ns;
  *offset_ns = a->offset_ns + (int64_t)(slope * (double)(at_ns - a->at_ns));
  return true;
}

int64_t ni_gpu_clock_correction(const struct ni_gpu_clock *c, int64_t stated_ns, int64_t t) {
  int64_t better;
  return stated_ns != NI_NO_OFFSET && ni_gpu_clock_at(c, t, &better) ? better - stated_ns : 0;
}

static NI_ORDER_BY(by_process, struct ni_gpu_seat, process, comm, rank);

/* Has the process of these, which are sorted, several ranks of one communicator? */
static bool has_several_ranks(const struct ni_gpu_seat *s, size_t n) {
  for (size_t i = 1; i < n; i++)
    if (s[i].comm == s[i - 1].comm && s[i].rank != s[i - 1].rank)
      return true;
  return false;
}

/* The clock of the GPU that these have in common, if their times need it. */
static int find_unit(struct ni_gpu_units *u, struct ni_gpu_seat *s, size_t n) {
  struct ni_gpu_clock *c = &u->item[u->n];
  int e = 0;
  for (size_t i = 0; e == 0 && i < n; i++)
    e = ni_gpu_points_merge(&c->points, s[i].points);
  if (e == 0)
    e = ni_gpu_clock_finish(c);
  if (e < 0 || !ni_gpu_clock_matters(c)) {
    ni_gpu_clock_free(c);
    return e;
  }
  for (size_t i = 0; i < n; i++)
    *s[i].clock = c;
  u->n++;
  return 0;
}

int ni_gpu_units_find(struct ni_gpu_units *u, struct ni_gpu_seat *seat, size_t n) {
  int e = 0;
  *u = (struct ni_gpu_units){.item = calloc(n + 1, sizeof *u->item)};
  if (!u->item)
    return -ENOMEM;
  for (size_t i = 0; i < n; i++) {
    ni_gpu_points_judge(seat[i].points);
    *seat[i].clock = NULL;
  }
  if (n > 1)
    qsort(seat, n, sizeof *seat, by_process);
  for (size_t i = 0, end; e == 0 && i < n; i = end) {
    for (end = i + 1; end < n && seat[end].process == seat[i].process;)
      end++;
    const size_t step = has_several_ranks(seat + i, end - i) ? 1 : end - i;
    for (size_t k = i; e == 0 && k < end; k += step)
      e = find_unit(u, seat + k, step);
  }
  return e;
}

void ni_gpu_units_free(struct ni_gpu_units *u) {
  for (size_t i = 0; i < u->n; i++)
    ni_gpu_clock_free(&u->item[i]);
  free(u->item);
  *u = (struct ni_gpu_units){0};
}
