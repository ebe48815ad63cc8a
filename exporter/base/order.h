/* Things in an order other than the one they lie in. */
#ifndef NI_ORDER_H
#define NI_ORDER_H

#include <stdint.h>

/* Numbers 0 to n - 1 in order; compare() gets pointers to two of them. NULL: no memory. Caller frees. */
uint32_t *ni_order(uint32_t n, int (*compare)(const void *, const void *, void *), void *context);

#endif
