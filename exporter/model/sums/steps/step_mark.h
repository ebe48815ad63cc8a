/* What ends the steps of a rank: steps.h finds and follows it; kept with the tables of the rank (blame.h). */
#ifndef NI_BLAME_STEP_MARK_H
#define NI_BLAME_STEP_MARK_H

#include <stdbool.h>
#include <stdint.h>

#define NI_STEP_GRAM 3
#define NI_STEP_KINDS 8

struct ni_step_mark {
  uint16_t slot;
  /* so many tokens in a row; 0: a gap of gap_ns or more before an operation of the slot */
  uint8_t n;
  uint64_t hash;
  uint64_t kind; /* what marks, as a number that is the same on all ranks; 0: gaps */
  /* What comes as often and could mark as well, the mark itself too; further ones are left out. 0: none */
  uint64_t could_be[NI_STEP_KINDS];
  int64_t gap_ns;
  uint32_t token;
  /*
   * the last of `size` in a row that are less than `far` operations of the rank apart; size 0: each of them
   */
  uint32_t far, size;
  /*
   * size 0: it ends no step if it comes so many operations of the rank behind the last one, or fewer: what
   * marks came once more, as a barrier before a checkpoint
   */
  uint32_t least;
  /* far UINT32_MAX: those whose number has this rest when it is divided by size */
  uint32_t phase;
  /*
   * Nothing but the order of all operations says how many steps there are: too many on the last stage of a
   * pipeline, whose micro-batches are alike
   */
  bool by_order;
  bool found;
  /* While operations are gone through, of the slot: */
  uint32_t last[NI_STEP_GRAM];
  uint64_t taken, ops, last_op; /* last_op, where size is 0: + 1; 0: none yet */
  uint32_t in_cluster, elsewhere;
  int64_t last_end;
};

#endif
