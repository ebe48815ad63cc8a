#include "lateness.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/model/sums/cpus/calls.h"
#include "peer_groups.h"
#include "exporter/model/sums/ranks/quantile.h"
#include "exporter/model/sums/work/islands.h"

#define MORE_PLACES 1.5f  /* times what is usual: a bin with more is no step like others */
#define LEAD_OF_RUN 0.2f  /* an interval that says at what rate the rank is late there */
#define LEAD_WHOLE 0.8f   /* an interval that says that it is not late, though its gaps are longer */
#define SINGLE_MORE 1.25f /* times what lies in rows of bins */
/* as NI_CAUSE_OWN, of a team of so few that nobody knows how far they lie apart */
#define OWN_OF_FEW 0.03f
/*
 * What all members have in common in a bin is this quantile of what each has beyond its own median. It is
 * below the median, because up to half of the members can be in a burst.
 */
#define COMMON_OF_BIN 0.4
/*
 * A slow CPU makes a step longer by this part of the idle time before late launches at most: some is always
 * left.
 */
#define LAUNCH_MOST 0.98f
#define BURSTS_BEYOND 1.5f /* times what is largest elsewhere (find_largest_elsewhere()) */
/* So many of the ranks of other hosts are below what a rank of a host has that is late as a whole, */
#define HIGH_ELSEWHERE 0.9
/* and its mean is so many times as far from them as they are from each other. */
#define TOGETHER_APART 3.0f
enum {
  BURSTS_ELSEWHERE = 3,
  BURSTS_OF = 20, /* bins: of fewer any few long ones are some that come and go */
  TEAM_FEW = 8,
  OTHERS = 256,  /* members that a rank's interval is compared with */
  SPREAD_MIN = 8 /* of fewer nobody knows how far they lie apart */
};

/* How many places a bin of this rank has: the median. */
static float find_baseline_places(struct ni_lateness *w, uint32_t rank) {
  size_t n = 0;
  for (uint32_t k = 0; k < w->b->bins; k++) {
    const struct ni_blame_cell *c = ni_blame_cell_at(w->b, rank, k);
    if (c && c->places)
      w->scratch[n++] = (float)c->places;
  }
  return ni_blame_quantile(w->scratch, n, 0.5);
}

/*
 * Fills w->x: own time of each member and bin beyond that of its peers. A bin that has far more places than
 * the others, such as an evaluation, is not compared.
 *
 * The baseline is the lower quartile of the members' means over the run, because up to half of them can be
 * slow. What all members have in common in one bin is taken away as well: it is told by how far each of them
 * is from its own median. (Not from its mean: bursts raise that, and bins between bursts would look short.
 * Nor is it a lower quartile of the bin: that would take noise for speed.)
 */
static void compute_excess(struct ni_lateness *w, float *mean) {
  const struct ni_blame *b = w->b;
  size_t means = 0;
  for (uint32_t i = 0; i < w->c.n; i++) {
    float *x = &w->x[(size_t)i * b->bins], over = w->c.over_us[w->c.member[i]];
    const float most = MORE_PLACES * find_baseline_places(w, w->c.member[i]);
    size_t n = 0;
    for (uint32_t k = 0; k < b->bins; k++) {
      const struct ni_blame_cell *c = ni_blame_cell_at(b, w->c.member[i], k);
      x[k] = c && c->places && (float)c->places <= most ? (over + c->dev / (float)b->bin_steps) / w->c.of_us
                                                        : NAN;
      if (!isnan(x[k]))
        w->scratch[n++] = x[k];
    }
    mean[i] = ni_blame_middle(w->scratch, n);
    w->means[i] = ni_blame_quantile(w->scratch, n, 0.5);
    if (n)
      mean[w->c.n + means++] = mean[i];
  }
  float baseline = ni_blame_quantile(mean + w->c.n, means, means == 2 ? 0 : NI_CAUSE_BASELINE);
  for (uint32_t k = 0; k < b->bins; k++) {
    size_t n = 0;
    for (uint32_t i = 0; i < w->c.n; i++) {
      float x = w->x[(size_t)i * b->bins + k];
      if (!isnan(x))
        w->scratch[n++] = x - w->means[i];
    }
    float common = ni_blame_quantile(w->scratch, n, COMMON_OF_BIN);
    for (uint32_t i = 0; i < w->c.n; i++)
      w->x[(size_t)i * b->bins + k] -= baseline + common;
  }
}

/* For the heat map (evidence/lateness_map.h): it shows the numbers that findings come from. */
static void store_beyond(const struct ni_lateness *w) {
  const struct ni_blame *b = w->b;
  for (uint32_t i = 0; i < w->c.n; i++)
    for (uint32_t k = 0; k < b->bins; k++)
      b->beyond_us[(size_t)w->c.member[i] * b->bins + k] = w->x[(size_t)i * b->bins + k] * w->c.of_us;
}

/* The noise of a rank from bin to bin: the median over the members. each: room for all of them. */
static float measure_rank_noise(struct ni_lateness *w, float *each) {
  const struct ni_blame *b = w->b;
  size_t n = 0;
  for (uint32_t i = 0; i < w->c.n; i++) {
    const float *x = &w->x[(size_t)i * b->bins];
    size_t m = 0;
    for (uint32_t k = 1; k < b->bins; k++)
      if (!isnan(x[k]) && !isnan(x[k - 1]))
        w->scratch[m++] = fabsf(x[k] - x[k - 1]);
    if (m)
      each[n++] = ni_blame_quantile(w->scratch, m, 0.5) * NI_CAUSE_NOISE;
  }
  return ni_blame_quantile(each, n, 0.5);
}

static bool find_late_interval(const float *x, uint32_t bins, uint32_t *from, uint32_t *to) {
  if (!ni_find_longest_above(x, bins, NI_CAUSE_OWN_FLOOR, from, to))
    return false;
  double sum = 0;
  uint32_t n = 0;
  for (uint32_t k = *from; k < *to; k++)
    if (!isnan(x[k])) {
      sum += x[k];
      n++;
    }
  /* Its ends are sharper with half of its height for a floor. */
  float half = n ? (float)(sum / n / 2) : 0;
  return half <= NI_CAUSE_OWN_FLOOR || ni_find_longest_above(x, bins, half, from, to);
}

/* The mean of a row's bins from..to; NAN: none says anything. */
static float get_interval_mean(const float *row, uint32_t from, uint32_t to) {
  double sum = 0;
  uint32_t seen = 0;
  for (uint32_t k = from; k < to; k++)
    if (!isnan(row[k])) {
      sum += fminf(row[k], 1);
      seen++;
    }
  return seen ? (float)(sum / seen) : NAN;
}

/* One standard deviation of n numbers in order, by those that are not slow (NI_CAUSE_SPREAD). */
static float measure_apart(const float *x, size_t n) {
  if (n < SPREAD_MIN)
    return 0;
  const size_t low = (size_t)(NI_CAUSE_SPREAD_LOW * (double)(n - 1) + 0.5);
  const size_t high = (size_t)(NI_CAUSE_SPREAD_HIGH * (double)(n - 1) + 0.5);
  return (x[high] - x[low]) / NI_CAUSE_SPREAD;
}

/*
 * How far the ranks of all teams of a class lie apart, each beside its own team: a team alone has too few to
 * tell.
 */
static float measure_apart_of_teams(struct ni_lateness *w, uint32_t but, uint32_t from, uint32_t to) {
  const struct ni_blame *b = w->b;
  const uint32_t every = b->n_ranks / OTHERS + 1;
  size_t n = 0;
  for (uint32_t i = 0; i < b->n_ranks; i += every) {
    const float mean = get_interval_mean(&w->of_teams[(size_t)i * b->bins], from, to);
    const bool is_peer = i != but && b->rank[i].cls == b->rank[but].cls;
    if (is_peer && !isnan(mean))
      w->means[n++] = mean;
  }
  (void)ni_blame_quantile(w->means, n, 0.5); /* puts them in order */
  return measure_apart(w->means, n);
}

/* So many members are not of this one's team. */
static uint32_t count_other_teams(const struct ni_lateness *w, uint32_t but) {
  const struct ni_blame_rank *rank = w->b->rank;
  uint32_t n = 0;
  for (uint32_t i = 0; i < w->c.n; i++)
    n += rank[w->c.member[i]].team != rank[w->c.member[but]].team;
  return n;
}

/*
 * The baseline of the other members in these bins; *apart: how far they lie apart there. It is asked for once
 * more, in these bins alone, because chance chose them, and because means have a tail that medians do not
 * show. Those of its own team wait for a late one within their operations, more than others do, and where
 * they compute beside that their own time is shorter: where there are enough others only these are asked.
 */
static float find_peer_baseline(struct ni_lateness *w, uint32_t but, uint32_t from, uint32_t to,
                                float *apart) {
  const uint32_t every = w->c.n / OTHERS + 1, team = w->b->rank[w->c.member[but]].team;
  const bool has_others = team != NI_BLAME_NONE && count_other_teams(w, but) >= SPREAD_MIN;
  if (w->of_teams)
    *apart = measure_apart_of_teams(w, w->c.member[but], from, to);
  size_t n = 0;
  for (uint32_t i = 0; i < w->c.n; i += every) {
    if (has_others && w->b->rank[w->c.member[i]].team == team)
      continue;
    const float mean = get_interval_mean(&w->x[(size_t)i * w->b->bins], from, to);
    if (i != but && !isnan(mean))
      w->means[n++] = mean;
  }
  const float baseline = ni_blame_quantile(w->means, n, NI_CAUSE_BASELINE);
  if (!w->of_teams)
    *apart = measure_apart(w->means, n);
  return n ? baseline : 0;
}

/*
 * Sets x to NAN for bins that say nothing about bursts. A rank that stops for half a step moves what the
 * others do in that step and in the next one. A slow network does so, too.
 */
static void mask_moved_bins(const struct ni_lateness *w, float *x) {
  const struct ni_blame *b = w->b;
  for (uint32_t k = 0; k < b->bins; k++)
    if (w->crowded[k] || (k && w->crowded[k - 1]))
      x[k] = NAN;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    for (uint32_t k = 0; b->rank[i].judged && k < b->bins; k++) {
      const struct ni_blame_cell *c = ni_blame_cell_at(b, i, k);
      if (!c || c->burst < w->c.of_us / 2)
        continue;
      x[k] = NAN;
      if (k + 1 < b->bins)
        x[k + 1] = NAN;
    }
}

/* The median area of the members on other hosts; where there is one host, of all members. */
static float find_baseline_area(struct ni_lateness *w, uint32_t member, const float *areas) {
  const uint32_t host = ni_blame_host(w->b, w->c.member[member]);
  size_t n = 0;
  for (uint32_t i = 0; i < w->c.n; i++)
    if (ni_blame_host(w->b, w->c.member[i]) != host)
      w->scratch[n++] = areas[i];
  if (n < 2)
    memcpy(w->scratch, areas, (n = w->c.n) * sizeof *areas);
  return ni_blame_quantile(w->scratch, n, n > 2 ? 0.5 : 0);
}

/*
 * Finds bursts of this shape. They replace those that a member has already where they hold clearly more: of
 * many single bins some are neighbours by chance. seen: room for the bins of one member.
 */
static void find_bursts(struct ni_lateness *w, float noise, enum ni_burst_shape shape, const float *masked,
                        float *seen) {
  const struct ni_blame *b = w->b;
  for (uint32_t i = 0; i < w->c.n; i++) {
    struct ni_rank_lateness *l = &w->late[w->c.member[i]];
    const float *x = &w->x[(size_t)i * b->bins];
    for (uint32_t k = 0; k < b->bins; k++)
      seen[k] = isnan(masked[k]) ? NAN : x[k];
    bool *hit = calloc(b->bins + 1, sizeof *hit); /* no memory: it is judged as one interval */
    const struct ni_bursts found =
        hit ? ni_find_bursts(seen, b->bins, noise, shape, hit) : (struct ni_bursts){0};
    w->means[i] = w->burst_areas[(size_t)shape * b->n_ranks + w->c.member[i]] = found.area;
    const bool is_more = found.n && found.area > SINGLE_MORE * l->area;
    if (is_more)
      free(l->hit);
    if (is_more)
      *l = (struct ni_rank_lateness){.bursts = found.n,
                                     .shape = shape,
                                     .hit = hit,
                                     .to = b->bins,
                                     .share = found.excess,
                                     .excess_us = found.excess * w->c.of_us,
                                     .of_gaps = found.excess * w->c.of_us / w->c.seen_us[w->c.member[i]],
                                     .seen_us = w->c.seen_us[w->c.member[i]],
                                     .n_peers = w->c.n,
                                     .area = found.area};
    else
      free(hit);
  }
}

/*
 * Own time that is longer in bursts. Where bins are long by chance, those of the peers are as well. So a rank
 * keeps its bursts only if they are several times what its peers on other hosts have.
 */
static void judge_bursts(struct ni_lateness *w, float noise) {
  const struct ni_blame *b = w->b;
  float *masked = calloc(2 * ((size_t)b->bins + 1), sizeof *masked);
  if (!masked)
    return; /* then they are judged as one interval */
  mask_moved_bins(w, masked);
  /* the first and the last bin are begun or ended in the middle of a step */
  for (uint32_t i = 0; i < w->c.n; i++)
    w->x[(size_t)i * b->bins] = w->x[(size_t)(i + 1) * b->bins - 1] = NAN;
  for (uint32_t shape = 0; shape < NI_BURST_SHAPES; shape++) {
    find_bursts(w, noise, shape, masked, masked + b->bins + 1);
    for (uint32_t i = 0; i < w->c.n; i++) {
      struct ni_rank_lateness *l = &w->late[w->c.member[i]];
      if (!l->bursts || l->shape != shape || l->area > NI_CAUSE_BURSTS * find_baseline_area(w, i, w->means))
        continue;
      free(l->hit);
      *l = (struct ni_rank_lateness){0};
    }
  }
  free(masked);
}

/*
 * Of the ranks on other hosts, whatever their work, the one with the third largest area. The two before it
 * may be throttled as well.
 */
static float find_largest_elsewhere(const struct ni_lateness *w, uint32_t rank) {
  const struct ni_blame *b = w->b;
  const float *area = &w->burst_areas[(size_t)w->late[rank].shape * b->n_ranks];
  float largest[BURSTS_ELSEWHERE] = {0};
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    float x = area[i];
    if (isnan(x) || ni_blame_host(b, i) == ni_blame_host(b, rank))
      continue;
    for (int k = 0; k < BURSTS_ELSEWHERE; k++)
      if (x > largest[k]) {
        const float less = largest[k];
        largest[k] = x;
        x = less;
      }
  }
  return largest[BURSTS_ELSEWHERE - 1];
}

/*
 * Of a thousand ranks some have several long steps by chance, the more so in a run of a few steps. That grows
 * with the ranks that are compared, and so does the largest area of those that have no bursts.
 */
static void clear_chance_bursts(struct ni_lateness *w) {
  for (uint32_t i = 0; i < w->b->n_ranks; i++) {
    struct ni_rank_lateness *l = &w->late[i];
    if (!l->bursts || l->area >= BURSTS_BEYOND * find_largest_elsewhere(w, i))
      continue;
    free(l->hit);
    *l = (struct ni_rank_lateness){.n_peers = l->n_peers};
  }
}

static void judge_rank(struct ni_lateness *w, uint32_t i, float noise) {
  const struct ni_blame *b = w->b;
  float *x = &w->x[(size_t)i * b->bins];
  struct ni_rank_lateness *l = &w->late[w->c.member[i]];
  uint32_t from, to, n = 0;
  double sum = 0;
  if (l->bursts || ni_launches_pace(&w->launches, w->c.member[i]))
    return;
  memcpy(w->scratch, x, b->bins * sizeof *x);
  for (uint32_t k = 0; k < b->bins; k++)
    if (x[k] > 1)
      x[k] = 1; /* one bin says no more than that */
  if (!find_late_interval(x, b->bins, &from, &to))
    return;
  for (uint32_t k = from; k < to; k++)
    if (!isnan(x[k])) {
      sum += w->scratch[k];
      n++;
    }
  float mean = n ? (float)(sum / n) : 0;
  if (n < NI_CAUSE_BINS || mean < NI_CAUSE_OWN)
    return;
  float apart = 0;
  mean -= find_peer_baseline(w, i, from, to, &apart);
  const float own = w->of_teams && w->c.n <= TEAM_FEW ? OWN_OF_FEW : NI_CAUSE_OWN;
  float least = fmaxf(fmaxf(own, NI_CAUSE_APART * apart), NI_CAUSE_SIGMA * noise / sqrtf((float)n));
  if (mean < least || mean * (float)n < NI_CAUSE_OF_RUN * (float)b->bins)
    return;
  const uint32_t near = ni_cause_near_end(b);
  *l = (struct ni_rank_lateness){.late = true,
                                 .of_team = w->of_teams != NULL,
                                 .from = from <= near ? 0 : from,
                                 .to = to + near >= b->bins ? b->bins : to,
                                 .excess_us = mean * w->c.of_us,
                                 .share = mean,
                                 .of_gaps = mean * w->c.of_us / w->c.seen_us[w->c.member[i]],
                                 .seen_us = w->c.seen_us[w->c.member[i]],
                                 .n_peers = w->c.n,
                                 .lead = w->c.lead[w->c.member[i]]};
  /*
   * Places are means over the run. An interval of the run adds less to each of them, by one factor. Whether
   * others were held up in it a mean of both does not say. So it does not say that nobody is late there, and
   * what is lost is bounded by how much longer steps are in the interval (ni_count_clock_costs()).
   */
  const float of_run = (float)(l->to - l->from) / (float)b->bins;
  const bool is_less = l->lead.rate < NI_CAUSE_OWN_FLOOR * of_run && of_run < LEAD_WHOLE;
  if (l->lead.rate > 0 && of_run >= LEAD_OF_RUN && !is_less) { /* the sum of its gaps says nothing then */
    l->excess_us *= l->lead.of_sum;
    l->share = l->lead.rate / of_run;
    l->seen_us = 0;
    l->lead = (struct ni_lead){.part = 1};
    l->late = l->share >= NI_CAUSE_OWN_FLOOR;
  }
}

/*
 * Its own time is longer, and it has several communicators. A program that holds few layers at once, as FSDP
 * does, launches the next operation when the GPU has computed so far. So on a rank that computes longer
 * operations begin as soon as they are launched, and on those that wait for it they queue up.
 */
static bool is_late_beside_operations(const struct ni_lateness *w, uint32_t rank) {
  return w->late[rank].late && !w->b->rank[rank].one_comm;
}

/*
 * A stage that has more to launch than others is not late by its CPU. Of pipelines in which the order of
 * operations tells the steps: in others a loader that keeps one stage waiting looks the same.
 */
static bool has_more_to_launch(const struct ni_lateness *w, uint32_t rank) {
  bool by_order = false;
  for (uint32_t i = 0; i < w->b->n_ranks; i++)
    by_order |= w->b->rank[i].mark.by_order;
  return by_order && ni_calls_are_usual(w->b, w->calls_us, rank, w->scratch);
}

/*
 * A CPU that launches too slowly: the GPU is idle before kernels that begin as soon as they are launched, far
 * more than elsewhere in the job, and its own time is longer in all than that of its peers. Own time in
 * single places says little then: what is waited for changes from step to step. Where that made the own time
 * look shorter, idle time is longer.
 */
static void judge_launches(struct ni_lateness *w) {
  const struct ni_blame *b = w->b;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    const struct ni_blame_rank *o = &b->rank[i];
    struct ni_launches_of of = {0};
    float late = w->launches.late_us[i], excess = 0;
    uint32_t from, to;
    /* most of what it launches is not in the logs */
    if (b->waits_unseen && o->team == NI_BLAME_NONE)
      continue;
    if (!w->launches.late[i] || !ni_launches_stand_out(&w->launches, i))
      continue;
    const bool may_be_pace = ni_launches_pace_peers(&w->launches, i) || is_late_beside_operations(w, i);
    if (may_be_pace && ni_calls_are_alike(b, w->calls_us, i, w->scratch))
      continue;
    for (int k = 0; k < 2 && excess <= 0;
         k++) /* messages of stages move what is waited for most: there idle time first */
      excess = ni_launches_find_excess(&w->launches, i, (k == 1) != b->stages, &of);
    if (excess <= 0 || (!of.has_peers && has_more_to_launch(w, i)))
      continue;
    if (excess > LAUNCH_MOST * late)
      excess = LAUNCH_MOST * late;
    const float part = w->c.lead[i].rate > 0 ? w->c.lead[i].of_sum : 1; /* its gaps add up to more */
    const float times = ni_launches_find_interval(&w->launches, i, &from, &to);
    if (times <= 0)
      continue;
    excess *= times;
    late *= times;
    free(w->late[i].hit);
    w->late[i] = (struct ni_rank_lateness){.launch = true,
                                           .no_peers = !of.has_peers,
                                           .from = from,
                                           .to = to,
                                           .excess_us = excess,
                                           .share = excess / of.baseline,
                                           .of_gaps = late / (late - excess) - 1,
                                           .lead = {.part = part, .apart = part >= 1},
                                           .n_peers = of.others + 1};
  }
}

/* Its own time is longer, and not because it launches late. */
static bool is_late_by_itself(const struct ni_lateness *w, uint32_t rank) {
  return w->late[rank].late && w->launches.late_us[rank] * 2 < w->late[rank].excess_us;
}

/*
 * A CPU that has launched as far ahead as it may calls when its GPU goes on. So where a rank of the island is
 * late by as much or more, the others there call later because they wait for it, and other islands do not.
 */
static bool waits_for_late_rank(const struct ni_lateness *w, uint32_t rank, float times) {
  const struct ni_blame *b = w->b;
  for (uint32_t i = 0; b->island && i < b->n_ranks; i++) {
    const bool is_of_island = i != rank && b->rank[i].judged && b->island[i] == b->island[rank];
    const bool is_known_slow = w->late[i].calls > 0; /* it is late by its own CPU */
    if (is_of_island && !is_known_slow && is_late_by_itself(w, i) && times - 1 <= w->late[i].share)
      return true;
  }
  return false;
}

/*
 * A slow CPU launches what the GPU computes as slowly as what it calls of NCCL. Where the computing before an
 * operation is the longer part of that, the operation itself is not launched late, but the GPU has idled
 * between kernels that nobody sees: then what is idle between operations says what it costs.
 */
static struct ni_rank_lateness measure_slow_cpu(const struct ni_lateness *w, uint32_t rank) {
  struct ni_launches_of of = {0};
  const float times = w->calls_times[rank];
  const float launched_us = w->launches.late_us[rank] * (1 - 1 / times);
  const float idle_us = ni_launches_find_excess(&w->launches, rank, true, &of);
  const bool is_unseen = of.has_peers && idle_us > 2 * launched_us;
  const float share = is_unseen ? idle_us / of.baseline : times - 1;
  return (struct ni_rank_lateness){.launch = !is_unseen,
                                   .late = is_unseen,
                                   .to = w->b->bins,
                                   .excess_us = is_unseen ? idle_us : launched_us,
                                   .share = share,
                                   .of_gaps = share,
                                   .lead = {.part = 1, .apart = 1},
                                   .n_peers = w->b->n_ranks};
}

/*
 * The CPU calls more slowly than others with the same work. Own time that is longer without late launches is
 * not explained by that.
 */
static void judge_calls(struct ni_lateness *w) {
  for (uint32_t i = 0; i < w->b->n_ranks; i++) {
    struct ni_rank_lateness *l = &w->late[i];
    if (!(w->calls_times[i] > 0) || is_late_by_itself(w, i) || waits_for_late_rank(w, i, w->calls_times[i]))
      continue;
    if (!l->launch) {
      free(l->hit);
      *l = measure_slow_cpu(w, i);
    }
    l->calls = w->calls_times[i];
  }
}

static void keep_of_teams(struct ni_lateness *w) {
  const uint32_t bins = w->b->bins;
  for (uint32_t i = 0; i < w->c.n; i++)
    memcpy(&w->of_teams[(size_t)w->c.member[i] * bins], &w->x[(size_t)i * bins], bins * sizeof *w->x);
}

/*
 * The ranks of a class, or those of one team of it. measure: they are compared, and nobody is judged until
 * all teams are.
 */
static int judge_members(struct ni_lateness *w, uint32_t cls, const uint32_t *team, bool measure) {
  const struct ni_blame *b = w->b;
  const bool again = team && b->teams_wait_unseen; /* their class was judged before */
  w->c.n = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (b->rank[i].cls == cls && (!team || b->rank[i].team == *team))
      w->c.member[w->c.n++] = i;
  if (w->c.n < 2 || b->bins < 2 * NI_CAUSE_BINS)
    return 0;
  float *each = malloc(2 * (size_t)w->c.n * sizeof *each);
  w->x = malloc((size_t)w->c.n * b->bins * sizeof *w->x);
  if (!w->x || !each) {
    free(each);
    return -ENOMEM;
  }
  int e = ni_compare_places(b, &w->c);
  if (e == 0) {
    compute_excess(w, each);
    if (!again)
      store_beyond(w);
    if (measure)
      keep_of_teams(w);
    const float noise = measure ? 0 : measure_rank_noise(w, each);
    if (!measure && !again && b->bins >= BURSTS_OF)
      judge_bursts(w, noise);
    for (uint32_t i = 0; i < w->c.n && !measure; i++)
      judge_rank(w, i, noise);
    for (uint32_t i = 0; i < w->c.n && !again; i++)
      w->late[w->c.member[i]].of_us = w->c.of_us;
  }
  free(w->x);
  free(each);
  w->x = NULL;
  return e;
}

static int judge_each_team(struct ni_lateness *w, bool measure) {
  const struct ni_blame *b = w->b;
  bool *done = calloc(b->n_ranks + 1, sizeof *done);
  int e = done ? 0 : -ENOMEM;
  for (uint32_t i = 0; e == 0 && i < b->n_ranks; i++) {
    const struct ni_blame_rank *o = &b->rank[i];
    const bool has_peers = o->cls != NI_BLAME_NONE && o->team != NI_BLAME_NONE;
    if (done[i] || !o->judged || !has_peers)
      continue;
    e = judge_members(w, o->cls, &o->team, measure);
    for (uint32_t k = 0; k < w->c.n; k++)
      done[w->c.member[k]] = true;
  }
  free(done);
  return e;
}

/*
 * What a rank waits for may not be in the logs. Ranks of one team wait for the same between its operations,
 * so they are compared with each other, and how far ranks lie apart is told by all teams.
 */
static int judge_teams(struct ni_lateness *w) {
  const struct ni_blame *b = w->b;
  const size_t n = (size_t)b->n_ranks * b->bins;
  if (!(w->of_teams = malloc((n + 1) * sizeof *w->of_teams)))
    return -ENOMEM;
  for (size_t i = 0; i < n; i++)
    w->of_teams[i] = NAN;
  int e = judge_each_team(w, true);
  if (e == 0)
    e = judge_each_team(w, false);
  free(w->of_teams);
  w->of_teams = NULL;
  return e;
}

int ni_lateness_begin(struct ni_lateness *w, const struct ni_blame *b, const bool *crowded) {
  *w = (struct ni_lateness){
      .b = b,
      .crowded = crowded,
      .late = calloc(b->n_ranks + 1, sizeof *w->late),
      .c.member = malloc((b->n_ranks + 1) * sizeof *w->c.member),
      .scratch = malloc((b->n_ranks + b->bins + 1) * sizeof *w->scratch),
      .c.over_us = calloc(b->n_ranks + 1, sizeof *w->c.over_us),
      .c.seen_us = calloc(b->n_ranks + 1, sizeof *w->c.seen_us),
      .means = malloc((b->n_ranks + 1) * sizeof *w->means),
      .burst_areas = malloc(((size_t)NI_BURST_SHAPES * b->n_ranks + 1) * sizeof *w->burst_areas),
      .calls_us = malloc((b->n_ranks + 1) * sizeof *w->calls_us),
      .calls_times = malloc((b->n_ranks + 1) * sizeof *w->calls_times),
      .c.lead = calloc(b->n_ranks + 1, sizeof *w->c.lead)};
  for (size_t i = 0; w->burst_areas && i < (size_t)NI_BURST_SHAPES * b->n_ranks; i++)
    w->burst_areas[i] = NAN;
  const bool has_room = w->late && w->scratch && w->means && w->calls_us && w->calls_times && w->burst_areas;
  const bool has_room_to_compare = w->c.member && w->c.over_us && w->c.seen_us && w->c.lead;
  return has_room && has_room_to_compare ? ni_launches_begin(&w->launches, b) : -ENOMEM;
}

/* Where many records of a rank are missing an operation that is not there looks like time of its own. */
static void clear_unknown_gaps(struct ni_lateness *w) {
  for (uint32_t i = 0; i < w->b->n_ranks; i++) {
    if (!w->b->rank[i].gaps_unknown)
      continue;
    free(w->late[i].hit);
    w->late[i] = (struct ni_rank_lateness){.n_peers = w->late[i].n_peers};
  }
}

/* What an island waits for others in these bins, in us of a step. */
static float measure_island_wait(const struct ni_blame *b, uint32_t island, uint32_t from, uint32_t to) {
  double sum = 0;
  uint32_t ranks = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    if (!b->rank[i].judged || b->island[i] != island)
      continue;
    ranks++;
    for (uint32_t k = from; k < to; k++)
      sum += ni_islands_measure_wait(b, i, k);
  }
  return ranks ? (float)(sum / ranks / ((to - from) * (double)b->bin_steps)) : INFINITY;
}

/* As much as a rank is late by, times this: an island that waits so long for others is not late. */
#define WAITS_PART 0.5f

/*
 * Who waits for a late rank within operations computes beside them, and less of it is seen between: beside
 * the island of a late rank those of all others look late. But they wait where islands meet, and nobody
 * waits for them.
 */
static void clear_waiting_islands(struct ni_lateness *w) {
  const struct ni_blame *b = w->b;
  for (uint32_t i = 0; b->island && i < b->n_ranks; i++) {
    struct ni_rank_lateness *l = &w->late[i];
    if (!l->late || l->launch)
      continue;
    const float mine = measure_island_wait(b, b->island[i], l->from, l->to);
    float least = mine;
    for (uint32_t k = 0; k < b->n_islands; k++)
      least = fminf(least, measure_island_wait(b, k, l->from, l->to));
    l->late = mine - least < WAITS_PART * l->excess_us;
  }
}

int ni_lateness_judge(struct ni_lateness *w) {
  const struct ni_blame *b = w->b;
  int e = 0;
  for (uint32_t c = 0; e == 0 && c < b->n_classes && !b->waits_unseen; c++)
    e = judge_members(w, c, NULL, false);
  if (e == 0)
    clear_chance_bursts(w);
  if (e == 0 && (b->waits_unseen || b->teams_wait_unseen))
    e = judge_teams(w);
  if (e == 0)
    clear_waiting_islands(w);
  if (e == 0)
    e = ni_calls_compare(b, w->calls_us, w->calls_times);
  if (e == 0) {
    judge_launches(w);
    judge_calls(w);
  }
  clear_unknown_gaps(w);
  return e;
}

/* Own time of the rank in a bin beyond that of its like, as a part of what is usual; NAN: not compared. */
static float get_beyond(const struct ni_lateness *w, uint32_t rank, uint32_t bin) {
  const float of_us = w->late[rank].of_us;
  return of_us > 0 ? fminf(w->b->beyond_us[(size_t)rank * w->b->bins + bin] / of_us, 1) : NAN;
}

static bool is_compared(const struct ni_lateness *w, uint32_t rank) {
  const struct ni_blame_rank *o = &w->b->rank[rank];
  return o->judged && !o->gaps_unknown && w->late[rank].of_us > 0;
}

static float get_beyond_mean(const struct ni_lateness *w, uint32_t rank, uint32_t from, uint32_t to) {
  double sum = 0;
  uint32_t n = 0;
  for (uint32_t k = from; k < to; k++) {
    const float x = get_beyond(w, rank, k);
    sum += isnan(x) ? 0 : x;
    n += !isnan(x);
  }
  return n ? (float)(sum / n) : NAN;
}

/* row: the mean of the host's ranks in each bin. Returns how many of them are compared. */
static uint32_t fill_host_row(const struct ni_lateness *w, uint32_t host, float *row) {
  const struct ni_blame *b = w->b;
  uint32_t ranks = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    ranks += is_compared(w, i) && ni_blame_host(b, i) == host;
  for (uint32_t k = 0; k < b->bins; k++) {
    double sum = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n_ranks; i++) {
      const bool is_there = is_compared(w, i) && ni_blame_host(b, i) == host;
      const float x = is_there ? get_beyond(w, i, k) : NAN;
      sum += isnan(x) ? 0 : x;
      n += !isnan(x);
    }
    row[k] = n ? (float)(sum / n) : NAN;
  }
  return ranks;
}

/* Something else was found of one of its ranks, or most of them are late by themselves. */
static bool is_host_told(const struct ni_lateness *w, uint32_t host) {
  uint32_t late = 0, ranks = 0;
  for (uint32_t i = 0; i < w->b->n_ranks; i++) {
    if (!w->b->rank[i].judged || ni_blame_host(w->b, i) != host)
      continue;
    const struct ni_rank_lateness *l = &w->late[i];
    if (l->launch || l->bursts || l->calls > 0)
      return true;
    ranks++;
    late += l->late;
  }
  return (float)late >= NI_CAUSE_OF_HOST * (float)ranks;
}

/* Some of its ranks have been named. */
static bool is_host_named(const struct ni_lateness *w, uint32_t host, const struct ni_causes *named) {
  for (uint32_t i = 0; i < named->n; i++)
    for (uint32_t k = 0; k < named->item[i].n_items && !named->item[i].links; k++)
      if (ni_blame_host(w->b, named->item[i].item[k]) == host)
        return true;
  return false;
}

/* Ranks of other hosts in these bins. */
struct elsewhere {
  uint32_t n;
  float middle, high; /* nine in ten are below */
  float apart;
};

static struct elsewhere measure_elsewhere(const struct ni_lateness *w, uint32_t host, uint32_t from,
                                          uint32_t to) {
  struct elsewhere x = {0};
  for (uint32_t i = 0; i < w->b->n_ranks; i++) {
    const bool is_other = is_compared(w, i) && ni_blame_host(w->b, i) != host;
    const float mean = is_other ? get_beyond_mean(w, i, from, to) : NAN;
    if (!isnan(mean))
      w->means[x.n++] = mean;
  }
  x.high = ni_blame_quantile(w->means, x.n, HIGH_ELSEWHERE);
  x.middle = ni_blame_quantile(w->means, x.n, 0.5);
  x.apart = measure_apart(w->means, x.n);
  return x;
}

/* What ranks of a host are late by together, in bins from..to. */
static void set_together(struct ni_lateness *w, uint32_t host, uint32_t from, uint32_t to, float usual) {
  const uint32_t near = ni_cause_near_end(w->b);
  for (uint32_t i = 0; i < w->b->n_ranks; i++) {
    struct ni_rank_lateness *l = &w->late[i];
    if (l->late || !is_compared(w, i) || ni_blame_host(w->b, i) != host)
      continue;
    const float share = get_beyond_mean(w, i, from, to) - usual;
    l->together = true;
    l->from = from <= near ? 0 : from;
    l->to = to + near >= w->b->bins ? w->b->bins : to;
    l->share = share;
    l->excess_us = share * l->of_us;
    l->of_gaps = l->excess_us / w->c.seen_us[i];
    l->seen_us = w->c.seen_us[i];
    l->lead = w->c.lead[i];
    l->n_peers = w->b->n_ranks;
  }
}

/*
 * The mean of n ranks differs by less from host to host than one rank does from another. So a host is late
 * that is NI_CAUSE_OWN longer and TOGETHER_APART times as far as single ranks lie apart, where nearly all of
 * its ranks are beyond nearly all others: chance does not put them on one host. In a pipeline the stage does:
 * it may have more to do.
 */
static void judge_host(struct ni_lateness *w, uint32_t host, float *row) {
  const struct ni_blame *b = w->b;
  uint32_t from, to, beyond = 0;
  const uint32_t ranks = fill_host_row(w, host, row);
  if (b->stages || ranks < 2 || is_host_told(w, host) || !find_late_interval(row, b->bins, &from, &to))
    return;
  const float mean = get_interval_mean(row, from, to);
  const struct elsewhere others = measure_elsewhere(w, host, from, to);
  if (isnan(mean) || to - from < NI_CAUSE_BINS || others.n < SPREAD_MIN)
    return;
  float most = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    if (!is_compared(w, i) || ni_blame_host(b, i) != host)
      continue;
    const float mine = get_beyond_mean(w, i, from, to);
    beyond += mine > others.high;
    most = fmaxf(most, mine - others.middle);
  }
  size_t n = 0;
  for (uint32_t k = from + 1; k < to; k++)
    if (!isnan(row[k]) && !isnan(row[k - 1]))
      w->scratch[n++] = fabsf(row[k] - row[k - 1]);
  const float noise = n ? ni_blame_quantile(w->scratch, n, 0.5) * NI_CAUSE_NOISE : INFINITY;
  const float more = mean - others.middle;
  const float least = fmaxf(fmaxf(NI_CAUSE_OWN, TOGETHER_APART * others.apart),
                            NI_CAUSE_SIGMA * noise / sqrtf((float)(to - from)));
  const bool is_long = more * (float)(to - from) >= NI_CAUSE_OF_RUN * (float)b->bins;
  const bool are_alike = most <= NI_CAUSE_OF_HOST_MOST * more;
  if (more >= least && is_long && are_alike && (float)beyond >= NI_CAUSE_OF_HOST * (float)ranks)
    set_together(w, host, from, to, others.middle);
}

int ni_lateness_judge_hosts(struct ni_lateness *w, const struct ni_causes *named) {
  const struct ni_blame *b = w->b;
  if (b->waits_unseen || b->teams_wait_unseen || b->island)
    return 0;
  float *row = malloc((b->bins + 1) * sizeof *row);
  for (uint32_t h = 0; row && h < b->s->n_hosts; h++)
    if (!is_host_named(w, h, named))
      judge_host(w, h, row);
  free(row);
  return row ? 0 : -ENOMEM;
}

void ni_lateness_end(struct ni_lateness *w) {
  for (uint32_t i = 0; w->late && i < w->b->n_ranks; i++)
    free(w->late[i].hit);
  ni_launches_end(&w->launches);
  free(w->late);
  free(w->c.member);
  free(w->scratch);
  free(w->c.over_us);
  free(w->c.seen_us);
  free(w->means);
  free(w->burst_areas);
  free(w->calls_us);
  free(w->calls_times);
  free(w->c.lead);
}
