/* Things in an order other than the one they lie in. Pure; any thread. */
#ifndef NI_ORDER_H
#define NI_ORDER_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

/* Numbers 0 to n - 1 in order; compare() gets pointers to two of them. NULL: no memory. Caller frees. */
static inline uint32_t *ni_order(uint32_t n, int (*compare)(const void *, const void *, void *),
                                 void *context) {
  uint32_t *order = (uint32_t *)malloc((n + 1) * sizeof *order);
  for (uint32_t i = 0; order && i < n; i++)
    order[i] = i;
  if (order)
    qsort_r(order, n, sizeof *order, compare, context);
  return order;
}

/*
 * Two structs, by pointers to them, by members that are numbers: the first that differs decides, the least
 * comes first. Up to six.
 */
#define NI_BY(x, y, ...) \
  NI_BY_SO_MANY(__VA_ARGS__, NI_BY_6, NI_BY_5, NI_BY_4, NI_BY_3, NI_BY_2, NI_BY_1, )(x, y, __VA_ARGS__)
#define NI_BY_SO_MANY(a, b, c, d, e, f, by, ...) by
#define NI_BY_1(x, y, m) ((x)->m<(y)->m ? -1 : (x)->m>(y)->m)
#define NI_BY_2(x, y, m, n) ((x)->m != (y)->m ? NI_BY_1(x, y, m) : NI_BY_1(x, y, n))
#define NI_BY_3(x, y, m, ...) ((x)->m != (y)->m ? NI_BY_1(x, y, m) : NI_BY_2(x, y, __VA_ARGS__))
#define NI_BY_4(x, y, m, ...) ((x)->m != (y)->m ? NI_BY_1(x, y, m) : NI_BY_3(x, y, __VA_ARGS__))
#define NI_BY_5(x, y, m, ...) ((x)->m != (y)->m ? NI_BY_1(x, y, m) : NI_BY_4(x, y, __VA_ARGS__))
#define NI_BY_6(x, y, m, ...) ((x)->m != (y)->m ? NI_BY_1(x, y, m) : NI_BY_5(x, y, __VA_ARGS__))

/*
 * Makes the function for qsort() that does so, or one for numbers of a type:
 *
 *   static NI_ORDER_BY(by_inode, struct file, dev, ino);
 */
#define NI_ORDER_BY(name, type, ...) \
  int name(const void *a, const void *b) { \
    const type *x = (const type *)a, *y = (const type *)b; \
    return NI_BY(x, y, __VA_ARGS__); \
  } \
  static_assert(true, "a semicolon follows")
#define NI_ORDER_OF(name, type) \
  int name(const void *a, const void *b) { \
    const type *x = (const type *)a, *y = (const type *)b; \
    return *x < *y ? -1 : *x > *y; \
  } \
  static_assert(true, "a semicolon follows")

/*
 * Makes the function that finds the first of n in order that is not before `from`; n: all are. is_before says
 * of one, `x`, whether it is:
 *
 *   static NI_FIRST_FROM(first_of_step, struct moment, uint32_t, x->step < from);
 *   size_t i = first_of_step(moment, n, 7);
 */
#define NI_FIRST_FROM(name, type, key, is_before) \
  size_t name(const type *at, size_t n, key from) { \
    size_t lo = 0, hi = n; \
    while (lo < hi) { \
      const size_t mid = (lo + hi) / 2; \
      const type *x = &at[mid]; \
      if (is_before) \
        lo = mid + 1; \
      else \
        hi = mid; \
    } \
    return lo; \
  } \
  static_assert(true, "a semicolon follows")

/* Plain ones; also of structs that begin with one. */
static inline int ni_by_i64(const void *a, const void *b) {
  const int64_t *x = (const int64_t *)a, *y = (const int64_t *)b;
  return *x < *y ? -1 : *x > *y;
}
static inline int ni_by_u32(const void *a, const void *b) {
  const uint32_t *x = (const uint32_t *)a, *y = (const uint32_t *)b;
  return *x < *y ? -1 : *x > *y;
}

#endif
