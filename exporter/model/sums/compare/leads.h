/*
 * How far others get ahead of a late rank, from place to place of a step: a rank with one communicator only,
 * that computes while operations run. The sum of what its gaps are longer by is more than it is late by then.
 *
 * Each place is seen once with the others ahead by so much (`us` of a track), held up by the operation before
 * it, or ahead anew because they have waited. Two rounds through the step: the first one tells where others
 * are when it begins.
 *
 * Pure, but for the numbers that are sorted in `scratch`. Threads: the main one. Nothing fails.
 */
#ifndef NI_COMPARE_LEADS_H
#define NI_COMPARE_LEADS_H

#include "compare.h"

/* A place of a rank's step, among those that have it. */
struct ni_member_place {
  uint64_t at, name, waits;
  uint32_t rank, order;
  /* times: what is usual for the class there; then: how much longer than that; NAN: it is not compared */
  float usual_us, mean_us, times;
};

/* Fills w->lead. at: places of all members, by rank and order; scratch: of members. */
void ni_find_leads(const struct ni_blame *b, struct ni_compared *w, const struct ni_member_place *at,
                   size_t n, float *scratch);

#endif
