#include "shared_nic.h"

#define AS_SLOW 2.0f /* shares of two that are slow by one thing differ by so many times at most */

/* A NIC of one rank, or the way between two ranks, that is slow all the time from a step on. */
static bool is_of_ranks(const struct ni_cause *c) {
  const bool is_kind = c->kind == NI_FIND_SLOW_NIC || c->kind == NI_FIND_SLOW_PAIR;
  return c->links && c->level == NI_LEVEL_RANK && is_kind;
}

static bool are_between_same_hosts(const struct ni_blame *b, const struct ni_cause *x,
                                   const struct ni_cause *y) {
  const uint32_t host = ni_blame_host(b, x->of), to = ni_blame_host(b, y->of);
  if (x->kind == NI_FIND_SLOW_NIC)
    return host == to;
  const uint32_t other = ni_blame_host(b, x->other), others = ni_blame_host(b, y->other);
  return host != other && ((host == to && other == others) || (host == others && other == to));
}

/* Half of the longer one and more. */
static bool are_at_once(const struct ni_cause *x, const struct ni_cause *y) {
  const uint32_t from = x->from > y->from ? x->from : y->from, to = x->to < y->to ? x->to : y->to;
  const uint32_t mine = x->to - x->from, theirs = y->to - y->from;
  return to > from && 2 * (to - from) >= (mine > theirs ? mine : theirs);
}

static bool are_one(const struct ni_blame *b, const struct ni_cause *x, const struct ni_cause *y) {
  const bool are_alike = x->kind == y->kind && is_of_ranks(x) && is_of_ranks(y);
  if (!are_alike || !are_between_same_hosts(b, x, y))
    return false;
  const bool as_slow = x->share <= AS_SLOW * y->share && y->share <= AS_SLOW * x->share;
  return as_slow && are_at_once(x, y);
}

/* As each of its links has its share. */
static int join(struct ni_cause *x, const struct ni_cause *y) {
  int e = ni_cause_add_beside(x, y->of);
  if (e == 0 && y->kind == NI_FIND_SLOW_PAIR)
    e = ni_cause_add_beside(x, y->other);
  const float links = (float)(x->n_items + y->n_items);
  x->share = (x->share * (float)x->n_items + y->share * (float)y->n_items) / links;
  for (uint32_t i = 0; e == 0 && i < y->n_items; i++)
    e = ni_cause_add_item(x, y->item[i]);
  for (uint32_t i = 0; e == 0 && i < y->n_unmatched; i++)
    if (!ni_cause_has_unmatched(x, y->unmatched[i]))
      e = ni_cause_add_unmatched(x, y->unmatched[i]);
  x->from = x->from < y->from ? x->from : y->from;
  x->to = x->to > y->to ? x->to : y->to;
  x->n_peers = x->n_peers > y->n_peers ? x->n_peers : y->n_peers;
  x->other = x->kind == NI_FIND_SLOW_NIC && x->other != y->other ? NI_BLAME_NONE : x->other;
  return e;
}

/* It, and those from `first` on that are one with it. */
static uint32_t count_ones(const struct ni_blame *b, const struct ni_causes *causes, uint32_t first,
                           uint32_t of) {
  uint32_t n = 0;
  for (uint32_t k = first; k < causes->n; k++)
    n += k == of || are_one(b, &causes->item[of], &causes->item[k]);
  return n;
}

int ni_join_shared_nics(const struct ni_blame *b, struct ni_causes *causes, uint32_t first) {
  int e = 0;
  for (uint32_t i = first; e == 0 && i < causes->n; i++) {
    struct ni_cause *x = &causes->item[i];
    const uint32_t ranks = count_ones(b, causes, first, i);
    const bool can_be_order = 1 + x->share < (float)ranks;
    for (uint32_t k = i + 1; e == 0 && !can_be_order && k < causes->n;) {
      struct ni_cause *y = &causes->item[k];
      if (!are_one(b, x, y)) {
        k++;
        continue;
      }
      e = join(x, y);
      ni_cause_remove(causes, y);
    }
  }
  return e;
}
