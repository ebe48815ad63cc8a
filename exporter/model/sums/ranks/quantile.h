/*
 * The middle of numbers. Both put them in order, in place. Pure; any thread.
 */
#ifndef NI_BLAME_QUANTILE_H
#define NI_BLAME_QUANTILE_H

#include <stddef.h>

/* The q-th part of n numbers, in place; NAN of none. */
float ni_blame_quantile(float *x, size_t n, double q);

/* The mean of the middle four fifths, in place; NAN of none. */
float ni_blame_middle(float *x, size_t n);

#endif
