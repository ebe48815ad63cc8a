/*
 * What a rank's usual step has, by its first operations: which messages go out as groups, which slots are
 * inner (closest to the computing), what comes now and then only (*extra*), and how many operations of each
 * slot a step has.
 *
 * Fills the first half of struct ni_places; the other half is what happens along the way (places.h). Threads:
 * one a rank. Failure: -ENOMEM.
 */
#ifndef NI_BLAME_USUAL_STEP_H
#define NI_BLAME_USUAL_STEP_H

#include "places.h"

/* The slot's messages have more than two peers. */
bool ni_places_is_group(const struct ni_blame_rank *o, uint32_t slot);
/* Messages that go out as groups, and inner slots. */
void ni_usual_step_group(struct ni_places *x, const struct ni_blame_op *op, size_t n);
/* What is extra, and operations of a step; and one_comm and ops_vary of the rank. */
int ni_usual_step_count(struct ni_places *x, const struct ni_blame_op *op, size_t n,
                        struct ni_step_mark mark);

static inline bool ni_place_is_extra(const struct ni_places *x, const struct ni_blame_op *op) {
  if (op->what >= x->n_extra)
    return false;
  return x->extra[op->what] || (x->last_what == op->what + 1 && x->extra[x->n_extra + op->what]);
}

/* The number of the last record of the operation's function, + 1; 0: none yet. */
static inline uint64_t *ni_place_last_sn(struct ni_places *x, const struct ni_blame_op *op) {
  return &x->last_sn[x->function[op->token]];
}

#endif
