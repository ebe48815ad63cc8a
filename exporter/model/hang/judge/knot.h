/*
 * What knots of collectives and knots of sends and receives (knots.c) have in common: who is where. One
 * thread. Pure, except for ni_hang_new_knot().
 */
#ifndef NI_HANG_KNOT_H
#define NI_HANG_KNOT_H

#include "exporter/model/hang/verdict.h"

static inline uint64_t ni_hang_least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* Members of one communicator, one a rank, ascending. */
struct ni_hang_group {
  const struct ni_hang_member **x;
  size_t n;
  bool past; /* all of an earlier run */
  uint64_t seen_ns,
      runs_ns;       /* newest sign of life of its processes; of those that are neither dead nor have ended */
  uint64_t until_ns; /* when the last of its members left it or died; UINT64_MAX: one is in it */
};

struct ni_hang_finding {
  uint16_t send; /* number of the text */
  struct ni_hang_verdict *v;
  const struct ni_hang_model *m;
  size_t cap;
};

/* Adds one, with a view for each member and nothing known of it. NULL without memory. */
struct ni_hang_knot *ni_hang_new_knot(struct ni_hang_finding *f, const struct ni_hang_group *c,
                                      enum ni_kind kind);
/* Counts its views by where they are. */
void ni_hang_count(struct ni_hang_knot *k);
/* The rank of this view is found to be somewhere else: the counts follow. */
void ni_hang_set_where(struct ni_hang_knot *k, struct ni_hang_view *w, enum ni_hang_where where);
/* Notes one more call of its operation; 0: the time is not known. */
void ni_hang_note_call(struct ni_hang_knot *k, uint64_t enqueue_ns);

/* Its process is dead, and others lived on. */
bool ni_hang_dead_before(const struct ni_hang_group *c, const struct ni_hang_process *p);
/* When it left the communicator by its own choice, or died; UINT64_MAX: it is still in it. */
uint64_t ni_hang_was_in_until(const struct ni_hang_member *x, const struct ni_hang_process *p);
/* It destroyed the communicator, or its process ended in order, and others stayed. */
bool ni_hang_left_before(const struct ni_hang_group *c, const struct ni_hang_member *x,
                         const struct ni_hang_process *p);
/* Is what it has in flight a wait? So it has neither of the two above. */
bool ni_hang_stays(const struct ni_hang_group *c, const struct ni_hang_member *x,
                   const struct ni_hang_process *p);
/* Is everything known that was in flight at time ns? A dead process has begun nothing after what it left. */
bool ni_hang_is_known_at(const struct ni_hang_member *x, const struct ni_hang_process *p, uint64_t ns);
/* Where a rank is that has this operation in flight. */
enum ni_hang_where ni_hang_where_of(const struct ni_hang_op *op);

/* The view of a rank; NULL: there is none. */
struct ni_hang_view *ni_hang_view_of(const struct ni_hang_knot *k, int32_t rank);
/* Others wait for a rank that is there. */
bool ni_hang_blocks(const struct ni_hang_knot *k, const struct ni_hang_view *w);
/* How many ranks are inside it, as far as anybody knows. */
static inline size_t ni_hang_count_inside(const struct ni_hang_knot *k) {
  return k->count[NI_HANG_INSIDE] + k->count[NI_HANG_IN_REPLAY];
}
/* Others wait for somebody who is there. */
bool ni_hang_misses(const struct ni_hang_knot *k);
/* This rank has called it and is not through. */
bool ni_hang_waits(const struct ni_hang_view *w);
/*
 * This rank waits and has not moved on elsewhere. If it has finished this operation, it waits in a later one.
 */
bool ni_hang_is_held(const struct ni_hang_knot *k, const struct ni_hang_view *w);
/* Has somebody begun it, and does somebody wait for those who have not finished it? */
bool ni_hang_is_wait(const struct ni_hang_knot *k);
/* Is a knot pending for long enough to hang? */
bool ni_hang_is_enough(const struct ni_hang_verdict *v, uint64_t pending_ns, uint64_t limit_ns);
/* Is it a wait, and for long enough to be told? */
bool ni_hang_is_told(const struct ni_hang_knot *k);
/* Two calls of a knot's operation: the same in what ranks disagree on? */
bool ni_hang_has_same_values(const struct ni_hang_knot *k, const struct ni_hang_op *a,
                             const struct ni_hang_op *b);
/*
 * Exactly one rank has called it, and two or more have not: that rank made one call too many. For knots that
 * are judged, as is the next function.
 */
bool ni_hang_is_one_too_many(const struct ni_hang_knot *k);
/* Is this rank the cause of that knot? Nobody is where all are inside. */
bool ni_hang_is_cause(const struct ni_hang_knot *k, const struct ni_hang_view *w);

#endif
