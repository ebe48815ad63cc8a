/*
 * Counters of a struct that are added up, or taken over, together: members with names, and an array of all of
 * them.
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
/* C++ takes no struct within sizeof; the same layout */
#define NI_COUNTS(all, ...) uint64_t __VA_ARGS__
#else
#define NI_COUNTS(all, ...) \
  union { \
    struct { \
      uint64_t __VA_ARGS__; \
    }; \
    uint64_t all[sizeof(struct { uint64_t __VA_ARGS__; }) / sizeof(uint64_t)]; \
  }
#endif

/*
 * A sum of what logs say stays at 2^63 - 1, the largest whole number of all outputs, where it would be more:
 * the same in any order, and never a small number that a forged log has made.
 */
#define NI_COUNT_MAX ((uint64_t)INT64_MAX)
static inline void ni_add_capped(uint64_t *to, uint64_t n) {
  *to = n > NI_COUNT_MAX || *to > NI_COUNT_MAX - n ? NI_COUNT_MAX : *to + n;
}

/* Counts the sums that have reached that limit. */
static inline uint64_t ni_capped(const uint64_t *sum, size_t n) {
  uint64_t capped = 0;
  for (size_t i = 0; i < n; i++)
    capped += sum[i] >= NI_COUNT_MAX;
  return capped;
}

/*
 * Any two arrays of as many. Counts may be below 0 for a while: then they wrap, and come right in the end.
 * Sums of sizes are capped.
 */
#define ni_add_counts(to, from) \
  for (size_t i_ = 0; i_ < sizeof(to) / sizeof *(to); i_++) \
  (to)[i_] += (from)[i_]
#define ni_add_sums(to, from) \
  for (size_t i_ = 0; i_ < sizeof(to) / sizeof *(to); i_++) \
  ni_add_capped(&(to)[i_], (from)[i_])

#endif
