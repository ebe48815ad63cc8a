#include "order.h"

#include <stdlib.h>

uint32_t *ni_order(uint32_t n, int (*compare)(const void *, const void *, void *), void *context) {
  uint32_t *order = malloc((n + 1) * sizeof *order);
  for (uint32_t i = 0; order && i < n; i++) order[i] = i;
  if (order) qsort_r(order, n, sizeof *order, compare, context);
  return order;
}
