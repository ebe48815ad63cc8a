/*
 * What makes links slow, after the network as a whole (fabric.c) and each link by itself (judged.h): what all
 * slow links cross, and hardly any fast one, is named. That is the NVLink of a host or of one rank, a host's
 * NICs, the NIC of one rank, or the way between two hosts or two ranks; else the communicator itself.
 */
#include <errno.h>
#include <stdlib.h>

#include "exporter/model/sums/blame/causes.h"
#include "drops.h"
#include "judged.h"
#include "shared_nic.h"
#include "transfers.h"

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
  WAY_LINKS_MIN = 3 /* so many cross a slow way between two hosts: two may be a slow pair of ranks */
};

/* Of two suspects that explain as many links, one explains more if it does so many times. */
#define EXPLAINS_MORE 1.5f

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
static bool is_slow_beside(const struct ni_link_judge *w, uint32_t link, uint32_t other) {
  const struct ni_blame_link *x = &w->b->link[link], *y = &w->b->link[other];
  const struct ni_judged_link *j = &w->link[link], *k = &w->link[other];
  const bool both_stop = j->stops && k->stops; /* each when it happens to be under way */
  const bool are_alike = x->cls == y->cls && x->from < 0 && x->host < 0 && j->stops == k->stops;
  const bool as_slow = j->ratio - 1 <= 2 * (k->ratio - 1) && k->ratio - 1 <= 2 * (j->ratio - 1);
  const bool at_once = j->from < k->to && k->from < j->to;
  return (both_stop || (are_alike && as_slow)) && at_once && share_host(w->b, x, y);
}

static bool joins_ranks(const struct ni_blame_link *l, uint32_t x, uint32_t y) {
  return has_rank(l, x) && has_rank(l, y);
}

static bool crosses(const struct ni_link_judge *w, const struct suspect *s, uint32_t link) {
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

static struct fit count_fit(const struct ni_link_judge *w, const struct suspect *s) {
  struct fit f = {0};
  for (uint32_t i = 0; i < w->b->n_links; i++) {
    const struct ni_judged_link *j = &w->link[i];
    if (j->state == NI_JUDGED_UNKNOWN || !crosses(w, s, i))
      continue;
    f.all += j->state != NI_JUDGED_EXPLAINED;
    f.slow += j->state == NI_JUDGED_SLOW;
    f.excess += j->state == NI_JUDGED_SLOW ? j->ratio - 1 : 0;
  }
  return f;
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
static int add_unmatched_links(const struct ni_link_judge *w, const struct suspect *s, struct ni_cause *c) {
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
static int name_suspect(struct ni_link_judge *w, const struct suspect *s) {
  struct ni_cause *c = ni_cause_add(w->out, s->kind, s->level, s->of);
  double share = 0;
  uint32_t stop = 0;
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < w->b->n_links; i++) {
    struct ni_judged_link *j = &w->link[i];
    if (j->state != NI_JUDGED_SLOW || !crosses(w, s, i))
      continue;
    j->state = NI_JUDGED_EXPLAINED;
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
    return ni_find_stops(w, c);
  if ((e = add_unmatched_links(w, s, c)) < 0)
    return e;
  return ni_find_drops(w, c);
}

/*
 * Takes the suspect for the best one so far where it explains more slow links, and hardly any fast link
 * crosses it. *tie: another suspect of the kind explains as many, and about as much: what waits for a slow
 * link in turn, as the next message of a ring, is slower by a little.
 */
static void consider_suspect(const struct ni_link_judge *w, const struct suspect *s, uint32_t least,
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
static uint32_t find_only_partner(const struct ni_link_judge *w, uint32_t host) {
  uint32_t partner = NI_BLAME_NONE;
  for (uint32_t i = 0; i < w->b->n_links; i++) {
    const struct ni_blame_link *l = &w->b->link[i];
    if (l->host >= 0 || w->link[i].state == NI_JUDGED_UNKNOWN || !is_on_host(w->b, l, host))
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
static uint32_t find_only_partner_rank(const struct ni_link_judge *w, uint32_t rank) {
  uint32_t partner = NI_BLAME_NONE;
  for (uint32_t i = 0; i < w->b->n_links; i++) {
    const struct ni_blame_link *l = &w->b->link[i];
    if (l->host >= 0 || w->link[i].state == NI_JUDGED_UNKNOWN || !has_rank(l, rank))
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
static bool explain_by_way(struct ni_link_judge *w, uint32_t link) {
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
      struct ni_judged_link *j = &w->link[i];
      const bool is_as_slow = j->state == NI_JUDGED_SLOW && !(j->ratio < least || j->ratio > most);
      if (!is_as_slow || !crosses(w, &way, i))
        continue;
      if (pass == 0)
        others += !crosses(w, &self, i);
      else
        j->state = NI_JUDGED_EXPLAINED;
    }
  return others >= 2;
}

/* Names what makes a link across hosts slow: the wider suspects are asked first. */
static int explain_link(struct ni_link_judge *w, uint32_t link) {
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
static int explain_local_link(struct ni_link_judge *w, uint32_t link) {
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

static int explain_local_links(struct ni_link_judge *w) {
  int e = 0;
  for (uint32_t i = 0; e == 0 && i < w->b->n_links; i++)
    if (w->link[i].state == NI_JUDGED_SLOW && w->b->link[i].host >= 0)
      e = explain_local_link(w, i);
  return e;
}

/* Of the slow links across hosts that nothing explains yet; NI_BLAME_NONE: there is none. */
static uint32_t find_slowest(const struct ni_link_judge *w) {
  uint32_t slowest = NI_BLAME_NONE;
  for (uint32_t i = 0; i < w->b->n_links; i++) {
    if (w->link[i].state != NI_JUDGED_SLOW || w->b->link[i].host >= 0)
      continue;
    if (slowest == NI_BLAME_NONE || w->link[i].ratio > w->link[slowest].ratio)
      slowest = i;
  }
  return slowest;
}

int ni_find_slow_links(const struct ni_blame *b, struct ni_causes *out) {
  const uint32_t first = out->n;
  struct ni_link_judge w = {b, out, calloc(b->n_links + 1, sizeof *w.link),
                            calloc(2 * (size_t)b->bins + b->n_links + 1, sizeof *w.x),
                            ni_transfers_step_us(b)};
  int e = w.link && w.x ? 0 : -ENOMEM;
  if (e == 0 && !out->crowded)
    e = ni_find_congestion(b, out);
  if (e == 0)
    ni_judge_links(&w);
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
