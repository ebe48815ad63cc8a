/*
 * What may mark a step: operations of a rank that come again and again on one slot, one, two or three in a
 * row (*grams*), or in clusters; how often, how evenly, and how widely spread.
 *
 * Usage: ni_grams_gather() on a struct whose n and index are 0; ni_grams_free(). Threads: pure but for its
 * struct; one for each rank. Failure: -ENOMEM. Bounds: NI_GRAMS_MAX of them; others are passed over.
 */
#ifndef NI_BLAME_GRAMS_H
#define NI_BLAME_GRAMS_H

#include <string.h>

#include "exporter/base/index.h"
#include "exporter/model/sums/ranks/blame.h"

enum { NI_GRAMS_MAX = 4096, NI_STEPS_MIN = 5 /* what comes less often marks nothing */ };

/* One, two or three operations in a row on one slot. */
struct ni_gram {
  uint64_t hash;
  uint32_t slot, token, count, even, first, last; /* first, last: operations of the rank */
  uint32_t first_of_slot, last_of_slot;           /* of the slot, whose order does not depend on times */
  int64_t after_ns;                               /* own time that follows, in all */
  double least, most;                             /* distances that are even */
  /* of distances that are not far longer than their mean: what comes between now and then is left out */
  double near_sum;
  uint32_t near_n;
  uint32_t before; /* where it was last, while they are gone through again */
  uint8_t n;
  /* Clusters of it: sum of distances and of their squares; how far apart two clusters are at least. */
  double sum, squares;
  uint32_t far, clusters, full_clusters, begun, even_clusters, in_cluster;
  bool is_cluster; /* count, even are those of clusters of `size` */
  uint32_t size;
};

struct ni_grams {
  struct ni_gram item[NI_GRAMS_MAX];
  uint32_t n;
  struct ni_index at_hash;
};

/* Finds all that may mark in the first n operations of the rank. -ENOMEM. */
int ni_grams_gather(const struct ni_blame *b, const struct ni_blame_rank *rank, const struct ni_blame_op *op,
                    size_t n, struct ni_grams *g);
void ni_grams_free(struct ni_grams *g);

/* Evenly spread over what its slot did. */
bool ni_gram_is_even(const struct ni_blame_rank *rank, const struct ni_gram *x);
/*
 * A third of what the rank did lies between marks that are not far apart. What comes in the batches of an
 * evaluation alone is even on a communicator that has nothing else, and none of it comes where the rank
 * trains.
 */
bool ni_gram_is_spread(const struct ni_blame_rank *rank, const struct ni_gram *x);
/* Ranks of its communicator. */
int32_t ni_gram_ranks(const struct ni_blame *b, const struct ni_blame_rank *rank, const struct ni_gram *x);

/* Two numbers of times, but for one, and for a fiftieth. */
static inline bool ni_is_as_frequent(uint32_t a, uint32_t b) {
  return a <= b + 1 + b / 50 && b <= a + 1 + a / 50;
}
/* Four fifths and more. */
static inline bool ni_is_most(uint32_t part, uint32_t whole) { return part * 10 >= whole * 8; }

/* The last tokens of the slot as one number, one after the other; i: so many are in it already. */
static inline uint64_t ni_gram_begin_hash(uint32_t slot) { return ni_mix(slot + 1); }
static inline uint64_t ni_gram_extend_hash(uint64_t h, uint32_t token, unsigned i) {
  return ni_mix(h ^ (token + 1 + ((uint64_t)(i + 1) << 32)));
}

static inline void ni_gram_shift_in(uint32_t *last, uint32_t token) {
  memmove(last + 1, last, (NI_STEP_GRAM - 1) * sizeof *last);
  last[0] = token;
}

#endif
