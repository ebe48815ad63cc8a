/* Things in an order other than the one they lie in. Pure; any thread. */
#ifndef NI_ORDER_H
#define NI_ORDER_H

#include <stdint.h>
#include <stdlib.h>

/* Numbers 0 to n - 1 in order; compare() gets pointers to two of them. NULL: no memory. Caller frees. */
static inline uint32_t *ni_order(uint32_t n, int (*compare)(const void *, const void *, void *), void *context) {
  uint32_t *order = (uint32_t *)malloc((n + 1) * sizeof *order);
  for (uint32_t i = 0; order && i < n; i++) order[i] = i;
  if (order) qsort_r(order, n, sizeof *order, compare, context);
  return order;
}

/* For qsort(): int64_t, the least first; also of structs that begin with one. */
static inline int ni_by_i64(const void *a, const void *b) {
  const int64_t *x = (const int64_t *)a, *y = (const int64_t *)b;
  return *x < *y ? -1 : *x > *y;
}

#endif
