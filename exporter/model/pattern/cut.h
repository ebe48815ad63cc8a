/*
 * The operations of a rank, step by step, and which lane each is of.
 *
 * A step ends with its mark (steps/steps.h). What runs beside the mark on another communicator begins now
 * before and now behind it, so a lane would have an operation more in one step and one less in the next. Such
 * a lane is *balanced*: where it has as many operations as steps times a whole number, it is cut by their
 * number, from the next step or into it, as it was in most steps. Where numbers stay off for NI_CUT_ANEW
 * steps, since a record is missing, they are counted anew.
 *
 * Threads: one for each. Ownership: ni_cut_end() after each pass, ni_cut_free() at last. Failure: -ENOMEM,
 * -errno of the spill file, -E2BIG: a step of more than NI_PATTERN_STEP operations.
 */
#ifndef NI_PATTERN_CUT_H
#define NI_PATTERN_CUT_H

#include "exporter/model/sums/ranks/stream.h"
#include "pattern.h"

enum { NI_PATTERN_LANES = 64, NI_CUT_SLOTS = 4096, NI_CUT_OFF = 8, NI_CUT_ANEW = 16 };

struct ni_cut_lane {
  uint32_t comm;
  int32_t rank, peer; /* peer: of messages: in the communicator; NI_PATTERN_ALL_PEERS */
  uint8_t kind;
  uint32_t peers;
  /* Of balanced ones: operations of each step; where they are cut beside the mark; operations so far. */
  bool balanced;
  uint64_t each;
  int64_t first_at, at, before, last_off; /* first_at: where `at` begins in each pass */
  uint32_t same_off;
  /* How far from the mark they were cut, by the marks alone: -NI_CUT_OFF to NI_CUT_OFF. */
  uint64_t off[2 * NI_CUT_OFF + 1];
};

struct ni_cut_ops {
  struct ni_blame_op *op;
  size_t n, cap;
};

struct ni_cut {
  struct ni_run *r;
  const struct ni_summary *s;
  const struct ni_blame_rank *rank;
  const struct ni_blame_piece *piece;
  size_t n_pieces;
  struct ni_blame_rank mine; /* slots and tokens as the stream numbers them */
  struct ni_blame_stream *stream;
  struct ni_step_mark mark;
  const struct ni_blame_function *function;
  const uint16_t *function_of;
  struct ni_cut_ops now, ahead; /* the step at hand, the next one */
  struct ni_blame_op next;      /* the one that began behind a gap */
  bool has_next, balances, has_ahead;
  uint64_t ops, step;
  struct ni_cut_lane lane[NI_PATTERN_LANES];
  uint32_t n_lanes;
  uint8_t lane_of[NI_CUT_SLOTS]; /* + 1; 0: not known yet */
};

/* From the first step on. Lanes stay what they are. */
int ni_cut_begin(struct ni_cut *x);
/* 1: x->now has a step; 0: no more. */
int ni_cut_next(struct ni_cut *x);
void ni_cut_end(struct ni_cut *x);
void ni_cut_free(struct ni_cut *x);
/* The lane's number; NI_BLAME_NONE: there are too many. */
uint32_t ni_cut_lane_of(struct ni_cut *x, uint32_t slot);
/*
 * Lanes with `each` operations a step are to be balanced: goes through all steps once, for how they lie
 * beside the marks. each: by lane; 0: it is left as it is.
 */
int ni_cut_balance(struct ni_cut *x, const uint64_t each[NI_PATTERN_LANES]);

#endif
