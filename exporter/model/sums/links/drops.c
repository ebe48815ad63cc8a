#include "drops.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/model/sums/ranks/quantile.h"
#include "transfers.h"

/* A bin belongs to a drop if it is a quarter as slow as drops are in the mean. */
enum { DROP_PART = 4 };

/* What its operations take longer than baseline_us in these bins, in all. */
static double sum_excess(const struct ni_blame *b, const struct ni_blame_link *l, float baseline_us,
                         const bool *at) {
  double us = 0;
  for (uint32_t k = 0; k < b->bins; k++)
    if (at[k] && l->us[k] > baseline_us)
      us += (double)(l->us[k] - baseline_us) * l->per_step * b->bin_steps;
  return us;
}

/*
 * What the drops of links can cost: twice what these and what is like no other take longer then. Steps in
 * which somebody pauses are long, too, and ranks that wait for it come late to short messages: they look
 * slow.
 */
static double bound_drops(const struct ni_blame *b, const struct ni_cause *c, const bool *at) {
  double us = 0;
  for (uint32_t i = 0; i < c->n_items; i++) {
    const struct ni_blame_link *l = &b->link[c->item[i]];
    us += sum_excess(b, l, l->baseline_us, at);
  }
  for (uint32_t i = 0; i < b->n_links; i++) {
    const struct ni_blame_link *l = &b->link[i];
    if (l->host < 0 && l->alike < 2)
      us += sum_excess(b, l, l->quiet_us, at);
  }
  return 2 * us;
}

/* How much longer the transfers of a cause's links take, from bin to bin; NAN: not known. */
static void fill_ratios(const struct ni_link_judge *w, const struct ni_cause *c, float *ratio) {
  const struct ni_blame *b = w->b;
  for (uint32_t k = 0; k < b->bins; k++) {
    float sum = 0;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < c->n_items; i++) {
      const struct ni_blame_link *l = &b->link[c->item[i]];
      if (!isnan(l->us[k])) {
        sum += l->us[k] / l->baseline_us - 1;
        seen++;
      }
    }
    ratio[k] = seen && !w->out->crowded[k] ? sum / (float)seen : NAN;
  }
  ratio[0] = ratio[b->bins - 1] = NAN; /* begun or ended in the middle of a step */
}

/* What lies above it belongs to a drop; 0: the links are not as fast as usual in most bins, or never slow. */
static float find_drop_floor(const float *ratio, uint32_t bins, float *scratch) {
  double high = 0;
  uint32_t n = 0, n_high = 0;
  const float drop = ni_transfers_drop_threshold(ni_transfers_noise(ratio, bins, scratch));
  for (uint32_t k = 0; k < bins; k++) {
    if (!isnan(ratio[k]))
      scratch[n++] = ratio[k];
    if (ratio[k] >= drop) {
      high += ratio[k];
      n_high++;
    }
  }
  const bool quiet_mostly =
      n && ni_blame_quantile(scratch, n, 1 - NI_CAUSE_NOW_AND_THEN) < NI_CAUSE_DROP_QUIET;
  if (!quiet_mostly || !n_high)
    return 0;
  return fmaxf((float)high / (float)n_high / DROP_PART, drop / 2);
}

/* The drop that begins at `from`, until two bins in a row lie below. Returns the sum of it; *to: its end. */
static double follow_drop(const float *ratio, uint32_t bins, float floor, uint32_t from, uint32_t *to) {
  uint32_t below = 0;
  double sum = 0;
  *to = from;
  for (uint32_t i = from; i < bins && ratio[from] > floor && below < 2; i++) {
    if (isnan(ratio[i]))
      continue;
    below = ratio[i] > floor ? 0 : below + 1;
    if (!below) {
      sum += ratio[i];
      *to = i + 1;
    }
  }
  return sum;
}

int ni_find_drops(const struct ni_link_judge *w, struct ni_cause *c) {
  const uint32_t bins = w->b->bins;
  float *ratio = w->x;
  double high = 0;
  uint32_t n_high = 0, runs = 0, first = 0, end = 0;
  fill_ratios(w, c, ratio);
  const float floor = find_drop_floor(ratio, bins, w->x + bins);
  bool *at = floor > 0 ? calloc(bins + 1, sizeof *at) : NULL;
  if (!at)
    return floor > 0 ? -ENOMEM : 0;
  for (uint32_t k = 0, to; k<bins; k = to> k ? to : k + 1) {
    const double sum = follow_drop(ratio, bins, floor, k, &to);
    if (sum < NI_CAUSE_DROP_SUM)
      continue;
    if (runs++ == 0)
      first = k;
    end = to;
    high += sum;
    n_high += ni_transfers_known(ratio, k, to);
    for (uint32_t i = k; i < to; i++)
      at[i] = !isnan(ratio[i]);
  }
  if (runs < 2) {
    free(at);
    return 0;
  }
  c->kind = NI_FIND_FLAPPING;
  c->at = at;
  c->most_us = bound_drops(w->b, c, at);
  c->from = first;
  c->to = end;
  c->bins_hit = runs;
  c->share = (float)(high / n_high);
  return 0;
}

/*
 * What a bin lost by operations that stopped, at most: of several, what the rank that waited least was in
 * them beyond what is usual.
 */
static float find_stopped_us(const struct ni_blame *b, const struct ni_blame_link *l, uint32_t bin) {
  const float one = l->longest[bin] - l->usual_longest;
  const float usual = l->quiet_us * (float)l->per_step * (float)b->bin_steps;
  return l->within ? fmaxf(one, l->within[bin] - usual) : one;
}

int ni_find_stops(const struct ni_link_judge *w, struct ni_cause *c) {
  const struct ni_blame *b = w->b;
  double share = 0, lost_us = 0;
  uint32_t n = 0, runs = 0;
  if (!(c->at = calloc(b->bins + 1, sizeof *c->at)))
    return -ENOMEM;
  for (uint32_t k = 0; k < b->bins; k++) {
    float most_us = 0;
    for (uint32_t i = 0; i < c->n_items; i++) {
      const struct ni_blame_link *l = &b->link[c->item[i]];
      if (!ni_link_stopped(w, l, k))
        continue;
      c->at[k] = true;
      share += l->longest[k] / l->usual_longest - 1;
      n++;
      most_us = fmaxf(most_us, find_stopped_us(b, l, k));
    }
    lost_us += most_us;
    runs += c->at[k] && !c->at[k - 1];
  }
  c->kind = NI_FIND_FLAPPING;
  c->bins_hit = runs;
  c->share = (float)(share / n);
  c->most_us = 2 * lost_us;
  return 0;
}
