#include "compare.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/base/order.h"
#include "leads.h"
#include "exporter/model/sums/ranks/quantile.h"

/* A rank is odd in a place if it takes so many times as long there, or as short, as it does elsewhere. */
#define ODD_PLACE 1.25f
/*
 * Where more than one member in so many is odd the place is not compared. Where so many others wait for the
 * same as an odd member, and are not odd, that is not why it is.
 */
enum { ODD_MOST = 4, ALIKE_MIN = 2 };
/* Times shorter than this part of half a step say nothing about what a place waits for. */
#define ODD_LITTLE 0.02f

/*
 * Own time in all is compared with that of so many ranks or more. A rank has to be beyond their lower
 * quartile by so many times what lies between that one and the upper one.
 */
enum { WHOLE_PEERS_MIN = 4 };
#define WHOLE_HIGH 0.75
#define WHOLE_APART 3

static NI_ORDER_BY(by_place, struct ni_member_place, at, usual_us, rank);
static NI_ORDER_BY(by_order, struct ni_member_place, rank, order);
static NI_ORDER_BY(by_rank, struct ni_member_place, rank, times);

/* The end of the place that begins at `from`. */
static size_t find_place_end(const struct ni_member_place *at, size_t n, size_t from) {
  size_t to = from + 1;
  while (to < n && at[to].at == at[from].at)
    to++;
  return to;
}

/* A member that waits for what most of n wait for, if more than half do. */
static const struct ni_member_place *find_majority_wait(const struct ni_member_place *at, size_t n) {
  const struct ni_member_place *most = at;
  size_t votes = 0;
  for (size_t i = 0; i < n; i++) {
    if (votes == 0)
      most = &at[i];
    votes += at[i].name == most->name ? 1 : (size_t)-1;
  }
  return most;
}

/*
 * It waits for what most do, and perhaps for more: then its own time begins no earlier than theirs, and where
 * it is longer all the same, it is.
 */
static bool waits_for_as_much(const struct ni_member_place *x, const struct ni_member_place *most,
                              float baseline) {
  const bool is_more = (x->waits & most->waits) == most->waits && x->usual_us > baseline;
  return x->name == most->name || is_more;
}

/* It takes far longer there than it does elsewhere, or shorter. */
static bool is_odd_there(const struct ni_member_place *x, float baseline, float little, const float *middle) {
  const float times = (x->usual_us + little) / (baseline + little) / middle[x->rank];
  return !(times <= ODD_PLACE && times * ODD_PLACE >= 1);
}

struct compared_places {          /* of one rank, sums over its places in a step */
  float level_us;                 /* the baselines of those that it has */
  float over_us;                  /* what it takes longer; NAN: nothing is compared */
  float compared_us, left_out_us; /* what it takes in those that are compared, and in those that are not */
};

/* Others that wait for the same as this one there, and take as long as elsewhere. */
static uint32_t count_alike(const struct ni_member_place *at, size_t n, const struct ni_member_place *x,
                            float baseline, float little, const float *middle) {
  uint32_t alike = 0;
  for (size_t i = 0; i < n; i++)
    alike += at[i].name == x->name && !is_odd_there(&at[i], baseline, little, middle);
  return alike;
}

/*
 * Adds what the members take longer in one place. A member is odd if it takes far longer or shorter there
 * than it does elsewhere: it may wait for something else. Where many are odd the place is not compared at
 * all. Else an odd member is left out if it does wait for something else than most, unless others that wait
 * for the same are not odd.
 */
static void add_place_excess(struct ni_member_place *at, size_t n, float little, const float *middle,
                             struct compared_places *sums) {
  const float baseline = at[n == 2 ? 0 : (n - 1) / 4].usual_us;
  const struct ni_member_place *most = find_majority_wait(at, n);
  size_t odd = 0;
  for (int pass = 0; pass < 2; pass++)
    for (size_t i = 0; i < n; i++) {
      const bool is_odd = is_odd_there(&at[i], baseline, little, middle);
      if (pass == 0 && (odd += is_odd) * ODD_MOST > n)
        return;
      if (pass == 0)
        continue;
      at[i].times = at[i].mean_us - at[n == 2 ? 0 : (n - 1) / 4].mean_us;
      struct compared_places *x = &sums[at[i].rank];
      x->level_us += baseline;
      const bool is_alone = is_odd && !waits_for_as_much(&at[i], most, baseline);
      if (is_alone && count_alike(at, n, &at[i], baseline, little, middle) < ALIKE_MIN) {
        x->left_out_us += at[i].usual_us;
        continue;
      }
      x->over_us = (isnan(x->over_us) ? 0 : x->over_us) + at[i].usual_us - baseline;
      x->compared_us += at[i].usual_us;
    }
}

/*
 * Own time of a step that is seen: the median of the members. Not the sum of all places, because members may
 * have different ones: half of them count theirs from elsewhere.
 */
static float find_level(const struct ni_compared *w, const struct compared_places *sums, float *scratch) {
  size_t n = 0;
  for (uint32_t i = 0; i < w->n; i++)
    if (sums[w->member[i]].level_us > 0)
      scratch[n++] = sums[w->member[i]].level_us;
  return n ? ni_blame_quantile(scratch, n, 0.5) : 0;
}

/* All own time of a step, wherever it lies in the step and whatever the rank waited for; without pauses. */
static float find_whole_own_time(const struct ni_blame_rank *o) {
  double pauses = 0;
  for (uint32_t k = 0; k < o->n_bins; k++)
    pauses += o->cell[k].burst;
  return (float)((o->own_us - pauses) / o->n_steps);
}

/*
 * The slowest rank of a pipeline's stage never waits for messages: they are there before it asks. Its peers
 * do. So it waits for something else than they do wherever its time is, and no place says how late it is. Its
 * own time in all does, where its peers agree about theirs. That says nothing where waits are missing in the
 * logs, or where most of the computing lies beside operations.
 */
static void compare_whole_own_time(const struct ni_blame *b, struct ni_compared *w,
                                   const struct compared_places *sums, float *scratch) {
  if (b->waits_unseen || b->teams_wait_unseen || w->n < WHOLE_PEERS_MIN)
    return;
  for (uint32_t i = 0; i < w->n; i++)
    scratch[i] = find_whole_own_time(&b->rank[w->member[i]]);
  const float baseline = ni_blame_quantile(scratch, w->n, NI_CAUSE_BASELINE);
  const float apart = ni_blame_quantile(scratch, w->n, WHOLE_HIGH) - baseline;
  for (uint32_t i = 0; i < w->n; i++) {
    const uint32_t rank = w->member[i];
    const float over = find_whole_own_time(&b->rank[rank]) - baseline;
    const bool is_left_out = sums[rank].left_out_us > sums[rank].compared_us;
    if (!is_left_out || over < WHOLE_APART * apart || baseline < w->level_us)
      continue;
    w->over_us[rank] = over;
    w->seen_us[rank] = baseline;
  }
}

/* What the comparison of a class works on; room for all its places and members. */
struct comparison {
  const struct ni_blame *b;
  struct ni_member_place *at;
  size_t n;
  float *middle;                /* by rank: how much longer it is in the middle one of its places */
  struct compared_places *sums; /* by rank */
  float *scratch;               /* of members */
};

static int begin_comparison(struct comparison *x, const struct ni_compared *w) {
  size_t all = 0;
  for (uint32_t i = 0; i < w->n; i++)
    all += x->b->rank[w->member[i]].n_places;
  x->at = malloc((all + 1) * sizeof *x->at);
  x->middle = malloc(((size_t)x->b->n_ranks + 1) * sizeof *x->middle);
  x->sums = calloc((size_t)x->b->n_ranks + 1, sizeof *x->sums);
  x->scratch = malloc((w->n + 1) * sizeof *x->scratch);
  return x->at && x->middle && x->sums && x->scratch ? 0 : -ENOMEM;
}

static void end_comparison(struct comparison *x) {
  free(x->at);
  free(x->middle);
  free(x->sums);
  free(x->scratch);
}

/* The places of all members. Half of a step is what is taken for all own time. */
static void gather_places(struct comparison *x, struct ni_compared *w) {
  for (uint32_t i = 0; i < w->n; i++) {
    const struct ni_blame_rank *o = &x->b->rank[w->member[i]];
    for (uint32_t k = 0; k < o->n_places; k++) {
      const struct ni_blame_place *p = &o->place[k];
      x->at[x->n++] = (struct ni_member_place){p->at,    p->name,     p->waits,   w->member[i],
                                               p->order, p->usual_us, p->mean_us, 1};
    }
    x->sums[w->member[i]].over_us = NAN;
    x->scratch[i] = (float)(o->last_ns - o->first_ns) / 1e3f / (float)o->n_steps;
  }
  w->of_us = ni_blame_quantile(x->scratch, w->n, 0.5) / 2;
}

/* By how much longer a member is anywhere: that of the middle one of its places. */
static void find_middles(struct comparison *x, float little) {
  struct ni_member_place *at = x->at;
  qsort(at, x->n, sizeof *at, by_place);
  for (size_t from = 0, to; from < x->n; from = to) {
    to = find_place_end(at, x->n, from);
    const float baseline = at[from + (to - from == 2 ? 0 : (to - from - 1) / 4)].usual_us;
    for (size_t i = from; i < to; i++)
      at[i].times = (at[i].usual_us + little) / (baseline + little);
  }
  qsort(at, x->n, sizeof *at, by_rank);
  for (size_t from = 0, to; from < x->n; from = to) {
    for (to = from; to < x->n && at[to].rank == at[from].rank; to++) {}
    x->middle[at[from].rank] = at[from + (to - from - 1) / 2].times;
  }
}

/* Place by place: how much longer members are there, where half of them have it. */
static void add_all_places(struct comparison *x, uint32_t members, float little) {
  struct ni_member_place *at = x->at;
  qsort(at, x->n, sizeof *at, by_place);
  for (size_t i = 0; i < x->n; i++)
    at[i].times = NAN;
  for (size_t from = 0, to; from < x->n; from = to) {
    to = find_place_end(at, x->n, from);
    if (to - from >= 2 && (to - from) * 2 >= (size_t)members)
      add_place_excess(at + from, to - from, little, x->middle, x->sums);
  }
}

int ni_compare_places(const struct ni_blame *b, struct ni_compared *w) {
  struct comparison x = {.b = b};
  const int e = begin_comparison(&x, w);
  if (e == 0) {
    gather_places(&x, w);
    const float little = ODD_LITTLE * w->of_us;
    find_middles(&x, little);
    add_all_places(&x, w->n, little);
    w->level_us = find_level(w, x.sums, x.scratch);
    w->of_us = fmaxf(w->level_us, w->of_us);
    for (uint32_t i = 0; i < w->n; i++) {
      w->over_us[w->member[i]] = x.sums[w->member[i]].over_us;
      w->seen_us[w->member[i]] = w->level_us;
    }
    compare_whole_own_time(b, w, x.sums, x.scratch);
    qsort(x.at, x.n, sizeof *x.at, by_order);
    ni_find_leads(b, w, x.at, x.n, x.scratch);
  }
  end_comparison(&x);
  return e;
}
