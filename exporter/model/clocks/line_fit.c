#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/base/order.h"
#include "line_fit.h"

/*
 * Bounds as numbers that lines are drawn with: they are gone through a thousand times. Their order means
 * nothing.
 */
struct bound_side {
  double t, low, high;
};

struct set {
  struct bound_side *b;
  size_t n;
};

#define WITHIN_LEAST 1000.0 /* ns: stamps are no better */

enum what { MARGIN, HIGHEST, LOWEST };

/*
 * Measures the lines of one drift that lie between the bounds: the room of the line in the middle, or the
 * highest or lowest that a line can be at t (the lowest with a negative sign). A side without bounds is
 * infinitely far. Each is concave in the drift: the minimum of lines.
 */
static double measure_room(const struct set *s, enum what what, double drift, double t, double *offset) {
  double high = 1e300, low = -1e300;
  for (size_t i = 0; i < s->n; i++) {
    double d = drift * s->b[i].t, h = s->b[i].high - d, l = s->b[i].low - d;
    if (h < high)
      high = h;
    if (l > low)
      low = l;
  }
  *offset = (high + low) / 2;
  return what == MARGIN ? (high - low) / 2 : what == HIGHEST ? high + drift * t : -(low + drift * t);
}

static struct set make_bound_set(const struct ni_line_bound *b, size_t n, struct bound_side *room) {
  for (size_t i = 0; i < n; i++)
    room[i] = (struct bound_side){(double)b[i].t, (double)b[i].low, (double)b[i].high};
  return (struct set){room, n};
}

#define NO_TIE 4096.0 /* ns: more than rounding takes from an offset since 1970 */

/*
 * Drops bounds that limit no line of a drift from..to: at both of these drifts, and so between them, another
 * bound is tighter on either side. What measure_room() finds there stays the same to the bit.
 */
static void drop_loose_bounds(struct set *s, double from, double to) {
  const double middle = (from + to) / 2;
  size_t high = 0, low = 0, kept = 0;
  for (size_t i = 1; i < s->n; i++) {
    const struct bound_side *x = &s->b[i], *h = &s->b[high], *l = &s->b[low];
    if (x->high - middle * x->t < h->high - middle * h->t)
      high = i;
    if (x->low - middle * x->t > l->low - middle * l->t)
      low = i;
  }
  if (!s->n)
    return;
  const struct bound_side h = s->b[high], l = s->b[low];
  for (size_t i = 0; i < s->n; i++) {
    const struct bound_side x = s->b[i];
    const double above = fmin(x.high - h.high - from * (x.t - h.t), x.high - h.high - to * (x.t - h.t));
    const double below = fmin(l.low - x.low + from * (x.t - l.t), l.low - x.low + to * (x.t - l.t));
    if (above < NO_TIE || below < NO_TIE)
      s->b[kept++] = x;
  }
  s->n = kept;
}

/* The drift in from..to at which that is largest. */
static double find_best_drift(const struct set *s, enum what what, double from, double to, double t) {
  double offset;
  for (int i = 0; i < 80 && from < to; i++) {
    double a = from + (to - from) / 3, c = to - (to - from) / 3;
    if (measure_room(s, what, a, t, &offset) < measure_room(s, what, c, t, &offset))
      from = a;
    else
      to = c;
  }
  return (from + to) / 2;
}

static bool is_one_sided(const struct ni_line_bound *b) {
  return b->low == INT64_MIN || b->high == INT64_MAX;
}

/* Does it say which offset is likely? */
static bool has_likely(const struct ni_line_bound *b) { return !is_one_sided(b) && b->within > 0; }

/*
 * Rejects what lies far outside of everything else: wrong matches (a number that means two operations) and
 * clocks that were stepped. The measure is the offset that equal shares of the bounds from below and from
 * above exclude, as some bounds have no middle.
 */
static size_t reject_outliers(struct ni_line_bound *b, size_t n) {
  double from = (double)INT64_MIN, to = (double)INT64_MAX;
  const int64_t at = b[n / 2].t;
  for (int k = 0;; k++) {
    double middle = (from + to) / 2, low = 0, high = 0, lows = 0, highs = 0;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
      double slack = 1e6 + NI_LINE_DRIFT_MAX * fabs((double)(b[i].t - at));
      bool above = (double)b[i].low > middle + slack, below = (double)b[i].high < middle - slack;
      low += above;
      lows += b[i].low != INT64_MIN;
      high += below;
      highs += b[i].high != INT64_MAX;
      if (k == 80 && !above && !below)
        b[kept++] = b[i];
    }
    if (k == 80)
      return kept;
    double more = low * highs - high * lows;
    if (more >= 0)
      from = middle;
    if (more <= 0)
      to = middle;
  }
}

/*
 * How far a line between all bounds, each widened by slack, can be from the chosen line, at these two times.
 */
static double find_farthest_line(struct set *s, const struct ni_line_fit *f, const int64_t at[2],
                                 double slack) {
  double end[2], far = 0, unused;
  drop_loose_bounds(s, -NI_LINE_DRIFT_MAX, NI_LINE_DRIFT_MAX);
  for (int k = 0; k < 2; k++) {
    double in = f->drift, out = k ? NI_LINE_DRIFT_MAX : -NI_LINE_DRIFT_MAX;
    for (int i = 0; i < 80; i++) {
      double middle = (in + out) / 2;
      if (measure_room(s, MARGIN, middle, 0, &unused) + slack >= 0)
        in = middle;
      else
        out = middle;
    }
    end[k] = in;
  }
  drop_loose_bounds(s, end[0], end[1]);
  for (int k = 0; k < 4; k++) {
    enum what side = k & 1 ? HIGHEST : LOWEST;
    double t = (double)at[k / 2], line = f->offset_ns + f->drift * t;
    double most = measure_room(s, side, find_best_drift(s, side, end[0], end[1], t), t, &unused);
    far = fmax(far, side == HIGHEST ? most - line : most + line);
  }
  return far + slack;
}

/*
 * The truth lies within each bound. So the line is off by no more than the farther side, for 99 of 100
 * bounds.
 */
static double count_contradicted(struct ni_line_bound *b, size_t n, const struct ni_line_fit *f) {
  for (size_t i = 0; i < n; i++) {
    double line = f->offset_ns + f->drift * (double)b[i].t;
    double high = b[i].high == INT64_MAX ? 0 : fabs((double)b[i].high - line);
    double low = b[i].low == INT64_MIN ? 0 : fabs((double)b[i].low - line);
    b[i].t = (int64_t)fmax(high, low);
  }
  qsort(b, n, sizeof *b, ni_by_i64); /* t comes first */
  return (double)b[n * 99 / 100].t;
}

struct weighed {
  double value, weight;
};

static NI_ORDER_BY(by_value, struct weighed, value, weight);

/*
 * Of the bounds [from, to) that have one, in order of time: the median of what is likely, less the drift
 * since t 0; *n: how many.
 */
static double median(const struct ni_line_bound *b, size_t from, size_t to, double drift,
                     struct weighed *room, size_t *n) {
  double all = 0, below = 0;
  *n = 0;
  for (size_t i = from; i < to; i++) {
    if (!has_likely(&b[i]))
      continue;
    const double weight = 1 / ((double)b[i].within + WITHIN_LEAST);
    room[(*n)++] = (struct weighed){(double)b[i].likely - drift * (double)b[i].t, weight};
    all += weight;
  }
  if (!*n)
    return 0;
  qsort(room, *n, sizeof *room, by_value);
  size_t i = 0;
  while (i + 1 < *n && (below += room[i].weight) < all / 2)
    i++;
  return room[i].value;
}

static double median_time(const struct ni_line_bound *b, size_t from, size_t to) {
  return (double)b[from + (to - from) / 2].t;
}

/* The distance from the line within which 9 of 10 lie. */
static double measure_spread_about(const struct ni_line_bound *b, size_t n, double drift, double offset,
                                   struct weighed *room) {
  size_t told = 0;
  for (size_t i = 0; i < n; i++) {
    if (!has_likely(&b[i]))
      continue;
    room[told++] = (struct weighed){.value = fabs((double)b[i].likely - offset - drift * (double)b[i].t)};
  }
  if (!told)
    return 0;
  qsort(room, told, sizeof *room, by_value);
  return room[(told - 1) * 9 / 10].value;
}

/*
 * The least squares of those that lie no farther from the line than three times the median distance: a line
 * through medians of a few leaves much to chance. It stays as it is where bounds that have an offset are
 * fewer than NI_LINE_DRIFT_BOUNDS, or are all of one time.
 */
static void refine_line(const struct ni_line_bound *b, size_t n, double *drift, double *offset,
                        struct weighed *room) {
  size_t told = 0;
  double w = 0, x = 0, y = 0, xx = 0, xy = 0;
  for (size_t i = 0; i < n; i++) {
    if (!has_likely(&b[i]))
      continue;
    room[told++] = (struct weighed){.value = fabs((double)b[i].likely - *offset - *drift * (double)b[i].t)};
  }
  if (told < NI_LINE_DRIFT_BOUNDS)
    return;
  qsort(room, told, sizeof *room, by_value);
  const double farthest = 3 * room[told / 2].value + WITHIN_LEAST;
  const double t0 = (double)b[n / 2].t;
  for (size_t i = 0; i < n; i++) {
    const double t = (double)b[i].t - t0, rest = (double)b[i].likely - *offset - *drift * (double)b[i].t;
    if (!has_likely(&b[i]) || fabs(rest) > farthest)
      continue;
    const double weight = 1 / ((double)b[i].within + WITHIN_LEAST);
    w += weight;
    x += weight * t;
    y += weight * rest;
    xx += weight * t * t;
    xy += weight * t * rest;
  }
  const double spread = w * xx - x * x;
  if (!(w > 0) || !(spread > 0))
    return;
  const double more = (w * xy - x * y) / spread;
  *drift += more;
  *offset += (y - more * x) / w - more * t0;
}

static NI_ORDER_BY(by_t, struct ni_line_bound, t, likely);

/* The line through medians, if the bounds let it pass. level: without drift. */
static int take_likely(struct ni_line_fit *f, struct ni_line_bound *b, const struct set *s, bool level) {
  const size_t n = s->n;
  struct weighed *room = malloc((n + 1) * sizeof *room);
  double drift = 0, offset;
  size_t told, last, third = n / 3;
  if (!room)
    return -ENOMEM;
  qsort(b, n, sizeof *b, by_t);
  if (!level && n >= NI_LINE_DRIFT_BOUNDS) {
    const double first = median(b, 0, third, 0, room, &told), end = median(b, n - third, n, 0, room, &last);
    const double span = median_time(b, n - third, n) - median_time(b, 0, third);
    if (told && last && span > (double)NI_LINE_DRIFT_SPAN_NS / 2)
      drift = (end - first) / span;
  }
  offset = median(b, 0, n, drift, room, &told);
  if (drift != 0)
    refine_line(b, n, &drift, &offset, room);
  const double spread_ns = measure_spread_about(b, n, drift, offset, room);
  free(room);
  double middle;
  const double free_ns = measure_room(s, MARGIN, drift, 0, &middle);
  const bool passes = free_ns >= 0 || f->room_ns < 0;
  if (!told || !passes || fabs(drift) > NI_LINE_DRIFT_MAX)
    return 0;
  f->drift = drift;
  f->spread_ns = spread_ns;
  f->offset_ns = f->room_ns < 0 ? offset : fmax(middle - free_ns, fmin(middle + free_ns, offset));
  return 0;
}

/*
 * The quickest operations of one kind take about as long there as back; a message and a collective do not
 * take equally long. So this moves the line to the middle of the kind that is tighter by itself, as far as
 * all bounds allow it. True: that kind is messages. room: for n.
 */
static bool lean_on_tighter_kind(struct ni_line_fit *f, struct ni_line_bound *b, size_t n,
                                 struct bound_side *room) {
  size_t two = 0;
  for (size_t i = 0; i < n; i++) {
    if (is_one_sided(&b[i]))
      continue;
    struct ni_line_bound x = b[two];
    b[two++] = b[i];
    b[i] = x;
  }
  if (two == 0 || two == n || f->room_ns < 0)
    return false;
  const struct set of_two = make_bound_set(b, two, room),
                   of_one = make_bound_set(b + two, n - two, room + two);
  double at[2], collectives = measure_room(&of_two, MARGIN, f->drift, 0, &at[0]);
  double messages = measure_room(&of_one, MARGIN, f->drift, 0, &at[1]);
  f->offset_ns = fmax(f->offset_ns - f->room_ns, fmin(f->offset_ns + f->room_ns, at[messages < collectives]));
  return messages < collectives;
}

static int fit_line(struct ni_line_bound *b, size_t n, const int64_t span[2], double slack,
                    struct bound_side *room, struct ni_line_fit *out) {
  struct set s = make_bound_set(b, n, room);
  int64_t first = INT64_MAX, last = INT64_MIN;
  int e = 0;
  for (size_t i = 0; i < n; i++) {
    if (b[i].t < first)
      first = b[i].t;
    if (b[i].t > last)
      last = b[i].t;
    out->one_sided += is_one_sided(&b[i]);
  }
  bool level = n == 0 || last - first < NI_LINE_DRIFT_SPAN_NS;
  drop_loose_bounds(&s, -NI_LINE_DRIFT_MAX, NI_LINE_DRIFT_MAX);
  if (level && out->one_sided)
    level = measure_room(&s, MARGIN, 0, 0, &out->offset_ns) >= 0;
  if (!level)
    out->drift = find_best_drift(&s, MARGIN, -NI_LINE_DRIFT_MAX, NI_LINE_DRIFT_MAX, 0);
  out->room_ns = measure_room(&s, MARGIN, out->drift, 0, &out->offset_ns);
  if (out->room_ns > (double)INT64_MAX / 4)
    return 0; /* nothing on one side */
  out->used = n;
  const bool of_messages = lean_on_tighter_kind(out, b, n, room);
  s = make_bound_set(b, n, room);
  if (!of_messages)
    e = take_likely(out, b, &s, level);
  const int64_t at[2] = {span[0] < first ? span[0] : first, span[1] > last ? span[1] : last};
  if (out->room_ns + slack >= 0)
    out->error_ns = find_farthest_line(&s, out, at, slack);
  else
    out->error_ns = count_contradicted(b, n, out);
  if (out->spread_ns == 0)
    out->spread_ns = out->error_ns;
  return e;
}

int ni_line_fit(struct ni_line_bound *b, size_t n, int64_t from, int64_t to, int64_t slack_ns,
                struct ni_line_fit *out) {
  *out = (struct ni_line_fit){0};
  if (!n)
    return 0;
  const size_t kept = reject_outliers(b, n);
  struct bound_side *room = malloc((kept + 1) * sizeof *room);
  out->rejected = n - kept;
  const int e = room ? fit_line(b, kept, (int64_t[2]){from, to}, (double)slack_ns, room, out) : -ENOMEM;
  free(room);
  return e;
}
