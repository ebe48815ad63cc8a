/* Where two programs of one run differ first. Pure; any thread. */
#ifndef NI_PATTERN_DIFFER_H
#define NI_PATTERN_DIFFER_H

#include "listing.h"

struct ni_pattern_difference {
  uint32_t position; /* in the order of the first program, counted from 0; UINT32_MAX: nowhere in it */
  const struct ni_pattern_lane
      *lane; /* of the first program; of the other where the first has no such lane */
  const struct ni_pattern_place *here;  /* of the first program; NULL: the other one has more */
  const struct ni_pattern_place *there; /* of the other one; NULL: it has nothing there */
};

/* list: of p. The two have different lanes. 0 or -ENOMEM. */
int ni_pattern_differ(const struct ni_program *p, const struct ni_listing *list,
                      const struct ni_program *other, struct ni_pattern_difference *out);

/* Of the programs from `first` up to k, those of the run before k, the one that k has most in common with. */
uint32_t ni_pattern_nearest(const struct ni_pattern *p, uint32_t first, uint32_t k);

#endif
