#include "steps.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fold.h"
#include "step_count.h"
#include "exporter/base/order.h"

#define LEAST_DISTANCE 0.25f /* of the distance of most marks: nearer ones are of one step */
enum { PERIOD_GAPS = 4096 };
#define GAP_LEAST_NS INT64_C(1000000) /* a shorter one is no begin of a step */
enum { MOST_EACH = 1024 };

/*
 * Of those that come equally often: what is spread over the run, fewer in a row, the larger communicator, the
 * more own time behind it.
 */
static bool is_better_mark(const struct ni_blame *b, const struct ni_blame_rank *rank,
                           const struct ni_gram *x, const struct ni_gram *y) {
  const int32_t p = ni_gram_ranks(b, rank, x), q = ni_gram_ranks(b, rank, y);
  const bool x_is_spread = ni_gram_is_spread(rank, x);
  if (x_is_spread != ni_gram_is_spread(rank, y))
    return x_is_spread;
  if (x->n != y->n && (x->n == 1 || y->n == 1))
    return x->n < y->n;
  if (p != q)
    return p > q;
  return x->after_ns > y->after_ns;
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
  if (size < 2 || !ni_is_most(there, gaps) || !ni_is_most(there + 1, of_step))
    return 0;
  m->n = 1;
  m->token = token;
  m->hash = ni_gram_extend_hash(ni_gram_begin_hash(m->slot), token, 0);
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
static bool is_mark(const struct ni_gram *x, const struct ni_blame_op *op) {
  return op->slot == x->slot && op->what == x->token;
}

/* Operations of the rank from one mark to the next, at most NI_FOLD_MARKS of them. */
static uint32_t measure_mark_distances(const struct ni_gram *x, const struct ni_blame_op *op, size_t n,
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
static uint32_t measure_gaps_between_marks(const struct ni_blame_rank *rank, const struct ni_gram *x,
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
static uint32_t count_marks_in_step(const struct ni_blame_rank *rank, const struct ni_gram *x,
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
static bool has_other_operations(const struct ni_blame_rank *rank, uint32_t single, const struct ni_gram *x) {
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
  struct ni_grams *g;
  uint32_t single;            /* kinds of single operations that come often enough to mark */
  uint32_t wanted;            /* about so many steps; 0: as they show */
  const struct ni_gram *kind; /* what comes as often as steps do; NULL: nothing */
  /* Stages of a pipeline begin their steps one after the other, and each ends them by its own operations. */
  bool has_messages;
  bool by_order;                 /* nothing but the order of all operations says how many steps there are */
  uint64_t kinds[NI_STEP_KINDS]; /* single ones that do, as hash_kind() */
  uint32_t n_kinds;
};

/* Everything that may mark, with what tells it. 0 or -ENOMEM. */
static int gather_grams(struct search *x) {
  const int e = ni_grams_gather(x->b, x->rank, x->op, x->n, x->g);
  for (uint32_t i = 0; e == 0 && i < x->g->n; i++)
    x->single += x->g->item[i].n == 1 && x->g->item[i].count >= NI_STEPS_MIN;
  return e;
}

/* What it is, as a number that is the same on all ranks. */
static uint64_t hash_kind(const struct search *x, const struct ni_gram *y) {
  const uint64_t ranks = (uint64_t)ni_gram_ranks(x->b, x->rank, y);
  const uint64_t what = x->rank->token_hash ? x->rank->token_hash[y->token] : y->token;
  return ni_mix(ni_mix(ni_mix(what + 1) + ranks) + y->n + (y->is_cluster ? 8 * (uint64_t)y->size : 0)) | 1;
}

/* The best of what comes `steps` times: what marks on most ranks, where that is known and is one of them. */
static const struct ni_gram *find_kind(struct search *x, uint32_t steps) {
  const struct ni_gram *best = NULL;
  x->n_kinds = 0;
  for (uint32_t i = 0; i < x->g->n; i++) {
    const struct ni_gram *y = &x->g->item[i];
    if (!ni_gram_is_even(x->rank, y) || !ni_is_as_frequent(y->count, steps))
      continue;
    const uint64_t kind = hash_kind(x, y);
    if (y->n == 1 && x->n_kinds < NI_STEP_KINDS && !x->has_messages)
      x->kinds[x->n_kinds++] = kind;
    if (x->rank->usual_mark && kind == x->rank->usual_mark)
      return y;
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
static void mark_kind(const struct search *x, struct ni_step_mark *m, const struct ni_gram *kind,
                      uint32_t each) {
  *m = (struct ni_step_mark){.kind = hash_kind(x, kind),
                             .slot = (uint16_t)kind->slot,
                             .token = kind->token,
                             .hash = kind->hash,
                             .n = kind->n,
                             .far = each ? UINT32_MAX : kind->far,
                             .size = each,
                             .by_order = x->by_order,
                             .found = true};
  if (!each && kind->is_cluster)
    m->size = kind->size;
  if (!each) /* of every nth of them the phase may differ */
    memcpy(m->could_be, x->kinds, x->n_kinds * sizeof *x->kinds);
  m->elsewhere = m->size;
  m->phase = m->size ? m->size - 1 : 0;
}

/*
 * A pipeline whose layers talk within a host, and nothing else but messages: no gradients are reduced, and
 * there is no norm. Then nothing comes once a step. Rings of context parallelism send messages as well, but
 * the gradients of these jobs are reduced across hosts.
 */
static bool is_plain_pipeline(const struct search *x) {
  uint32_t collectives = 0, within_host = 0;
  for (uint32_t i = 0; i < x->rank->n_slots; i++) {
    const struct ni_blame_slot *s = &x->rank->slot[i];
    collectives += s->kind == NI_BLAME_COLL;
    within_host += s->kind == NI_BLAME_COLL && x->b->s->comm[s->comm].one_host >= 0;
  }
  return x->has_messages && collectives == 1 && within_host == 1;
}

static int compare_what(const void *a, const void *b) {
  const uint16_t x = *(const uint16_t *)a, y = *(const uint16_t *)b;
  return x < y ? -1 : x > y;
}

/*
 * How often the order of collectives and messages comes again. A Send and a Recv of one group begin together:
 * messages in a row are put in the order of their slots. 0: not known.
 */
static uint32_t count_steps_by_order(const struct search *x) {
  uint16_t *what = malloc((x->n + 1) * sizeof *what);
  size_t messages = 0;
  for (size_t i = 0; what && i < x->n; i++) {
    const bool is_coll = x->rank->slot[x->op[i].slot].kind == NI_BLAME_COLL;
    what[i] = is_coll ? (uint16_t)(NI_BLAME_SLOTS + x->op[i].what) : x->op[i].slot;
    if (is_coll)
      qsort(what + i - messages, messages, sizeof *what, compare_what);
    messages = is_coll ? 0 : messages + 1;
  }
  const uint32_t period = what ? ni_fold_order(what, (uint32_t)x->n) : 0;
  free(what);
  return period ? (uint32_t)((double)x->n / period + 0.5) : 0;
}

/* What comes in each layer ends no step. On the last stage a step may be a micro-batch: these are alike. */
static void look_at_order(struct search *x) {
  const uint32_t steps = is_plain_pipeline(x) ? count_steps_by_order(x) : 0;
  x->by_order = steps >= NI_STEPS_MIN;
  if (!x->by_order || x->kind->count * 2 < steps * 3)
    return;
  x->wanted = steps;
  x->kind = NULL;
}

/* ---- the ways to find a mark, each where those before it found none: m->found; 0 or -ENOMEM ---- */

/* A kind of operation, a few in a row, or the last of a cluster, that comes once a step. */
static int step_by_kind(struct search *x, struct ni_step_mark *m) {
  x->kind = find_kind(x, x->wanted ? x->wanted : ni_steps_estimate(x->b, x->rank, x->g, x->n));
  if (x->kind && !x->wanted)
    look_at_order(x);
  if (x->kind && !x->wanted && may_repeat(x)) {
    const uint32_t k = count_marks_in_step(x->rank, x->kind, x->op, x->n);
    if (k > 1) {
      x->wanted = x->kind->count / k;
      x->kind = NULL;
    }
  }
  if (x->kind && !is_all_there_is(x))
    mark_kind(x, m, x->kind, 0);
  return 0;
}

/* Where nothing comes as often as is wanted: every so manyth of what comes least often. */
static int step_by_every_nth(struct search *x, struct ni_step_mark *m) {
  uint32_t each = UINT32_MAX;
  if (x->kind || !x->wanted)
    return 0;
  for (uint32_t i = 0; i < x->g->n; i++) {
    const struct ni_gram *y = &x->g->item[i];
    const uint32_t so_many = (y->count + x->wanted / 2) / x->wanted;
    const bool is_single = y->n == 1 && !y->is_cluster && ni_gram_is_even(x->rank, y);
    if (!is_single || so_many < 2 || so_many >= each)
      continue;
    if (ni_is_as_frequent(y->count, so_many * x->wanted)) {
      x->kind = y;
      each = so_many;
    }
  }
  /* in a plain pipeline all of them may be layers' */
  if (x->kind && (is_plain_pipeline(x) || !is_all_there_is(x)))
    mark_kind(x, m, x->kind, each);
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
      long_ones >= NI_STEPS_MIN && each > 1.5 && ni_is_most(count_even_gaps(x->op, x->n, m, each), long_ones);
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
  for (uint32_t i = 0; i < rank->n_slots; i++)
    x.has_messages |= rank->slot[i].kind != NI_BLAME_COLL;
  /* items are set when they come: half a MB for each rank need not be cleared */
  x.g = malloc(sizeof *x.g);
  if (!x.g)
    return -ENOMEM;
  x.g->n = 0;
  x.g->at_hash = (struct ni_index){0};
  int e = gather_grams(&x);
  for (size_t i = 0; e == 0 && !m->found && i < sizeof ways / sizeof *ways; i++)
    e = ways[i](&x, m);
  ni_grams_free(x.g);
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
  ni_gram_shift_in(m->last, op->what);
  if (++m->taken < m->n || op->what != m->token)
    return false;
  uint64_t hash = ni_gram_begin_hash(m->slot);
  for (unsigned i = 0; i < m->n; i++)
    hash = ni_gram_extend_hash(hash, m->last[i], i);
  if (hash != m->hash)
    return false;
  if (m->size == 0)
    return is_far_enough(m, at);
  /* by its number, so that it is the same one on all ranks */
  if (m->far == UINT32_MAX)
    return op->sn % m->size == m->phase;
  return ends_cluster(m, at);
}
