/*
 * A host that has something else to do. Another job on it, a backup or a virus scanner takes its CPUs and its
 * NICs in the same moments: its ranks pause, and what crosses its NICs is slow. Operations of all hosts wait
 * for these NICs, so the network looks slow by itself (congestion). Where all links across hosts touch the
 * host, nothing in the transfers says which of both it is. The pauses do: a slow network does not stop the
 * ranks of one host alone between their operations.
 */
#include "spells.h"

#include <math.h>

/* Of the bins in which the network is slow the host pauses in so many, */
#define BUSY_SAME 0.75f
/* which is so many times what it does in the other bins. */
#define BUSY_MORE 2.0f

bool ni_cause_touches_host(const struct ni_blame *b, const struct ni_cause *c, uint32_t host) {
  for (uint32_t i = 0, k; i < c->n_items; i++) {
    const struct ni_blame_link *l = &b->link[c->item[i]];
    for (k = 0; k < l->n_ranks && ni_blame_host(b, l->rank[k]) != host;)
      k++;
    if (k == l->n_ranks)
      return false;
  }
  return c->n_items > 0;
}

static bool are_in_same_bins(const struct ni_blame *b, const struct ni_cause *pauses,
                             const struct ni_cause *crowded) {
  uint32_t slow = 0, both = 0, pauses_alone = 0;
  for (uint32_t k = 0; k < b->bins; k++) {
    const bool is_slow = ni_cause_is_active(crowded, k), pauses_then = ni_cause_is_active(pauses, k);
    slow += is_slow;
    both += is_slow && pauses_then;
    pauses_alone += !is_slow && pauses_then;
  }
  const float in_slow = (float)both / (float)slow;
  return in_slow >= BUSY_SAME && in_slow * (float)(b->bins - slow) >= BUSY_MORE * (float)pauses_alone;
}

/* A host that pauses, or whose CPUs are busy, now and then. */
static bool is_busy_host(const struct ni_cause *c) {
  const bool is_host = c->level == NI_LEVEL_HOST && !c->links && c->at;
  return is_host && (c->kind == NI_FIND_PAUSES || c->kind == NI_FIND_SLOW_HOST);
}

/* What crosses hosts and is slow now and then: the whole network, or communicators. */
static bool is_crowded(const struct ni_cause *c) {
  const bool may_be_host = c->level == NI_LEVEL_FABRIC || c->level == NI_LEVEL_COMM;
  return c->links && c->at && may_be_host;
}

static struct ni_cause *find_busy_host(const struct ni_blame *b, struct ni_causes *causes,
                                       const struct ni_cause *crowded) {
  for (uint32_t i = 0; i < causes->n; i++) {
    struct ni_cause *c = &causes->item[i];
    if (is_busy_host(c) && ni_cause_touches_host(b, crowded, c->of) && are_in_same_bins(b, c, crowded))
      return c;
  }
  return NULL;
}

void ni_find_busy_host(const struct ni_blame *b, struct ni_causes *causes) {
  for (uint32_t i = causes->n; i-- > 0;) {
    struct ni_cause *crowded = &causes->item[i];
    struct ni_cause *c = is_crowded(crowded) ? find_busy_host(b, causes, crowded) : NULL;
    if (!c)
      continue;
    for (uint32_t k = 0; k < b->bins; k++)
      c->at[k] |= ni_cause_is_active(crowded, k);
    c->from = crowded->from < c->from ? crowded->from : c->from;
    c->to = crowded->to > c->to ? crowded->to : c->to;
    c->most_us = 0; /* what the transfers cost has no bound by the pauses */
    c->crowded = fmaxf(c->crowded, crowded->share);
    ni_cause_remove(causes, crowded);
  }
}

/* The host's CPU is busy now and then, by its calls alone. */
static bool is_busy_by_calls(const struct ni_cause *c) {
  return c->kind == NI_FIND_SLOW_HOST && c->level == NI_LEVEL_HOST && c->at && c->calls > 0;
}

/* A rank of this host that pauses, or computes longer, now and then. */
static bool is_of_rank_on(const struct ni_blame *b, const struct ni_cause *c, uint32_t host) {
  const bool stops = c->kind == NI_FIND_PAUSES || c->kind == NI_FIND_THROTTLING;
  return stops && c->level == NI_LEVEL_RANK && c->at && ni_blame_host(b, c->of) == host;
}

void ni_drop_waiting_hosts(const struct ni_blame *b, struct ni_causes *causes) {
  for (uint32_t i = causes->n; i-- > 0;) {
    struct ni_cause *host = &causes->item[i];
    uint32_t ranks = 0;
    for (uint32_t k = 0; is_busy_by_calls(host) && k < causes->n; k++)
      ranks += is_of_rank_on(b, &causes->item[k], host->of) && are_in_same_bins(b, &causes->item[k], host);
    if (ranks == 1)
      ni_cause_remove(causes, host);
  }
}
