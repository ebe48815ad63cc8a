#include "gpu_clock.h"

#include <errno.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "exporter/base/order.h"

enum { NEIGHBOURS = 4 };

int ni_gpu_clock_add(struct ni_gpu_clock *c, int64_t at_ns, int64_t offset_ns) {
  if (!ni_array_room(c->point, c->n, c->cap))
    return -ENOMEM;
  c->point[c->n++] = (struct ni_gpu_point){at_ns, offset_ns};
  return 0;
}

void ni_gpu_clock_free(struct ni_gpu_clock *c) {
  free(c->point);
  free(c->knot);
  *c = (struct ni_gpu_clock){0};
}

static NI_ORDER_BY(by_time, struct ni_gpu_point, at_ns, offset_ns);

/* Is b above the line from a to c? Differences of times fit a double's 53 bits for 104 days. */
static bool above(const struct ni_gpu_point *a, const struct ni_gpu_point *b, const struct ni_gpu_point *c) {
  double slope = (double)(c->offset_ns - a->offset_ns) / (double)(c->at_ns - a->at_ns);
  return (double)(b->offset_ns - a->offset_ns) >= slope * (double)(b->at_ns - a->at_ns);
}

/*
 * The line below point[from..to) that lies nearest to all of them, at time t. It is the edge of the lower
 * convex hull over the mean of their times, where the sum of the distances is least. The outer edges of the
 * hull hang on single points and are worth nothing.
 */
static int64_t fit_lower_line(const struct ni_gpu_clock *c, size_t from, size_t to, struct ni_gpu_point *hull,
                              int64_t t) {
  size_t n = 0;
  int64_t lowest = c->point[from].offset_ns;
  double mean = 0;
  for (size_t i = from; i < to; i++) {
    const struct ni_gpu_point *p = &c->point[i];
    if (p->offset_ns < lowest)
      lowest = p->offset_ns;
    mean += (double)(p->at_ns - c->point[from].at_ns) / (double)(to - from);
    if (n && hull[n - 1].at_ns == p->at_ns)
      continue; /* sorted: the one that is there is lower */
    while (n >= 2 && above(&hull[n - 2], &hull[n - 1], p))
      n--;
    hull[n++] = *p;
  }
  if (hull[n - 1].at_ns - hull[0].at_ns < NI_GPU_DRIFT_SPAN_NS || to - from < NI_GPU_DRIFT_POINTS)
    return lowest;
  size_t k = 1;
  while (k + 1 < n && (double)(hull[k].at_ns - c->point[from].at_ns) < mean)
    k++;
  const struct ni_gpu_point *a = &hull[k - 1], *b = &hull[k];
  double slope = (double)(b->offset_ns - a->offset_ns) / (double)(b->at_ns - a->at_ns);
  if (slope > NI_GPU_DRIFT_MAX)
    slope = NI_GPU_DRIFT_MAX;
  if (slope < -NI_GPU_DRIFT_MAX)
    slope = -NI_GPU_DRIFT_MAX;
  return a->offset_ns + (int64_t)(slope * (double)(t - a->at_ns));
}

static int measure_gpu_spread(struct ni_gpu_clock *c) {
  int64_t *d = malloc(c->n * sizeof *d), line = 0;
  if (!d)
    return -ENOMEM;
  for (size_t i = 0; i < c->n; i++) {
    (void)ni_gpu_clock_at(c, c->point[i].at_ns, &line);
    d[i] = c->point[i].offset_ns > line ? c->point[i].offset_ns - line : line - c->point[i].offset_ns;
  }
  qsort(d, c->n, sizeof *d, ni_by_i64);
  c->spread_ns = d[(c->n - 1) * 9 / 10];
  double span = (double)(c->point[c->n - 1].at_ns - c->point[0].at_ns);
  c->extends = (double)c->spread_ns <= NI_GPU_DRIFT_USUAL * span;
  free(d);
  return 0;
}

int ni_gpu_clock_finish(struct ni_gpu_clock *c) {
  if (!c->n)
    return 0;
  qsort(c->point, c->n, sizeof *c->point, by_time);
  /*
   * After an NTP step or a new fit the points jump; nothing here tells a jump from drift, so ends are clamped
   * by rate.
   */
  int64_t first = c->point[0].at_ns, last = c->point[c->n - 1].at_ns;
  size_t n = (size_t)((last - first) / NI_GPU_KNOT_NS) + 2;
  if (n > 2 * c->n + 2)
    n = 2 * c->n + 2; /* long silences need no knots of their own */
  int64_t step = (last - first) / (int64_t)(n - 1);
  if (step < 1)
    step = 1;
  c->knot = malloc(n * sizeof *c->knot);
  struct ni_gpu_point *hull = malloc(c->n * sizeof *hull);
  int e = c->knot && hull ? 0 : -ENOMEM;
  size_t from = 0, to = 0;
  int64_t near = NI_GPU_NEAR_KNOTS * (step > NI_GPU_KNOT_NS ? step : NI_GPU_KNOT_NS);
  for (size_t i = 0; e == 0 && i < n; i++) {
    int64_t t = first + (int64_t)i * step;
    while (from + 1 < c->n && c->point[from].at_ns < t - near)
      from++;
    if (to < from + 1)
      to = from + 1;
    while (to < c->n && c->point[to].at_ns <= t + near)
      to++;
    /* Where lines are rare, a few more on either side. */
    size_t a = from > NEIGHBOURS ? from - NEIGHBOURS : 0, b = c->n - to > NEIGHBOURS ? to + NEIGHBOURS : c->n;
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
