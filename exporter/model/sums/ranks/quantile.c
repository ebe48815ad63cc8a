#include "quantile.h"

#include <math.h>
#include <stdlib.h>

static int compare_floats(const void *a, const void *b) {
  const float x = *(const float *)a, y = *(const float *)b;
  return x < y ? -1 : x > y;
}

float ni_blame_quantile(float *x, size_t n, double q) {
  if (n == 0)
    return NAN;
  qsort(x, n, sizeof *x, compare_floats);
  return x[(size_t)(q * (double)(n - 1) + 0.5)];
}

float ni_blame_middle(float *x, size_t n) {
  double sum = 0;
  if (n == 0)
    return NAN;
  qsort(x, n, sizeof *x, compare_floats);
  for (size_t i = n / 10; i < n - n / 10; i++)
    sum += x[i];
  return (float)(sum / (double)(n - 2 * (n / 10)));
}
