#include "variants.h"

#define LANE_SHARE 2 /* a lane has the half of the steps at least */

/*
 * Counts one more variant of that kind. Without room it takes the place of the rarest one, and counts as at
 * least as frequent.
 */
static void count_variant(struct ni_variants *v, uint64_t hash, uint32_t ops) {
  uint32_t i = 0, rarest = 0;
  while (i < v->n && v->item[i].hash != hash)
    i++;
  if (i == v->n && v->n < NI_VARIANTS)
    v->item[v->n++] = (struct ni_variant){.hash = hash, .ops = ops};
  if (i == NI_VARIANTS) {
    for (uint32_t k = 1; k < NI_VARIANTS; k++)
      if (v->item[k].count < v->item[rarest].count)
        rarest = k;
    i = rarest;
    v->item[i].hash = hash;
    v->item[i].ops = ops;
  }
  v->item[i].count++;
}

static const struct ni_variant *find_most_frequent(const struct ni_variants *v) {
  const struct ni_variant *best = &v->item[0];
  for (uint32_t i = 1; i < v->n; i++)
    if (v->item[i].count > best->count)
      best = &v->item[i];
  return best;
}

/*
 * Hashes each lane of the step at hand into two numbers: one of its operations, and one of their functions.
 */
void ni_variants_hash(struct ni_lane_reader *x) {
  for (uint32_t i = 0; i < NI_PATTERN_LANES; i++)
    x->lane[i].hash = x->lane[i].function_hash = x->lane[i].ops = 0;
  for (size_t i = 0; i < x->cut.now.n; i++) {
    const uint32_t lane = ni_cut_lane_of(&x->cut, x->cut.now.op[i].slot);
    if (lane == NI_BLAME_NONE) {
      x->left_out++;
      continue;
    }
    struct ni_lane *l = &x->lane[lane];
    l->hash = ni_mix(l->hash + x->cut.now.op[i].token + 1);
    l->function_hash = ni_mix(l->function_hash + x->cut.function_of[x->cut.now.op[i].token] + 1u);
    l->ops++;
    const uint64_t bytes = x->cut.mine.token_bytes[x->cut.now.op[i].token];
    if (bytes < l->bytes_least)
      l->bytes_least = bytes;
    if (bytes > l->bytes_most)
      l->bytes_most = bytes;
  }
}

static void count_lanes(struct ni_lane_reader *x) {
  ni_variants_hash(x);
  for (uint32_t i = 0; i < x->cut.n_lanes; i++) {
    struct ni_lane *l = &x->lane[i];
    if (!l->ops)
      continue;
    count_variant(&l->exact, l->hash, l->ops);
    count_variant(&l->by_function, l->function_hash, l->ops);
    l->ops_all += l->ops;
    if (l->ops < l->ops_least)
      l->ops_least = l->ops;
    if (l->ops > l->ops_most)
      l->ops_most = l->ops;
  }
}

static uint64_t count_steps_with(const struct ni_lane *l) {
  uint64_t steps = 0;
  for (uint32_t i = 0; i < l->exact.n; i++)
    steps += l->exact.item[i].count;
  return steps;
}

/* Chooses what most steps have. Returns the number of places of all lanes. */
static uint32_t choose_variants(struct ni_lane_reader *x, uint64_t steps) {
  uint32_t places = 0;
  for (uint32_t i = 0; i < x->cut.n_lanes; i++) {
    struct ni_lane *l = &x->lane[i];
    const struct ni_variant *exact = find_most_frequent(&l->exact),
                            *functions = find_most_frequent(&l->by_function);
    /* what goes to many others and is not the same for all is the rank's own, and its order means nothing */
    const bool is_own = x->cut.lane[i].peer == NI_PATTERN_ALL_PEERS && l->bytes_least != l->bytes_most;
    const bool repeats = exact->count * LANE_SHARE >= steps && !is_own;
    l->absent = steps - count_steps_with(l);
    l->sizes_vary = !repeats && functions->count * LANE_SHARE >= steps;
    l->regular = repeats || l->sizes_vary;
    l->chosen = repeats ? *exact : *functions;
    l->first = places;
    if (l->regular)
      places += l->chosen.ops;
  }
  return places;
}

static void forget_lanes(struct ni_lane_reader *x) {
  for (uint32_t i = 0; i < NI_PATTERN_LANES; i++)
    x->lane[i] = (struct ni_lane){.ops_least = UINT64_MAX, .bytes_least = UINT64_MAX};
}

/* All steps once. */
static int count_steps(struct ni_lane_reader *x, uint64_t *steps) {
  forget_lanes(x);
  *steps = 0;
  x->left_out = 0;
  int e = ni_cut_begin(&x->cut);
  while (e == 0 && (e = ni_cut_next(&x->cut)) > 0) {
    count_lanes(x);
    (*steps)++;
    e = 0;
  }
  ni_cut_end(&x->cut);
  return e;
}

/*
 * Finds lanes that have the same number of operations a step on average, and not in each step. They are cut
 * anew by their numbers. They are off by one operation in FEW_LOST steps, and by EDGE at the ends of the log,
 * at most.
 */
static bool find_jitter(const struct ni_lane_reader *x, uint64_t steps, uint64_t each[NI_PATTERN_LANES]) {
  enum { FEW_LOST = 50, EDGE = 2 };
  bool any = false;
  for (uint32_t i = 0; i < x->cut.n_lanes; i++) {
    const struct ni_lane *l = &x->lane[i];
    const uint64_t n = (l->ops_all + steps / 2) / steps, even = n * steps,
                   off = l->ops_all > even ? l->ops_all - even : even - l->ops_all;
    const bool varies = l->ops_least != l->ops_most || l->absent;
    each[i] = n && varies && off <= EDGE + steps / FEW_LOST ? n : 0;
    any |= each[i] > 0;
  }
  return any;
}

int ni_variants_find(struct ni_lane_reader *x, uint64_t *steps, uint32_t *places) {
  uint64_t each[NI_PATTERN_LANES];
  int e = count_steps(x, steps);
  *places = e == 0 && *steps ? choose_variants(x, *steps) : 0;
  const bool is_known = e == 0 && *steps >= NI_PATTERN_STEPS_MIN;
  if (!is_known || !find_jitter(x, *steps, each))
    return e;
  e = ni_cut_balance(&x->cut, each);
  if (e == 0)
    e = count_steps(x, steps);
  if (e == 0)
    *places = choose_variants(x, *steps);
  return e;
}

/*
 * Do the lanes cover most of what the rank does? Requests of any length have something in common at times,
 * and that is no step. A tenth of all operations is enough, as evaluations can be long.
 */
static bool covers_enough(const struct ni_lane_reader *x) {
  enum { LEAST = 10 };
  uint64_t covered = 0;
  for (uint32_t i = 0; i < x->cut.n_lanes; i++)
    if (x->lane[i].regular)
      covered += x->lane[i].chosen.count * x->lane[i].chosen.ops;
  return covered * LEAST >= x->cut.ops;
}

/* Counts operations on lanes whose sequence is different each time. */
static uint64_t count_irregular_ops(const struct ni_lane_reader *x) {
  uint64_t ops = 0;
  for (uint32_t i = 0; i < x->cut.n_lanes; i++)
    ops += x->lane[i].regular ? 0 : x->lane[i].ops_all;
  return ops;
}

bool ni_variants_are_steps(const struct ni_lane_reader *x, uint32_t places, uint64_t steps) {
  return places && places * steps >= 2 * count_irregular_ops(x) && covers_enough(x);
}

bool ni_variants_fit(const struct ni_lane *l) {
  return l->regular && l->ops == l->chosen.ops &&
      (l->sizes_vary ? l->function_hash : l->hash) == l->chosen.hash;
}

bool ni_variants_are_rare(const struct ni_lane *l, uint64_t steps) {
  return !l->regular && l->absent * LANE_SHARE >= steps;
}
