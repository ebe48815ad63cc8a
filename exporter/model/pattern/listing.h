/*
 * A program as it is printed: its operations in one order, folded where they repeat.
 *
 * The operations of the main lane come in their order. Another lane is put between them where its operations
 * begin behind the same ones of the main lane in each step (the variance of how many came before is below
 * NI_LISTING_STABLE). What begins now before and now behind, as gradients that are reduced beside the
 * backward pass, is a list of its own behind them, one for each communicator, by when operations begin. Then
 * repetitions are folded, the longest first, up to NI_LISTING_DEPTH deep, with periods of NI_LISTING_PERIOD
 * operations at most.
 *
 * Pure. Ownership: ni_listing_free(). Failure: -ENOMEM.
 */
#ifndef NI_PATTERN_LISTING_H
#define NI_PATTERN_LISTING_H

#include "pattern.h"

#define NI_LISTING_STABLE 0.15
enum { NI_LISTING_DEPTH = 4, NI_LISTING_PERIOD = 512 };

enum ni_listing_kind { NI_LISTING_OP, NI_LISTING_OPEN, NI_LISTING_CLOSE, NI_LISTING_BESIDE };

struct ni_listing_row {
  enum ni_listing_kind kind;
  uint32_t depth;
  uint32_t from, to; /* of OP, OPEN: the first and the last operation, counted from 0. BESIDE: of the list */
  uint32_t times;    /* OP, OPEN: 1 and more */
  uint32_t place;    /* of OP: the first one */
  uint32_t lane;     /* of OP; of BESIDE: the first one */
  /* Of OP: mean of the medians of what is folded; share of it beside other communicators. */
  double us, beside;
  uint64_t bytes, bytes_most;
};

struct ni_listing {
  struct ni_listing_row *row;
  size_t n, cap;
  uint32_t *order;    /* of n_places: which place is the k-th */
  uint32_t n_ordered; /* so many are one sequence; those of the lists beside come behind */
  uint32_t *begins;   /* where in the order each list beside begins */
  size_t n_lists;
};

/* 0 or -ENOMEM. What *out held is not looked at. It is to be freed in any case, also after a failure. */
int ni_listing_make(const struct ni_program *p, struct ni_listing *out);
void ni_listing_free(struct ni_listing *l);
/* Begins the lane's operations now before, now behind those of the main lane? */
bool ni_listing_is_beside(const struct ni_program *p, const struct ni_pattern_lane *l);

#endif
