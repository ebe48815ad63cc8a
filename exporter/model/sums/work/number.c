#include "number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "exporter/base/order.h"
#include "exporter/model/sums/ranks/cells.h"
#include "exporter/model/sums/ranks/quantile.h"

struct judged_seat { /* a judged rank in a communicator; what is compared there */
  uint32_t comm, rank, slot;
};
static int compare_seats(const void *a, const void *b) {
  const struct judged_seat *x = a, *y = b;
  return NI_BY(x, y, comm, rank);
}

/* The bin of `of` that begins nearest to the middle one of o: steps between their numbers. */
static int32_t shift_by_time(const struct ni_blame_rank *of, const struct ni_blame_rank *o,
                             uint32_t bin_steps) {
  const uint32_t middle = o->n_bins / 2;
  uint32_t best = middle;
  int64_t t = o->cell[middle].start_ns, least = INT64_MAX;
  for (uint32_t k = 0; t && k < of->n_bins; k++) {
    int64_t d = of->cell[k].start_ns - t;
    if (!of->cell[k].start_ns)
      continue;
    if (d < 0)
      d = -d;
    if (d < least) {
      least = d;
      best = k;
    }
  }
  return ((int32_t)best - (int32_t)middle) * (int32_t)bin_steps;
}

/* Steps, with the part of one that had passed. */
static double step_at_anchor(const struct ni_blame_rank *o, const struct ni_blame_anchor *a) {
  return a->step + fmin(0.999, (double)a->in_step * o->n_steps / (double)(o->ops ? o->ops : 1));
}

static double step_at_number(const struct ni_blame_rank *o, const struct ni_blame_slot *s, uint64_t sn) {
  for (int i = 0; i < 2; i++)
    if (s->anchor[i].sn == sn)
      return step_at_anchor(o, &s->anchor[i]);
  const double first = step_at_anchor(o, &s->anchor[0]), last = step_at_anchor(o, &s->anchor[1]),
               n = (double)s->anchor[1].sn - (double)s->anchor[0].sn;
  return n > 0 ? first + ((double)sn - (double)s->anchor[0].sn) * (last - first) / n : NAN;
}

/* So many steps later is the same one of x than of y. NAN: their anchors are of different operations. */
static double measure_shift(const struct ni_blame *b, const struct judged_seat *x,
                            const struct judged_seat *y) {
  const struct ni_blame_rank *p = &b->rank[x->rank], *q = &b->rank[y->rank];
  const struct ni_blame_slot *s = &p->slot[x->slot], *t = &q->slot[y->slot];
  if (s->anchor_of == 0 || s->anchor_of != t->anchor_of)
    return NAN;
  double sum = 0;
  uint32_t n = 0;
  for (int i = 0; i < 2; i++) {
    double d = step_at_number(p, s, t->anchor[i].sn) - step_at_anchor(q, &t->anchor[i]);
    if (!isnan(d)) {
      sum += d;
      n++;
    }
  }
  return n ? sum / n : NAN;
}

/* Ranks of one communicator: of each, its first slot there. */
static size_t gather_judged_seats(const struct ni_blame *b, struct judged_seat *seat) {
  size_t n = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    for (uint32_t k = 0; b->rank[i].judged && k < b->rank[i].n_slots; k++)
      if (b->rank[i].slot[k].kind == NI_BLAME_COLL && b->rank[i].slot[k].ops)
        seat[n++] = (struct judged_seat){b->rank[i].slot[k].comm, i, k};
  qsort(seat, n, sizeof *seat, compare_seats);
  return n;
}

/* From ranks whose shift is known to those they share a communicator with, until no more become known. */
static void spread_shifts(struct ni_blame *b, const struct judged_seat *seat, size_t n, bool *known) {
  bool more = true;
  while (more) {
    more = false;
    for (size_t from = 0, to; from < n; from = to) {
      const struct judged_seat *of = NULL;
      for (to = from; to < n && seat[to].comm == seat[from].comm; to++)
        if (!of && known[seat[to].rank])
          of = &seat[to];
      for (size_t i = from; of && i < to; i++) {
        double d = known[seat[i].rank] ? NAN : measure_shift(b, of, &seat[i]);
        if (isnan(d))
          continue;
        b->rank[seat[i].rank].shift = b->rank[of->rank].shift + (int32_t)lrint(d);
        known[seat[i].rank] = more = true;
      }
    }
  }
}

/* Logs number messages alike on both sides, and some of these numbers are of both. */
static bool share_numbers(const struct ni_blame_slot *s, const struct ni_blame_slot *t) {
  return s->anchor[0].sn <= t->anchor[1].sn && t->anchor[0].sn <= s->anchor[1].sn;
}

/* Its messages are numbered alike, or all there on both sides: as many were received as were sent. */
static bool is_other_end(const struct ni_blame_slot *s, const struct ni_blame_slot *t) {
  const bool sent = s->kind == NI_BLAME_SEND && t->kind == NI_BLAME_RECV;
  const bool got = s->kind == NI_BLAME_RECV && t->kind == NI_BLAME_SEND;
  const bool is_same_way = s->comm == t->comm && s->peer == t->rank && s->rank == t->peer;
  const bool has_messages = s->ops && t->ops;
  const bool can_meet = (sent || got) && is_same_way && has_messages;
  if (!can_meet)
    return false;
  return s->paired && t->paired ? share_numbers(s, t) : s->ops == t->ops;
}

/*
 * A rank that has no collective in common with those whose shift is known, by the messages that it exchanges
 * with one of them: the k-th sent is the k-th received. Hosts that exchange messages alone have clocks that
 * nobody can compare. False: there are none.
 */
static bool shift_by_messages(struct ni_blame *b, const bool *known, uint32_t rank) {
  const struct ni_blame_rank *o = &b->rank[rank];
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    const struct ni_blame_rank *of = &b->rank[i];
    for (uint32_t k = 0; of->judged && known[i] && k < of->n_slots; k++)
      for (uint32_t m = 0; of->slot[k].kind != NI_BLAME_COLL && m < o->n_slots; m++) {
        if (!is_other_end(&of->slot[k], &o->slot[m]))
          continue;
        const struct judged_seat theirs = {of->slot[k].comm, i, k}, mine = {o->slot[m].comm, rank, m};
        const double d = measure_shift(b, &theirs, &mine);
        if (isnan(d))
          continue;
        b->rank[rank].shift = of->shift + (int32_t)lrint(d);
        return true;
      }
  }
  return false;
}

/*
 * From ranks whose shift is known to all that collectives and messages join with them, one after the other.
 */
static void spread_shifts_by_messages(struct ni_blame *b, const struct judged_seat *seat, size_t n,
                                      bool *known) {
  bool more = true;
  while (more) {
    more = false;
    for (uint32_t i = 0; i < b->n_ranks; i++) {
      if (!b->rank[i].judged || known[i] || !shift_by_messages(b, known, i))
        continue;
      known[i] = more = true;
      spread_shifts(b, seat, n, known);
    }
  }
}

/* Bins of several steps hold the same steps on all ranks only as far as shifts are multiples of them. */
static int32_t round_to_bins(int32_t shift, uint32_t bin_steps) {
  return (int32_t)lrint((double)shift / bin_steps) * (int32_t)bin_steps;
}

/*
 * Of ranks that nothing in the logs joins no step is known to be that of another one, and the replay's sample
 * of them has to be of the same blocks.
 */
static int32_t round_to_blocks(const struct ni_blame *b, int32_t shift) {
  const double steps = (double)NI_BLAME_BLOCK * b->sample_every;
  return (int32_t)(round(shift / steps) * steps);
}

/* Bins of all ranks become as wide as the widest. */
static void widen_bins(struct ni_blame *b) {
  b->bin_steps = 1;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    if (b->rank[i].judged && b->rank[i].bin_steps > b->bin_steps)
      b->bin_steps = b->rank[i].bin_steps;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    while (b->rank[i].judged && b->rank[i].bin_steps < b->bin_steps)
      ni_blame_coarsen(&b->rank[i]);
}

/* From a first rank to all that are joined with it; what nothing joins is shifted by its time. */
static void shift_all(struct ni_blame *b, const struct judged_seat *seat, size_t n_seats, bool *known) {
  const struct ni_blame_rank *first = NULL;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    struct ni_blame_rank *o = &b->rank[i];
    if (!o->judged || known[i])
      continue;
    o->shift = first ? first->shift + shift_by_time(first, o, b->bin_steps) : 0;
    if (b->s->process[o->process].may_wait_unseen)
      o->shift = round_to_blocks(b, o->shift);
    known[i] = true;
    spread_shifts(b, seat, n_seats, known);
    spread_shifts_by_messages(b, seat, n_seats, known);
    if (!first)
      first = o;
  }
}

/* The least shift becomes 0. Then bins and steps of the job are known. */
static void count_from_first_step(struct ni_blame *b) {
  int32_t least = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    b->rank[i].shift = round_to_bins(b->rank[i].shift, b->bin_steps);
    if (b->rank[i].judged && b->rank[i].shift < least)
      least = b->rank[i].shift;
  }
  for (uint32_t i = 0; i < b->n_ranks; i++) {
    struct ni_blame_rank *o = &b->rank[i];
    if (!o->judged)
      continue;
    o->shift -= least;
    const uint32_t bins = o->n_bins + (uint32_t)o->shift / b->bin_steps;
    const uint32_t last = o->n_steps + (uint32_t)o->shift;
    if (bins > b->bins)
      b->bins = bins;
    if (last > b->steps)
      b->steps = last;
  }
}

int ni_number_steps(struct ni_blame *b) {
  size_t slots = 0, judged = 0;
  for (uint32_t i = 0; i < b->n_ranks; i++)
    slots += b->rank[i].n_slots;
  struct judged_seat *seat = malloc((slots + 1) * sizeof *seat);
  bool *known = calloc(b->n_ranks + 1, sizeof *known);
  float *steps = malloc((b->n_ranks + 1) * sizeof *steps);
  const bool has_room = seat && known && steps;
  if (has_room) {
    const size_t n_seats = gather_judged_seats(b, seat);
    widen_bins(b);
    shift_all(b, seat, n_seats, known);
    count_from_first_step(b);
    for (uint32_t i = 0; i < b->n_ranks; i++)
      if (b->rank[i].judged)
        steps[judged++] = (float)b->rank[i].whole_steps;
    b->whole_steps = judged ? (uint32_t)ni_blame_quantile(steps, judged, 0.5) : 0;
  }
  free(seat);
  free(known);
  free(steps);
  return has_room ? 0 : -ENOMEM;
}
