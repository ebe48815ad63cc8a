/*
 * Counters of a struct that are added up, or taken over, together: members with names, and an array of all of them.
 *
 *   struct ni_sums { NI_COUNTS(all, records, operations); };
 *   a->records++;
 *   ni_add_counts(a->all, b->all);
 */
#ifndef NI_COUNTS_H
#define NI_COUNTS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#define NI_COUNTS(all, ...) uint64_t __VA_ARGS__ /* C++ takes no struct within sizeof; the same layout */
#else
#define NI_COUNTS(all, ...)                                                      \
  union {                                                                        \
    struct { uint64_t __VA_ARGS__; };                                            \
    uint64_t all[sizeof(struct { uint64_t __VA_ARGS__; }) / sizeof(uint64_t)];   \
  }
#endif

/* Any two arrays of as many. */
#define ni_add_counts(to, from)                                                  \
  for (size_t i_ = 0; i_ < sizeof(to) / sizeof *(to); i_++) (to)[i_] += (from)[i_]

#endif
