#include "steps.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fold.h"
#include "exporter/base/index.h"
#include "exporter/base/order.h"

#define LEAST_DISTANCE 0.25f /* of the distance of most marks: nearer ones are of one step */
enum { PERIOD_GAPS = 4096 };
#define GAP_LEAST_NS INT64_C(1000000) /* a shorter one is no begin of a step */
enum {
  GRAMS_MAX = 4096,
  STEPS_MIN = 5,
  RARE = 20,
  MOST_EACH = 1024,
  SPREAD = 3,
  ONE_MORE_STEPS = 4,
  FAR_MORE = 8,
  SCALARS_FAR_MORE = 4,
  SCALAR_BYTES = 64,
  /* nobody is judged by fewer bins (twice NI_CAUSE_BINS of causes.h); the first and the last are not whole */
  ROUNDS_FEW = 12,
  OF_ROUND_MIN = 3 /* operations of a step */
};

/* One, two or three operations in a row on one slot. */
struct gram {
  uint64_t hash;
  uint32_t slot, token, count, even, first, last; /* first, last: operations of the rank */
  uint32_t first_of_slot, last_of_slot;           /* of the slot, whose order does not depend on times */
  int64_t after_ns;                               /* own time that follows, in all */
  double least, most;                             /* distances that are even */
  /* of distances that are not far longer than their mean: what comes between now and then is left out */
  double near_sum;
  uint32_t near_n;
  uint32_t before; /* where it was last, while they are gone through again */
  uint8_t n;
  /* Clusters of it: sum of distances and of their squares; how far apart two clusters are at least. */
  double sum, squares;
  uint32_t far, clusters, full_clusters, begun, even_clusters, in_cluster;
  bool is_cluster; /* count, even are those of clusters of `size` */
  uint32_t size;
};

struct grams {
  struct gram item[GRAMS_MAX];
  uint32_t n;
  struct ni_index at_hash;
};

/* The last tokens of the slot as one number, one after the other; i: so many are in it already. */
static uint64_t begin_hash(uint32_t slot) { return ni_mix(slot + 1); }
static uint64_t extend_hash(uint64_t h, uint32_t token, unsigned i) {
  return ni_mix(h ^ (token + 1 + ((uint64_t)(i + 1) << 32)));
}

static void shift_in_token(uint32_t *last, uint32_t token) {
  memmove(last + 1, last, (NI_STEP_GRAM - 1) * sizeof *last);
  last[0] = token;
}

/* *out: its number; GRAMS_MAX: there are too many. */
static int find_or_add_gram(struct grams *g, uint64_t hash, uint16_t *out) {
  uint32_t k;
  for (size_t at = 0; (k = ni_index_next(&g->at_hash, hash, &at)) != NI_INDEX_NONE;)
    if (g->item[k].hash == hash) {
      *out = (uint16_t)k;
      return 0;
    }
  *out = (uint16_t)g->n;
  if (g->n == GRAMS_MAX)
    return 0;
  g->item[g->n] = (struct gram){.hash = hash};
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

static void count_gram(struct gram *x, const struct ni_blame_op *op, uint32_t i, uint32_t of_slot, unsigned n,
                       int64_t after) {
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

/* Four fifths and more. */
static bool is_most(uint32_t part, uint32_t whole) { return part * 10 >= whole * 8; }

/* From an expected distance: a tenth of it, 2 at least. */
static double allowed_deviation(double expected) { return expected / 10 > 2 ? expected / 10 : 2; }
static bool is_within_deviation(double got, double expected) {
  return got >= expected - allowed_deviation(expected) && got <= expected + allowed_deviation(expected);
}

static void sum_near_distances(struct gram *x, uint32_t of_slot) {
  const double mean = (double)(x->last_of_slot - x->first_of_slot) / (x->count - 1),
               distance = of_slot - x->before;
  if (of_slot != x->first_of_slot && distance <= mean + allowed_deviation(mean)) {
    x->near_sum += distance;
    x->near_n++;
  }
  x->before = of_slot;
}

static void count_even_distances(struct gram *x, uint32_t of_slot) {
  if (of_slot == x->first_of_slot) { /* once: this is gone through most */
    double want = x->near_sum / (x->near_n ? x->near_n : 1);
    x->least = want - allowed_deviation(want);
    x->most = want + allowed_deviation(want);
  } else if (of_slot - x->before >= x->least && of_slot - x->before <= x->most)
    x->even++;
  x->before = of_slot;
}

/* Distances in operations of the rank, an evaluation between left out. */
static void sum_distances(struct gram *x, uint32_t i) {
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
static void count_even_clusters(struct gram *x, uint32_t i) {
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

static void count_clusters(struct gram *x, uint32_t i) {
  if (x->far == 0)
    x->far = (uint32_t)(0.6 * x->squares / (x->sum > 0 ? x->sum : 1)) + 1;
  x->clusters += i == x->first || i - x->before >= x->far;
  x->before = i;
}

/* the grams that end with an operation; GRAMS_MAX: none, and none longer */
typedef uint16_t operation_grams[NI_STEP_GRAM];

/* Finds and counts what may mark. */
static int count_grams(const struct ni_blame *b, const struct ni_blame_rank *rank,
                       const struct ni_blame_op *op, size_t n, struct grams *g, operation_grams *at) {
  uint32_t last[NI_BLAME_SLOTS][NI_STEP_GRAM], seen[NI_BLAME_SLOTS] = {0};
  for (uint32_t i = 0; i < n; i++) {
    uint32_t slot = op[i].slot;
    uint64_t hash = begin_hash(slot);
    shift_in_token(last[slot], op[i].what);
    seen[slot]++;
    at[i][0] = GRAMS_MAX;
    if (!may_mark(b, rank, &op[i]))
      continue;
    int64_t after = i + 1 < n && op[i + 1].start_ns > op[i].end_ns ? op[i + 1].start_ns - op[i].end_ns : 0;
    for (unsigned k = 0; k < NI_STEP_GRAM; k++) {
      at[i][k] = GRAMS_MAX;
      if (k == seen[slot])
        break;
      hash = extend_hash(hash, last[slot][k], k);
      int e = find_or_add_gram(g, hash, &at[i][k]);
      if (e < 0)
        return e;
      if (at[i][k] == GRAMS_MAX)
        break;
      count_gram(&g->item[at[i][k]], &op[i], i, seen[slot], k + 1, after);
    }
  }
  return 0;
}

/* Further passes: are they at even distances; how far are they apart; how many clusters; are these even? */
static void measure_distances(const struct ni_blame_op *op, size_t n, struct grams *g,
                              const operation_grams *at) {
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0, seen[NI_BLAME_SLOTS] = {0}; i < n; i++) {
      seen[op[i].slot]++;
      for (unsigned k = 0; k < NI_STEP_GRAM && at[i][k] < GRAMS_MAX; k++) {
        struct gram *x = &g->item[at[i][k]];
        if (x->count < 2)
          continue;
        if (pass == 0)
          sum_near_distances(x, seen[op[i].slot]);
        else
          count_even_distances(x, seen[op[i].slot]);
      }
    }
  for (uint32_t i = 0; i < n; i++)
    for (unsigned k = 0; k < NI_STEP_GRAM && at[i][k] < GRAMS_MAX; k++)
      if (g->item[at[i][k]].count >= 2 * STEPS_MIN)
        sum_distances(&g->item[at[i][k]], i);
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0; i < n; i++) {
      struct gram *x = &g->item[at[i][0]];
      if (at[i][0] == GRAMS_MAX || x->count < 2 * STEPS_MIN)
        continue;
      if (pass == 0)
        count_clusters(x, i);
      else
        count_even_clusters(x, i);
    }
}

static bool comes_in_clusters(const struct gram *x) {
  return x->n == 1 && x->clusters >= STEPS_MIN && x->count >= 2 * x->clusters &&
      is_most(x->full_clusters, x->clusters - 1);
}

/* Of operations that come in clusters of one size the last one counts. */
static void add_cluster_grams(struct grams *g) {
  for (uint32_t i = 0, n = g->n; i < n; i++) {
    struct gram *x = &g->item[i];
    if (!comes_in_clusters(x) || g->n == GRAMS_MAX)
      continue;
    struct gram *c = &g->item[g->n++];
    *c = *x;
    c->is_cluster = true;
    c->size = (uint32_t)((double)x->count / x->clusters + 0.5);
    c->count = x->clusters;
    c->even = x->even_clusters;
  }
}

static bool is_as_frequent(uint32_t a, uint32_t b) { return a <= b + 1 + b / 50 && b <= a + 1 + a / 50; }

/* Evenly spread over what its slot did. */
static bool is_even(const struct ni_blame_rank *rank, const struct gram *x) {
  return x->count >= STEPS_MIN && is_most(x->even, x->count - 1) &&
      (x->last_of_slot - x->first_of_slot) * 2 >= rank->slot[x->slot].ops;
}

/*
 * A third of what the rank did lies between marks that are not far apart. What comes in the batches of an
 * evaluation alone is even on a communicator that has nothing else, and none of it comes where the rank
 * trains.
 */
static bool is_spread(const struct ni_blame_rank *rank, const struct gram *x) {
  const bool looked_at = x->sum > 0 && !x->is_cluster;
  uint64_t all = 0;
  for (uint32_t i = 0; i < rank->n_slots; i++)
    all += rank->slot[i].ops;
  return !looked_at || SPREAD * x->sum >= (double)all;
}

static int32_t count_ranks(const struct ni_blame *b, const struct ni_blame_rank *rank, const struct gram *x) {
  return b->s->comm[rank->slot[x->slot].comm].n_ranks;
}

/*
 * Of those that come equally often: what is spread over the run, fewer in a row, the larger communicator, the
 * more own time behind it.
 */
static bool is_better_mark(const struct ni_blame *b, const struct ni_blame_rank *rank, const struct gram *x,
                           const struct gram *y) {
  const int32_t p = count_ranks(b, rank, x), q = count_ranks(b, rank, y);
  const bool x_is_spread = is_spread(rank, x);
  if (x_is_spread != is_spread(rank, y))
    return x_is_spread;
  if (x->n != y->n && (x->n == 1 || y->n == 1))
    return x->n < y->n;
  if (p != q)
    return p > q;
  return x->after_ns > y->after_ns;
}

/*
 * Operations of one communicator that begin close together swap now and then, and then several in a row are
 * missed. So where a single one comes half as often again at most, it is the one that comes once a step.
 */
static const struct gram *find_single_as_frequent(const struct ni_blame_rank *rank, const struct grams *g,
                                                  const struct gram *row) {
  const struct gram *best = row;
  for (uint32_t i = 0; i < g->n; i++) {
    const struct gram *x = &g->item[i];
    const bool is_single = x->n == 1 && is_even(rank, x);
    const bool is_as_often = x->count >= row->count && x->count * 2 < row->count * 3;
    const bool is_as_spread = is_spread(rank, x) || !is_spread(rank, row);
    const bool is_better = best->n > 1 || x->count < best->count;
    if (!is_single || !is_better)
      continue;
    if (is_as_often && is_as_spread)
      best = x;
  }
  return best;
}

/* The rarest one that can be of steps; NULL: none. */
static const struct gram *find_rarest(const struct ni_blame_rank *rank, const struct grams *g,
                                      bool also_not_spread) {
  const struct gram *rarest = NULL;
  for (uint32_t i = 0; i < g->n; i++) {
    const struct gram *x = &g->item[i];
    if (!is_even(rank, x) || !(also_not_spread || is_spread(rank, x)))
      continue;
    if (!rarest || x->count < rarest->count)
      rarest = x;
  }
  return rarest;
}

/* Is there another single operation that comes as often? */
static bool has_companion(const struct ni_blame_rank *rank, const struct grams *g, const struct gram *x) {
  for (uint32_t i = 0; i < g->n; i++) {
    const struct gram *y = &g->item[i];
    const bool is_other_single = y != x && y->n == 1 && is_even(rank, y);
    if (is_other_single && is_as_frequent(y->count, x->count))
      return true;
  }
  return false;
}

/* A norm, a loss or a flag: nothing that each micro-batch of a step has. */
static bool is_scalar(const struct ni_blame_rank *rank, const struct gram *x) {
  const bool has_size = rank->token_bytes && x->token < rank->n_tokens;
  return has_size && rank->token_bytes[x->token] <= SCALAR_BYTES;
}

/*
 * Where the rarest one is an evaluation or a checkpoint every so many steps, single operations on
 * communicators as large come far more often: a scalar, or two equally often. How often? 0: there are none. A
 * step can have eight micro-batches; scalars come once in it.
 */
static uint32_t count_steps_by_companions(const struct ni_blame *b, const struct ni_blame_rank *rank,
                                          const struct grams *g, const struct gram *rarest) {
  uint32_t least = 0;
  for (uint32_t i = 0; i < g->n; i++) {
    const struct gram *x = &g->item[i];
    const bool is_single = x->n == 1 && is_even(rank, x);
    const uint32_t far_more = is_scalar(rank, x) ? SCALARS_FAR_MORE : FAR_MORE;
    const bool is_far_more_often = x->count >= far_more * rarest->count;
    const bool is_rarer = !least || x->count < least;
    const bool is_as_large = count_ranks(b, rank, x) >= count_ranks(b, rank, rarest);
    if (!is_single || !is_far_more_often || !is_rarer)
      continue;
    if (is_as_large && (is_scalar(rank, x) || has_companion(rank, g, x)))
      least = x->count;
  }
  return least;
}

/*
 * Where the rarest one is two in a row of what comes in each step once: a barrier before a checkpoint beside
 * the loss. It comes so many times more than something else that comes in each step: how often does that one?
 * 0: there is none.
 */
static uint32_t count_steps_with_one_more(const struct ni_blame_rank *rank, const struct grams *g,
                                          const struct gram *row) {
  for (uint32_t i = 0; row->n > 1 && i < g->n; i++) {
    const struct gram *x = &g->item[i];
    const bool is_of_row = x->n == 1 && x->slot == row->slot && x->token == row->token;
    if (!is_of_row || x->count < ONE_MORE_STEPS * row->count)
      continue;
    for (uint32_t k = 0; k < g->n; k++) {
      const struct gram *y = &g->item[k];
      const bool is_other = y->n == 1 && y->token != x->token && is_even(rank, y);
      if (is_other && y->count < x->count && is_as_frequent(y->count + row->count, x->count))
        return y->count;
    }
  }
  return 0;
}

static bool has_messages(const struct ni_blame_rank *rank) {
  for (uint32_t i = 0; i < rank->n_slots; i++)
    if (rank->slot[i].kind != NI_BLAME_COLL)
      return true;
  return false;
}

/*
 * Where the rarest one comes so few times that nobody can be judged by it, as where hosts train by themselves
 * and exchange what they learned every hundredth step: how often does what is rarest come on the communicator
 * that has most of the rank's operations? 0: nothing does. Two operations that take turns are of layers, not
 * of steps, and stages of a pipeline would find different ones.
 */
static uint32_t count_steps_within_rounds(const struct ni_blame_rank *rank, const struct grams *g, size_t n,
                                          const struct gram *rarest) {
  uint32_t least = 0;
  if (rarest->count >= ROUNDS_FEW || has_messages(rank))
    return 0;
  for (uint32_t i = 0; i < g->n; i++) {
    const struct gram *x = &g->item[i];
    const uint64_t ops = rank->slot[x->slot].ops;
    const bool is_single = x->n == 1 && !x->is_cluster && is_even(rank, x) && is_spread(rank, x);
    const bool is_of_most = ops * 2 > n && x->count * OF_ROUND_MIN <= ops;
    if (!is_single || !is_of_most || x->count < FAR_MORE * rarest->count)
      continue;
    if (!least || x->count < least)
      least = x->count;
  }
  return least;
}

/* The rarest number of times that is one of steps: 0: none. */
static uint32_t estimate_steps(const struct ni_blame *b, const struct ni_blame_rank *rank,
                               const struct grams *g, size_t n) {
  const struct gram *rarest = find_rarest(rank, g, false);
  if (!rarest)
    rarest = find_rarest(rank, g, true);
  if (!rarest)
    return 0;
  if (rarest->n > 1)
    rarest = find_single_as_frequent(rank, g, rarest);
  /* some in a row that reach from one step into the next come once less than there are steps */
  const bool is_rare = rarest->count + (rarest->n > 1) < RARE;
  uint32_t steps = count_steps_with_one_more(rank, g, rarest);
  if (!steps && is_rare)
    steps = count_steps_by_companions(b, rank, g, rarest);
  if (!steps)
    steps = count_steps_within_rounds(rank, g, n, rarest);
  return steps ? steps : rarest->count;
}

static bool is_long_gap(const struct ni_step_mark *m, int64_t end, const struct ni_blame_op *op) {
  return end && op->start_ns - end >= m->gap_ns;
}

/* The most frequent one of n numbers, as long as no more than MOST_EACH are told apart. */
static uint32_t find_most_frequent(const uint32_t *x, size_t n) {
  uint32_t times[MOST_EACH] = {0}, most = 0;
  for (size_t i = 0; i < n; i++)
    if (x[i] < MOST_EACH && ++times[x[i]] > times[most])
      most = x[i];
  return most;
}

/* All operations of the mark's slot are collectives of one kind: *token. */
static bool has_one_kind(const struct ni_blame_rank *rank, const struct ni_blame_op *op, size_t n,
                         const struct ni_step_mark *m, uint32_t *token) {
  *token = UINT32_MAX;
  if (rank->slot[m->slot].kind != NI_BLAME_COLL)
    return false;
  for (size_t i = 0; i < n; i++) {
    if (op[i].slot != m->slot)
      continue;
    if (*token != UINT32_MAX && op[i].what != *token)
      return false;
    *token = op[i].what;
  }
  return true;
}

/* The numbers of the operations of the slot that a long gap follows. */
static uint32_t list_numbers_before_gaps(const struct ni_blame_op *op, size_t n, const struct ni_step_mark *m,
                                         uint64_t *sn) {
  const struct ni_blame_op *last = NULL;
  uint32_t gaps = 0;
  for (size_t i = 0; i < n; i++) {
    if (op[i].slot != m->slot)
      continue;
    if (last && is_long_gap(m, last->end_ns, &op[i]))
      sn[gaps++] = last->sn;
    last = &op[i];
  }
  return gaps;
}

/*
 * Where nearly all long gaps come after the same one of every so many operations, and nearly each of these
 * has one behind it, that operation ends the step by its number: then a pause within a step begins none, and
 * all ranks count alike. Only where the slot has one kind of operation.
 */
static int refine_by_number(const struct ni_blame_rank *rank, const struct ni_blame_op *op, size_t n,
                            struct ni_step_mark *m) {
  uint32_t *apart = malloc((n + 1) * sizeof *apart), token, size = 0, phase = 0, there = 0, of_step = 0;
  uint64_t *sn = malloc((n + 1) * sizeof *sn);
  if (!apart || !sn) {
    free(apart);
    free(sn);
    return -ENOMEM;
  }
  const uint32_t gaps = has_one_kind(rank, op, n, m, &token) ? list_numbers_before_gaps(op, n, m, sn) : 0;
  for (uint32_t i = 0; i < gaps; i++)
    apart[i] = (uint32_t)(sn[i] - (i ? sn[i - 1] : 0));
  if (gaps)
    size = find_most_frequent(apart, gaps);
  if (size > 1) {
    for (uint32_t i = 0; i < gaps; i++)
      apart[i] = (uint32_t)(sn[i] % size);
    phase = find_most_frequent(apart, gaps);
    for (uint32_t i = 0; i < gaps; i++)
      there += apart[i] == phase;
    for (size_t i = 0; i < n; i++)
      of_step += op[i].slot == m->slot && op[i].sn % size == phase;
  }
  free(apart);
  free(sn);
  if (size < 2 || !is_most(there, gaps) || !is_most(there + 1, of_step))
    return 0;
  m->n = 1;
  m->token = token;
  m->hash = extend_hash(begin_hash(m->slot), token, 0);
  m->far = UINT32_MAX;
  m->size = size;
  m->phase = phase;
  return 0;
}

static uint32_t find_busiest_slot(const struct ni_blame_rank *rank) {
  uint32_t slot = 0;
  for (uint32_t i = 1; i < rank->n_slots; i++)
    if (rank->slot[i].ops > rank->slot[slot].ops)
      slot = i;
  return slot;
}

/* Gaps between operations of the mark's slot, ns. */
static size_t list_gaps(const struct ni_blame_op *op, size_t n, const struct ni_step_mark *m, int64_t *gap) {
  int64_t end = 0;
  size_t gaps = 0;
  for (size_t i = 0; i < n; i++) {
    if (op[i].slot != m->slot)
      continue;
    if (end)
      gap[gaps++] = op[i].start_ns - end;
    end = op[i].end_ns;
  }
  return gaps;
}

/* Long gaps that come as many operations after the one before as expected, within a tenth. */
static uint32_t count_even_gaps(const struct ni_blame_op *op, size_t n, const struct ni_step_mark *m,
                                double expected) {
  int64_t end = 0;
  size_t of_slot = 0, last = 0;
  uint32_t even = 0;
  for (size_t i = 0; i < n; i++) {
    if (op[i].slot != m->slot)
      continue;
    if (is_long_gap(m, end, &op[i])) {
      const double distance = (double)(of_slot - last);
      even += distance >= 0.9 * expected - 1 && distance <= 1.1 * expected + 1;
      last = of_slot;
    }
    of_slot++;
    end = op[i].end_ns;
  }
  return even;
}

/* Is it the mark of a candidate: a single operation of its kind. */
static bool is_mark(const struct gram *x, const struct ni_blame_op *op) {
  return op->slot == x->slot && op->what == x->token;
}

/* Operations of the rank from one mark to the next, at most NI_FOLD_MARKS of them. */
static uint32_t measure_mark_distances(const struct gram *x, const struct ni_blame_op *op, size_t n,
                                       float *out) {
  uint32_t marks = 0;
  size_t last = 0;
  for (size_t i = 0; i < n && marks <= NI_FOLD_MARKS; i++) {
    if (!is_mark(x, &op[i]))
      continue;
    if (marks)
      out[marks - 1] = (float)(i - last);
    last = i;
    marks++;
  }
  return marks ? marks - 1 : 0;
}

/*
 * Logarithms of the gaps before the operations of the slot with most of them, from mark to mark; only where
 * there are as many each time.
 */
static uint32_t measure_gaps_between_marks(const struct ni_blame_rank *rank, const struct gram *x,
                                           const struct ni_blame_op *op, size_t n, uint32_t *width,
                                           float gap[PERIOD_GAPS]) {
  const uint32_t slot = find_busiest_slot(rank);
  const uint32_t each = (uint32_t)((double)rank->slot[slot].ops / x->count + 0.5);
  uint32_t marks = 0, rows = 0, at = 0;
  float row[PERIOD_GAPS];
  int64_t end = 0;
  *width = each;
  if (each < 2 || each * NI_FOLD_ROWS_MIN > PERIOD_GAPS)
    return 0;
  for (size_t i = 0; i < n && (rows + 1) * each <= PERIOD_GAPS; i++) {
    if (op[i].slot == slot) {
      if (at < each)
        row[at] = logf((float)(end && op[i].start_ns > end ? op[i].start_ns - end : 0) + 1e4f);
      at++;
      end = op[i].end_ns;
    }
    if (!is_mark(x, &op[i]))
      continue;
    if (marks++ && at == each)
      memcpy(gap + (size_t)rows++ * each, row, each * sizeof *row);
    else if (marks > 1 && at != each)
      return 0; /* then their order tells more than gaps do */
    at = 0;
  }
  return rows;
}

/*
 * Where a few kinds of equal operations are all there is, what comes least often may come several times a
 * step: two equal buckets of gradients. Then what lies between marks repeats after so many of them, not after
 * one. Numbers of operations tell first; gaps only where these are all alike. 1: they are steps.
 */
static uint32_t count_marks_in_step(const struct ni_blame_rank *rank, const struct gram *x,
                                    const struct ni_blame_op *op, size_t n) {
  float far[NI_FOLD_MARKS], gap[PERIOD_GAPS];
  uint32_t width;
  const uint32_t marks = ni_fold_counts(far, measure_mark_distances(x, op, n, far));
  if (marks > 1)
    return marks;
  const uint32_t rows = measure_gaps_between_marks(rank, x, op, n, &width, gap);
  return rows ? ni_fold_gaps(gap, rows, width) : 1;
}

/*
 * Of one operation that is all there is each comes "once a step". Not so where others come between: of other
 * kinds, or messages, of which a pipeline without tensor parallelism has more than collectives.
 */
static bool has_other_operations(const struct ni_blame_rank *rank, uint32_t single, const struct gram *x) {
  uint64_t messages = 0;
  for (uint32_t i = 0; i < rank->n_slots; i++)
    if (rank->slot[i].kind != NI_BLAME_COLL)
      messages += rank->slot[i].ops;
  return single > 1 || (single == 1 && messages > x->count);
}

/* What the mark is looked for in, and what was found so far. */
struct search {
  const struct ni_blame *b;
  const struct ni_blame_rank *rank;
  const struct ni_blame_op *op;
  size_t n;
  struct grams *g;
  uint32_t single;         /* kinds of single operations that come often enough to mark */
  uint32_t wanted;         /* about so many steps; 0: as they show */
  const struct gram *kind; /* what comes as often as steps do; NULL: nothing */
};

/* Everything that may mark, with what tells it. 0 or -ENOMEM. */
static int gather_grams(struct search *x) {
  operation_grams *at = malloc((x->n + 1) * sizeof *at);
  const int e = at ? count_grams(x->b, x->rank, x->op, x->n, x->g, at) : -ENOMEM;
  if (e == 0) {
    measure_distances(x->op, x->n, x->g, at);
    add_cluster_grams(x->g);
  }
  free(at);
  for (uint32_t i = 0; e == 0 && i < x->g->n; i++)
    x->single += x->g->item[i].n == 1 && x->g->item[i].count >= STEPS_MIN;
  return e;
}

/* The best of what comes `steps` times. */
static const struct gram *find_kind(const struct search *x, uint32_t steps) {
  const struct gram *best = NULL;
  for (uint32_t i = 0; i < x->g->n; i++) {
    const struct gram *y = &x->g->item[i];
    if (!is_even(x->rank, y) || !is_as_frequent(y->count, steps))
      continue;
    if (!best || is_better_mark(x->b, x->rank, y, best))
      best = y;
  }
  return best;
}

/* Can what was found come several times a step? */
static bool may_repeat(const struct search *x) {
  return x->kind->n == 1 && !x->kind->is_cluster && has_other_operations(x->rank, x->single, x->kind);
}

/*
 * Where one operation is all there is, each of them comes "once a step"; not so where most of the rest are
 * messages.
 */
static bool is_all_there_is(const struct search *x) {
  return x->single < 2 && x->rank->slot[x->kind->slot].ops * 2 > x->n;
}

/* each: every so manyth of them ends a step, by its number; 0: each, or the last of each cluster. */
static void mark_kind(struct ni_step_mark *m, const struct gram *kind, uint32_t each) {
  *m = (struct ni_step_mark){.slot = (uint16_t)kind->slot,
                             .token = kind->token,
                             .hash = kind->hash,
                             .n = kind->n,
                             .far = each ? UINT32_MAX : kind->far,
                             .size = each,
                             .found = true};
  if (!each && kind->is_cluster)
    m->size = kind->size;
  m->elsewhere = m->size;
  m->phase = m->size ? m->size - 1 : 0;
}

/* ---- the ways to find a mark, each where those before it found none: m->found; 0 or -ENOMEM ---- */

/* A kind of operation, a few in a row, or the last of a cluster, that comes once a step. */
static int step_by_kind(struct search *x, struct ni_step_mark *m) {
  x->kind = find_kind(x, x->wanted ? x->wanted : estimate_steps(x->b, x->rank, x->g, x->n));
  if (x->kind && !x->wanted && may_repeat(x)) {
    const uint32_t k = count_marks_in_step(x->rank, x->kind, x->op, x->n);
    if (k > 1) {
      x->wanted = x->kind->count / k;
      x->kind = NULL;
    }
  }
  if (x->kind && !is_all_there_is(x))
    mark_kind(m, x->kind, 0);
  return 0;
}

/* Where nothing comes as often as is wanted: every so manyth of what comes least often. */
static int step_by_every_nth(struct search *x, struct ni_step_mark *m) {
  uint32_t each = UINT32_MAX;
  if (x->kind || !x->wanted)
    return 0;
  for (uint32_t i = 0; i < x->g->n; i++) {
    const struct gram *y = &x->g->item[i];
    const uint32_t so_many = (y->count + x->wanted / 2) / x->wanted;
    const bool is_single = y->n == 1 && !y->is_cluster && is_even(x->rank, y);
    if (!is_single || so_many < 2 || so_many >= each)
      continue;
    if (is_as_frequent(y->count, so_many * x->wanted)) {
      x->kind = y;
      each = so_many;
    }
  }
  if (x->kind && !is_all_there_is(x))
    mark_kind(m, x->kind, each);
  return 0;
}

/* All operations are alike: long gaps on the slot with most operations. */
static int step_by_gaps(struct search *x, struct ni_step_mark *m) {
  int64_t *gap = malloc((x->n + 1) * sizeof *gap);
  uint32_t long_ones = 0;
  if (!gap)
    return -ENOMEM;
  m->slot = (uint16_t)find_busiest_slot(x->rank);
  const size_t gaps = list_gaps(x->op, x->n, m, gap);
  qsort(gap, gaps, sizeof *gap, ni_by_i64);
  m->gap_ns = gaps ? 4 * gap[gaps / 2] : 0;
  if (m->gap_ns < GAP_LEAST_NS)
    m->gap_ns = GAP_LEAST_NS;
  for (size_t i = 0; i < gaps; i++)
    long_ones += gap[i] >= m->gap_ns;
  free(gap);
  const double each = long_ones ? (double)gaps / long_ones : 0;
  m->n = 0;
  m->found =
      long_ones >= STEPS_MIN && each > 1.5 && is_most(count_even_gaps(x->op, x->n, m, each), long_ones);
  return m->found ? refine_by_number(x->rank, x->op, x->n, m) : 0;
}

/* --step-by: what it names, though it is all there is. */
static int step_by_named_kind(struct search *x, struct ni_step_mark *m) {
  if (x->kind && x->b->r->opt.step_by)
    *m = (struct ni_step_mark){.slot = (uint16_t)x->kind->slot,
                               .token = x->kind->token,
                               .hash = x->kind->hash,
                               .n = x->kind->n,
                               .found = true};
  return 0;
}

static int measure_least_distance(struct ni_step_mark *m, const struct ni_blame_op *op, size_t n) {
  struct ni_step_mark mark = *m;
  uint32_t marks = 0;
  float *distance = malloc((n + 1) * sizeof *distance);
  size_t last = 0;
  if (!distance)
    return -ENOMEM;
  for (size_t i = 0; i < n; i++) {
    if (!ni_steps_advance(&mark, &op[i]))
      continue;
    if (marks++)
      distance[marks - 2] = (float)(i - last);
    last = i;
  }
  if (marks > 1)
    m->least = (uint32_t)(ni_fold_median(distance, marks - 1) * LEAST_DISTANCE);
  free(distance);
  return 0;
}

int ni_steps_find(const struct ni_blame *b, const struct ni_blame_rank *rank, const struct ni_blame_op *op,
                  size_t n, uint32_t wanted, struct ni_step_mark *m) {
  static int (*const ways[])(struct search *, struct ni_step_mark *) = {step_by_kind, step_by_every_nth,
                                                                        step_by_gaps, step_by_named_kind};
  struct search x = {.b = b, .rank = rank, .op = op, .n = n, .wanted = wanted};
  *m = (struct ni_step_mark){0};
  /* items are set when they come: half a MB for each rank need not be cleared */
  x.g = malloc(sizeof *x.g);
  if (!x.g)
    return -ENOMEM;
  x.g->n = 0;
  x.g->at_hash = (struct ni_index){0};
  int e = gather_grams(&x);
  for (size_t i = 0; e == 0 && !m->found && i < sizeof ways / sizeof *ways; i++)
    e = ways[i](&x, m);
  ni_index_free(&x.g->at_hash);
  free(x.g);
  if (e == 0 && m->found && m->n && m->size == 0)
    e = measure_least_distance(m, op, n);
  return e;
}

/*
 * Is it the last of its cluster? Operations are counted on from one cluster to the next, since delays change
 * the order of what overlaps; anew where clusters end elsewhere again and again. at: so many operations of
 * the rank came before it.
 */
static bool ends_cluster(struct ni_step_mark *m, uint64_t at) {
  const bool is_apart = m->in_cluster && at - m->last_op >= m->far;
  if (is_apart)
    m->elsewhere = m->in_cluster == m->size ? 0 : m->elsewhere + 1;
  if (m->in_cluster == m->size || m->elsewhere > m->size)
    m->in_cluster = m->elsewhere = 0;
  m->in_cluster++;
  m->last_op = at;
  return m->in_cluster == m->size;
}

static bool is_far_enough(struct ni_step_mark *m, uint64_t at) {
  if (m->last_op && at + 1 - m->last_op <= m->least)
    return false;
  m->last_op = at + 1;
  return true;
}

bool ni_steps_advance(struct ni_step_mark *m, const struct ni_blame_op *op) {
  const uint64_t at = m->ops++;
  if (op->slot != m->slot)
    return false;
  const int64_t end = m->last_end;
  m->last_end = op->end_ns;
  if (m->n == 0)
    return is_long_gap(m, end, op);
  shift_in_token(m->last, op->what);
  if (++m->taken < m->n || op->what != m->token)
    return false;
  uint64_t hash = begin_hash(m->slot);
  for (unsigned i = 0; i < m->n; i++)
    hash = extend_hash(hash, m->last[i], i);
  if (hash != m->hash)
    return false;
  if (m->size == 0)
    return is_far_enough(m, at);
  /* by its number, so that it is the same one on all ranks */
  if (m->far == UINT32_MAX)
    return op->sn % m->size == m->phase;
  return ends_cluster(m, at);
}
