/*
 * What each lane of a rank is in most steps.
 *
 * All steps are gone through once. Each lane of each step becomes two numbers, one of its operations with
 * their sizes and one of their functions alone, and how often each came is counted: a *variant*. The most
 * frequent variant is the lane's, where half of the steps have it. Where none has, functions alone are
 * compared, as sizes can vary; where even these do not repeat the lane is irregular. Lanes that have the same
 * number of operations a step only on average are cut anew (cut.h), and all is counted once more.
 *
 * Bounds: NI_VARIANTS of a lane; beyond these the rarest one gives its place to what comes next.
 *
 * Threads: one for each. Ownership: the cut is the caller's, to be set up before and freed. Failure: that of
 * cut.h.
 */
#ifndef NI_PATTERN_VARIANTS_H
#define NI_PATTERN_VARIANTS_H

#include "cut.h"

/* What a lane was in a step: its operations as a number, and how many they were. */
struct ni_variant {
  uint64_t hash, count;
  uint32_t ops;
};

enum { NI_VARIANTS = 64 };
struct ni_variants {
  struct ni_variant item[NI_VARIANTS];
  uint32_t n;
};

/* What a lane was in the steps, beside what it is (cut.h). */
struct ni_lane {
  struct ni_variants exact, by_function;
  uint64_t absent; /* steps without any operation of it */
  uint64_t ops_least, ops_most, bytes_least, bytes_most, ops_all;
  /* what was chosen */
  bool regular, sizes_vary;
  struct ni_variant chosen;
  uint32_t first; /* of its places, among those of all regular lanes */
  bool filled;    /* by lanes.c: its places are known */
  /* of the step at hand */
  uint64_t hash, function_hash;
  uint32_t ops;
};

struct ni_lanes_of;
struct ni_lane_reader {
  const struct ni_lanes_of *of; /* lanes.c's */
  struct ni_cut cut;
  struct ni_lane lane[NI_PATTERN_LANES]; /* those of the cut */
  uint64_t left_out;                     /* operations on further lanes than there is room for */
};

/*
 * Goes through all steps, and chooses the lanes' variants. *places: the operations of all regular lanes in a
 * step.
 */
int ni_variants_find(struct ni_lane_reader *x, uint64_t *steps, uint32_t *places);
/* Do the chosen ones say what the rank does in a step? Right after ni_variants_find(). */
bool ni_variants_are_steps(const struct ni_lane_reader *x, uint32_t places, uint64_t steps);
/* Hashes the lanes of the step at hand. */
void ni_variants_hash(struct ni_lane_reader *x);
/* Is the lane in the step that was hashed what was chosen for it? */
bool ni_variants_fit(const struct ni_lane *l);
/* An irregular lane that half of the steps do not have at all, such as an evaluation. */
bool ni_variants_are_rare(const struct ni_lane *l, uint64_t steps);

#endif
