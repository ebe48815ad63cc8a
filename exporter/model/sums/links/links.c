/*
 * Links that are slower than their peers, after the network as a whole (fabric.c): what all slow links cross,
 * and hardly any fast one, is named. That is the NVLink of a host or of one rank, a host's NICs, the NIC of
 * one rank, or the way between two hosts or two ranks; else the communicator itself.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/model/sums/blame/peer_groups.h"
#include "exporter/model/sums/blame/causes.h"
#include "shared_nic.h"
#include "transfers.h"
#include "exporter/model/sums/ranks/quantile.h"

enum link_state { UNKNOWN, FINE, SLOW, EXPLAINED };

enum {
  SUSPECTS_MAX = 32, /* ranks of a link that are looked at one by one; each look goes through all links */
  /*
   * Of ten links that cross a suspect so many have to be slow. One or two may be slow by too little to be
   * seen.
   */
  SLOW_OF_TEN = 8,
  LOCAL_OF_FOUR = 3, /* so many of four links within a host have to be slow for its NVLink to be named */
  /* so many slow links cross a slow NIC, or a GPU's NVLink: one alone may be a slow pair */
  NIC_LINKS_MIN = 2,
  WAY_LINKS_MIN = 3, /* so many cross a slow way between two hosts: two may be a slow pair of ranks */
  DROP_PART = 4      /* a bin belongs to a drop if it is a quarter as slow as drops are in the mean */
};

/* Of two suspects that explain as many links, one explains more if it does so many times. */
#define EXPLAINS_MORE 1.5f

struct judged_link {
  uint8_t state; /* enum link_state */
  float noise;   /* from bin to bin (measure_noise()) */
  bool stops;    /* single operations of it stop (is_stopped()) */
  uint32_t from, to;
  float ratio; /* in those of from..to in which it is slow */
};

struct link_judge {
  const struct ni_blame *b;
  struct ni_causes *out;
  struct judged_link *link;
  float *x; /* scratch: [2][bins], links */
  double step_us;
};

/* A bin says no more than that of whether a link is slow; how slow it is there is another question. */
static float clip_excess(float x) { return x > NI_CAUSE_LINK_MOST ? NI_CAUSE_LINK_MOST : x; }

/*
 * A transfer is the least of its ranks' durations, so wrong stamps make it shorter, the more ranks begin it
 * together. Where one rank is the last one all the time its duration alone is left, and looks long beside
 * that: by as much as stamps are off. Ranks whose CPU launches late come one by one, too. Returns by how much
 * a transfer has to be longer, in us.
 */
static float find_least_us(const struct link_judge *w, const struct ni_blame_link *l) {
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
static bool link_stands_out(const struct link_judge *w, const struct ni_blame_link *l,
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

/*
 * An operation of a link across hosts stopped in this bin, and hardly any of what is like it did. A link that
 * is down for a second stops what is under way, one operation of a communicator, and the next ones are as
 * quick as ever. The mean of the bin would hide it, and its shortest operation shows nothing of it. What has
 * no like, as the one communicator of all ranks, is compared with itself at other times: that says no less,
 * as nobody came late.
 */
static bool is_stopped(const struct link_judge *w, const struct ni_blame_link *l, uint32_t bin) {
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
static bool judge_stops(const struct link_judge *w, uint32_t link) {
  const struct ni_blame_link *l = &w->b->link[link];
  struct judged_link *j = &w->link[link];
  uint32_t n = 0;
  double sum = 0;
  for (uint32_t k = 0; l->host < 0 && l->longest && k < w->b->bins; k++) {
    if (!is_stopped(w, l, k))
      continue;
    if (n++ == 0)
      j->from = k;
    j->to = k + 1;
    sum += l->longest[k] / l->usual_longest;
  }
  if (n < 2)
    return false;
  j->ratio = (float)(sum / n);
  j->state = SLOW;
  return j->stops = true;
}

/* It is compared with links that are like it. */
static bool is_compared(const struct link_judge *w, const struct ni_blame_link *l) {
  return ni_transfers_are_long(l, w->step_us) && ni_transfers_have_all_ranks(w->b, l) && l->alike >= 2;
}

/* By how much its transfers take longer than they should, from bin to bin. */
static void fill_excess(const struct link_judge *w, const struct ni_blame_link *l, float *x) {
  for (uint32_t k = 0; k < w->b->bins; k++)
    x[k] = w->out->crowded[k] ? NAN : clip_excess(l->us[k] / l->baseline_us - 1);
}

/*
 * How much links differ from bin to bin. A few bins tell a link's own noise badly, and of a thousand links
 * some look far steadier than they are: by chance their largest mean is then no chance. So of many that are
 * alike none is taken to be steadier than the middle one.
 */
static void measure_noise(const struct link_judge *w) {
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

static void judge_links(struct link_judge *w) {
  const struct ni_blame *b = w->b;
  float *x = w->x;
  measure_noise(w);
  for (uint32_t i = 0; i < b->n_links; i++) {
    const struct ni_blame_link *l = &b->link[i];
    struct judged_link *j = &w->link[i];
    struct slow_bins in = {0}, off = {0};
    const bool can_stop = ni_transfers_are_long(l, w->step_us) && ni_transfers_have_all_ranks(b, l);
    if ((can_stop && judge_stops(w, i)) || !is_compared(w, l))
      continue;
    fill_excess(w, l, x);
    j->state = FINE;
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
    j->state = SLOW;
  }
}

/* What a link may be slow for: it crosses this. */
struct suspect {
  enum ni_finding_kind kind;
  enum ni_finding_level level;
  uint32_t of, other;
};

static bool is_on_host(const struct ni_blame *b, const struct ni_blame_link *l, uint32_t host) {
  for (uint32_t i = 0; i < l->n_ranks; i++)
    if (ni_blame_host(b, l->rank[i]) == host)
      return true;
  return false;
}

static bool has_rank(const struct ni_blame_link *l, uint32_t rank) {
  for (uint32_t i = 0; i < l->n_ranks; i++)
    if (l->rank[i] == rank)
      return true;
  return false;
}

/* Two collectives across hosts have ranks on one host. */
static bool share_host(const struct ni_blame *b, const struct ni_blame_link *x,
                       const struct ni_blame_link *y) {
  for (uint32_t i = 0; i < y->n_ranks; i++)
    if (is_on_host(b, x, ni_blame_host(b, y->rank[i])))
      return true;
  return false;
}

/*
 * Communicators that are like each other, slow at the same time and about as much, and meet on a host: they
 * cross the same NIC of two, four or all GPUs, or the same switch. Each of them alone would cost nothing, for
 * the job would wait for the others. Where operations stop now and then these are any two that meet on a
 * host.
 */
static bool is_slow_beside(const struct link_judge *w, uint32_t link, uint32_t other) {
  const struct ni_blame_link *x = &w->b->link[link], *y = &w->b->link[other];
  const struct judged_link *j = &w->link[link], *k = &w->link[other];
  const bool both_stop = j->stops && k->stops; /* each when it happens to be under way */
  const bool are_alike = x->cls == y->cls && x->from < 0 && x->host < 0 && j->stops == k->stops;
  const bool as_slow = j->ratio - 1 <= 2 * (k->ratio - 1) && k->ratio - 1 <= 2 * (j->ratio - 1);
  const bool at_once = j->from < k->to && k->from < j->to;
  return (both_stop || (are_alike && as_slow)) && at_once && share_host(w->b, x, y);
}

static bool joins_ranks(const struct ni_blame_link *l, uint32_t x, uint32_t y) {
  return has_rank(l, x) && has_rank(l, y);
}

static bool crosses(const struct link_judge *w, const struct suspect *s, uint32_t link) {
  const struct ni_blame_link *l = &w->b->link[link];
  bool local = l->host >= 0;
  if (s->kind == NI_FIND_SLOW_NVLINK)
    return local && (s->level == NI_LEVEL_HOST ? l->host == (int32_t)s->of : has_rank(l, s->of));
  if (s->level == NI_LEVEL_COMM)
    return link == s->of || is_slow_beside(w, link, s->of);
  if (local)
    return s->kind == NI_FIND_SLOW_PAIR && s->level == NI_LEVEL_RANK && joins_ranks(l, s->of, s->other);
  const bool has_one_end = s->other == NI_BLAME_NONE;
  if (s->level != NI_LEVEL_HOST)
    return has_rank(l, s->of) && (has_one_end || has_rank(l, s->other));
  if (!is_on_host(w->b, l, s->of))
    return false;
  return s->kind == NI_FIND_SLOW_NIC || has_one_end || is_on_host(w->b, l, s->other);
}

struct fit {
  uint32_t slow, all; /* of those that cross it */
  float excess;       /* of the slow ones, in all */
};

static struct fit count_fit(const struct link_judge *w, const struct suspect *s) {
  struct fit f = {0};
  for (uint32_t i = 0; i < w->b->n_links; i++) {
    const struct judged_link *j = &w->link[i];
    if (j->state == UNKNOWN || !crosses(w, s, i))
      continue;
    f.all += j->state != EXPLAINED;
    f.slow += j->state == SLOW;
    f.excess += j->state == SLOW ? j->ratio - 1 : 0;
  }
  return f;
}

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

/*
 * When the links of a cause are slow. Where they are as fast as usual in most bins and far slower in some,
 * these are its drops: runs of bins above a quarter of how slow they get, which end when two bins in a row
 * lie below. What is slow for one run is slow in from..to; several runs are a link that flaps.
 */
static int find_drops(const struct link_judge *w, struct ni_cause *c) {
  const struct ni_blame *b = w->b;
  float *ratio = w->x, *scratch = w->x + b->bins;
  double high = 0;
  uint32_t n = 0, n_high = 0, runs = 0, first = 0, end = 0;
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
  const float drop = ni_transfers_drop_threshold(ni_transfers_noise(ratio, b->bins, scratch));
  for (uint32_t k = 0; k < b->bins; k++) {
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
  const float floor = fmaxf((float)high / (float)n_high / DROP_PART, drop / 2);
  bool *at = calloc(b->bins + 1, sizeof *at);
  if (!at)
    return -ENOMEM;
  high = n_high = 0;
  for (uint32_t k = 0; k < b->bins;) {
    uint32_t to = k, below = 0;
    double sum = 0;
    for (uint32_t i = k; i < b->bins && ratio[k] > floor && below < 2; i++) {
      if (isnan(ratio[i]))
        continue;
      below = ratio[i] > floor ? 0 : below + 1;
      if (!below) {
        sum += ratio[i];
        to = i + 1;
      }
    }
    if (sum >= NI_CAUSE_DROP_SUM) {
      if (runs++ == 0)
        first = k;
      end = to;
      high += sum;
      n_high += ni_transfers_known(ratio, k, to);
      for (uint32_t i = k; i < to; i++)
        at[i] = !isnan(ratio[i]);
    }
    k = to > k ? to : k + 1;
  }
  if (runs < 2) {
    free(at);
    return 0;
  }
  c->kind = NI_FIND_FLAPPING;
  c->at = at;
  c->most_us = bound_drops(b, c, at);
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

/* When single operations of its links stopped. What they can cost: twice as long as that, of each bin. */
static int find_stops(const struct link_judge *w, struct ni_cause *c) {
  const struct ni_blame *b = w->b;
  double share = 0, lost_us = 0;
  uint32_t n = 0, runs = 0;
  if (!(c->at = calloc(b->bins + 1, sizeof *c->at)))
    return -ENOMEM;
  for (uint32_t k = 0; k < b->bins; k++) {
    float most_us = 0;
    for (uint32_t i = 0; i < c->n_items; i++) {
      const struct ni_blame_link *l = &b->link[c->item[i]];
      if (!is_stopped(w, l, k))
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

/* All ranks of the first link take part in the other one. */
static bool is_within(const struct ni_blame_link *l, const struct ni_blame_link *other) {
  uint32_t there = 0;
  for (uint32_t i = 0; i < l->n_ranks; i++)
    there += has_rank(other, l->rank[i]);
  return there == l->n_ranks;
}

/*
 * Collectives that cross the slow NIC, too, and have no like, as the gradients' of all ranks: nothing says
 * what they would take without it. Where they carry as many bytes as what is slow, or more, they wait for the
 * same NIC, and are slowed by as much. Of a slow communicator it is the NIC of one of its ranks. Not the way
 * between two: a ring need not take it.
 */
static int add_unmatched_links(const struct link_judge *w, const struct suspect *s, struct ni_cause *c) {
  const struct ni_blame *b = w->b;
  double bytes = 0;
  int e = 0;
  for (uint32_t i = 0; i < c->n_items; i++)
    bytes += b->link[c->item[i]].bytes / c->n_items;
  for (uint32_t i = 0; e == 0 && i < b->n_links; i++) {
    const struct ni_blame_link *l = &b->link[i];
    const bool is_unmatched = l->from < 0 && l->host < 0 && l->alike < 2;
    if (!is_unmatched || !(l->bytes >= bytes))
      continue;
    if (!ni_transfers_are_long(l, w->step_us) || !ni_transfers_have_all_ranks(w->b, l))
      continue;
    const bool its = s->kind == NI_FIND_SLOW_COMM ? b->link[s->of].host < 0 && is_within(&b->link[s->of], l)
                                                  : s->kind == NI_FIND_SLOW_NIC && crosses(w, s, i);
    if (its)
      e = ni_cause_add_unmatched(c, i);
  }
  return e;
}

/* Makes one cause of all slow links that cross the suspect. */
static int name_suspect(struct link_judge *w, const struct suspect *s) {
  struct ni_cause *c = ni_cause_add(w->out, s->kind, s->level, s->of);
  double share = 0;
  uint32_t stop = 0;
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < w->b->n_links; i++) {
    struct judged_link *j = &w->link[i];
    if (j->state != SLOW || !crosses(w, s, i))
      continue;
    j->state = EXPLAINED;
    if (!c)
      continue;
    if (c->n_items == 0 || j->from < c->from)
      c->from = j->from;
    if (j->to > c->to)
      c->to = j->to;
    share += j->ratio - 1;
    stop += j->stops;
    if (w->b->link[i].alike > c->n_peers)
      c->n_peers = w->b->link[i].alike;
    e = ni_cause_add_item(c, i);
  }
  if (!c || e < 0)
    return e;
  c->links = true;
  c->link = s->kind;
  c->other = s->other;
  c->share = c->n_items ? (float)(share / c->n_items) : 0;
  c->stops = stop && stop == c->n_items;
  if (c->stops)
    return find_stops(w, c);
  if ((e = add_unmatched_links(w, s, c)) < 0)
    return e;
  return find_drops(w, c);
}

/*
 * Takes the suspect for the best one so far where it explains more slow links, and hardly any fast link
 * crosses it. *tie: another suspect of the kind explains as many, and about as much: what waits for a slow
 * link in turn, as the next message of a ring, is slower by a little.
 */
static void consider_suspect(const struct link_judge *w, const struct suspect *s, uint32_t least,
                             struct suspect *best, struct fit *of_best, bool *tie) {
  struct fit f = count_fit(w, s);
  if (f.slow < least || f.slow * 10 < f.all * SLOW_OF_TEN)
    return;
  if (f.slow < of_best->slow)
    return;
  bool same = f.slow == of_best->slow && s->kind == best->kind && s->level == best->level;
  if (f.slow == of_best->slow && !same)
    return;
  if (same && of_best->excess > EXPLAINS_MORE * f.excess)
    return;
  *tie = same && f.excess <= EXPLAINS_MORE * of_best->excess;
  *best = *s;
  *of_best = f;
}

/* The one host that all links across hosts of this one lead to; NI_BLAME_NONE: there are several. */
static uint32_t find_only_partner(const struct link_judge *w, uint32_t host) {
  uint32_t partner = NI_BLAME_NONE;
  for (uint32_t i = 0; i < w->b->n_links; i++) {
    const struct ni_blame_link *l = &w->b->link[i];
    if (l->host >= 0 || w->link[i].state == UNKNOWN || !is_on_host(w->b, l, host))
      continue;
    for (uint32_t k = 0; k < l->n_ranks; k++) {
      uint32_t h = ni_blame_host(w->b, l->rank[k]);
      if (h != host && partner != NI_BLAME_NONE && h != partner)
        return NI_BLAME_NONE;
      if (h != host)
        partner = h;
    }
  }
  return partner;
}

/*
 * The one rank on another host that all messages across hosts of this one go to; NI_BLAME_NONE: there are
 * several, or it takes part in more.
 */
static uint32_t find_only_partner_rank(const struct link_judge *w, uint32_t rank) {
  uint32_t partner = NI_BLAME_NONE;
  for (uint32_t i = 0; i < w->b->n_links; i++) {
    const struct ni_blame_link *l = &w->b->link[i];
    if (l->host >= 0 || w->link[i].state == UNKNOWN || !has_rank(l, rank))
      continue;
    uint32_t other = l->n_ranks == 2 ? l->rank[l->rank[0] == rank] : NI_BLAME_NONE;
    if (other == NI_BLAME_NONE || (partner != NI_BLAME_NONE && other != partner))
      return NI_BLAME_NONE;
    partner = other;
  }
  return partner;
}

/*
 * Slow with others between the same two hosts, about as much, but not with all: a message that is sent and
 * received in one group with others ends when these do, so what looks like a transfer is waiting for a third.
 * None of them is named. Returns whether that is so.
 */
static bool explain_by_way(struct link_judge *w, uint32_t link) {
  const struct ni_blame_link *l = &w->b->link[link];
  struct suspect way = {NI_FIND_SLOW_PAIR, NI_LEVEL_HOST, ni_blame_host(w->b, l->rank[0]),
                        ni_blame_host(w->b, l->rank[1])};
  struct suspect self = {NI_FIND_SLOW_PAIR, NI_LEVEL_RANK, l->rank[0], l->rank[1]};
  const float least = 1 + (w->link[link].ratio - 1) / 2, most = 1 + (w->link[link].ratio - 1) * 2;
  uint32_t others = 0;
  if (l->n_ranks != 2)
    return false;
  for (int pass = 0; pass < 2 && (pass == 0 || others >= 2); pass++)
    for (uint32_t i = 0; i < w->b->n_links; i++) {
      struct judged_link *j = &w->link[i];
      const bool is_as_slow = j->state == SLOW && !(j->ratio < least || j->ratio > most);
      if (!is_as_slow || !crosses(w, &way, i))
        continue;
      if (pass == 0)
        others += !crosses(w, &self, i);
      else
        j->state = EXPLAINED;
    }
  return others >= 2;
}

/* Names what makes a link across hosts slow: the wider suspects are asked first. */
static int explain_link(struct link_judge *w, uint32_t link) {
  const struct ni_blame *b = w->b;
  const struct ni_blame_link *l = &b->link[link];
  struct suspect best = {.level = NI_LEVEL_COMM};
  struct fit of_best = {0};
  bool tie = false;
  const uint32_t ranks = l->n_ranks < SUSPECTS_MAX ? l->n_ranks : SUSPECTS_MAX;
  for (uint32_t i = 0; i < ranks; i++) /* NICs of one host: of several ranks */
    consider_suspect(
        w, &(struct suspect){NI_FIND_SLOW_NIC, NI_LEVEL_HOST, ni_blame_host(b, l->rank[i]), NI_BLAME_NONE},
        NIC_LINKS_MIN, &best, &of_best, &tie);
  if (of_best.slow && !tie) {
    best.other = find_only_partner(w, best.of);
    return name_suspect(w, &best);
  }
  if (of_best.slow && l->n_ranks == 2) { /* all ways of both are slow, and all go between them */
    best = (struct suspect){NI_FIND_SLOW_PAIR, NI_LEVEL_HOST, ni_blame_host(b, l->rank[0]),
                            ni_blame_host(b, l->rank[1])};
    return name_suspect(w, &best);
  }
  of_best = (struct fit){0};
  tie = false;
  if (l->n_ranks == 2) {
    consider_suspect(w,
                     &(struct suspect){NI_FIND_SLOW_PAIR, NI_LEVEL_HOST, ni_blame_host(b, l->rank[0]),
                                       ni_blame_host(b, l->rank[1])},
                     WAY_LINKS_MIN, &best, &of_best, &tie);
    if (of_best.slow)
      return name_suspect(w, &best);
  }
  for (uint32_t i = 0; i < ranks; i++)
    consider_suspect(w, &(struct suspect){NI_FIND_SLOW_NIC, NI_LEVEL_RANK, l->rank[i], NI_BLAME_NONE},
                     NIC_LINKS_MIN, &best, &of_best, &tie);
  if (of_best.slow && !tie) {
    best.other = l->n_ranks == 2 ? find_only_partner_rank(w, best.of) : NI_BLAME_NONE;
    return name_suspect(w, &best);
  }
  if (explain_by_way(w, link))
    return 0;
  best = (struct suspect){NI_FIND_SLOW_COMM, NI_LEVEL_COMM, link, NI_BLAME_NONE};
  if (l->n_ranks == 2 && count_fit(w, &best).slow < 2)
    best = (struct suspect){NI_FIND_SLOW_PAIR, NI_LEVEL_RANK, l->rank[0], l->rank[1]};
  return name_suspect(w, &best);
}

/*
 * Names what makes a link within a host slow: all links of the host, or those of one GPU. A GPU in a ring of
 * messages has two, one to each side, and each of them alone would cost nothing, for the ring would wait for
 * the other.
 */
static int explain_local_link(struct link_judge *w, uint32_t link) {
  const struct ni_blame_link *l = &w->b->link[link];
  struct suspect best = {NI_FIND_SLOW_NVLINK, NI_LEVEL_HOST, (uint32_t)l->host, NI_BLAME_NONE};
  struct fit f = count_fit(w, &best);
  bool tie = false;
  if (f.slow * 4 >= f.all * LOCAL_OF_FOUR)
    return name_suspect(w, &best);
  f = (struct fit){0};
  for (uint32_t i = 0; i < l->n_ranks && i < SUSPECTS_MAX; i++)
    consider_suspect(w, &(struct suspect){NI_FIND_SLOW_NVLINK, NI_LEVEL_RANK, l->rank[i], NI_BLAME_NONE},
                     NIC_LINKS_MIN, &best, &f, &tie);
  if (!f.slow || tie)
    best = (struct suspect){NI_FIND_SLOW_COMM, NI_LEVEL_COMM, link, NI_BLAME_NONE};
  return name_suspect(w, &best);
}

static int explain_local_links(struct link_judge *w) {
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < w->b->n_links; i++)
    if (w->link[i].state == SLOW && w->b->link[i].host >= 0)
      e = explain_local_link(w, i);
  return e;
}

/* Of the slow links across hosts that nothing explains yet; NI_BLAME_NONE: there is none. */
static uint32_t find_slowest(const struct link_judge *w) {
  uint32_t slowest = NI_BLAME_NONE;
  for (uint32_t i = 0; i < w->b->n_links; i++) {
    if (w->link[i].state != SLOW || w->b->link[i].host >= 0)
      continue;
    if (slowest == NI_BLAME_NONE || w->link[i].ratio > w->link[slowest].ratio)
      slowest = i;
  }
  return slowest;
}

int ni_find_slow_links(const struct ni_blame *b, struct ni_causes *out) {
  const uint32_t first = out->n;
  struct link_judge w = {b, out, calloc(b->n_links + 1, sizeof *w.link),
                         calloc(2 * (size_t)b->bins + b->n_links + 1, sizeof *w.x), ni_transfers_step_us(b)};
  int e = w.link && w.x ? 0 : -ENOMEM;
  if (e == 0 && !out->crowded)
    e = ni_find_congestion(b, out);
  if (e == 0)
    judge_links(&w);
  if (e == 0)
    e = explain_local_links(&w);
  /* no more are named than there is room for */
  for (uint32_t i; e == 0 && out->n < NI_CAUSES_MAX && (i = find_slowest(&w)) != NI_BLAME_NONE;)
    e = explain_link(&w, i);
  if (e == 0)
    e = ni_join_shared_nics(b, out, first);
  free(w.link);
  free(w.x);
  return e;
}
