#include "cut.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/base/array.h"
#include "exporter/model/sums/blame/peer_groups.h"
#include "exporter/model/sums/steps/steps.h"

enum { MANY_PEERS = 8, OFTEN = 7 }; /* OFTEN: one step in so many has it */

int ni_cut_begin(struct ni_cut *x) {
  x->mine = (struct ni_blame_rank){.process = x->rank->process, .all_ops = x->rank->all_ops};
  x->mark = x->rank->mark;
  x->has_next = x->has_ahead = false;
  x->ops = x->step = 0;
  x->now.n = x->ahead.n = 0;
  memset(x->lane_of, 0, sizeof x->lane_of);
  for (uint32_t i = 0; i < x->n_lanes; i++) {
    x->lane[i].peers = x->lane[i].same_off = 0;
    x->lane[i].before = x->lane[i].last_off = 0;
    x->lane[i].at = x->lane[i].first_at; /* each pass cuts the same steps */
  }
  int e = ni_blame_open(&x->stream, x->r, x->piece, x->n_pieces, &x->mine);
  x->mine.max_slots = NI_CUT_SLOTS;
  if (e == 0)
    (void)ni_blame_functions(x->stream, &x->function, &x->function_of);
  return e;
}

void ni_cut_end(struct ni_cut *x) {
  ni_blame_close(x->stream);
  ni_blame_free_rank(&x->mine);
  x->stream = NULL;
  x->mine = (struct ni_blame_rank){0};
}

void ni_cut_free(struct ni_cut *x) {
  free(x->now.op);
  free(x->ahead.op);
}

/* ---- lanes ---- */

/* Does the rank send to (or receive from) many ranks there? Its first operations show it. */
static bool is_to_many(const struct ni_blame_rank *o, const struct ni_blame_slot *s, int32_t n_ranks) {
  int32_t peers = 0;
  for (uint32_t i = 0; i < o->n_slots; i++)
    peers += o->slot[i].comm == s->comm && o->slot[i].kind == s->kind && o->slot[i].rank == s->rank;
  const bool is_to_all = peers >= 3 && peers == n_ranks - 1;
  return s->kind != NI_BLAME_COLL && (peers >= MANY_PEERS || is_to_all);
}

uint32_t ni_cut_lane_of(struct ni_cut *x, uint32_t slot) {
  if (slot >= NI_CUT_SLOTS)
    return NI_BLAME_NONE;
  if (x->lane_of[slot])
    return x->lane_of[slot] - 1u;
  const struct ni_blame_slot *s = &x->mine.slot[slot];
  const int32_t peer = is_to_many(x->rank, s, x->s->comm[s->comm].n_ranks) ? NI_PATTERN_ALL_PEERS : s->peer;
  uint32_t i = 0;
  for (; i < x->n_lanes; i++) {
    const struct ni_cut_lane *l = &x->lane[i];
    const bool is_same_side = l->peer == peer && l->rank == s->rank;
    if (l->comm == s->comm && l->kind == s->kind && is_same_side)
      break;
  }
  if (i == NI_PATTERN_LANES)
    return NI_BLAME_NONE;
  if (i == x->n_lanes)
    x->lane[x->n_lanes++] =
        (struct ni_cut_lane){.comm = s->comm, .rank = s->rank, .peer = peer, .kind = s->kind};
  x->lane_of[slot] = (uint8_t)(i + 1);
  x->lane[i].peers++;
  return i;
}

/* ---- steps, by their marks ---- */

static int append_op(struct ni_cut_ops *to, const struct ni_blame_op *op) {
  if (to->n == NI_PATTERN_STEP)
    return -E2BIG;
  if (!ni_array_room(to->op, to->n, to->cap))
    return -ENOMEM;
  to->op[to->n++] = *op;
  return 0;
}

/* Appends a step's operations. 1: there was one; 0: no more. */
static int read_step(struct ni_cut *x, struct ni_cut_ops *to) {
  const size_t was = to->n;
  struct ni_blame_op op;
  int e = x->has_next ? append_op(to, &x->next) : 0;
  x->has_next = false;
  while (e == 0 && (e = ni_blame_next(x->stream, &op)) > 0) {
    const bool was_seen = op.slot < x->rank->max_slots; /* by the pass that found the mark */
    const bool ends = was_seen && ni_steps_advance(&x->mark, &op), before = ends && !x->mark.n;
    x->ops++;
    if (before) {
      x->next = op;
      x->has_next = true;
      return 1;
    }
    if ((e = append_op(to, &op)) == 0 && ends)
      return 1;
  }
  if (e == 0 && x->mark.n)
    to->n = was; /* behind the last mark is a part of a step */
  return e < 0 ? e : to->n > was;
}

/* ---- balanced lanes ---- */

static void count_by_lane(struct ni_cut *x, const struct ni_cut_ops *ops, uint64_t n[NI_PATTERN_LANES]) {
  memset(n, 0, NI_PATTERN_LANES * sizeof *n);
  for (size_t i = 0; i < ops->n; i++) {
    const uint32_t lane = ni_cut_lane_of(x, ops->op[i].slot);
    if (lane != NI_BLAME_NONE)
      n[lane]++;
  }
}

/* How many operations the lane has got beyond those of its steps so far, this one included. */
static int64_t surplus_ops(const struct ni_cut_lane *l, uint64_t n, uint64_t step) {
  return l->before + (int64_t)n - (int64_t)((step + 1) * l->each);
}

/*
 * Computes how many operations of each lane are to come from the next step. Below 0: how many are to go
 * there.
 */
static void count_wanted_ops(struct ni_cut *x, const uint64_t n[NI_PATTERN_LANES],
                             int64_t more[NI_PATTERN_LANES]) {
  for (uint32_t i = 0; i < x->n_lanes; i++) {
    struct ni_cut_lane *l = &x->lane[i];
    more[i] = 0;
    if (!l->balanced)
      continue;
    const int64_t off = surplus_ops(l, n[i], x->step);
    l->same_off = off == l->last_off ? l->same_off + 1 : 1;
    l->last_off = off;
    if (l->same_off >= NI_CUT_ANEW)
      l->at = off;
    if (off - l->at <= NI_CUT_OFF && l->at - off <= NI_CUT_OFF)
      more[i] = l->at - off;
  }
}

/* Takes the first operations of the next step, where more is above 0. */
static int take_from_next(struct ni_cut *x, int64_t more[NI_PATTERN_LANES]) {
  size_t kept = 0;
  int e = 0;
  for (size_t i = 0; i < x->ahead.n; i++) {
    const struct ni_blame_op *op = &x->ahead.op[i];
    const uint32_t lane = ni_cut_lane_of(x, op->slot);
    if (e == 0 && lane != NI_BLAME_NONE && more[lane] > 0) {
      more[lane]--;
      e = append_op(&x->now, op);
    } else {
      x->ahead.op[kept++] = *op;
    }
  }
  x->ahead.n = kept;
  return e;
}

/* Moves the last operations of this step to the begin of the next one, where more is below 0. */
static int give_to_next(struct ni_cut *x, int64_t more[NI_PATTERN_LANES]) {
  struct ni_cut_ops moved = {0};
  int e = 0;
  for (size_t i = x->now.n; e == 0 && i-- > 0;) {
    const uint32_t lane = ni_cut_lane_of(x, x->now.op[i].slot);
    if (lane == NI_BLAME_NONE || more[lane] >= 0)
      continue;
    more[lane]++;
    e = append_op(&moved, &x->now.op[i]);
    memmove(&x->now.op[i], &x->now.op[i + 1], (x->now.n - i - 1) * sizeof *x->now.op);
    x->now.n--;
  }
  if (x->ahead.n + moved.n > NI_PATTERN_STEP)
    e = -E2BIG;
  if (e == 0 && moved.n && !ni_array_room(x->ahead.op, x->ahead.n + moved.n, x->ahead.cap))
    e = -ENOMEM;
  if (e == 0 && moved.n) {
    memmove(x->ahead.op + moved.n, x->ahead.op, x->ahead.n * sizeof *x->ahead.op);
    for (size_t i = 0; i < moved.n; i++)
      x->ahead.op[i] = moved.op[moved.n - 1 - i];
    x->ahead.n += moved.n;
  }
  free(moved.op);
  return e;
}

static int balance_steps(struct ni_cut *x) {
  uint64_t n[NI_PATTERN_LANES];
  int64_t more[NI_PATTERN_LANES];
  bool takes = false, gives = false;
  count_by_lane(x, &x->now, n);
  count_wanted_ops(x, n, more);
  for (uint32_t i = 0; i < x->n_lanes; i++) {
    takes |= more[i] > 0;
    gives |= more[i] < 0;
  }
  int e = takes ? take_from_next(x, more) : 0;
  if (e == 0 && gives)
    e = give_to_next(x, more);
  if (e == 0 && (takes || gives))
    count_by_lane(x, &x->now, n);
  for (uint32_t i = 0; i < x->n_lanes; i++)
    x->lane[i].before += (int64_t)n[i];
  x->step++;
  return e;
}

int ni_cut_next(struct ni_cut *x) {
  if (!x->balances) {
    x->now.n = 0;
    return read_step(x, &x->now);
  }
  int e = 1;
  if (!x->has_ahead)
    e = read_step(x, &x->ahead);
  x->has_ahead = e > 0;
  if (e <= 0)
    return e;
  const struct ni_cut_ops was = x->now;
  x->now = x->ahead;
  x->ahead = was;
  x->ahead.n = 0;
  e = read_step(x, &x->ahead);
  x->has_ahead = e > 0;
  if (e >= 0)
    e = balance_steps(x);
  return e < 0 ? e : 1;
}

/*
 * Where the lane was, compared with the mark: the latest place that comes often, so that ranks agree that
 * have it now here, now there.
 */
static int64_t find_frequent_place(const struct ni_cut_lane *l, uint64_t steps) {
  uint32_t best = NI_CUT_OFF;
  for (uint32_t i = 0; i < sizeof l->off / sizeof *l->off; i++)
    if (l->off[i] * OFTEN >= steps && l->off[i])
      best = i;
  return (int64_t)best - NI_CUT_OFF;
}

int ni_cut_balance(struct ni_cut *x, const uint64_t each[NI_PATTERN_LANES]) {
  uint64_t n[NI_PATTERN_LANES];
  int e = ni_cut_begin(x);
  for (uint32_t i = 0; i < x->n_lanes; i++) {
    x->lane[i].each = each[i];
    memset(x->lane[i].off, 0, sizeof x->lane[i].off);
  }
  while (e == 0 && (e = ni_cut_next(x)) > 0) {
    count_by_lane(x, &x->now, n);
    for (uint32_t i = 0; i < x->n_lanes; i++) {
      struct ni_cut_lane *l = &x->lane[i];
      const int64_t off = surplus_ops(l, n[i], x->step);
      if (off >= -NI_CUT_OFF && off <= NI_CUT_OFF)
        l->off[off + NI_CUT_OFF]++;
      l->before += (int64_t)n[i];
    }
    x->step++;
    e = 0;
  }
  for (uint32_t i = 0; i < x->n_lanes; i++) {
    x->lane[i].balanced = each[i] > 0;
    x->lane[i].first_at = find_frequent_place(&x->lane[i], x->step);
  }
  x->balances = true;
  ni_cut_end(x);
  return e;
}
