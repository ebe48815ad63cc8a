/*
 * Records whose values no GPU and no link can have: they are told, and stay out of every mean. Pure
 * functions.
 */
#ifndef NI_IMPLAUSIBLE_H
#define NI_IMPLAUSIBLE_H

#include "exporter/input/granules.h"

/* No link moves more than this (GB/s): ten times what a switch of 2026 gives one GPU. */
#define NI_MAX_BUSBW_GBS 10000.0

enum ni_implausible {
  NI_ZERO_TIME = 0,
  NI_LONG_TIME,
  NI_NO_LINK,
  NI_NEGATIVE,
  NI_IMPLAUSIBLE_COUNT,
  NI_PLAUSIBLE
};
extern const char *const ni_implausible_names[NI_IMPLAUSIBLE_COUNT]; /* as in summary.json */

static inline enum ni_implausible ni_implausible(const struct ni_record *o) {
  uint64_t ns = ni_exec_ns(o);
  if (ns == 0)
    return NI_ZERO_TIME;
  if (ns > NI_MAX_EXEC_NS)
    return NI_LONG_TIME;
  if (!(o->has & NI_HAS_BUSBW))
    return NI_PLAUSIBLE;
  return o->busbw_gbs > NI_MAX_BUSBW_GBS ? NI_NO_LINK : o->busbw_gbs < 0 ? NI_NEGATIVE : NI_PLAUSIBLE;
}

#endif
