/*
 * What work a rank does, and how its slots and places are called on all ranks with the same work, so that
 * they can be laid side by side.
 *
 * Nothing of a name is the rank's own: a slot is named by what most of its operations are and how large its
 * communicator is, a place by its slot, its number in the step and what is waited for there. Call
 * ni_work_names() when the pass has seen all operations. Threads: one a rank. Ownership: o->place is the
 * rank's. Failure: -ENOMEM.
 */
#ifndef NI_BLAME_WORK_NAMES_H
#define NI_BLAME_WORK_NAMES_H

#include "places.h"

/* What the pass knows when it ends. */
struct ni_work_seen {
  const struct ni_blame *b;
  const struct ni_places *places; /* places->out: the rank, n_steps is known */
  const struct ni_blame_function *function;
  uint32_t n_functions;
  const uint64_t *function_ops;
  uint32_t turns; /* periods of the operations that have ended */
};

/* Fills shape of slots, place, signature and colls of the rank. */
int ni_work_names(const struct ni_work_seen *x);

#endif
