/*
 * Transfers: the fabric as a whole in some bins; then links slower than their like, put down to what all of them cross and
 * nothing that is as fast as usual does: a host's NVLink, a host's NICs, the NIC of one rank, the way between two hosts or two ranks,
 * else the communicator itself.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "alike.h"
#include "causes.h"
#include "quantile.h"

enum state { UNKNOWN, FINE, SLOW, EXPLAINED };

enum { SUSPECTS_MAX = 32 }; /* ranks of a link that are looked at one by one; each look goes through all links */

struct judged {
  uint8_t state;               /* enum state */
  uint32_t from, to;
  float ratio;                 /* in from..to */
};

struct work {
  const struct ni_blame *b;
  struct ni_causes *out;
  struct judged *link;
  double step_us;
};

static bool counts(const struct work *w, const struct ni_blame_link *l) {
  return !isnan(l->mean_us) && l->n_ranks > 1 && l->mean_us * l->per_step >= NI_CAUSE_LINK_OF_STEP * w->step_us;
}

/* Length of a usual step, by the ranks that were seen longest. */
static double step_us(const struct ni_blame *b) {
  double best = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    const struct ni_blame_rank *o = &b->rank[i];
    double us = o->judged && o->n_steps ? (double)(o->last_ns - o->first_ns) / 1e3 / o->n_steps : 0;
    if (us > best) best = us;
  }
  return best;
}

/* Bins in which nearly all links across hosts are slower than they are themselves in quiet ones. */
static int crowded(struct work *w) {
  const struct ni_blame *b = w->b;
  float *x = malloc((b->n_links + 1) * sizeof *x), *ratio = malloc((b->bins + 1) * sizeof *ratio);
  uint32_t hit = 0, from = b->bins, to = 0, judged = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) judged += b->rank[i].judged;
  double sum = 0;
  if (!x || !ratio || !(w->out->crowded = calloc(b->bins + 1, sizeof(bool)))) {
    free(x);
    free(ratio);
    return -ENOMEM;
  }
  for (uint32_t k = 0; k < b->bins; k++) {
    size_t n = 0;
    bool all = false;
    for (uint32_t i = 0; i < b->n_links; i++) {
      const struct ni_blame_link *l = &b->link[i];
      if (l->host >= 0 || !counts(w, l) || isnan(l->us[k])) continue;
      x[n++] = l->us[k] / l->quiet_us;
      all |= l->n_ranks == judged;
    }
    ratio[k] = n ? ni_blame_quantile(x, n, 0.25) : NAN;
    if (n == 1 && !all) ratio[k] = NAN; /* of one link nobody can say whether it is all of them */
  }
  for (uint32_t k = 1; k + 1 < b->bins; k++) { /* alone a bin may be one slow operation */
    bool here = ratio[k] > NI_CAUSE_CROWDED;
    if (here && (ratio[k - 1] > NI_CAUSE_CROWDED || ratio[k + 1] > NI_CAUSE_CROWDED)) {
      w->out->crowded[k] = true;
      sum += ratio[k];
      hit++;
      if (k < from) from = k;
      to = k + 1;
    }
  }
  free(x);
  free(ratio);
  if (hit < 3 || hit < NI_CAUSE_CROWDED_BINS * (float)b->bins) {
    memset(w->out->crowded, 0, b->bins * sizeof(bool));
    return 0;
  }
  struct ni_cause *c = ni_cause_add(w->out, NI_FIND_CONGESTION, NI_LEVEL_FABRIC, 0);
  int e = 0;
  if (!c) return 0;
  c->links = true;
  c->from = from;
  c->to = to;
  c->bins_hit = hit;
  c->share = (float)(sum / hit) - 1;
  for (uint32_t i = 0; e == 0 && i < b->n_links; i++)
    if (b->link[i].host < 0 && counts(w, &b->link[i])) e = ni_cause_item(c, i);
  c->alike = c->n_items;
  return e;
}

static int judge(struct work *w) {
  const struct ni_blame *b = w->b;
  float *x = malloc((b->bins + 1) * sizeof *x);
  if (!x) return -ENOMEM;
  for (uint32_t i = 0; i < b->n_links; i++) {
    const struct ni_blame_link *l = &b->link[i];
    struct judged *j = &w->link[i];
    double sum = 0;
    uint32_t n = 0;
    if (l->alike < 2 || !counts(w, l)) continue;
    for (uint32_t k = 0; k < b->bins; k++) {
      x[k] = w->out->crowded[k] ? NAN : l->us[k] / l->usual_us - 1;
      if (x[k] > 4) x[k] = 4;
    }
    j->state = FINE;
    j->ratio = 1;
    if (!ni_longest_above(x, b->bins, NI_CAUSE_LINK_FLOOR - 1, &j->from, &j->to)) continue;
    for (uint32_t k = j->from; k < j->to; k++)
      if (!isnan(x[k])) sum += x[k], n++;
    uint32_t near = b->bins / 20 > 3 ? b->bins / 20 : 3;
    if (j->from <= near) j->from = 0;
    if (j->to + near >= b->bins) j->to = b->bins;
    if (n < NI_CAUSE_BINS || sum / n < NI_CAUSE_LINK - 1 || sum < NI_CAUSE_LINK_OF_RUN * b->bins) continue;
    j->ratio = (float)(sum / n) + 1;
    j->state = SLOW;
  }
  free(x);
  return 0;
}

/* What a link may be slow for: it crosses this. */
struct suspect {
  enum ni_finding_kind kind;
  enum ni_finding_level level;
  uint32_t of, other;
};

static bool on_host(const struct ni_blame *b, const struct ni_blame_link *l, uint32_t host) {
  for (uint32_t i = 0; i < l->n_ranks; i++)
    if (ni_blame_host(b, l->rank[i]) == host) return true;
  return false;
}

static bool has_rank(const struct ni_blame_link *l, uint32_t rank) {
  for (uint32_t i = 0; i < l->n_ranks; i++)
    if (l->rank[i] == rank) return true;
  return false;
}

static bool crosses(const struct work *w, const struct suspect *s, uint32_t link) {
  const struct ni_blame_link *l = &w->b->link[link];
  bool local = l->host >= 0;
  if (s->kind == NI_FIND_SLOW_NVLINK) return local && l->host == (int32_t)s->of;
  if (s->level == NI_LEVEL_COMM) return link == s->of;
  if (local) return s->kind == NI_FIND_SLOW_PAIR && s->level == NI_LEVEL_RANK && has_rank(l, s->of) && has_rank(l, s->other);
  switch (s->level) {
    case NI_LEVEL_HOST:
      return on_host(w->b, l, s->of) && (s->kind == NI_FIND_SLOW_NIC || s->other == NI_BLAME_NONE || on_host(w->b, l, s->other));
    default: return has_rank(l, s->of) && (s->other == NI_BLAME_NONE || has_rank(l, s->other));
  }
}

struct fit {
  uint32_t slow, all, ranks;   /* of those that cross it; ranks: different ones of the slow */
};

static struct fit fit_of(const struct work *w, const struct suspect *s) {
  struct fit f = {0};
  for (uint32_t i = 0; i < w->b->n_links; i++) {
    const struct judged *j = &w->link[i];
    if (j->state == UNKNOWN || !crosses(w, s, i)) continue;
    f.all += j->state != EXPLAINED;
    f.slow += j->state == SLOW;
  }
  return f;
}

/* All that is slow by the suspect, in one cause. */
static int name(struct work *w, const struct suspect *s) {
  struct ni_cause *c = ni_cause_add(w->out, s->kind, s->level, s->of);
  double share = 0;
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < w->b->n_links; i++) {
    struct judged *j = &w->link[i];
    if (j->state != SLOW || !crosses(w, s, i)) continue;
    j->state = EXPLAINED;
    if (!c) continue;
    if (c->n_items == 0 || j->from < c->from) c->from = j->from;
    if (j->to > c->to) c->to = j->to;
    share += j->ratio - 1;
    if (w->b->link[i].alike > c->alike) c->alike = w->b->link[i].alike;
    e = ni_cause_item(c, i);
  }
  if (!c) return e;
  c->links = true;
  c->other = s->other;
  c->share = c->n_items ? (float)(share / c->n_items) : 0;
  return e;
}

/* The better explanation: more that is slow; nothing that is fine. Hosts before ranks before ways between two. */
static void consider(const struct work *w, const struct suspect *s, uint32_t least, struct suspect *best, struct fit *of_best, bool *tie) {
  struct fit f = fit_of(w, s);
  if (f.slow < least || f.slow * 10 < f.all * 8) return;
  if (f.slow < of_best->slow) return;
  bool same = f.slow == of_best->slow && s->kind == best->kind && s->level == best->level;
  if (f.slow == of_best->slow && !same) return;
  *tie = same;
  *best = *s;
  *of_best = f;
}

/* The one host that all links across hosts of this one lead to; NI_BLAME_NONE: there are several. */
static uint32_t only_partner(const struct work *w, uint32_t host) {
  uint32_t partner = NI_BLAME_NONE;
  for (uint32_t i = 0; i < w->b->n_links; i++) {
    const struct ni_blame_link *l = &w->b->link[i];
    if (l->host >= 0 || w->link[i].state == UNKNOWN || !on_host(w->b, l, host)) continue;
    for (uint32_t k = 0; k < l->n_ranks; k++) {
      uint32_t h = ni_blame_host(w->b, l->rank[k]);
      if (h != host && partner != NI_BLAME_NONE && h != partner) return NI_BLAME_NONE;
      if (h != host) partner = h;
    }
  }
  return partner;
}

/* The one rank on another host that all messages across hosts of this one go to; NI_BLAME_NONE: there are several, or it takes part in more. */
static uint32_t only_partner_rank(const struct work *w, uint32_t rank) {
  uint32_t partner = NI_BLAME_NONE;
  for (uint32_t i = 0; i < w->b->n_links; i++) {
    const struct ni_blame_link *l = &w->b->link[i];
    if (l->host >= 0 || w->link[i].state == UNKNOWN || !has_rank(l, rank)) continue;
    uint32_t other = l->n_ranks == 2 ? l->rank[l->rank[0] == rank] : NI_BLAME_NONE;
    if (other == NI_BLAME_NONE || (partner != NI_BLAME_NONE && other != partner)) return NI_BLAME_NONE;
    partner = other;
  }
  return partner;
}

/*
 * Slow with others between the same two hosts, about as much, but not with all: a message that is sent and received in one group with others
 * ends when these do, so what looks like a transfer is waiting for a third. None of them is named. Returns whether that is so.
 */
static bool part_of_way(struct work *w, uint32_t link) {
  const struct ni_blame_link *l = &w->b->link[link];
  struct suspect way = {NI_FIND_SLOW_PAIR, NI_LEVEL_HOST, ni_blame_host(w->b, l->rank[0]), ni_blame_host(w->b, l->rank[1])};
  struct suspect self = {NI_FIND_SLOW_PAIR, NI_LEVEL_RANK, l->rank[0], l->rank[1]};
  const float least = 1 + (w->link[link].ratio - 1) / 2, most = 1 + (w->link[link].ratio - 1) * 2;
  uint32_t others = 0;
  if (l->n_ranks != 2) return false;
  for (int pass = 0; pass < 2 && (pass == 0 || others >= 2); pass++)
    for (uint32_t i = 0; i < w->b->n_links; i++) {
      struct judged *j = &w->link[i];
      if (j->state != SLOW || j->ratio < least || j->ratio > most || !crosses(w, &way, i)) continue;
      if (pass == 0) others += !crosses(w, &self, i);
      else j->state = EXPLAINED;
    }
  return others >= 2;
}

/* Of a slow link that crosses hosts the suspects, the wider ones first. */
static int explain(struct work *w, uint32_t link) {
  const struct ni_blame *b = w->b;
  const struct ni_blame_link *l = &b->link[link];
  struct suspect best = {.level = NI_LEVEL_COMM};
  struct fit of_best = {0};
  bool tie = false;
  const uint32_t ranks = l->n_ranks < SUSPECTS_MAX ? l->n_ranks : SUSPECTS_MAX;
  for (uint32_t i = 0; i < ranks; i++) /* NICs of one host: of several ranks */
    consider(w, &(struct suspect){NI_FIND_SLOW_NIC, NI_LEVEL_HOST, ni_blame_host(b, l->rank[i]), NI_BLAME_NONE}, 2, &best, &of_best, &tie);
  if (of_best.slow && !tie) {
    best.other = only_partner(w, best.of);
    return name(w, &best);
  }
  if (of_best.slow && l->n_ranks == 2) { /* all ways of both are slow, and all go between them */
    best = (struct suspect){NI_FIND_SLOW_PAIR, NI_LEVEL_HOST, ni_blame_host(b, l->rank[0]), ni_blame_host(b, l->rank[1])};
    return name(w, &best);
  }
  of_best = (struct fit){0};
  tie = false;
  if (l->n_ranks == 2) {
    consider(w, &(struct suspect){NI_FIND_SLOW_PAIR, NI_LEVEL_HOST, ni_blame_host(b, l->rank[0]), ni_blame_host(b, l->rank[1])}, 3, &best,
             &of_best, &tie);
    if (of_best.slow) return name(w, &best);
  }
  for (uint32_t i = 0; i < ranks; i++)
    consider(w, &(struct suspect){NI_FIND_SLOW_NIC, NI_LEVEL_RANK, l->rank[i], NI_BLAME_NONE}, 2, &best, &of_best, &tie);
  if (of_best.slow && !tie) {
    best.other = l->n_ranks == 2 ? only_partner_rank(w, best.of) : NI_BLAME_NONE;
    return name(w, &best);
  }
  if (part_of_way(w, link)) return 0;
  best = l->n_ranks == 2 ? (struct suspect){NI_FIND_SLOW_PAIR, NI_LEVEL_RANK, l->rank[0], l->rank[1]}
                         : (struct suspect){NI_FIND_SLOW_COMM, NI_LEVEL_COMM, link, NI_BLAME_NONE};
  return name(w, &best);
}

static int within_hosts(struct work *w) {
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < w->b->n_links; i++) {
    const struct ni_blame_link *l = &w->b->link[i];
    if (w->link[i].state != SLOW || l->host < 0) continue;
    struct suspect s = {NI_FIND_SLOW_NVLINK, NI_LEVEL_HOST, (uint32_t)l->host, NI_BLAME_NONE};
    struct fit f = fit_of(w, &s);
    if (f.slow * 4 < f.all * 3) s = (struct suspect){NI_FIND_SLOW_COMM, NI_LEVEL_COMM, i, NI_BLAME_NONE};
    e = name(w, &s);
  }
  return e;
}

int ni_causes_links(const struct ni_blame *b, struct ni_causes *out) {
  struct work w = {b, out, calloc(b->n_links + 1, sizeof *w.link), step_us(b)};
  int e = w.link ? crowded(&w) : -ENOMEM;
  if (e == 0) e = judge(&w);
  if (e == 0) e = within_hosts(&w);
  for (uint32_t i = 0; e == 0 && i < b->n_links && out->n < NI_CAUSES_MAX; i++) /* no more are named than there is room for */
    if (w.link[i].state == SLOW) e = explain(&w, i);
  free(w.link);
  return e;
}
