#include "stat.h"

#include <math.h>
#include <stdlib.h>

static int by_size(const void *a, const void *b) {
  float x = *(const float *)a, y = *(const float *)b;
  return x < y ? -1 : x > y;
}

/* Variance of the mean by blocks of m values. */
static double of_blocks(const float *x, size_t n, size_t m) {
  size_t blocks = n / m;
  double sum = 0, squares = 0;
  for (size_t i = 0; i < blocks; i++) {
    double one = 0;
    for (size_t k = 0; k < m; k++) one += x[i * m + k];
    one /= (double)m;
    double d = one - x[0]; /* near the mean: nothing is lost in the squares */
    sum += d;
    squares += d * d;
  }
  double var = (squares - sum * sum / (double)blocks) / (double)(blocks - 1);
  return var > 0 ? var / (double)blocks : 0;
}

struct ni_diff_mean ni_diff_mean(const float *x, size_t n, double trim, float *scratch) {
  struct ni_diff_mean m = {NAN, NAN, NAN};
  size_t have = 0;
  for (size_t i = 0; i < n; i++)
    if (!isnan(x[i])) scratch[have++] = x[i];
  if (have < 8) return m;
  qsort(scratch, have, sizeof *scratch, by_size);
  size_t cut = (size_t)(trim * (double)have);
  float low = scratch[cut], high = scratch[have - 1 - cut];
  m.mean = 0;
  for (size_t i = cut; i < have - cut; i++) m.mean += scratch[i];
  m.mean /= (double)(have - 2 * cut);
  have = 0;
  for (size_t i = 0; i < n; i++)
    if (!isnan(x[i])) scratch[have++] = x[i] < low ? low : x[i] > high ? high : x[i];
  double most = -1;
  for (size_t size = have < 32 ? 1 : 2; have / size >= 8; size *= 2) {
    double v = of_blocks(scratch, have, size);
    if (v <= most) continue;
    most = v;
    m.df = (double)(have / size - 1);
  }
  m.se = sqrt(most) / (1 - 2 * (double)cut / (double)have);
  return m;
}

double ni_diff_p(double t, double df) {
  double z = (8 * df + 1) / (8 * df + 3) * sqrt(df * log1p(t * t / df));
  return erfc(z / M_SQRT2);
}

double ni_diff_t95(double df) {
  double z = 1.959964 * (8 * df + 3) / (8 * df + 1);
  return sqrt(df * expm1(z * z / df));
}

void ni_diff_holm(double *p, size_t n) {
  double most = 0;
  for (size_t i = 0; i < n; i++) {
    double adjusted = p[i] * (double)(n - i);
    if (adjusted > most) most = adjusted;
    p[i] = most < 1 ? most : 1;
  }
}

static int by_value(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}
double ni_diff_median(double *x, size_t n) {
  qsort(x, n, sizeof *x, by_value);
  return n ? (x[n / 2] + x[(n - 1) / 2]) / 2 : NAN;
}
