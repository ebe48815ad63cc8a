#include "sort_numbers.h"

#include <string.h>

#define FEW 64 /* below so many, moving neighbours costs less than counting bytes */

static void sort_by_insertion(uint64_t *v, size_t n) {
  for (size_t i = 1; i < n; i++) {
    uint64_t x = v[i];
    size_t k = i;
    for (; k > 0 && v[k - 1] > x; k--)
      v[k] = v[k - 1];
    v[k] = x;
  }
}

void ni_sort_numbers(uint64_t *v, uint64_t *scratch, size_t n) {
  if (n < FEW) {
    sort_by_insertion(v, n);
    return;
  }
  uint64_t *from = v, *to = scratch, differ = 0;
  for (size_t i = 1; i < n; i++)
    differ |= v[i] ^ v[0];
  for (unsigned shift = 0; shift < 64; shift += 8) {
    if (!(differ >> shift & 0xff))
      continue;
    size_t at[256] = {0}, sum = 0;
    for (size_t i = 0; i < n; i++)
      at[from[i] >> shift & 0xff]++;
    for (unsigned k = 0; k < 256; k++) {
      size_t count = at[k];
      at[k] = sum;
      sum += count;
    }
    for (size_t i = 0; i < n; i++)
      to[at[from[i] >> shift & 0xff]++] = from[i];
    uint64_t *sorted = to;
    to = from;
    from = sorted;
  }
  if (from != v)
    memcpy(v, from, n * sizeof *v);
}
