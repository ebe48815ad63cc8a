/*
 * The network between hosts as a whole: steps in which nearly all that crosses hosts is slow, and whether it
 * became so, and stayed.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "transfers.h"
#include "exporter/model/sums/ranks/quantile.h"

/* A slowness that lasts has so much of the run behind its begin, and is there in so many of these bins. */
#define LASTS_PART 0.25f
#define LASTS_HIT 0.9f
enum {
  FIRST_MIN = 2,      /* bins that were quicker than all others; one may be the first step */
  PART_LINKS_MIN = 32 /* links that are alike, where they are asked by themselves */
};

struct fabric {
  const struct ni_blame *b;
  double step_us;
  float *ratio;          /* by bin: how slow most links are, beside their quiet time; NAN: not known */
  uint32_t *links, *ops; /* by bin: so many say it, by the shortest of so many operations */
  float *scratch;
  uint32_t *order, n_order; /* links that are compared, by class */
  float noise;
  uint32_t hit, far, from,
      to;     /* bins in which it is slow; far slower than chance; the first, behind the last */
  double sum; /* of ratio, of those that are hit */
};

static bool is_of_fabric(const struct fabric *w, const struct ni_blame_link *l) {
  return l->host < 0 && ni_transfers_are_long(l, w->step_us);
}

static bool is_compared(const struct fabric *w, const struct ni_blame_link *l) {
  return is_of_fabric(w, l) && ni_transfers_have_all_ranks(w->b, l);
}

static int compare_by_class(const void *a, const void *b, void *of) {
  const struct ni_blame_link *link = of;
  const uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
  if (link[i].cls != link[k].cls)
    return link[i].cls < link[k].cls ? -1 : 1;
  return i < k ? -1 : i > k;
}

static void order_links(struct fabric *w) {
  for (uint32_t i = 0; i < w->b->n_links; i++)
    if (is_compared(w, &w->b->link[i]))
      w->order[w->n_order++] = i;
  qsort_r(w->order, w->n_order, sizeof *w->order, compare_by_class, w->b->link);
}

/*
 * How slow most links of order[from..to) are in the bin; NAN: not known. Fills n with how many say so.
 */
static float compare_links(struct fabric *w, uint32_t from, uint32_t to, uint32_t k, uint32_t *n) {
  *n = 0;
  for (uint32_t i = from; i < to; i++) {
    const struct ni_blame_link *l = &w->b->link[w->order[i]];
    if (!isnan(l->us[k]))
      w->scratch[(*n)++] = l->us[k] / l->quiet_us;
  }
  return *n ? ni_blame_quantile(w->scratch, *n, 0.25) : NAN;
}

/*
 * Where steps are as long as the network is slow, or longer, that is so for a part of a step: what a pipeline
 * sends forward is slow, and what follows is not. Of so many links that are alike, and do the same in the
 * same part of a step, most are not slow by chance.
 */
static float find_slowest_class(struct fabric *w, uint32_t k) {
  float most = NAN;
  for (uint32_t from = 0, to; from < w->n_order; from = to) {
    const uint32_t cls = w->b->link[w->order[from]].cls;
    uint32_t n;
    for (to = from + 1; to < w->n_order && w->b->link[w->order[to]].cls == cls; to++) {}
    if (to - from < PART_LINKS_MIN || cls == NI_BLAME_NONE)
      continue;
    const float ratio = compare_links(w, from, to, k, &n);
    if (n >= PART_LINKS_MIN)
      most = fmaxf(most, ratio);
  }
  return most;
}

/* judged: ranks that are. Of one link nobody can say whether it is all of them. */
static void compare_bin(struct fabric *w, uint32_t judged, uint32_t k) {
  const struct ni_blame *b = w->b;
  bool all = false;
  for (uint32_t i = 0; i < w->n_order; i++) {
    const struct ni_blame_link *l = &b->link[w->order[i]];
    if (isnan(l->us[k]))
      continue;
    w->ops[k] += l->ops ? l->ops[k] : 0;
    all |= l->n_ranks == judged;
  }
  const float ratio = compare_links(w, 0, w->n_order, k, &w->links[k]);
  const bool is_known = w->links[k] > 1 || (w->links[k] == 1 && all);
  w->ratio[k] = is_known ? fmaxf(ratio, find_slowest_class(w, k)) : NAN;
}

/* Exchanges of islands are few, and half of them can be slow: how far apart are those that are not? */
static float measure_noise(struct fabric *w) {
  const struct ni_blame *b = w->b;
  const float noise = ni_transfers_noise(w->ratio, b->bins, w->scratch);
  size_t n = 0;
  for (uint32_t k = 1; k < b->bins; k++)
    if (!isnan(w->ratio[k]))
      w->scratch[n++] = w->ratio[k];
  if (!b->exchange || n < NI_CAUSE_BINS)
    return noise;
  const float low = ni_blame_quantile(w->scratch, n, NI_CAUSE_SPREAD_LOW);
  return fminf(noise, (ni_blame_quantile(w->scratch, n, NI_CAUSE_SPREAD_HIGH) - low) / NI_CAUSE_SPREAD);
}

/* So many links, or operations, say how slow the bin is. */
static bool is_sure(const struct fabric *w, uint32_t k) {
  return w->links[k] >= NI_CAUSE_CROWDED_LINKS || w->ops[k] >= NI_CAUSE_CROWDED_OPS;
}

/*
 * What has been slow for most of the run is what looks quiet. Where all bins up to some one are quicker than
 * all behind it, and they are no few, it was quiet until then: ratio is put beside these.
 */
static void compare_with_first(struct fabric *w) {
  const uint32_t bins = w->b->bins, known = ni_transfers_known(w->ratio, 1, bins);
  const float least = fmaxf(NI_CAUSE_CROWDED, 1 + NI_CAUSE_CROWDED_APART * w->noise);
  double sum = 0;
  uint32_t first = 0, k = 1;
  for (; k < bins && !(w->ratio[k] * least > 1); k++) {
    if (isnan(w->ratio[k]))
      continue;
    if (!is_sure(w, k))
      return;
    sum += w->ratio[k];
    first++;
  }
  for (; k < bins; k++)
    if (w->ratio[k] * least < 1)
      return;
  if (first < FIRST_MIN || first * NI_CAUSE_NEAR_END < known)
    return;
  for (k = 0; k < bins; k++)
    w->ratio[k] *= (float)(first / sum);
}

/*
 * Bins in which nearly all links across hosts are slower than they are themselves in quiet ones. Alone a bin
 * may be one slow operation, but not where several links, or many operations, are far slower than chance
 * makes them.
 */
static void find_crowded(struct fabric *w, bool *crowded) {
  const uint32_t bins = w->b->bins;
  const float drop = 1 + ni_transfers_drop_threshold(w->noise);
  w->from = bins;
  for (uint32_t k = 1; k + 1 < bins; k++) {
    const float least = w->links[k] < NI_CAUSE_LIKE_MIN ? NI_CAUSE_CROWDED : NI_CAUSE_CROWDED_OF_MANY;
    const float floor = fmaxf(least, 1 + NI_CAUSE_CROWDED_APART * w->noise);
    const bool is_in_row = ni_transfers_neighbour(w->ratio, bins, k, -1) > floor ||
        ni_transfers_neighbour(w->ratio, bins, k, 1) > floor;
    const bool is_far = is_sure(w, k) && w->ratio[k] >= drop;
    if (!(w->ratio[k] > floor && (is_in_row || is_far)))
      continue;
    crowded[k] = true;
    w->sum += w->ratio[k];
    w->hit++;
    w->far += is_far;
    w->from = k < w->from ? k : w->from;
    w->to = k + 1;
  }
}

/*
 * Slow from some bin on, in nearly all of them to the end: that is no congestion, which comes and goes, but
 * something that broke. What it is, a NIC, a way between hosts or a switch, the transfers do not say: all of
 * them cross it.
 */
static bool has_begun_to_last(const struct fabric *w) {
  const struct ni_blame *b = w->b;
  const uint32_t known = ni_transfers_known(w->ratio, w->from, w->to);
  const bool is_last = !ni_transfers_known(w->ratio, w->to, b->bins - 1);
  const bool reaches_end = w->to + ni_cause_near_end(b) >= b->bins || is_last;
  return reaches_end && (float)(w->to - w->from) >= LASTS_PART * (float)b->bins &&
      (float)w->hit >= LASTS_HIT * (float)known;
}

/* Only collectives of one communicator cross hosts. Messages of one go several ways. */
static bool are_of_one_comm(const struct ni_blame *b, const struct ni_cause *c) {
  for (uint32_t i = 0; i < c->n_items; i++) {
    const struct ni_blame_link *l = &b->link[c->item[i]];
    if (l->from >= 0 || l->comm != b->link[c->item[0]].comm)
      return false;
  }
  return c->n_items > 0;
}

/* Bins in a row in which it is slow; those of which nothing is known end no row. */
static uint32_t count_runs(const struct fabric *w, const bool *at) {
  uint32_t runs = 0;
  bool was_slow = false;
  for (uint32_t k = 0; k < w->b->bins; k++) {
    if (isnan(w->ratio[k]))
      continue;
    runs += at[k] && !was_slow;
    was_slow = at[k];
  }
  return runs;
}

/*
 * The communicator is named: a NIC of one of its hosts that drops looks the same as a network that is full.
 * It was slow several times, or for one interval.
 */
static void name_only_comm(const struct fabric *w, struct ni_cause *c) {
  const uint32_t runs = count_runs(w, c->at);
  c->kind = runs > 1 ? NI_FIND_FLAPPING : NI_FIND_SLOW_COMM;
  c->link = NI_FIND_SLOW_COMM;
  c->level = NI_LEVEL_COMM;
  c->of = c->item[0];
  c->bins_hit = runs;
}

static int name_congestion(const struct fabric *w, struct ni_causes *out) {
  const struct ni_blame *b = w->b;
  struct ni_cause *c = ni_cause_add(out, NI_FIND_CONGESTION, NI_LEVEL_FABRIC, 0);
  if (!c)
    return 0;
  c->links = true;
  c->link = NI_FIND_CONGESTION;
  c->from = w->from;
  c->to = w->to;
  c->bins_hit = w->hit;
  c->share = (float)(w->sum / w->hit) - 1;
  if (!(c->at = malloc((b->bins + 1) * sizeof *c->at)))
    return -ENOMEM;
  memcpy(c->at, out->crowded, b->bins * sizeof *c->at);
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < b->n_links; i++)
    if (is_of_fabric(w, &b->link[i]))
      e = ni_cause_add_item(c, i);
  c->n_peers = c->n_items;
  if (c->n_items && has_begun_to_last(w)) {
    c->kind = c->link = NI_FIND_SLOW_COMM;
    c->level = NI_LEVEL_COMM;
    c->of = c->item[0];
    c->to = b->bins;
  } else if (are_of_one_comm(b, c)) {
    name_only_comm(w, c);
  }
  return e;
}

/* It is slow often enough, or now and then by far. */
static bool is_congested(const struct fabric *w) {
  const float known = (float)ni_transfers_known(w->ratio, 0, w->b->bins);
  return (w->hit >= 3 && (float)w->hit >= NI_CAUSE_CROWDED_BINS * known) || w->far >= NI_CAUSE_CROWDED_FAR;
}

static int judge_fabric(struct fabric *w, struct ni_causes *out) {
  const struct ni_blame *b = w->b;
  uint32_t judged = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    judged += b->rank[i].judged;
  order_links(w);
  for (uint32_t k = 0; k < b->bins; k++)
    compare_bin(w, judged, k);
  w->noise = measure_noise(w);
  compare_with_first(w);
  find_crowded(w, out->crowded);
  if (is_congested(w))
    return name_congestion(w, out);
  memset(out->crowded, 0, b->bins * sizeof *out->crowded);
  return 0;
}

int ni_find_congestion(const struct ni_blame *b, struct ni_causes *out) {
  struct fabric w = {.b = b,
                     .step_us = ni_transfers_step_us(b),
                     .ratio = malloc((b->bins + 1) * sizeof *w.ratio),
                     .links = calloc(b->bins + 1, sizeof *w.links),
                     .ops = calloc(b->bins + 1, sizeof *w.ops),
                     .order = malloc((b->n_links + 1) * sizeof *w.order),
                     .scratch = malloc((b->n_links + b->bins + 1) * sizeof *w.scratch)};
  out->crowded = calloc(b->bins + 1, sizeof *out->crowded);
  const bool had_room = w.ratio && w.links && w.ops && w.order && w.scratch;
  const int e = had_room && out->crowded ? judge_fabric(&w, out) : -ENOMEM;
  free(w.ratio);
  free(w.links);
  free(w.ops);
  free(w.order);
  free(w.scratch);
  return e;
}
