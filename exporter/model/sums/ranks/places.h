/*
 * Places of one rank's operations in a step: what an operation in each of them waits for, and how long the
 * rank computes before it.
 *
 * A place is a slot and a number in the step. What comes in fewer than half of the steps, and is one
 * operation more there, is *extra* (the loss, each ten steps; a barrier before a checkpoint): it has a place
 * of its own, and those behind it keep their numbers. So is an operation right behind one of its kind, where
 * most steps have one of them alone (a barrier behind the norm). Own time lies between the end of what is
 * waited for and the start; baseline.h finds how long it normally is. The first operations tell which
 * slots are overlapped with the computing (overlaps.h), which are *inner* (closest to it), and which messages
 * go out as groups (usual_step.h). Operations of a slot come in one order, and there are as many in each
 * step. So their number in the step does not depend on when the step ended.
 *
 * Stamps are measurements. Kernels of one communicator run one after the other: what came before on the slot
 * has ended, whatever its stamp says. For other slots an end counts as "before" up to `overlap_ns` behind
 * the start. By so much the stamps of one communicator's kernels overlap in the first operations of this
 * rank; it is at least NI_PLACE_OVERLAP_LEAST_NS and at most NI_PLACE_OVERLAP_MOST_NS. The end of a long
 * operation is uncertain by NI_PLACE_DRIFT of its length as well: the host's clock places its start, the
 * GPU's timer measures its length. An end that counts as before is taken to lie at the start then, so no
 * time is negative.
 *
 * Bounds: NI_BLAME_KEYS places; NI_BASELINE_SAMPLES times a place, given back. Threads: one a rank. Failure:
 * -ENOMEM.
 */
#ifndef NI_BLAME_PLACES_H
#define NI_BLAME_PLACES_H

#include "exporter/model/sums/steps/steps.h"
#include "stream.h"
#include "baseline.h"

/* of the time between: so near to a start it was waited for */
#define NI_PLACE_ENDS_WITH 0.01
#define NI_PLACE_DRIFT 1e-4 /* 100 ppm */

/* TOKENS: whose shortest operation of a bin is known */
enum { NI_PLACE_KEYS = 2 * NI_BLAME_KEYS, NI_PLACE_POSITIONS = 4096, NI_PLACE_TOKENS = 512 };

struct ni_place_key {
  uint32_t name; /* slot * NI_PLACE_POSITIONS + number + 1; 0: free */
  uint32_t n, steady;
  float cycle_us; /* baseline: since the operation before the last one on its slot began */
  struct ni_baseline baseline;
  double own;       /* of `steady` gaps, that are no pauses */
  uint64_t missing; /* records before it, the last time */
};

/*
 * When an operation ended. Stamps are measurements: an end may lie behind the start of what waited for it
 * (see below).
 */
struct ni_place_end {
  int64_t ns; /* 0: none */
  /* of one that took long the GPU's timer and the host's clock have drifted apart */
  int64_t took_ns;
  uint32_t at; /* in the sample, + 1; 0: it is not there */
};

struct ni_places {
  struct ni_blame_rank *out;
  struct ni_place_key key[NI_PLACE_KEYS];
  uint32_t n_keys;
  bool alone;         /* places that are alone have enough of the own time: they are judged by */
  bool waits_for_cpu; /* a good part of its operations began as soon as it was launched */
  int64_t overlap_ns; /* stamps of back-to-back kernels overlap by so much and less */
  /* its places are compared: slots with many operations a step lie closest to the computing */
  bool inner[NI_BLAME_SLOTS];
  /*
   * Messages to many peers (experts) go out as one group: of their slots the first stands for all, in places
   * and in what is waited for.
   */
  uint16_t group[NI_BLAME_SLOTS];
  uint64_t heads;                    /* slots that stand for themselves, a bit each */
  uint32_t per_step[NI_BLAME_SLOTS]; /* 0: as many as there happen to be */
  const uint16_t *function;          /* by token (stream.h): those of one function share their numbers */
  /*
   * By what an operation is, then by what it is right behind one of its kind; owned. What the first
   * operations do not show is none.
   */
  bool *extra;
  uint32_t n_extra; /* kinds of operations that it has */
  /* Along the way: */
  uint32_t last_what;                         /* of the last operation, + 1; 0: none yet */
  struct ni_place_end end[NI_BLAME_SLOTS][2]; /* of each group, the last two */
  int64_t started, began[NI_BLAME_SLOTS];     /* the last operation; of each group, */
  int64_t began_before[NI_BLAME_SLOTS];       /* and the one before */
  uint64_t messages[NI_BLAME_SLOTS];
  /* of the first operation that began with the last one, */
  uint32_t key_of_group[NI_BLAME_SLOTS];
  struct ni_place_end main_of_group[NI_BLAME_SLOTS]; /* which waited for the same */
  uint32_t position[NI_BLAME_SLOTS];
  /* last_sn: of a function, + 1; 0: none yet */
  uint64_t last_pair[NI_BLAME_SLOTS]; /* number of a message where the log states it, + 1; 0: none yet */
  uint64_t index[NI_BLAME_SLOTS], base[NI_BLAME_SLOTS], last_sn[NI_BLAME_FUNCTIONS];
};

/* What precedes an operation. ns; -1: not known. */
struct ni_place_gap {
  int64_t own;   /* since the last end of what it waits for */
  int64_t idle;  /* since anything ended or started */
  int64_t cycle; /* since the operation before the last one on its slot began */
  uint32_t key;  /* NI_BLAME_NONE: there are too many */
  bool extra;    /* the operation is */
  bool misses;   /* records of its function are missing before it, other than in its place each time */
  struct ni_place_end main; /* what it waited for */
};

/* op: the first n of the rank; mark: what ends its steps. x: all 0 but for out and function. */
int ni_places_find(struct ni_places *x, const struct ni_blame_op *op, size_t n,
                   const struct ni_step_mark *mark);
void ni_places_free(struct ni_places *x);
/* Call it before ni_places_count(), which counts the operation. */
struct ni_place_gap ni_places_measure_gap(struct ni_places *x, const struct ni_blame_op *op);
/* at: the operation's place in the sample, + 1; 0: it is not there. */
void ni_places_count(struct ni_places *x, const struct ni_blame_op *op, uint32_t at);
void ni_places_next_step(struct ni_places *x);

static inline uint32_t ni_place_slot(const struct ni_place_key *k) {
  return (k->name - 1) / NI_PLACE_POSITIONS;
}
/* It is one of those that are compared. */
static inline bool ni_place_is_compared(const struct ni_places *x, const struct ni_place_key *k) {
  return k->name && x->inner[ni_place_slot(k)] && (x->alone ? k->baseline.alone : k->baseline.steady);
}

#endif
