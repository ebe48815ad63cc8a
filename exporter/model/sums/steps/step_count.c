#include "step_count.h"

#include <string.h>

enum {
  RARE = 20,
  ONE_MORE_STEPS = 4,
  EACH_OFF = 20, /* of the steps: so many operations more or less in all are those of an evaluation */
  FAR_MORE = 8,
  SCALARS_FAR_MORE = 4,
  SCALAR_BYTES = 64,
  BUCKETS_MORE = 2,
  /* nobody is judged by fewer bins (twice NI_CAUSE_BINS of causes.h); the first and the last are not whole */
  ROUNDS_FEW = 12,
  GRADIENTS_FAR_MORE = 4,
  ROUNDS_OF_GRADIENTS = 5 * NI_BLAME_BLOCK, /* more blocks than that are enough for the replay */
  OF_ROUND_MIN = 3                          /* operations of a step */
};

/* A norm, a loss or a flag: nothing that each micro-batch of a step has. */
static bool is_scalar(const struct ni_blame_rank *rank, const struct ni_gram *x) {
  const bool has_size = rank->token_bytes && x->token < rank->n_tokens;
  return has_size && rank->token_bytes[x->token] <= SCALAR_BYTES;
}

/* It comes more rarely, or as rarely and on a larger communicator. */
static bool is_rarer(const struct ni_blame *b, const struct ni_blame_rank *rank, const struct ni_gram *x,
                     const struct ni_gram *y) {
  return x->count < y->count ||
      (x->count == y->count && ni_gram_ranks(b, rank, x) > ni_gram_ranks(b, rank, y));
}

/*
 * Operations of one communicator that begin close together swap now and then, and then several in a row are
 * missed. So where a single one comes half as often again at most, it is the one that comes once a step.
 */
static const struct ni_gram *find_single_as_frequent(const struct ni_blame *b,
                                                     const struct ni_blame_rank *rank,
                                                     const struct ni_grams *g, const struct ni_gram *row) {
  const struct ni_gram *best = row;
  for (uint32_t i = 0; i < g->n; i++) {
    const struct ni_gram *x = &g->item[i];
    const bool is_single = x->n == 1 && ni_gram_is_even(rank, x);
    const bool is_as_often = x->count >= row->count && x->count * 2 < row->count * 3;
    const bool is_as_spread = ni_gram_is_spread(rank, x) || !ni_gram_is_spread(rank, row);
    const bool is_better = best->n > 1 || is_rarer(b, rank, x, best);
    if (!is_single || !is_better)
      continue;
    if (is_as_often && is_as_spread)
      best = x;
  }
  return best;
}

/* The rarest one that can be of steps, of several that on the largest communicator; NULL: none. */
static const struct ni_gram *find_rarest(const struct ni_blame *b, const struct ni_blame_rank *rank,
                                         const struct ni_grams *g, bool also_not_spread) {
  const struct ni_gram *rarest = NULL;
  for (uint32_t i = 0; i < g->n; i++) {
    const struct ni_gram *x = &g->item[i];
    if (!ni_gram_is_even(rank, x) || !(also_not_spread || ni_gram_is_spread(rank, x)))
      continue;
    if (!rarest || is_rarer(b, rank, x, rarest))
      rarest = x;
  }
  return rarest;
}

/* Is there another single operation that comes as often? */
static bool has_companion(const struct ni_blame_rank *rank, const struct ni_grams *g,
                          const struct ni_gram *x) {
  for (uint32_t i = 0; i < g->n; i++) {
    const struct ni_gram *y = &g->item[i];
    const bool is_other_single = y != x && y->n == 1 && ni_gram_is_even(rank, y);
    if (is_other_single && ni_is_as_frequent(y->count, x->count))
      return true;
  }
  return false;
}

/*
 * Where the rarest one is an evaluation or a checkpoint every so many steps, single operations on
 * communicators as large come far more often: a scalar, or two equally often. How often? 0: there are none. A
 * step can have eight micro-batches; scalars come once in it.
 */
static uint32_t count_steps_by_companions(const struct ni_blame *b, const struct ni_blame_rank *rank,
                                          const struct ni_grams *g, const struct ni_gram *rarest) {
  uint32_t least = 0;
  for (uint32_t i = 0; i < g->n; i++) {
    const struct ni_gram *x = &g->item[i];
    const bool is_single = x->n == 1 && ni_gram_is_even(rank, x);
    const uint32_t far_more = is_scalar(rank, x) ? SCALARS_FAR_MORE : FAR_MORE;
    const bool is_far_more_often = x->count >= far_more * rarest->count;
    const bool is_rarer = !least || x->count < least;
    const bool is_as_large = ni_gram_ranks(b, rank, x) >= ni_gram_ranks(b, rank, rarest);
    if (!is_single || !is_far_more_often || !is_rarer)
      continue;
    if (is_as_large && (is_scalar(rank, x) || has_companion(rank, g, x)))
      least = x->count;
  }
  return least;
}

/*
 * All other operations that come evenly come as many times in each of so many steps, as those of layers do;
 * and there are some.
 */
static bool come_as_often_each(const struct ni_blame_rank *rank, const struct ni_grams *g,
                               const struct ni_gram *but, uint32_t steps) {
  bool any = false;
  for (uint32_t i = 0; i < g->n; i++) {
    const struct ni_gram *y = &g->item[i];
    const bool is_other = y->n == 1 && y->token != but->token && y->count >= steps / 2;
    if (!is_other || y->is_cluster)
      continue;
    const uint32_t each = (y->count + steps / 2) / steps;
    const uint32_t expected = each * steps;
    const uint32_t off = y->count > expected ? y->count - expected : expected - y->count;
    if (each == 0 || off > each + steps / EACH_OFF)
      return false;
    any = true;
  }
  return any;
}

static bool is_all_reduce(const struct ni_blame_rank *rank, const struct ni_gram *x) {
  const bool is_single =
      x->n == 1 && !x->is_cluster && ni_gram_is_even(rank, x) && ni_gram_is_spread(rank, x);
  return is_single && strcmp(rank->token_func[x->token], "AllReduce") == 0 && !is_scalar(rank, x);
}

/* Others of another size on its communicator come several times as often, as buckets of gradients do. */
static bool is_rarest_bucket(const struct ni_blame_rank *rank, const struct ni_grams *g,
                             const struct ni_gram *x) {
  for (uint32_t i = 0; i < g->n; i++) {
    const struct ni_gram *y = &g->item[i];
    const bool is_more_often = y != x && y->slot == x->slot && y->count >= BUCKETS_MORE * x->count;
    if (is_more_often && y->n == 1 && strcmp(rank->token_func[y->token], "AllReduce") == 0)
      return true;
  }
  return false;
}

/*
 * Where the rarest one is a scalar, such as a loss that is looked at each tenth step: gradients that are
 * reduced on all ranks are so once a step, and the last bucket has a size of its own. How often does that one
 * come? 0: there is none. What is gathered and scattered can be of each micro-batch.
 */
static uint32_t count_steps_by_gradients(const struct ni_blame *b, const struct ni_blame_rank *rank,
                                         const struct ni_grams *g, const struct ni_gram *rarest) {
  uint32_t least = 0;
  for (uint32_t i = 0; i < g->n && is_scalar(rank, rarest); i++) {
    const struct ni_gram *x = &g->item[i];
    const bool is_as_large = ni_gram_ranks(b, rank, x) >= ni_gram_ranks(b, rank, rarest);
    const bool is_far_more_often = x->count >= SCALARS_FAR_MORE * rarest->count;
    const bool may_be_bucket = is_as_large && is_far_more_often && is_all_reduce(rank, x);
    if (may_be_bucket && is_rarest_bucket(rank, g, x) && (!least || x->count < least))
      least = x->count;
  }
  return least;
}

/*
 * Where the rarest one is a scalar on all ranks, such as a loss that is looked at each tenth step, and ranks
 * that share a model have a norm in each step: how often does that one come? All else comes as many times in
 * each of so many steps. 0: there is none.
 */
static uint32_t count_steps_by_norms(const struct ni_blame_rank *rank, const struct ni_grams *g,
                                     const struct ni_gram *rarest) {
  uint32_t least = 0;
  for (uint32_t i = 0; i < g->n && rarest->n == 1 && is_scalar(rank, rarest); i++) {
    const struct ni_gram *x = &g->item[i];
    const bool is_single = x->n == 1 && !x->is_cluster && ni_gram_is_even(rank, x);
    const bool is_norm = is_single && is_scalar(rank, x) && x->slot != rarest->slot;
    if (!is_norm || x->count < SCALARS_FAR_MORE * rarest->count || (least && x->count >= least))
      continue;
    if (come_as_often_each(rank, g, rarest, x->count))
      least = x->count;
  }
  return least;
}

/*
 * Where the rarest one is two in a row of what comes in each step once: a barrier before a checkpoint beside
 * the loss, or a loss that is looked at now and then beside the norm. What is in the row comes so many times
 * more than something else that comes in each step, or than steps in which all else comes as often: how often
 * is that? 0: there is no such thing.
 */
static uint32_t count_steps_with_one_more(const struct ni_blame_rank *rank, const struct ni_grams *g,
                                          const struct ni_gram *row) {
  for (uint32_t i = 0; row->n > 1 && i < g->n; i++) {
    const struct ni_gram *x = &g->item[i];
    const bool is_of_row = x->n == 1 && x->slot == row->slot && x->token == row->token;
    if (!is_of_row || x->count < ONE_MORE_STEPS * row->count)
      continue;
    for (uint32_t k = 0; k < g->n; k++) {
      const struct ni_gram *y = &g->item[k];
      const bool is_other = y->n == 1 && y->token != x->token && ni_gram_is_even(rank, y);
      if (is_other && y->count < x->count && ni_is_as_frequent(y->count + row->count, x->count))
        return y->count;
    }
    if (is_scalar(rank, x) && come_as_often_each(rank, g, x, x->count - row->count))
      return x->count - row->count;
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
 *
 * Where the rarest one comes more often than that it may as well be the step, and what comes on the other
 * communicator of its micro-batches. But gradients that are reduced among some ranks are reduced once a step.
 */
static uint32_t count_steps_within_rounds(const struct ni_blame_rank *rank, const struct ni_grams *g,
                                          size_t n, const struct ni_gram *rarest) {
  uint32_t least = 0;
  const bool are_few = rarest->count < ROUNDS_FEW;
  if (rarest->count >= ROUNDS_OF_GRADIENTS || has_messages(rank))
    return 0;
  for (uint32_t i = 0; i < g->n; i++) {
    const struct ni_gram *x = &g->item[i];
    const uint64_t ops = rank->slot[x->slot].ops;
    const bool is_single =
        x->n == 1 && !x->is_cluster && ni_gram_is_even(rank, x) && ni_gram_is_spread(rank, x);
    const bool is_of_most = ops * 2 > n && x->count * OF_ROUND_MIN <= ops;
    const bool is_gradient =
        x->slot != rarest->slot && is_all_reduce(rank, x) && is_rarest_bucket(rank, g, x);
    const uint32_t far_more = is_gradient ? GRADIENTS_FAR_MORE : FAR_MORE;
    if (!is_single || !is_of_most || !(are_few || is_gradient) || x->count < far_more * rarest->count)
      continue;
    if (!least || x->count < least)
      least = x->count;
  }
  return least;
}

uint32_t ni_steps_estimate(const struct ni_blame *b, const struct ni_blame_rank *rank,
                           const struct ni_grams *g, size_t n) {
  const struct ni_gram *rarest = find_rarest(b, rank, g, false);
  if (!rarest)
    rarest = find_rarest(b, rank, g, true);
  if (!rarest)
    return 0;
  if (rarest->n > 1)
    rarest = find_single_as_frequent(b, rank, g, rarest);
  /* some in a row that reach from one step into the next come once less than there are steps */
  const bool is_rare = rarest->count + (rarest->n > 1) < RARE;
  uint32_t steps = count_steps_with_one_more(rank, g, rarest);
  if (!steps && is_rare)
    steps = count_steps_by_companions(b, rank, g, rarest);
  if (!steps)
    steps = count_steps_by_gradients(b, rank, g, rarest);
  if (!steps)
    steps = count_steps_by_norms(rank, g, rarest);
  if (!steps)
    steps = count_steps_within_rounds(rank, g, n, rarest);
  return steps ? steps : rarest->count;
}
