#include "grams.h"

#include <errno.h>
#include <stdlib.h>

enum { SPREAD = 3 }; /* a third of the operations */

/* *out: its number; NI_GRAMS_MAX: there are too many. */
static int find_or_add_gram(struct ni_grams *g, uint64_t hash, uint16_t *out) {
  uint32_t k;
  for (size_t at = 0; (k = ni_index_next(&g->at_hash, hash, &at)) != NI_INDEX_NONE;)
    if (g->item[k].hash == hash) {
      *out = (uint16_t)k;
      return 0;
    }
  *out = (uint16_t)g->n;
  if (g->n == NI_GRAMS_MAX)
    return 0;
  g->item[g->n] = (struct ni_gram){.hash = hash};
  return ni_index_add(&g->at_hash, hash, g->n++);
}

static bool may_mark(const struct ni_blame *b, const struct ni_blame_rank *rank,
                     const struct ni_blame_op *op) {
  const char *by = b->r->marks.n ? NULL : b->r->opt.step_by;
  const struct ni_blame_slot *s = &rank->slot[op->slot];
  if (!by)
    return s->kind == NI_BLAME_COLL;
  const char *name = b->s->comm[s->comm].name;
  return (name && strcmp(name, by) == 0) || strcmp(rank->token_func[op->token], by) == 0;
}

static void count_gram(struct ni_gram *x, const struct ni_blame_op *op, uint32_t i, uint32_t of_slot,
                       unsigned n, int64_t after) {
  if (x->count++ == 0) {
    x->first = i;
    x->first_of_slot = of_slot;
  }
  x->last = i;
  x->last_of_slot = of_slot;
  x->slot = op->slot;
  x->token = op->what;
  x->n = (uint8_t)n;
  x->after_ns += after;
}

/* From an expected distance: a tenth of it, 2 at least. */
static double allowed_deviation(double expected) { return expected / 10 > 2 ? expected / 10 : 2; }
static bool is_within_deviation(double got, double expected) {
  return got >= expected - allowed_deviation(expected) && got <= expected + allowed_deviation(expected);
}

static void sum_near_distances(struct ni_gram *x, uint32_t of_slot) {
  const double mean = (double)(x->last_of_slot - x->first_of_slot) / (x->count - 1),
               distance = of_slot - x->before;
  if (of_slot != x->first_of_slot && distance <= mean + allowed_deviation(mean)) {
    x->near_sum += distance;
    x->near_n++;
  }
  x->before = of_slot;
}

static void count_even_distances(struct ni_gram *x, uint32_t of_slot) {
  if (of_slot == x->first_of_slot) { /* once: this is gone through most */
    double want = x->near_sum / (x->near_n ? x->near_n : 1);
    x->least = want - allowed_deviation(want);
    x->most = want + allowed_deviation(want);
  } else if (of_slot - x->before >= x->least && of_slot - x->before <= x->most)
    x->even++;
  x->before = of_slot;
}

/* Distances in operations of the rank, an evaluation between left out. */
static void sum_distances(struct ni_gram *x, uint32_t i) {
  double want = (double)(x->last - x->first) / (x->count - 1), got = (double)(i - x->before);
  if (got > 4 * want)
    got = 4 * want;
  if (i > x->first) {
    x->sum += got;
    x->squares += got * got;
  }
  x->before = i;
}

/* Clusters begin where the distance is large, compared with the mean distance that an operation sees. */
static void count_even_clusters(struct ni_gram *x, uint32_t i) {
  const double size = (double)x->count / x->clusters;
  if (i == x->first || i - x->before >= x->far) {
    if (i > x->first && is_within_deviation(i - x->begun, (double)(x->last - x->first) / x->clusters))
      x->even_clusters++;
    if (i > x->first)
      x->full_clusters += is_within_deviation(x->in_cluster, size) && x->in_cluster == (uint32_t)(size + 0.5);
    x->begun = i;
    x->in_cluster = 0;
  }
  x->in_cluster++;
  x->before = i;
}

static void count_clusters(struct ni_gram *x, uint32_t i) {
  if (x->far == 0)
    x->far = (uint32_t)(0.6 * x->squares / (x->sum > 0 ? x->sum : 1)) + 1;
  x->clusters += i == x->first || i - x->before >= x->far;
  x->before = i;
}

/* the grams that end with an operation; NI_GRAMS_MAX: none, and none longer */
typedef uint16_t operation_grams[NI_STEP_GRAM];

/* Finds and counts what may mark. */
static int count_grams(const struct ni_blame *b, const struct ni_blame_rank *rank,
                       const struct ni_blame_op *op, size_t n, struct ni_grams *g, operation_grams *at) {
  uint32_t last[NI_BLAME_SLOTS][NI_STEP_GRAM], seen[NI_BLAME_SLOTS] = {0};
  for (uint32_t i = 0; i < n; i++) {
    uint32_t slot = op[i].slot;
    uint64_t hash = ni_gram_begin_hash(slot);
    ni_gram_shift_in(last[slot], op[i].what);
    seen[slot]++;
    at[i][0] = NI_GRAMS_MAX;
    if (!may_mark(b, rank, &op[i]))
      continue;
    int64_t after = i + 1 < n && op[i + 1].start_ns > op[i].end_ns ? op[i + 1].start_ns - op[i].end_ns : 0;
    for (unsigned k = 0; k < NI_STEP_GRAM; k++) {
      at[i][k] = NI_GRAMS_MAX;
      if (k == seen[slot])
        break;
      hash = ni_gram_extend_hash(hash, last[slot][k], k);
      int e = find_or_add_gram(g, hash, &at[i][k]);
      if (e < 0)
        return e;
      if (at[i][k] == NI_GRAMS_MAX)
        break;
      count_gram(&g->item[at[i][k]], &op[i], i, seen[slot], k + 1, after);
    }
  }
  return 0;
}

/* Further passes: are they at even distances; how far are they apart; how many clusters; are these even? */
static void measure_distances(const struct ni_blame_op *op, size_t n, struct ni_grams *g,
                              const operation_grams *at) {
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0, seen[NI_BLAME_SLOTS] = {0}; i < n; i++) {
      seen[op[i].slot]++;
      for (unsigned k = 0; k < NI_STEP_GRAM && at[i][k] < NI_GRAMS_MAX; k++) {
        struct ni_gram *x = &g->item[at[i][k]];
        if (x->count < 2)
          continue;
        if (pass == 0)
          sum_near_distances(x, seen[op[i].slot]);
        else
          count_even_distances(x, seen[op[i].slot]);
      }
    }
  for (uint32_t i = 0; i < n; i++)
    for (unsigned k = 0; k < NI_STEP_GRAM && at[i][k] < NI_GRAMS_MAX; k++)
      if (g->item[at[i][k]].count >= 2 * NI_STEPS_MIN)
        sum_distances(&g->item[at[i][k]], i);
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < n; i++) {
      struct ni_gram *x = &g->item[at[i][0]];
      if (at[i][0] == NI_GRAMS_MAX || x->count < 2 * NI_STEPS_MIN)
        continue;
      if (pass == 0)
        count_clusters(x, i);
      else
        count_even_clusters(x, i);
    }
}

static bool comes_in_clusters(const struct ni_gram *x) {
  return x->n == 1 && x->clusters >= NI_STEPS_MIN && x->count >= 2 * x->clusters &&
      ni_is_most(x->full_clusters, x->clusters - 1);
}

/* Of operations that come in clusters of one size the last one counts. */
static void add_cluster_grams(struct ni_grams *g) {
  for (uint32_t i = 0, n = g->n; i < n; i++) {
    struct ni_gram *x = &g->item[i];
    if (!comes_in_clusters(x) || g->n == NI_GRAMS_MAX)
      continue;
    struct ni_gram *c = &g->item[g->n++];
    *c = *x;
    c->is_cluster = true;
    c->size = (uint32_t)((double)x->count / x->clusters + 0.5);
    c->count = x->clusters;
    c->even = x->even_clusters;
  }
}
int ni_grams_gather(const struct ni_blame *b, const struct ni_blame_rank *rank, const struct ni_blame_op *op,
                    size_t n, struct ni_grams *g) {
  operation_grams *at = malloc((n + 1) * sizeof *at);
  const int e = at ? count_grams(b, rank, op, n, g, at) : -ENOMEM;
  if (e == 0) {
    measure_distances(op, n, g, at);
    add_cluster_grams(g);
  }
  free(at);
  return e;
}

void ni_grams_free(struct ni_grams *g) { ni_index_free(&g->at_hash); }

bool ni_gram_is_even(const struct ni_blame_rank *rank, const struct ni_gram *x) {
  return x->count >= NI_STEPS_MIN && ni_is_most(x->even, x->count - 1) &&
      (x->last_of_slot - x->first_of_slot) * 2 >= rank->slot[x->slot].ops;
}

bool ni_gram_is_spread(const struct ni_blame_rank *rank, const struct ni_gram *x) {
  const bool looked_at = x->sum > 0 && !x->is_cluster;
  uint64_t all = 0;
  for (uint32_t i = 0; i < rank->n_slots; i++)
    all += rank->slot[i].ops;
  return !looked_at || SPREAD * x->sum >= (double)all;
}

int32_t ni_gram_ranks(const struct ni_blame *b, const struct ni_blame_rank *rank, const struct ni_gram *x) {
  return b->s->comm[rank->slot[x->slot].comm].n_ranks;
}
