#include "dist.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/base/mix.h"

/* Values in order with their counts: what a percentile is read from. */
struct sorted {
  struct ni_dist_slot *item; /* value (not plus 1), count */
  size_t n;
};

static size_t place(uint64_t value, size_t n_slots) {
  return (size_t)(ni_spread(value) >> 20) & (n_slots - 1);
}

static int coarse_add(struct ni_dist *d, uint64_t value, uint64_t times) {
  unsigned power = value < NI_DIST_STEPS ? 0 : 63u - (unsigned)__builtin_clzll(value) - 6;
  if (!d->step[power] && !(d->step[power] = calloc(NI_DIST_STEPS, sizeof **d->step))) return -ENOMEM;
  /* Power 0 holds 0..127 one by one; power p the 128..255 << (p - 1), of which the lower 7 bits remain. */
  unsigned at = power == 0 ? (unsigned)value : (unsigned)(value >> (power - 1)) & (NI_DIST_STEPS - 1);
  d->step[power][at] += times;
  return 0;
}

/* The middle of a step. */
static uint64_t coarse_value(unsigned power, unsigned at) {
  if (power == 0) return at;
  uint64_t low = (uint64_t)(at + NI_DIST_STEPS) << (power - 1);
  return low + (power > 1 ? (1ULL << (power - 1)) / 2 : 0);
}

static int make_coarse(struct ni_dist *d) {
  for (size_t i = 0; i < d->n_slots; i++)
    if (d->slot[i].value_plus_1 && coarse_add(d, d->slot[i].value_plus_1 - 1, d->slot[i].count) < 0) return -ENOMEM;
  free(d->slot);
  d->slot = NULL;
  d->n_slots = d->used = 0;
  d->coarse = true;
  return 0;
}

static int grow(struct ni_dist *d) {
  size_t n = d->n_slots ? 2 * d->n_slots : 32;
  struct ni_dist_slot *s = calloc(n, sizeof *s);
  if (!s) return -ENOMEM;
  for (size_t i = 0; i < d->n_slots; i++) {
    if (!d->slot[i].value_plus_1) continue;
    size_t k = place(d->slot[i].value_plus_1 - 1, n);
    while (s[k].value_plus_1) k = (k + 1) & (n - 1);
    s[k] = d->slot[i];
  }
  free(d->slot);
  d->slot = s;
  d->n_slots = n;
  return 0;
}

static int map_add(struct ni_dist *d, uint64_t value, uint64_t times) {
  if (!d->coarse) {
    if (3 * d->used >= 2 * d->n_slots && d->used < d->limit && grow(d) < 0) return -ENOMEM;
    if (d->n_slots) {
      size_t k = place(value, d->n_slots);
      while (d->slot[k].value_plus_1 && d->slot[k].value_plus_1 != value + 1) k = (k + 1) & (d->n_slots - 1);
      if (d->slot[k].value_plus_1) {
        d->slot[k].count += times;
        return 0;
      }
      if (d->used < d->limit) {
        d->slot[k] = (struct ni_dist_slot){value + 1, times};
        d->used++;
        return 0;
      }
    }
    if (make_coarse(d) < 0) return -ENOMEM;
  }
  return coarse_add(d, value, times);
}

int ni_dist_add(struct ni_dist *d, uint64_t value, uint64_t times) {
  if (times == 0) return 0;
  if (d->n == 0) d->first = d->min = d->max = value;
  if (value < d->min) d->min = value;
  if (value > d->max) d->max = value;
  int64_t off = (int64_t)(value - d->first);
  d->n += times;
  d->sum += (__int128)off * (__int128)times;
  d->square += (unsigned __int128)((__int128)off * off) * times;
  return map_add(d, value, times);
}

int ni_dist_merge(struct ni_dist *a, const struct ni_dist *b) {
  if (b->n == 0) return 0;
  if (a->n == 0) {
    a->first = b->first;
    a->min = b->min;
    a->max = b->max;
  }
  if (b->min < a->min) a->min = b->min;
  if (b->max > a->max) a->max = b->max;
  /* Moves b's sums from its own first value to a's. */
  __int128 by = (__int128)b->first - (__int128)a->first;
  a->sum += b->sum + by * (__int128)b->n;
  a->square += (unsigned __int128)((__int128)b->square + 2 * by * b->sum + by * by * (__int128)b->n);
  a->n += b->n;
  if (!b->coarse) {
    for (size_t i = 0; i < b->n_slots; i++)
      if (b->slot[i].value_plus_1 && map_add(a, b->slot[i].value_plus_1 - 1, b->slot[i].count) < 0) return -ENOMEM;
    return 0;
  }
  if (!a->coarse && make_coarse(a) < 0) return -ENOMEM;
  for (unsigned p = 0; p < 64; p++)
    for (unsigned i = 0; b->step[p] && i < NI_DIST_STEPS; i++)
      if (b->step[p][i] && coarse_add(a, coarse_value(p, i), b->step[p][i]) < 0) return -ENOMEM;
  return 0;
}

static int by_value(const void *a, const void *b) {
  uint64_t x = ((const struct ni_dist_slot *)a)->value_plus_1, y = ((const struct ni_dist_slot *)b)->value_plus_1;
  return x < y ? -1 : x > y;
}

static int sort_values(const struct ni_dist *d, struct sorted *s) {
  size_t n = 0;
  if (d->coarse)
    for (unsigned p = 0; p < 64; p++) n += d->step[p] ? NI_DIST_STEPS : 0;
  else
    n = d->used;
  *s = (struct sorted){malloc((n ? n : 1) * sizeof *s->item), 0};
  if (!s->item) return -ENOMEM;
  if (!d->coarse) {
    for (size_t i = 0; i < d->n_slots; i++)
      if (d->slot[i].value_plus_1)
        s->item[s->n++] = (struct ni_dist_slot){d->slot[i].value_plus_1 - 1, d->slot[i].count};
    qsort(s->item, s->n, sizeof *s->item, by_value);
    return 0;
  }
  for (unsigned p = 0; p < 64; p++)
    for (unsigned i = 0; d->step[p] && i < NI_DIST_STEPS; i++)
      if (d->step[p][i]) s->item[s->n++] = (struct ni_dist_slot){coarse_value(p, i), d->step[p][i]};
  /* The ends are known better than to a step. */
  if (s->n) {
    s->item[0].value_plus_1 = d->min;
    s->item[s->n - 1].value_plus_1 = d->max;
  }
  return 0;
}

static double quantile(const struct sorted *s, uint64_t n, double q, double scale) {
  double at = q * (double)(n - 1);
  uint64_t low = (uint64_t)at, seen = 0;
  double part = at - (double)low;
  for (size_t i = 0; i < s->n; i++) {
    seen += s->item[i].count;
    if (seen <= low) continue;
    double a = (double)s->item[i].value_plus_1 / scale;
    if (part == 0 || seen > low + 1 || i + 1 == s->n) return a;
    double b = (double)s->item[i + 1].value_plus_1 / scale;
    return a + (b - a) * part;
  }
  return NAN;
}

int ni_dist_stats(const struct ni_dist *d, double scale, struct ni_stats *out) {
  *out = (struct ni_stats){d->n, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, false};
  if (d->n == 0) return 0;
  struct sorted s;
  int e = sort_values(d, &s);
  if (e < 0) return e;
  long double n = (long double)d->n, off = (long double)d->sum / n;
  out->mean = (double)(((long double)d->first + off) / scale);
  if (d->n > 1) {
    long double v = ((long double)d->square - (long double)d->sum * off) / (n - 1);
    out->stddev = v > 0 ? (double)(sqrtl(v) / scale) : 0;
  }
  out->min = (double)d->min / scale;
  out->max = (double)d->max / scale;
  out->p10 = quantile(&s, d->n, 0.10, scale);
  out->p25 = quantile(&s, d->n, 0.25, scale);
  out->p50 = quantile(&s, d->n, 0.50, scale);
  out->p75 = quantile(&s, d->n, 0.75, scale);
  out->p90 = quantile(&s, d->n, 0.90, scale);
  out->p99 = quantile(&s, d->n, 0.99, scale);
  out->approx = d->coarse;
  free(s.item);
  return 0;
}

double ni_dist_quantile_coarse(const struct ni_dist *d, double q, double scale) {
  if (d->n == 0) return NAN;
  double at = q * (double)(d->n - 1), part = at - floor(at), first = NAN;
  uint64_t low = (uint64_t)at, high = part > 0 ? low + 1 : low, seen = 0;
  for (unsigned p = 0; p < 64; p++)
    for (unsigned i = 0; d->step[p] && i < NI_DIST_STEPS; i++) {
      seen += d->step[p][i];
      if (seen <= low) continue;
      /* The ends are known better than to a step. */
      uint64_t v = coarse_value(p, i), a = v < d->min ? d->min : v > d->max ? d->max : v;
      if (isnan(first)) first = low == 0 ? (double)d->min : low + 1 == d->n ? (double)d->max : (double)a;
      if (seen > high) return (first + ((high + 1 == d->n ? (double)d->max : (double)a) - first) * part) / scale;
    }
  return NAN;
}

/* As many bins as show the shape: the rule of Freedman and Diaconis, at least 10 where values differ. */
static uint32_t bins_for(double lo, double hi, double q1, double q3, uint64_t n) {
  double width = 2 * (q3 - q1) / cbrt((double)n), want = width > 0 ? ceil((hi - lo) / width) : NI_SUM_HIST_BINS;
  return want < 10 ? 10 : want > NI_SUM_HIST_BINS ? NI_SUM_HIST_BINS : (uint32_t)want;
}

int ni_dist_hist(const struct ni_dist *d, double scale, struct ni_hist *out) {
  *out = (struct ni_hist){0};
  if (d->n == 0) return 0;
  struct sorted s;
  int e = sort_values(d, &s);
  if (e < 0) return e;
  out->lo = (double)d->min / scale;
  out->hi = (double)d->max / scale;
  out->log = d->min > 0 && d->max >= 10 * d->min;
  double lo = out->log ? log(out->lo) : out->lo, hi = out->log ? log(out->hi) : out->hi;
  double q1 = quantile(&s, d->n, 0.25, scale), q3 = quantile(&s, d->n, 0.75, scale);
  out->n = d->min == d->max ? 1 : bins_for(lo, hi, out->log ? log(q1) : q1, out->log ? log(q3) : q3, d->n);
  for (size_t i = 0; i < s.n; i++) {
    double v = (double)s.item[i].value_plus_1 / scale;
    double x = hi > lo ? ((out->log ? log(v) : v) - lo) / (hi - lo) * out->n : 0;
    uint32_t k = x <= 0 ? 0 : x >= out->n ? out->n - 1 : (uint32_t)x;
    out->count[k] += s.item[i].count;
  }
  free(s.item);
  return 0;
}

int ni_dist_box(const struct ni_dist *d, double scale, struct ni_whisker *out) {
  *out = (struct ni_whisker){NAN, NAN, NAN, NAN, NAN, NAN, NAN, d->n, 0};
  if (d->n == 0) return 0;
  struct sorted s;
  int e = sort_values(d, &s);
  if (e < 0) return e;
  out->min = (double)d->min / scale;
  out->max = (double)d->max / scale;
  out->q1 = quantile(&s, d->n, 0.25, scale);
  out->median = quantile(&s, d->n, 0.5, scale);
  out->q3 = quantile(&s, d->n, 0.75, scale);
  double reach = 1.5 * (out->q3 - out->q1);
  for (size_t i = 0; i < s.n; i++) {
    double v = (double)s.item[i].value_plus_1 / scale;
    if (v < out->q1 - reach || v > out->q3 + reach) {
      out->n_outside += s.item[i].count;
      continue;
    }
    if (isnan(out->whisker_lo)) out->whisker_lo = v;
    out->whisker_hi = v;
  }
  free(s.item);
  return 0;
}

void ni_dist_free(struct ni_dist *d) {
  free(d->slot);
  for (unsigned p = 0; p < 64; p++) free(d->step[p]);
  *d = (struct ni_dist){.limit = d->limit};
}
