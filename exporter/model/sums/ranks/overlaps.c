#include "overlaps.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "quantile.h"

/*
 * So many operations of a slot that begin before the last one of another has ended; of these by less than
 * half of the shorter one; by less than half of the earlier one; and so many that begin up to as much behind
 * that end as stamps can be off, the first ones since it began.
 */
struct followed {
  uint32_t over, little, little_of_earlier, behind;
};

enum { FOLLOWED_MIN = 8 };
/* of them by less than half: the one follows the other, and stamps are off */
#define FOLLOWED 0.8

static int64_t measure_length(const struct ni_blame_op *op) { return op->end_ns - op->start_ns; }

/* Does an operation begin before an earlier one has ended, by less than half of the shorter one? */
static bool overlaps_little(const struct ni_blame_op *earlier, const struct ni_blame_op *op) {
  const int64_t overlap = earlier->end_ns - op->start_ns;
  const int64_t mine = measure_length(op), theirs = measure_length(earlier);
  return overlap > 0 && overlap * 2 < (mine < theirs ? mine : theirs);
}

/*
 * The same where an operation is shorter than stamps are off, as the norm of the gradients behind their last
 * bucket: by less than half of the earlier one. What overlaps with it begins before its end, too, but
 * never a little behind it.
 */
static bool overlaps_earlier_little(const struct ni_blame_op *earlier, const struct ni_blame_op *op,
                                    const struct followed *f) {
  const int64_t overlap = earlier->end_ns - op->start_ns;
  const bool off_both_ways = f->behind >= FOLLOWED_MIN && f->behind * 8 >= f->over;
  return off_both_ways && overlap > 0 && overlap < NI_PLACE_OVERLAP_MOST_NS &&
      overlap * 2 < measure_length(earlier);
}

static bool begins_behind(const struct ni_blame_op *earlier, const struct ni_blame_op *op,
                          const struct ni_blame_op *own) {
  const bool first = !own || own->start_ns < earlier->start_ns;
  return first && op->start_ns - earlier->end_ns <= NI_PLACE_OVERLAP_MOST_NS;
}

/* Passes over the operations: who begins behind whom; by how much they overlap; and the list of these. */
enum overlap_pass { COUNT_BEHIND, COUNT_LITTLE, LIST_LITTLE, OVERLAP_PASSES };

struct overlaps {
  struct followed *pair; /* of each two slots */
  bool of_earlier;       /* too few by the shorter one's length: the earlier one's is the measure */
  float *ns;
  size_t n;
};

static bool follows_slot(const struct ni_blame_rank *o, const struct overlaps *x, uint32_t of,
                         uint32_t slot) {
  const struct followed *f = &x->pair[of * o->n_slots + slot];
  if (of == slot)
    return o->slot[slot].kind == NI_BLAME_COLL;
  return f->over >= FOLLOWED_MIN && (x->of_earlier ? f->little_of_earlier : f->little) >= FOLLOWED * f->over;
}

/* One operation; before[] has the last one of each slot. */
static void count_overlaps(const struct ni_blame_rank *o, struct overlaps *x,
                           const struct ni_blame_op **before, const struct ni_blame_op *op,
                           enum overlap_pass pass) {
  for (uint32_t k = 0; k < o->n_slots; k++) {
    struct followed *f = &x->pair[k * o->n_slots + op->slot];
    const struct ni_blame_op *earlier = before[k];
    if (!earlier)
      continue;
    const bool ended = earlier->end_ns <= op->start_ns;
    if (pass == COUNT_BEHIND) {
      f->over += !ended;
      f->behind += ended && k != op->slot && begins_behind(earlier, op, before[op->slot]);
    } else if (pass == COUNT_LITTLE) {
      f->little += overlaps_little(earlier, op);
      f->little_of_earlier += overlaps_little(earlier, op) || overlaps_earlier_little(earlier, op, f);
    } else {
      const bool little =
          overlaps_little(earlier, op) || (x->of_earlier && overlaps_earlier_little(earlier, op, f));
      if (little && follows_slot(o, x, k, op->slot))
        x->ns[x->n++] = (float)(earlier->end_ns - op->start_ns);
    }
  }
  before[op->slot] = op;
}

/* Room for the list, and by whose length it is. */
static bool prepare_overlap_list(const struct ni_blame_rank *o, struct overlaps *x) {
  size_t most = 0, by_shorter = 0;
  for (uint32_t k = 0; k < o->n_slots; k++) {
    for (uint32_t i = 0; i < o->n_slots; i++) {
      const struct followed *f = &x->pair[k * o->n_slots + i];
      most += f->little_of_earlier;
      by_shorter += follows_slot(o, x, k, i) ? f->little : 0;
    }
  }
  x->of_earlier = by_shorter < FOLLOWED_MIN;
  x->ns = malloc((most + 1) * sizeof *x->ns);
  return x->ns;
}

int ni_overlaps_measure(const struct ni_blame_rank *o, const struct ni_blame_op *op, size_t n,
                        int64_t *overlap_ns) {
  const uint32_t slots = o->n_slots;
  struct overlaps of = {.pair = calloc((size_t)slots * slots + 1, sizeof *of.pair)};
  for (int pass = 0; of.pair && pass < OVERLAP_PASSES; pass++) {
    const struct ni_blame_op *before[NI_BLAME_SLOTS] = {NULL};
    if (pass == LIST_LITTLE && !prepare_overlap_list(o, &of))
      break;
    for (size_t i = 0; i < n; i++)
      count_overlaps(o, &of, before, &op[i], (enum overlap_pass)pass);
  }
  const bool had_room = of.ns != NULL;
  const float most = of.n ? ni_blame_quantile(of.ns, of.n, 0.95) : 0;
  free(of.pair);
  free(of.ns);
  *overlap_ns =
      (int64_t)fminf(fmaxf(most, (float)NI_PLACE_OVERLAP_LEAST_NS), (float)NI_PLACE_OVERLAP_MOST_NS);
  return had_room ? 0 : -ENOMEM;
}

void ni_overlaps_find_slots(struct ni_blame_rank *o, const struct ni_blame_op *op, size_t n,
                            int64_t overlap_ns) {
  uint32_t within[NI_BLAME_SLOTS][NI_BLAME_SLOTS] = {0}, ops[NI_BLAME_SLOTS] = {0};
  int64_t end[NI_BLAME_SLOTS] = {0};
  for (size_t i = 0; i < n; i++, op++) {
    for (uint32_t k = 0; k < o->n_slots; k++) /* begins as one kernel with it: a group */
      within[k][op->slot] += o->slot[k].comm != o->slot[op->slot].comm && end[k] > op->start_ns + overlap_ns;
    end[op->slot] = op->end_ns;
    ops[op->slot]++;
  }
  for (uint32_t a = 0; a < o->n_slots; a++)
    for (uint32_t c = 0; c < o->n_slots && ops[a]; c++) {
      double mine = (double)within[a][c] / ops[a], theirs = ops[c] ? (double)within[c][a] / ops[c] : 0;
      if (mine >= 0.1 && mine > theirs)
        o->slot[a].overlapped = true;
    }
}
