/*
 * Means of series whose values hang together, and the chance that a difference is none.
 *
 * Steps follow one another: a pause, a drift, a neighbour on the network last for several. So the error of a
 * mean is taken from means of blocks of 2, 4, 8, ... values, down to eight blocks, the largest of them
 * (blocking: Flyvbjerg and Petersen, 1989). The mean is winsorised, and so is its error (Dixon and Tukey,
 * 1968). t is turned into a normal deviate by Wallace (1959). Pure; any thread.
 */
#ifndef NI_DIFF_STAT_H
#define NI_DIFF_STAT_H

#include <stddef.h>

struct ni_diff_mean {
  double mean, se, df; /* df: of se. NAN: fewer than 8 values */
};

/*
 * trim: the part at either end that counts as what is next to it, 0 to 0.25. NAN in x is no value. scratch: n
 * of them.
 */
struct ni_diff_mean ni_diff_mean(const float *x, size_t n, double trim, float *scratch);
/* Two-sided: how likely a t as large is where nothing is different. */
double ni_diff_p(double t, double df);
/* Half of the interval of 95 %, in standard errors. */
double ni_diff_t95(double df);
/* Of p[n], sorted upwards: by Holm, so that all together are wrong once in 1 / level at most. In place. */
void ni_diff_holm(double *p, size_t n);

#endif
