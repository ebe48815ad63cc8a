/*
 * A heap: of the items of an array, heap[0] comes first. Items are of any type; before(a, b), a function or a
 * macro, says of two whether a comes before b, and no two may be equal where the order of what comes out
 * matters.
 *
 *   for (...) heap[n++] = ...;            several at once
 *   ni_heap_make(heap, n, before);
 *   heap[n++] = item;                     one more
 *   ni_heap_up(heap, n - 1, before);
 *   heap[0] = heap[--n];                  the first is done with; or: it was changed in place
 *   ni_heap_down(heap, n, 0, before);
 *
 * The array is the caller's. Pure; any thread.
 */
#ifndef NI_HEAP_H
#define NI_HEAP_H

#include <stddef.h>

/*
 * The item at place `at` goes to where it comes before all below it. The array has room for one at least,
 * even when n is 0.
 */
#define ni_heap_down(heap, n, at, before) \
  do { \
    size_t at_ = (at); \
    const size_t n_ = (n); \
    const __typeof__(*(heap)) item_ = (heap)[at_]; \
    for (size_t k_; (k_ = 2 * at_ + 1) < n_; at_ = k_) { \
      if (k_ + 1 < n_ && before((heap)[k_ + 1], (heap)[k_])) \
        k_++; \
      if (!before((heap)[k_], item_)) \
        break; \
      (heap)[at_] = (heap)[k_]; \
    } \
    (heap)[at_] = item_; \
  } while (0)

/* The item at place `at`, the last one, goes to where none above it comes after it. */
#define ni_heap_up(heap, at, before) \
  do { \
    size_t at_ = (at); \
    const __typeof__(*(heap)) item_ = (heap)[at_]; \
    for (; at_ > 0 && before(item_, (heap)[(at_ - 1) / 2]); at_ = (at_ - 1) / 2) \
      (heap)[at_] = (heap)[(at_ - 1) / 2]; \
    (heap)[at_] = item_; \
  } while (0)

#define ni_heap_make(heap, n, before) \
  for (size_t i_ = (n) / 2; i_-- > 0;) \
  ni_heap_down(heap, n, i_, before)

#endif
