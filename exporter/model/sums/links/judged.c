#include "judged.h"

#include <math.h>

#include "exporter/model/sums/ranks/quantile.h"
#include "transfers.h"

/* A bin says no more than that of whether a link is slow; how slow it is there is another question. */
static float clip_excess(float x) { return x > NI_CAUSE_LINK_MOST ? NI_CAUSE_LINK_MOST : x; }

/*
 * A transfer is the least of its ranks' durations, so wrong stamps make it shorter, the more ranks begin it
 * together. Where one rank is the last one all the time its duration alone is left, and looks long beside
 * that: by as much as stamps are off. Ranks whose CPU launches late come one by one, too. Returns by how much
 * a transfer has to be longer, in us.
 */
static float find_least_us(const struct ni_link_judge *w, const struct ni_blame_link *l) {
  float off = NI_CAUSE_LINK_LEAST_US;
  for (uint32_t i = 0; i < l->n_ranks; i++) {
    const uint32_t rank = l->rank[i];
    bool late = false;
    for (uint32_t k = 0; k < w->out->n && !late; k++) {
      const struct ni_cause *c = &w->out->item[k];
      const bool own =
          c->kind == NI_FIND_LATE_RANK || c->kind == NI_FIND_UNEVEN || c->kind == NI_FIND_THROTTLING;
      const bool is_slow_cpu = c->kind == NI_FIND_SLOW_HOST && (c->launch || c->calls > 0);
      const bool of_host = is_slow_cpu && c->of == ni_blame_host(w->b, rank);
      const bool of_rank = own && c->level == NI_LEVEL_RANK && c->of == rank;
      late = of_host || of_rank;
    }
    if (late)
      off = fmaxf(off, w->b->rank[rank].overlap_us);
  }
  return off;
}

/* By how much it has to be slower, as a share. */
static float find_least_excess(const struct ni_blame_link *l) {
  if (l->alike < NI_CAUSE_LIKE_MIN)
    return NI_CAUSE_LINK - 1;
  return fminf(NI_CAUSE_LINK - 1, fmaxf(NI_CAUSE_LINK_OF_MANY - 1, NI_CAUSE_APART * l->apart));
}

static float find_excess_floor(const struct ni_blame_link *l) {
  return (find_least_excess(l) < NI_CAUSE_LINK - 1 ? NI_CAUSE_LINK_FLOOR_OF_MANY : NI_CAUSE_LINK_FLOOR) - 1;
}

struct slow_bins {
  double sum, whole; /* of what transfers take longer, as shares; sum: clipped */
  double most;       /* the largest one of sum */
  uint32_t n;
};

static void add_slow_bin(struct slow_bins *s, float clipped, float whole) {
  s->sum += clipped;
  s->whole += whole;
  s->most = fmax(s->most, clipped);
  s->n++;
}

/*
 * Longer by so much in these bins than chance and stamps can make it; over the whole run it matters, also
 * without the longest of them, or for a while it is far off.
 */
static bool link_stands_out(const struct ni_link_judge *w, const struct ni_blame_link *l,
                            const struct slow_bins *s, float noise) {
  const uint32_t n = s->n;
  const double mean = s->sum / n;
  if (n < NI_CAUSE_BINS || mean < find_least_excess(l) || mean * l->baseline_us < find_least_us(w, l))
    return false;
  if (mean < NI_CAUSE_SIGMA * noise / sqrt(n))
    return false;
  const uint32_t known = ni_transfers_known(l->us, 0, w->b->bins);
  const bool is_of_run = s->sum - s->most >= NI_CAUSE_LINK_OF_RUN * known;
  return is_of_run || (mean >= NI_CAUSE_DROP && s->sum >= NI_CAUSE_DROPS);
}

/* One operation of the bin took far longer than the longest one usually does. */
static bool has_long_operation(const struct ni_blame_link *l, uint32_t bin) {
  const float usual = l->usual_longest, us = l->longest ? l->longest[bin] : 0;
  return us >= (1 + NI_CAUSE_LINK_MOST) * usual && us - usual >= NI_BLAME_BURST_US;
}

bool ni_link_stopped(const struct ni_link_judge *w, const struct ni_blame_link *l, uint32_t bin) {
  const struct ni_blame *b = w->b;
  uint32_t likes = 0, stopped = 0;
  /* the first and the last bin are begun or ended in the middle of a step */
  const bool is_whole = bin > 0 && bin + 1 < b->bins;
  if (!is_whole || w->out->crowded[bin] || !has_long_operation(l, bin))
    return false;
  for (uint32_t i = 0; i < b->n_links; i++) {
    if (b->link[i].cls != l->cls)
      continue;
    likes++;
    stopped += has_long_operation(&b->link[i], bin);
  }
  return likes < 2 || stopped * 2 <= likes;
}

/* Did it stop more than once? Once may be anything. */
static bool judge_stops(const struct ni_link_judge *w, uint32_t link) {
  const struct ni_blame_link *l = &w->b->link[link];
  struct ni_judged_link *j = &w->link[link];
  uint32_t n = 0;
  double sum = 0;
  for (uint32_t k = 0; l->host < 0 && l->longest && k < w->b->bins; k++) {
    if (!ni_link_stopped(w, l, k))
      continue;
    if (n++ == 0)
      j->from = k;
    j->to = k + 1;
    sum += l->longest[k] / l->usual_longest;
  }
  if (n < 2)
    return false;
  j->ratio = (float)(sum / n);
  j->state = NI_JUDGED_SLOW;
  return j->stops = true;
}

/* It is compared with links that are like it. */
static bool is_compared(const struct ni_link_judge *w, const struct ni_blame_link *l) {
  return ni_transfers_are_long(l, w->step_us) && ni_transfers_have_all_ranks(w->b, l) && l->alike >= 2;
}

/* By how much its transfers take longer than they should, from bin to bin. */
static void fill_excess(const struct ni_link_judge *w, const struct ni_blame_link *l, float *x) {
  for (uint32_t k = 0; k < w->b->bins; k++)
    x[k] = w->out->crowded[k] ? NAN : clip_excess(l->us[k] / l->baseline_us - 1);
}

/*
 * How much links differ from bin to bin. A few bins tell a link's own noise badly, and of a thousand links
 * some look far steadier than they are: by chance their largest mean is then no chance. So of many that are
 * alike none is taken to be steadier than the middle one.
 */
static void measure_noise(const struct ni_link_judge *w) {
  const struct ni_blame *b = w->b;
  float *x = w->x, *scratch = w->x + b->bins, *of_class = scratch + b->bins;
  for (uint32_t i = 0; i < b->n_links; i++) {
    w->link[i].noise = NAN;
    if (!is_compared(w, &b->link[i]))
      continue;
    fill_excess(w, &b->link[i], x);
    w->link[i].noise = ni_transfers_noise(x, b->bins, scratch);
  }
  for (uint32_t cls = 0; cls < NI_BLAME_LINK_CLASSES; cls++) {
    size_t n = 0;
    for (uint32_t i = 0; i < b->n_links; i++)
      if (b->link[i].cls == cls && !isnan(w->link[i].noise))
        of_class[n++] = w->link[i].noise;
    if (n < NI_CAUSE_LIKE_MIN)
      continue;
    const float usual = ni_blame_quantile(of_class, n, 0.5);
    for (uint32_t i = 0; i < b->n_links; i++)
      if (b->link[i].cls == cls)
        w->link[i].noise = fmaxf(w->link[i].noise, usual);
  }
}

void ni_judge_links(struct ni_link_judge *w) {
  const struct ni_blame *b = w->b;
  float *x = w->x;
  measure_noise(w);
  for (uint32_t i = 0; i < b->n_links; i++) {
    const struct ni_blame_link *l = &b->link[i];
    struct ni_judged_link *j = &w->link[i];
    struct slow_bins in = {0}, off = {0};
    const bool can_stop = ni_transfers_are_long(l, w->step_us) && ni_transfers_have_all_ranks(b, l);
    if ((can_stop && judge_stops(w, i)) || !is_compared(w, l))
      continue;
    fill_excess(w, l, x);
    j->state = NI_JUDGED_FINE;
    j->ratio = 1;
    const float drop = ni_transfers_drop_threshold(j->noise);
    if (!ni_find_longest_above(x, b->bins, find_excess_floor(l), &j->from, &j->to))
      continue;
    for (uint32_t k = j->from; k < j->to; k++) {
      const float more = l->us[k] / l->baseline_us - 1;
      if (isnan(x[k]))
        continue;
      add_slow_bin(&in, x[k], more);
      if (x[k] >= drop)
        add_slow_bin(&off, x[k], more);
    }
    const uint32_t near = ni_cause_near_end(b);
    if (j->from <= near || !ni_transfers_known(x, 1, j->from))
      j->from = 0;
    if (j->to + near >= b->bins || !ni_transfers_known(x, j->to, b->bins - 1))
      j->to = b->bins;
    if (link_stands_out(w, l, &in, j->noise))
      j->ratio = (float)(in.whole / in.n) + 1;
    else if (off.n && link_stands_out(w, l, &off, j->noise))
      j->ratio = (float)(off.whole / off.n) + 1;
    else
      continue;
    j->state = NI_JUDGED_SLOW;
  }
}
