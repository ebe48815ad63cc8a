#include <stdlib.h>

#include "line_fit.h"

static int by_middle(const void *a, const void *b) {
  const struct ni_line_bound *x = a, *y = b;
  int64_t p = x->low / 2 + x->high / 2, q = y->low / 2 + y->high / 2;
  if (p != q) return p < q ? -1 : 1;
  return x->t < y->t ? -1 : x->t > y->t;
}

/* What the bounds leave for the offset when the drift is b. */
static double room(const struct ni_line_bound *p, size_t n, double drift, double *offset) {
  double high = 1e300, low = -1e300;
  for (size_t i = 0; i < n; i++) {
    double d = drift * (double)p[i].t, h = (double)p[i].high - d, l = (double)p[i].low - d;
    if (h < high) high = h;
    if (l > low) low = l;
  }
  *offset = (high + low) / 2;
  return (high - low) / 2;
}

static int64_t width(const struct ni_line_bound *b) { return b->high > b->low ? b->high - b->low : 0; }

static int by_width(const void *a, const void *b) {
  int64_t x = width(a), y = width(b);
  return x < y ? -1 : x > y;
}

/* Wrong matches (a number that means two operations) and stepped clocks lie far outside of everything else. */
static size_t reject(struct ni_line_bound *b, size_t n) {
  qsort(b, n, sizeof *b, by_middle);
  struct ni_line_bound m = b[n / 2];
  int64_t middle = m.low / 2 + m.high / 2;
  size_t kept = 0;
  for (size_t i = 0; i < n; i++) {
    int64_t x = b[i].low / 2 + b[i].high / 2, off = x > middle ? x - middle : middle - x;
    int64_t apart = b[i].t > m.t ? b[i].t - m.t : m.t - b[i].t;
    int64_t slack = width(&m) / 2 + width(&b[i]) / 2 + 1000000;
    if (off <= slack + (int64_t)(NI_LINE_DRIFT_MAX * (double)apart)) b[kept++] = b[i];
  }
  return kept;
}

void ni_line_fit(struct ni_line_bound *b, size_t n, struct ni_line_fit *out) {
  *out = (struct ni_line_fit){0};
  if (!n) return;
  size_t used = reject(b, n);
  int64_t first = b[0].t, last = b[0].t;
  for (size_t i = 0; i < used; i++) {
    if (b[i].t < first) first = b[i].t;
    if (b[i].t > last) last = b[i].t;
  }
  double from = -NI_LINE_DRIFT_MAX, to = NI_LINE_DRIFT_MAX, offset;
  if (last - first < NI_LINE_DRIFT_SPAN_NS) from = to = 0;
  /* room() is concave in the drift: the least of lines less the greatest of lines. */
  for (int i = 0; i < 80 && from < to; i++) {
    double a = from + (to - from) / 3, c = to - (to - from) / 3;
    if (room(b, used, a, &offset) < room(b, used, c, &offset)) from = a;
    else to = c;
  }
  out->drift = (from + to) / 2;
  out->room_ns = room(b, used, out->drift, &out->offset_ns);
  out->error_ns = out->room_ns;
  if (out->room_ns < 0) {
    /* The truth lies within each bound, the line outside of some by so much: off by that and the bound's width. */
    qsort(b, used, sizeof *b, by_width);
    out->error_ns = (double)width(&b[used * 9 / 10]) - out->room_ns;
  }
  out->used = used;
  out->rejected = n - used;
}
