#include "launches.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/model/sums/blame/peer_groups.h"
#include "exporter/model/sums/blame/causes.h"
#include "exporter/model/sums/ranks/quantile.h"

enum { PEERS_MIN = 2 }; /* ranks elsewhere with the same work */
/* of others: between these two lie four fifths of them, which is so many standard deviations */
#define APART_LOW 0.1
#define APART_HIGH 0.9
#define APART_DEVIATIONS 2.56f
/* of bins, by what is idle before late launches: longer ones count as this one */
#define MOST_OF_BINS 0.9
/* CPUs pace ranks that are idle before late launches for so much of their idle time. */
#define PACED 0.5f

/* Fills scratch with what is idle in each bin, before late launches or in all. Returns the number of bins. */
static uint32_t fill_idle(struct ni_launches *x, uint32_t rank, bool late, float most) {
  for (uint32_t k = 0; k < x->b->bins; k++) {
    const struct ni_blame_cell *c = ni_blame_cell_at(x->b, rank, k);
    x->scratch[k] = c ? fminf(late ? c->late_idle : c->idle, most) : 0;
  }
  return x->b->bins;
}

static double sum_idle(const struct ni_launches *x, uint32_t from, uint32_t to) {
  double sum = 0;
  for (uint32_t k = from; k < to; k++)
    sum += x->scratch[k];
  return sum;
}

/* The same, where no bin counts for more than one that is longer than nine in ten. */
static void fill_usual_idle(struct ni_launches *x, uint32_t rank, bool late) {
  const uint32_t bins = fill_idle(x, rank, late, INFINITY);
  fill_idle(x, rank, late, ni_blame_quantile(x->scratch, bins, MOST_OF_BINS));
}

static float measure_usual_idle(struct ni_launches *x, uint32_t rank, bool late) {
  fill_usual_idle(x, rank, late);
  return (float)(sum_idle(x, 0, x->b->bins) / x->b->rank[rank].n_steps);
}

static float get_launched_us(const struct ni_launches *x, uint32_t rank) { return x->late_us[rank]; }

static float get_launched_share(const struct ni_launches *x, uint32_t rank) {
  return x->idle_us[rank] > 0 ? x->late_us[rank] / x->idle_us[rank] : 0;
}

/* What those say that do the same work on other hosts, the one in the middle; NAN: there are too few. */
static float find_peers_elsewhere(const struct ni_launches *x, uint32_t rank,
                                  float (*of)(const struct ni_launches *, uint32_t)) {
  const struct ni_blame *b = x->b;
  size_t n = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (b->rank[i].judged && b->rank[i].cls == b->rank[rank].cls &&
        ni_blame_host(b, i) != ni_blame_host(b, rank))
      x->scratch[n++] = of(x, i);
  return n >= PEERS_MIN ? ni_blame_quantile(x->scratch, n, 0.5) : NAN;
}

static void compare_launches(struct ni_launches *x, uint32_t rank, float usual_share) {
  const float peers_share = x->b->stages ? find_peers_elsewhere(x, rank, get_launched_share) : NAN;
  const float least = NI_CAUSE_LAUNCH + (isnan(peers_share) ? usual_share : peers_share);
  x->late[rank] = x->idle_us[rank] > 0 && get_launched_share(x, rank) >= least;
  x->us[rank] =
      get_launched_us(x, rank) - (isnan(peers_share) ? 0 : find_peers_elsewhere(x, rank, get_launched_us));
}

int ni_launches_begin(struct ni_launches *x, const struct ni_blame *b) {
  *x = (struct ni_launches){.b = b,
                            .late = calloc(b->n_ranks + 1, sizeof *x->late),
                            .us = calloc(b->n_ranks + 1, sizeof *x->us),
                            .late_us = calloc(b->n_ranks + 1, sizeof *x->late_us),
                            .idle_us = calloc(b->n_ranks + 1, sizeof *x->idle_us),
                            .scratch = malloc((b->n_ranks + b->bins + 1) * sizeof *x->scratch)};
  if (!x->late || !x->us || !x->late_us || !x->idle_us || !x->scratch)
    return -ENOMEM;
  size_t n = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    if (!b->rank[i].judged)
      continue;
    x->late_us[i] = measure_usual_idle(x, i, true);
    x->idle_us[i] = measure_usual_idle(x, i, false);
  }
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (b->rank[i].judged && x->idle_us[i] > 0)
      x->scratch[n++] = get_launched_share(x, i);
  const float baseline = ni_blame_quantile(x->scratch, n, NI_CAUSE_BASELINE);
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (b->rank[i].judged)
      compare_launches(x, i, baseline);
  return 0;
}

void ni_launches_end(struct ni_launches *x) {
  free(x->late);
  free(x->us);
  free(x->late_us);
  free(x->idle_us);
  free(x->scratch);
}

bool ni_launches_stand_out(const struct ni_launches *x, uint32_t rank) {
  const struct ni_blame *b = x->b;
  const uint32_t host = ni_blame_host(b, rank);
  size_t n = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (b->rank[i].judged && ni_blame_host(b, i) != host)
      x->scratch[n++] = x->us[i];
  for (uint32_t i = 0; n < 2 && i < b->n_ranks; i++)
    if (b->rank[i].judged && i != rank)
      x->scratch[n++] = x->us[i];
  if (n < 2)
    return true;
  const float middle = ni_blame_quantile(x->scratch, n, 0.5);
  const float low = x->scratch[(size_t)(APART_LOW * (double)(n - 1) + 0.5)],
              high = x->scratch[(size_t)(APART_HIGH * (double)(n - 1) + 0.5)];
  /* the peers of a slow host lie as far below it: how far those above the middle lie apart says it then */
  const float apart = b->stages ? 2 * (high - middle) : high - low;
  return x->us[rank] - middle >= NI_CAUSE_LAUNCH_APART * apart / APART_DEVIATIONS;
}

bool ni_launches_pace_peers(const struct ni_launches *x, uint32_t rank) {
  return find_peers_elsewhere(x, rank, get_launched_share) >= PACED; /* false if not known */
}

bool ni_launches_pace(const struct ni_launches *x, uint32_t rank) {
  return x->late_us[rank] * 2 > x->idle_us[rank] && !ni_launches_stand_out(x, rank);
}

static float get_own_us(const struct ni_blame_rank *o) { return (float)(o->own_us / o->n_steps); }

float ni_launches_find_excess(const struct ni_launches *x, uint32_t rank, bool idle,
                              struct ni_launches_of *of) {
  const struct ni_blame *b = x->b;
  const struct ni_blame_rank *o = &b->rank[rank];
  size_t n_peers = 0, n = 0;
  for (uint32_t k = 0; k < b->n_ranks; k++)
    n_peers += b->rank[k].cls == o->cls && b->rank[k].judged && !x->late[k];
  for (uint32_t k = 0; k < b->n_ranks; k++) {
    const bool has_quick_cpu = b->rank[k].judged && !x->late[k];
    const bool is_peer = !n_peers || b->rank[k].cls == o->cls;
    if (has_quick_cpu && is_peer)
      x->scratch[n++] = idle ? x->idle_us[k] : get_own_us(&b->rank[k]);
  }
  of->baseline = ni_blame_quantile(x->scratch, n, n_peers ? NI_CAUSE_BASELINE : 0.5);
  of->others = (uint32_t)n;
  of->has_peers = n_peers > 0;
  const float beyond = (idle ? x->idle_us[rank] : get_own_us(o)) - of->baseline;
  return n && beyond >= NI_CAUSE_LAUNCH * of->baseline ? beyond : 0;
}

float ni_launches_find_interval(struct ni_launches *x, uint32_t rank, uint32_t *from, uint32_t *to) {
  const uint32_t bins = x->b->bins, near = ni_cause_near_end(x->b);
  fill_usual_idle(x, rank, true);
  const double sum = sum_idle(x, 0, bins);
  float floor = (float)(sum / bins / 2);
  for (int pass = 0; pass < 2; pass++) { /* its ends are sharper with half of its height for a floor */
    if (!ni_find_longest_above(x->scratch, bins, floor, from, to))
      return 0;
    floor = (float)(sum_idle(x, *from, *to) / (*to - *from) / 2);
  }
  if (*from <= near)
    *from = 0;
  if (*to + near >= bins)
    *to = bins;
  if (*to - *from < NI_CAUSE_BINS)
    return 0;
  return (float)(sum_idle(x, *from, *to) / sum * bins / (*to - *from));
}
