#include "crossings.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>

#include "exporter/base/array.h"
#include "exporter/base/mix.h"
#include "exporter/base/order.h"
#include "exporter/model/sums/blame/causes.h"
#include "exporter/model/sums/model.h"
#include "exporter/model/sums/ranks/quantile.h"

enum {
  ALIKE_MIN = 8, /* of one communicator, function and size: else their baseline is one of them */
  BIN_MIN = 6,   /* operations of a bin, in the mean */
  BINS_MIN = 12,
  BINS_MAX = 100,
  CROWDED_MIN = 3, /* bins: two in a row are chance */
  OF_COMM_MIN = 3  /* in crowded bins: of fewer nobody knows whether the communicator was slow */
};
/* What lasts has so much of the run behind its begin, is there in so much of that, and so near to the end. */
#define LASTS_PART 0.25
#define LASTS_HIT 0.9
#define LASTS_NEAR 0.05
/* so many of them are slow there, else it is something on the way of these */
#define MOST_COMMS 0.75

/* ---- the list ---- */

static uint64_t hash_crossing(const struct ni_crossing *x) {
  return ni_mix(ni_mix(x->sn + 1) ^ (uint64_t)x->comm << 32 ^ x->cell);
}

static void thin_crossings(struct ni_crossings *l, uint64_t stride) {
  size_t n = 0;
  l->stride = stride;
  for (size_t i = 0; i < l->n; i++)
    if (hash_crossing(&l->item[i]) % stride == 0)
      l->item[n++] = l->item[i];
  l->n = n;
}

int ni_crossings_add(struct ni_crossings *l, const struct ni_crossing *x) {
  if (l->stride > 1 && hash_crossing(x) % l->stride)
    return 0;
  if (!ni_array_room(l->item, l->n, l->cap))
    return -ENOMEM;
  l->item[l->n++] = *x;
  while (l->n > NI_CROSSINGS_MAX)
    thin_crossings(l, l->stride > 1 ? 2 * l->stride : 2);
  return 0;
}

int ni_crossings_merge(struct ni_crossings *to, const struct ni_crossings *from) {
  int e = 0;
  if (from->stride > to->stride)
    thin_crossings(to, from->stride);
  for (size_t i = 0; e == 0 && i < from->n; i++)
    e = ni_crossings_add(to, &from->item[i]);
  return e;
}

void ni_crossings_free(struct ni_crossings *l) {
  free(l->item);
  *l = (struct ni_crossings){0};
}

/* ---- what it says ---- */

struct congestion_search {
  struct ni_summary *s;
  float *ratio; /* by crossing: times the baseline of its peers; NAN: it has too few */
  float *x;     /* scratch, for all crossings */
  float *bin_ratio;
  bool *crowded; /* by bin */
  uint32_t bins;
  int64_t first_us;
  double bin_us;
};

static NI_ORDER_BY(by_like, struct ni_crossing, comm, cell, at_us, sn);

static uint32_t find_crossing_bin(const struct congestion_search *w, const struct ni_crossing *x) {
  const double k = (double)(x->at_us - w->first_us) / w->bin_us;
  return k <= 0 ? 0 : k >= w->bins ? w->bins - 1 : (uint32_t)k;
}

/* Compares each with the lower quartile of its peers: half can be slow. Returns how many have one. */
static size_t compare_with_peers(struct congestion_search *w) {
  const struct ni_crossing *c = w->s->crossing;
  size_t compared = 0;
  for (size_t from = 0, to; from < w->s->n_crossings; from = to) {
    for (to = from; to < w->s->n_crossings && c[to].comm == c[from].comm && c[to].cell == c[from].cell; to++)
      w->x[to - from] = c[to].us;
    const float baseline =
        to - from >= ALIKE_MIN ? ni_blame_quantile(w->x, to - from, NI_CAUSE_BASELINE) : NAN;
    for (size_t i = from; i < to; i++)
      w->ratio[i] = baseline > 0 ? c[i].us / baseline : NAN;
    if (baseline > 0)
      compared += to - from;
  }
  return compared;
}

/* Where nearly all operations of a bin are slow, the fourth part that is fastest is, too. */
static int fill_bin_ratios(struct congestion_search *w) {
  size_t *at = calloc(w->bins + 2, sizeof *at);
  if (!at)
    return -ENOMEM;
  const size_t n = w->s->n_crossings;
  for (size_t i = 0; i < n; i++)
    if (!isnan(w->ratio[i]))
      at[find_crossing_bin(w, &w->s->crossing[i]) + 2]++;
  for (uint32_t k = 1; k < w->bins; k++)
    at[k + 1] += at[k];
  for (size_t i = 0; i < n; i++)
    if (!isnan(w->ratio[i]))
      w->x[at[find_crossing_bin(w, &w->s->crossing[i]) + 1]++] = w->ratio[i];
  for (uint32_t k = 0; k < w->bins; k++) {
    const size_t many = at[k + 1] - at[k];
    w->bin_ratio[k] = many ? ni_blame_quantile(w->x + at[k], many, NI_CAUSE_BASELINE) : NAN;
  }
  free(at);
  return 0;
}

/* As own time is judged (links/judged.c): beyond what bins differ by, next to another one, and in several. */
static bool find_crowded_bins(struct congestion_search *w) {
  size_t n = 0;
  uint32_t hit = 0;
  for (uint32_t k = 1; k < w->bins; k++)
    if (!isnan(w->bin_ratio[k]) && !isnan(w->bin_ratio[k - 1]))
      w->x[n++] = fabsf(w->bin_ratio[k] - w->bin_ratio[k - 1]);
  const float noise = n ? ni_blame_quantile(w->x, n, 0.5) * NI_CAUSE_NOISE : 0;
  const float floor = fmaxf(NI_CAUSE_CROWDED, 1 + NI_CAUSE_CROWDED_APART * noise);
  for (uint32_t k = 0; k < w->bins; k++) {
    const bool before = k > 0 && w->bin_ratio[k - 1] > floor;
    const bool after = k + 1 < w->bins && w->bin_ratio[k + 1] > floor;
    w->crowded[k] = w->bin_ratio[k] > floor && (before || after);
    hit += w->crowded[k];
  }
  return hit >= CROWDED_MIN;
}

/* The lower quartile of a communicator's in crowded bins, as its baseline is one; *n: so many. */
static float find_slowdown(struct congestion_search *w, size_t from, size_t to, size_t *n) {
  *n = 0;
  for (size_t i = from; i < to; i++)
    if (!isnan(w->ratio[i]) && w->crowded[find_crossing_bin(w, &w->s->crossing[i])])
      w->x[(*n)++] = w->ratio[i];
  return *n ? ni_blame_quantile(w->x, *n, NI_CAUSE_BASELINE) : NAN;
}

/*
 * Most communicators are slow in these bins. Of one alone nobody can say whether it is all of them, unless
 * all ranks are in it.
 */
static bool are_most_slow(struct congestion_search *w, double *ratio, uint32_t *largest) {
  const struct ni_summary *s = w->s;
  size_t comms = 0, slow = 0, most = 0;
  bool all = false;
  double sum = 0;
  for (size_t from = 0, to, n; from < s->n_crossings; from = to) {
    const uint32_t comm = s->crossing[from].comm;
    for (to = from; to < s->n_crossings && s->crossing[to].comm == comm; to++) {}
    const float by = find_slowdown(w, from, to, &n);
    if (n < OF_COMM_MIN)
      continue;
    comms++;
    if (by <= NI_CAUSE_CROWDED)
      continue;
    slow++;
    sum += by;
    if (to - from > most) {
      most = to - from;
      *largest = comm;
    }
    all |= s->comm[comm].ranks_seen == s->n_processes;
  }
  *ratio = slow ? sum / (double)slow : 0;
  return (comms > 1 || all) && (double)slow >= MOST_COMMS * (double)comms;
}

/* Crowded, or next to such a bin: congestion began or ended within one of these. */
static bool is_near_crowded(const struct congestion_search *w, uint32_t k) {
  const bool before = k > 0 && w->crowded[k - 1];
  const bool after = k + 1 < w->bins && w->crowded[k + 1];
  return before || w->crowded[k] || after;
}

/*
 * By the stream with the most records, whose numbers say how far the job came. From one record to the next
 * the time counts where the first one is.
 */
static double count_lost_us(const struct congestion_search *w) {
  const struct ni_crossing *c = w->s->crossing;
  const size_t n = w->s->n_crossings;
  size_t first = 0, most = 0;
  double us[2] = {0}, numbers[2] = {0};
  for (size_t from = 0, to; from < n; from = to) {
    for (to = from; to < n && c[to].comm == c[from].comm && c[to].cell == c[from].cell; to++) {}
    if (to - from > most) {
      first = from;
      most = to - from;
    }
  }
  for (size_t i = first; i + 1 < first + most; i++) {
    if (c[i + 1].sn <= c[i].sn)
      continue;
    const bool near = is_near_crowded(w, find_crossing_bin(w, &c[i]));
    us[near] += (double)(c[i + 1].at_us - c[i].at_us);
    numbers[near] += (double)(c[i + 1].sn - c[i].sn);
  }
  return numbers[0] > 0 ? fmax(0, us[1] - numbers[1] * us[0] / numbers[0]) : 0;
}

static bool has_ranks_on(const struct ni_summary *s, uint32_t comm, uint32_t host) {
  for (size_t i = 0; i < s->n_seats; i++)
    if (s->seat[i].comm == comm && s->process[s->seat[i].process].host == host)
      return true;
  return false;
}

/* How many hosts there are that all communicators with crossings have ranks on, and the first of them. */
static void find_common_hosts(const struct ni_summary *s, struct ni_congestion *out) {
  for (uint32_t h = 0; h < s->n_hosts; h++) {
    bool all = true;
    for (size_t i = 0; all && i < s->n_crossings; i++)
      if (i == 0 || s->crossing[i].comm != s->crossing[i - 1].comm)
        all = has_ranks_on(s, s->crossing[i].comm, h);
    if (all && out->hosts++ == 0)
      out->host = h;
  }
}

static void fill_congestion(const struct congestion_search *w, struct ni_congestion *out) {
  out->from_us = INT64_MAX;
  for (uint32_t k = 0; k < w->bins; k++) {
    if (!w->crowded[k])
      continue;
    const int64_t from = w->first_us + (int64_t)(k * w->bin_us);
    if (from < out->from_us)
      out->from_us = from;
    out->to_us = from + (int64_t)w->bin_us;
    out->crowded_us += w->bin_us;
    out->spells += k == 0 || !w->crowded[k - 1];
  }
  const int64_t end_us = w->first_us + (int64_t)(w->bins * w->bin_us);
  const double run_us = (double)(end_us - w->first_us), since_us = (double)(end_us - out->from_us);
  const bool reaches_end = (double)(end_us - out->to_us) <= LASTS_NEAR * run_us;
  const bool is_part = since_us >= LASTS_PART * run_us && since_us <= (1 - LASTS_NEAR) * run_us;
  out->lasts = reaches_end && is_part && out->crowded_us >= LASTS_HIT * since_us;
  out->lost_us = count_lost_us(w);
  find_common_hosts(w->s, out);
}

static int judge_crossings(struct congestion_search *w, struct ni_congestion *out) {
  const struct ni_summary *s = w->s;
  const size_t compared = compare_with_peers(w);
  int64_t last = INT64_MIN;
  w->first_us = INT64_MAX;
  for (size_t i = 0; i < s->n_crossings; i++) {
    if (s->crossing[i].at_us < w->first_us)
      w->first_us = s->crossing[i].at_us;
    if (s->crossing[i].at_us > last)
      last = s->crossing[i].at_us;
  }
  w->bins = compared / BIN_MIN < BINS_MAX ? (uint32_t)(compared / BIN_MIN) : BINS_MAX;
  if (w->bins < BINS_MIN || last <= w->first_us)
    return 0;
  w->bin_us = (double)(last - w->first_us) / w->bins;
  double ratio = 0;
  int e = fill_bin_ratios(w);
  if (e < 0 || !find_crowded_bins(w) || !are_most_slow(w, &ratio, &out->comm))
    return e;
  out->ratio = ratio;
  fill_congestion(w, out);
  return 0;
}

int ni_crossings_find_congestion(struct ni_summary *s, struct ni_congestion *out) {
  *out = (struct ni_congestion){0};
  if (!s->n_crossings)
    return 0;
  struct congestion_search w = {.s = s,
                                .ratio = malloc(s->n_crossings * sizeof *w.ratio),
                                .x = malloc((s->n_crossings + BINS_MAX) * sizeof *w.x),
                                .bin_ratio = calloc(BINS_MAX, sizeof *w.bin_ratio),
                                .crowded = calloc(BINS_MAX, sizeof *w.crowded)};
  const bool has_bins = w.bin_ratio && w.crowded;
  int e = w.ratio && w.x && has_bins ? 0 : -ENOMEM;
  qsort(s->crossing, s->n_crossings, sizeof *s->crossing, by_like);
  if (e == 0)
    e = judge_crossings(&w, out);
  free(w.ratio);
  free(w.x);
  free(w.bin_ratio);
  free(w.crowded);
  return e;
}
