/*
 * How many ranks of a run have no log. Each communicator that lacks some says which (judge.c); the same
 * processes are missing in several, so their numbers do not add up.
 *
 * Where the processes say which ranks of the job they are, the job says it, and nothing else is counted. Else
 * a communicator that all of the run's processes are in has all ranks that could be missing. Without one,
 * communicators of one size are groups of one kind, side by side (tp0, tp1): they add up, and of several
 * sizes the most counts, which is a number that is at least true.
 *
 * Usage, with the members of one run in their order: ni_absent_begin(), for each communicator
 * ni_absent_add_comm(), ni_absent_count(). Memory: none beyond it. Threads: one.
 */
#ifndef NI_LEDGER_ABSENT_H
#define NI_LEDGER_ABSENT_H

#include "ledger.h"

#define NI_ABSENT_SIZES 32 /* different ones; the last place counts the others together */

struct ni_absent {
  uint64_t of_all;  /* of a communicator that all are in, the most */
  bool covered;     /* there is one */
  size_t processes; /* of the run, that are in a communicator */
  uint32_t stamp;
  struct {
    int32_t n_ranks;
    uint64_t missing;
  } size[NI_ABSENT_SIZES];
  size_t n_sizes;
};

/* member: those of one run, from its first to its last. Their processes' stamp is this room's. */
void ni_absent_begin(struct ni_absent *a, struct ni_ledger_member *const *member, size_t n);
/* A communicator and its n members, of which so many ranks have no log. */
void ni_absent_add_comm(struct ni_absent *a, struct ni_ledger_member *const *member, size_t n,
                        uint64_t missing);
uint64_t ni_absent_count(const struct ni_absent *a);

#endif
