#include <math.h>
#include <stdlib.h>

#include "exporter/base/order.h"
#include "line_fit.h"

struct set {
  struct ni_line_bound *b;
  size_t n;
};

enum what { MARGIN, HIGHEST, LOWEST };

/*
 * Of lines of one drift between the bounds: the room of the one in the middle, or the highest and the lowest (less) that
 * one can be at t. A side that is missing is beyond all others. Each is concave in the drift: the least of lines.
 */
static double look(const struct set *s, enum what what, double drift, double t, double *offset) {
  double high = 1e300, low = -1e300;
  for (size_t i = 0; i < s->n; i++) {
    double d = drift * (double)s->b[i].t, h = (double)s->b[i].high - d, l = (double)s->b[i].low - d;
    if (h < high) high = h;
    if (l > low) low = l;
  }
  *offset = (high + low) / 2;
  return what == MARGIN ? (high - low) / 2 : what == HIGHEST ? high + drift * t : -(low + drift * t);
}

/* The drift from..to at which that is largest. */
static double peak(const struct set *s, enum what what, double from, double to, double t) {
  double offset;
  for (int i = 0; i < 80 && from < to; i++) {
    double a = from + (to - from) / 3, c = to - (to - from) / 3;
    if (look(s, what, a, t, &offset) < look(s, what, c, t, &offset)) from = a;
    else to = c;
  }
  return (from + to) / 2;
}

static bool one_sided(const struct ni_line_bound *b) { return b->low == INT64_MIN || b->high == INT64_MAX; }

/*
 * Wrong matches (a number that means two operations) and stepped clocks lie far outside of everything else: of the offset that
 * equal shares of the bounds from below and from above exclude, as some have no middle.
 */
static size_t reject(struct ni_line_bound *b, size_t n) {
  double from = (double)INT64_MIN, to = (double)INT64_MAX;
  const int64_t at = b[n / 2].t;
  for (int k = 0;; k++) {
    double middle = (from + to) / 2, low = 0, high = 0, lows = 0, highs = 0;
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
      double slack = 1e6 + NI_LINE_DRIFT_MAX * fabs((double)(b[i].t - at));
      bool above = (double)b[i].low > middle + slack, below = (double)b[i].high < middle - slack;
      low += above, lows += b[i].low != INT64_MIN;
      high += below, highs += b[i].high != INT64_MAX;
      if (k == 80 && !above && !below) b[kept++] = b[i];
    }
    if (k == 80) return kept;
    double more = low * highs - high * lows;
    if (more >= 0) from = middle;
    if (more <= 0) to = middle;
  }
}

/* How far a line between all bounds, widened by slack, can be from the one chosen, at these two times. */
static double farthest(const struct set *s, const struct ni_line_fit *f, const int64_t at[2], double slack) {
  double end[2], far = 0, unused;
  for (int k = 0; k < 2; k++) {
    double in = f->drift, out = k ? NI_LINE_DRIFT_MAX : -NI_LINE_DRIFT_MAX;
    for (int i = 0; i < 80; i++) {
      double middle = (in + out) / 2;
      if (look(s, MARGIN, middle, 0, &unused) + slack >= 0) in = middle;
      else out = middle;
    }
    end[k] = in;
  }
  for (int k = 0; k < 4; k++) {
    enum what side = k & 1 ? HIGHEST : LOWEST;
    double t = (double)at[k / 2], line = f->offset_ns + f->drift * t;
    double most = look(s, side, peak(s, side, end[0], end[1], t), t, &unused);
    far = fmax(far, side == HIGHEST ? most - line : most + line);
  }
  return far + slack;
}

/* The truth lies within each bound, so the line is off by no more than the farther side: of 99 of 100. */
static double contradicted(struct ni_line_bound *b, size_t n, const struct ni_line_fit *f) {
  for (size_t i = 0; i < n; i++) {
    double line = f->offset_ns + f->drift * (double)b[i].t;
    double high = b[i].high == INT64_MAX ? 0 : fabs((double)b[i].high - line);
    double low = b[i].low == INT64_MIN ? 0 : fabs((double)b[i].low - line);
    b[i].t = (int64_t)fmax(high, low);
  }
  qsort(b, n, sizeof *b, ni_by_i64); /* t comes first */
  return (double)b[n * 99 / 100].t;
}

/*
 * Of operations of one kind the quickest ways there and back take about as long, a message and a collective do not: the
 * middle of the kind that is tighter by itself, as far as all bounds allow it.
 */
static void lean(struct ni_line_fit *f, struct ni_line_bound *b, size_t n) {
  size_t two = 0;
  for (size_t i = 0; i < n; i++) {
    if (one_sided(&b[i])) continue;
    struct ni_line_bound x = b[two];
    b[two++] = b[i];
    b[i] = x;
  }
  if (two == 0 || two == n || f->room_ns < 0) return;
  double at[2], collectives = look(&(struct set){b, two}, MARGIN, f->drift, 0, &at[0]);
  double messages = look(&(struct set){b + two, n - two}, MARGIN, f->drift, 0, &at[1]);
  f->offset_ns = fmax(f->offset_ns - f->room_ns, fmin(f->offset_ns + f->room_ns, at[messages < collectives]));
}

void ni_line_fit(struct ni_line_bound *b, size_t n, int64_t from, int64_t to, int64_t slack_ns, struct ni_line_fit *out) {
  *out = (struct ni_line_fit){0};
  if (!n) return;
  struct set s = {b, reject(b, n)};
  out->rejected = n - s.n;
  int64_t first = INT64_MAX, last = INT64_MIN;
  for (size_t i = 0; i < s.n; i++) {
    if (b[i].t < first) first = b[i].t;
    if (b[i].t > last) last = b[i].t;
    out->one_sided += one_sided(&b[i]);
  }
  bool level = s.n == 0 || last - first < NI_LINE_DRIFT_SPAN_NS;
  if (level && out->one_sided) level = look(&s, MARGIN, 0, 0, &out->offset_ns) >= 0;
  if (!level) out->drift = peak(&s, MARGIN, -NI_LINE_DRIFT_MAX, NI_LINE_DRIFT_MAX, 0);
  out->room_ns = look(&s, MARGIN, out->drift, 0, &out->offset_ns);
  if (out->room_ns > (double)INT64_MAX / 4) return; /* nothing on one side */
  out->used = s.n;
  lean(out, b, s.n);
  if (out->room_ns + (double)slack_ns >= 0)
    out->error_ns = farthest(&s, out, (int64_t[2]){from < first ? from : first, to > last ? to : last}, (double)slack_ns);
  else out->error_ns = contradicted(b, s.n, out);
}
