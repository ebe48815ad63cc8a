/*
 * The values of some rows without those that are null. Pure functions, any thread.
 */
#ifndef NI_PARQUET_DROP_NULLS_H
#define NI_PARQUET_DROP_NULLS_H

#include <stddef.h>
#include <stdint.h>

/* How many of n bytes are not 0. */
uint32_t ni_count_valid(const uint8_t *valid, uint32_t n);
/*
 * Copies the values of `width` bytes (1, 4, 8, or a struct ni_str) whose byte is not 0. `out` needs room for all n.
 */
void ni_drop_nulls(void *out, const void *values, const uint8_t *valid, uint32_t n, size_t width);

#endif
