/*
 * Which operation of one rank is which of another's, where the source does not number them.
 *
 * The ranks of a communicator call the same collectives in the same order, but their recordings begin and end at different ones.
 * So each rank's list is laid upon that of the rank with the longest one (the measure), at each place where functions, sizes
 * and datatypes agree as far as both go. Of several places, since a training step looks like the one before it:
 *
 *   seq     the source numbers them after all: nothing is laid
 *   one     there is one place alone
 *   steps   the one where numbers of steps agree best (ProfilerStep#N)
 *   ends    the one where the differences of the ends scatter least, half as much as at the next: ranks end together, and
 *           how far their clocks are apart does not change a scatter
 *   apart   none of these: it cannot be told. The rank gets numbers that no other has, so nothing of it is compared
 *
 * The result is how many collectives of each function others have recorded before a rank's first one, so that each function
 * is counted from 0 by whoever recorded from earliest on. Numbers of the source that have holes are taken as they are instead.
 *
 * Communicators side by side (tensor groups, data groups) run the same program, and readers take one number for one place of it.
 * So where all ranks have steps, each communicator counts up to the same number of each function by the first step that all of
 * them recorded from its begin on.
 *
 * Sends and Receives are numbered by each rank for itself.
 *
 * Memory: of each rank and communicator the first NI_ALIGN_OPS collectives, 48 bytes each. One thread. Failure: -ENOMEM.
 */
#ifndef NI_IMPORT_ALIGN_H
#define NI_IMPORT_ALIGN_H

#include "exporter/input/imported/imported.h"

#define NI_ALIGN_OPS 2048u

enum ni_align_how { NI_ALIGN_ALONE = 0, NI_ALIGN_SEQ, NI_ALIGN_ONE, NI_ALIGN_STEPS, NI_ALIGN_ENDS, NI_ALIGN_APART };

struct ni_align_seat { /* a rank of a communicator */
  uint64_t hash;
  uint32_t file, comm;         /* whose: numbers of the caller, and in its struct ni_imported */
  int32_t rank;
  uint64_t n;                  /* its collectives */
  bool seq;                    /* the source has numbers of all of them, and they rise */
  enum ni_align_how how;
  bool sparse;                 /* numbers with holes: each is the source's less `ahead` */
  uint64_t ahead;              /* the place of its first collective among all that were recorded */
  struct ni_align_before {
    uint64_t func, n;          /* ni_align_func(); so many were before */
  } *before;
  size_t n_before, cap_before;
  struct ni_align_mark {
    int64_t end_ns;
    uint64_t func, token, seq; /* token: function, size, datatype */
    uint32_t step;             /* 0: none */
    bool together;             /* all ranks end it at once */
  } *mark;
  size_t n_marks, cap_marks;
};

struct ni_align { /* all 0: empty */
  struct ni_align_seat *seat;
  size_t n, cap;
};

/* A function's name as a number, the same in all files. */
uint64_t ni_align_func(const char *name);
/* The communicators of a rank, in any order of ranks. m: in order; is not kept. */
int ni_align_add(struct ni_align *a, uint32_t file, const struct ni_imported *m);
/* Once, when all are there: sets how and ahead, and orders the seats by file and comm. */
int ni_align_find(struct ni_align *a);
/* NULL: it has no collective. */
const struct ni_align_seat *ni_align_of(const struct ni_align *a, uint32_t file, uint32_t comm);
/* How many of that function others have recorded before s did. */
uint64_t ni_align_before(const struct ni_align_seat *s, uint64_t func);
void ni_align_free(struct ni_align *a);

#endif
