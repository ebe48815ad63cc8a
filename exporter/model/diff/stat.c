#include "stat.h"

#include <math.h>

#include "exporter/model/sums/blame/peer_groups.h"
#include "exporter/model/sums/ranks/quantile.h"

/* Variance of the mean by blocks of m values. */
static double variance_by_blocks(const float *x, size_t n, size_t m) {
  size_t blocks = n / m;
  double sum = 0, squares = 0;
  for (size_t i = 0; i < blocks; i++) {
    double one = 0;
    for (size_t k = 0; k < m; k++)
      one += x[i * m + k];
    double d = one / (double)m - x[0]; /* near the mean: nothing is lost in the squares */
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
    if (!isnan(x[i]))
      scratch[have++] = x[i];
  if (have < 8)
    return m;
  float low = ni_blame_quantile(scratch, have, trim), high = ni_blame_quantile(scratch, have, 1 - trim);
  have = 0;
  m.mean = 0;
  for (size_t i = 0; i < n; i++)
    if (!isnan(x[i]))
      m.mean += scratch[have++] = fminf(fmaxf(x[i], low), high);
  m.mean /= (double)have;
  double most = -1;
  for (size_t size = have < 32 ? 1 : 2; have / size >= 8; size *= 2) {
    double v = variance_by_blocks(scratch, have, size);
    if (v <= most)
      continue;
    most = v;
    m.df = (double)(have / size - 1);
  }
  m.se = sqrt(most) / (1 - 2 * trim);
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
    most = fmax(most, p[i] * (double)(n - i));
    p[i] = fmin(most, 1);
  }
}
