#include "dist.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/base/sort_numbers.h"

#define FRESH_FIRST 16 /* there are many distributions of few values */

/* Values in order with their counts: what a percentile is read from. */
struct sorted_values {
  const struct ni_dist_slot *item;
  struct ni_dist_slot *own; /* the same, to be freed; NULL: the distribution's */
  size_t n, at;             /* at: where the last percentile was; `before` values lie before it */
  uint64_t before;
};

static int add_to_histogram(struct ni_dist *d, uint64_t value, uint64_t times) {
  unsigned power = value < NI_DIST_STEPS ? 0 : 63u - (unsigned)__builtin_clzll(value) - 6;
  if (!d->step[power] && !(d->step[power] = calloc(NI_DIST_STEPS, sizeof **d->step)))
    return -ENOMEM;
  /* Power 0 holds 0..127 one by one; power p the 128..255 << (p - 1), of which the lower 7 bits remain. */
  unsigned at = power == 0 ? (unsigned)value : (unsigned)(value >> (power - 1)) & (NI_DIST_STEPS - 1);
  d->step[power][at] += times;
  return 0;
}

/* The middle of a step. */
static uint64_t middle_of_step(unsigned power, unsigned at) {
  if (power == 0)
    return at;
  uint64_t low = (uint64_t)(at + NI_DIST_STEPS) << (power - 1);
  return low + (power > 1 ? (1ULL << (power - 1)) / 2 : 0);
}

/* None is fresh. */
static int become_histogram(struct ni_dist *d) {
  if (!(d->step = calloc(64, sizeof *d->step)))
    return -ENOMEM;
  for (size_t i = 0; i < d->n_slots; i++)
    if (add_to_histogram(d, d->slot[i].value, d->slot[i].count) < 0)
      return -ENOMEM;
  free(d->slot);
  free(d->fresh);
  d->slot = NULL;
  d->fresh = NULL;
  d->n_slots = d->cap_fresh = 0;
  d->coarse = true;
  return 0;
}

/* Two lists in order become one. more: as d->slot, malloc()ed; it is freed or kept. */
static int merge_slots(struct ni_dist *d, struct ni_dist_slot *more, size_t n_more) {
  struct ni_dist_slot *all = d->n_slots ? malloc((d->n_slots + n_more + 1) * sizeof *all) : more;
  size_t n = 0, i = 0, k = 0;
  if (!all) {
    free(more);
    return -ENOMEM;
  }
  if (all == more)
    n = n_more;
  else {
    while (i < d->n_slots || k < n_more) {
      const bool ours = k == n_more || (i < d->n_slots && d->slot[i].value <= more[k].value);
      const struct ni_dist_slot *x = ours ? &d->slot[i++] : &more[k++];
      if (n && all[n - 1].value == x->value)
        all[n - 1].count += x->count;
      else
        all[n++] = *x;
    }
    free(more);
  }
  free(d->slot);
  d->slot = all;
  d->n_slots = n;
  return n > d->limit ? become_histogram(d) : 0;
}

static void add_to_sums(struct ni_dist *d, uint64_t value) {
  int64_t off = (int64_t)(value - d->first);
  if (value < d->min)
    d->min = value;
  if (value > d->max)
    d->max = value;
  d->sum += off;
  d->square += (unsigned __int128)((__int128)off * off);
}

/* Counts what came since the last time. */
static int count_fresh(struct ni_dist *d) {
  if (d->n_fresh == 0)
    return 0;
  /* One block: first for sorting, then for the counted values, of which there are no more. */
  struct ni_dist_slot *more = malloc(d->n_fresh * sizeof *more), *fit;
  if (!more)
    return -ENOMEM;
  ni_sort_numbers(d->fresh, (uint64_t *)more, d->n_fresh);
  size_t n = 0;
  for (size_t i = 0; i < d->n_fresh; i++) {
    add_to_sums(d, d->fresh[i]);
    if (n && more[n - 1].value == d->fresh[i])
      more[n - 1].count++;
    else
      more[n++] = (struct ni_dist_slot){d->fresh[i], 1};
  }
  if (n < d->n_fresh && (fit = realloc(more, n * sizeof *more)))
    more = fit;
  d->n_fresh = 0;
  return merge_slots(d, more, n);
}

/*
 * The next value has no room among the fresh ones: makes some, or counts them, or there is none in a
 * histogram.
 */
static int make_room_for_fresh(struct ni_dist *d) {
  size_t most = d->limit / 2 > FRESH_FIRST ? d->limit / 2 : FRESH_FIRST;
  if (d->limit == 0)
    return become_histogram(d);
  if (d->cap_fresh >= most)
    return count_fresh(d);
  size_t want = d->cap_fresh ? 4 * d->cap_fresh : FRESH_FIRST;
  return ni_array_exact(&d->fresh, &d->cap_fresh, want < most ? want : most, sizeof *d->fresh) ? 0 : -ENOMEM;
}

int ni_dist_add(struct ni_dist *d, uint64_t value) {
  int e = d->coarse || d->n_fresh < d->cap_fresh ? 0 : make_room_for_fresh(d);
  if (e < 0)
    return e;
  if (d->n++ == 0)
    d->first = d->min = d->max = value;
  if (!d->coarse) {
    d->fresh[d->n_fresh++] = value;
    return 0;
  }
  add_to_sums(d, value);
  return add_to_histogram(d, value, 1);
}

/*
 * Sums relative to another value, of those from the first one on. Unsigned: what forged bytes overflow is not
 * undefined.
 */
static void rebase_sums(const struct ni_dist *d, uint64_t value, unsigned __int128 *sum,
                        unsigned __int128 *square) {
  const unsigned __int128 by = (unsigned __int128)d->first - value, old = (unsigned __int128)d->sum;
  *sum = old + by * d->n;
  *square = d->square + 2 * by * old + by * by * d->n;
}

int ni_dist_merge(struct ni_dist *a, struct ni_dist *b) {
  if (b->n == 0)
    return 0;
  int e = count_fresh(b);
  if (e == 0)
    e = count_fresh(a);
  if (e == 0 && b->coarse && !a->coarse)
    e = become_histogram(a);
  if (e < 0)
    return e;
  if (a->n == 0) {
    a->first = b->first;
    a->min = b->min;
    a->max = b->max;
  }
  if (b->min < a->min)
    a->min = b->min;
  if (b->max > a->max)
    a->max = b->max;
  unsigned __int128 sum, square;
  rebase_sums(b, a->first, &sum, &square);
  a->sum = (__int128)((unsigned __int128)a->sum + sum);
  a->square += square;
  a->n += b->n;
  if (a->coarse && !b->coarse) {
    for (size_t i = 0; i < b->n_slots; i++)
      if (add_to_histogram(a, b->slot[i].value, b->slot[i].count) < 0)
        return -ENOMEM;
    return 0;
  }
  if (!b->coarse) {
    struct ni_dist_slot *copy = malloc((b->n_slots + 1) * sizeof *copy);
    if (!copy)
      return -ENOMEM;
    memcpy(copy, b->slot, b->n_slots * sizeof *copy);
    return merge_slots(a, copy, b->n_slots);
  }
  for (unsigned p = 0; p < 64; p++)
    for (unsigned i = 0; b->step[p] && i < NI_DIST_STEPS; i++)
      if (b->step[p][i] && add_to_histogram(a, middle_of_step(p, i), b->step[p][i]) < 0)
        return -ENOMEM;
  return 0;
}

static void wire_128(struct ni_wire *w, unsigned __int128 *v) {
  uint64_t half[2] = {(uint64_t)*v, (uint64_t)(*v >> 64)};
  ni_wire_u64s(w, half, 2);
  *v = (unsigned __int128)half[1] << 64 | half[0];
}

static int load_slots(struct ni_wire *w, struct ni_dist *d) {
  uint64_t value = 0;
  if (w->bad || !(d->slot = malloc((d->n_slots + 1) * sizeof *d->slot)))
    return -ENOMEM;
  for (size_t i = 0; i < d->n_slots; i++) {
    struct ni_dist_slot *x = &d->slot[i];
    NI_WIRE(w, &x->value, &x->count);
    value = x->value += value;
  }
  return 0;
}

/* The counts that there are, each behind how many there are none before it. */
static void wire_steps(struct ni_wire *w, struct ni_dist *d) {
  size_t n = 0;
  uint64_t at = 0, next = 0;
  if (w->load && !(d->step = calloc(64, sizeof *d->step)))
    w->bad = true;
  for (unsigned i = 0; !w->load && i < 64 * NI_DIST_STEPS; i++)
    n += d->step[i / NI_DIST_STEPS] && d->step[i / NI_DIST_STEPS][i % NI_DIST_STEPS];
  ni_wire_count(w, &n, 2);
  for (size_t k = 0; k < n && !w->bad; k++, next = at + 1) {
    if (!w->load)
      for (at = next; !d->step[at / NI_DIST_STEPS] || !d->step[at / NI_DIST_STEPS][at % NI_DIST_STEPS];)
        at++;
    uint64_t gap = at - next;
    ni_wire_u64(w, &gap);
    if (w->load)
      w->bad |= gap >= 64 * NI_DIST_STEPS || (at = next + gap) >= 64 * NI_DIST_STEPS;
    if (w->bad)
      return;
    uint64_t **step = &d->step[at / NI_DIST_STEPS];
    if (!*step && !(*step = calloc(NI_DIST_STEPS, sizeof **step)))
      w->bad = true;
    else
      ni_wire_u64(w, &(*step)[at % NI_DIST_STEPS]);
  }
}

int ni_dist_wire(struct ni_wire *w, struct ni_dist *d) {
  unsigned __int128 sum = 0, square = 0;
  int e = w->load ? 0 : count_fresh(d);
  ni_wire_u64(w, &d->n);
  if (e < 0 || !d->n)
    return e;
  NI_WIRE(w, &d->min, &d->max);
  if (!w->load)
    rebase_sums(d, d->min, &sum, &square);
  wire_128(w, &sum);
  wire_128(w, &square);
  d->first = d->min;
  d->sum = (__int128)sum;
  d->square = square;
  ni_wire_bool(w, &d->coarse);
  if (d->coarse)
    wire_steps(w, d);
  else
    ni_wire_count(w, &d->n_slots, 2);
  if (w->load && !d->coarse)
    e = load_slots(w, d);
  for (uint64_t i = 0, before = 0; !w->load && !d->coarse && i < d->n_slots; before = d->slot[i++].value) {
    uint64_t value = d->slot[i].value - before;
    NI_WIRE(w, &value, &d->slot[i].count);
  }
  return w->bad ? -ENOMEM : e;
}

static uint64_t clamp_to_range(const struct ni_dist *d, uint64_t v) {
  if (v < d->min)
    return d->min;
  return v > d->max ? d->max : v;
}

static int sort_values(struct ni_dist *d, struct sorted_values *s) {
  int e = count_fresh(d);
  if (e < 0)
    return e;
  *s = (struct sorted_values){d->slot, NULL, d->n_slots, 0, 0};
  if (!d->coarse)
    return 0;
  size_t n = 0;
  for (unsigned p = 0; p < 64; p++)
    n += d->step[p] ? NI_DIST_STEPS : 0;
  struct ni_dist_slot *item = malloc((n + 3) * sizeof *item);
  if (!item)
    return -ENOMEM;
  n = 1;
  for (unsigned p = 0; p < 64; p++)
    for (unsigned i = 0; d->step[p] && i < NI_DIST_STEPS; i++)
      if (d->step[p][i])
        item[n++] = (struct ni_dist_slot){clamp_to_range(d, middle_of_step(p, i)), d->step[p][i]};
  /* The least and the largest one are known better than to a step. */
  item[0] = (struct ni_dist_slot){d->min, 1};
  item[1].count--;
  item[n - 1].count -= d->n > 1;
  item[n++] = (struct ni_dist_slot){d->max, d->n > 1};
  *s = (struct sorted_values){item, item, 0, 0, 0};
  for (size_t i = 0; i < n; i++)
    if (item[i].count)
      item[s->n++] = item[i];
  return 0;
}

/* Larger ones are asked for later. */
static double quantile(struct sorted_values *s, uint64_t n, double q, double scale) {
  double at = q * (double)(n - 1);
  uint64_t low = (uint64_t)at;
  double part = at - (double)low;
  while (s->at < s->n && s->before + s->item[s->at].count <= low)
    s->before += s->item[s->at++].count;
  if (s->at == s->n)
    return NAN;
  const struct ni_dist_slot *x = &s->item[s->at];
  double a = (double)x->value / scale;
  if (part == 0 || s->before + x->count > low + 1 || s->at + 1 == s->n)
    return a;
  double b = (double)x[1].value / scale;
  return a + (b - a) * part;
}

int ni_dist_stats(struct ni_dist *d, double scale, struct ni_stats *out) {
  *out = (struct ni_stats){d->n, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, false};
  if (d->n == 0)
    return 0;
  struct sorted_values s;
  int e = sort_values(d, &s);
  if (e < 0)
    return e;
  /*
   * Relative to the least value, whichever came first: what is rounded then does not depend on the order of
   * adding.
   */
  unsigned __int128 sum, square;
  rebase_sums(d, d->min, &sum, &square);
  long double n = (long double)d->n, off = (long double)sum / n;
  out->mean = (double)(((long double)d->min + off) / scale);
  if (d->n > 1) {
    long double v = ((long double)square - (long double)sum * off) / (n - 1);
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
  free(s.own);
  return 0;
}

/* Of the rank-th value, from 0 on, that lies in a step whose middle this is: the ends are known better. */
static double value_at(const struct ni_dist *d, uint64_t rank, uint64_t middle) {
  if (rank == 0)
    return (double)d->min;
  return rank + 1 == d->n ? (double)d->max : (double)middle;
}

double ni_dist_quantile_coarse(const struct ni_dist *d, double q, double scale) {
  if (d->n == 0)
    return NAN;
  const double at = q * (double)(d->n - 1), part = at - floor(at);
  const uint64_t low = (uint64_t)at, high = part > 0 ? low + 1 : low;
  double first = NAN;
  uint64_t seen = 0;
  for (unsigned p = 0; p < 64; p++)
    for (unsigned i = 0; d->step[p] && i < NI_DIST_STEPS; i++) {
      seen += d->step[p][i];
      if (seen <= low)
        continue;
      const uint64_t middle = clamp_to_range(d, middle_of_step(p, i));
      if (isnan(first))
        first = value_at(d, low, middle);
      if (seen > high) {
        const double second = high + 1 == d->n ? (double)d->max : (double)middle;
        return (first + (second - first) * part) / scale;
      }
    }
  return NAN;
}

/* As many bins as show the shape: the rule of Freedman and Diaconis, at least 10 where values differ. */
static uint32_t choose_bins(double lo, double hi, double q1, double q3, uint64_t n) {
  double width = 2 * (q3 - q1) / cbrt((double)n),
         want = width > 0 ? ceil((hi - lo) / width) : NI_SUM_HIST_BINS;
  if (want < 10)
    return 10;
  return want > NI_SUM_HIST_BINS ? NI_SUM_HIST_BINS : (uint32_t)want;
}

int ni_dist_hist(struct ni_dist *d, double scale, struct ni_hist *out) {
  *out = (struct ni_hist){0};
  if (d->n == 0)
    return 0;
  struct sorted_values s;
  int e = sort_values(d, &s);
  if (e < 0)
    return e;
  out->lo = (double)d->min / scale;
  out->hi = (double)d->max / scale;
  out->log = d->min > 0 && d->max >= 10 * d->min;
  double lo = out->log ? log(out->lo) : out->lo, hi = out->log ? log(out->hi) : out->hi;
  double q1 = quantile(&s, d->n, 0.25, scale), q3 = quantile(&s, d->n, 0.75, scale);
  if (out->log) {
    q1 = log(q1);
    q3 = log(q3);
  }
  out->n = d->min == d->max ? 1 : choose_bins(lo, hi, q1, q3, d->n);
  for (size_t i = 0; i < s.n; i++) {
    double v = (double)s.item[i].value / scale;
    double x = hi > lo ? ((out->log ? log(v) : v) - lo) / (hi - lo) * out->n : 0;
    uint32_t k = x <= 0 ? 0 : x >= out->n ? out->n - 1 : (uint32_t)x;
    out->count[k] += s.item[i].count;
  }
  free(s.own);
  return 0;
}

int ni_dist_box(struct ni_dist *d, double scale, struct ni_whisker *out) {
  *out = (struct ni_whisker){NAN, NAN, NAN, NAN, NAN, NAN, NAN, d->n, 0};
  if (d->n == 0)
    return 0;
  struct sorted_values s;
  int e = sort_values(d, &s);
  if (e < 0)
    return e;
  out->min = (double)d->min / scale;
  out->max = (double)d->max / scale;
  out->q1 = quantile(&s, d->n, 0.25, scale);
  out->median = quantile(&s, d->n, 0.5, scale);
  out->q3 = quantile(&s, d->n, 0.75, scale);
  double reach = 1.5 * (out->q3 - out->q1);
  for (size_t i = 0; i < s.n; i++) {
    double v = (double)s.item[i].value / scale;
    if (v < out->q1 - reach || v > out->q3 + reach) {
      out->n_outside += s.item[i].count;
      continue;
    }
    if (isnan(out->whisker_lo))
      out->whisker_lo = v;
    out->whisker_hi = v;
  }
  free(s.own);
  return 0;
}

void ni_dist_free(struct ni_dist *d) {
  free(d->slot);
  free(d->fresh);
  for (unsigned p = 0; d->step && p < 64; p++)
    free(d->step[p]);
  free(d->step);
  *d = (struct ni_dist){.limit = d->limit};
}
