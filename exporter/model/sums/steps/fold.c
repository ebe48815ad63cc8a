#include "fold.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { MARKS_MOST = 8, ROWS_MOST = 512, PARTS = 2, TIMES = 6 };
/* numbers differ from their median by this part of it on the mean, or all are alike */
#define COUNTS_UNEVEN 0.1
/*
 * So many marks make a step if they are off by this part of what single ones are, where they come TIMES times
 * and more. Of 1,000 rows by chance, 16 to 100 marks long, none is so; with 0.25 and 4 times 16 were.
 */
#define PART_OF_COUNTS 0.2f
#define PART_OF_GAPS 0.5f
/* of gaps: a seventh of them differ, so that a pause each so many steps does not make these one */
#define GAPS_UNEVEN 0.1f
/*
 * An order comes again where this part of the operations, or less, are others one period later; and where
 * that is not far more than with the best of all periods. A pipeline's step of 16 micro-batches is like
 * itself but for a sixteenth when it is moved by one of them.
 */
#define ORDER_BROKEN 0.2
#define ORDER_MORE 1.5f
#define ORDER_CHANCE 0.005f
/* What comes less often, such as the steps from one evaluation to the next, is no step. */
enum { ORDER_PERIODS = 18 };
/* in logarithms of gaps: one that is twice as long says no more than that */
#define GAPS_CLIP 0.7f

static int compare_floats(const void *a, const void *b) {
  const float x = *(const float *)a, y = *(const float *)b;
  return x < y ? -1 : x > y;
}

float ni_fold_median(float *x, uint32_t n) {
  qsort(x, n, sizeof *x, compare_floats);
  return n ? x[n / 2] : NAN;
}

/*
 * How far numbers lie from their baseline: x is [row][width], and the baseline of a row is the median over
 * every k-th row of the other half of each block of k. So a fold that chance made explains nothing.
 * Differences beyond `clip` are pauses, and count as that much.
 */
static float measure_fold_deviation(const float *x, uint32_t from, uint32_t to, uint32_t width, uint32_t k,
                                    float clip) {
  float theirs[ROWS_MOST];
  double away = 0;
  uint32_t n = 0;
  for (uint32_t phase = 0; phase < k; phase++)
    for (uint32_t at = 0; at < width; at++)
      for (uint32_t half = 0; half < 2; half++) {
        uint32_t others = 0;
        for (uint32_t i = from + phase; i < to; i += k)
          if ((i - from) / k % 2 != half && others < ROWS_MOST)
            theirs[others++] = x[(size_t)i * width + at];
        const float middle = ni_fold_median(theirs, others);
        for (uint32_t i = from + phase; i < to; i += k)
          if ((i - from) / k % 2 == half && others) {
            away += fminf(clip, fabsf(x[(size_t)i * width + at] - middle));
            n++;
          }
      }
  return n ? (float)(away / n) : INFINITY;
}

/*
 * How far the sums of each k numbers lie from their median, counted from the best one of the first k. Where k
 * marks make a step its operations are always as many. In which of its parts one lies may change, as where
 * gradients overlap with the computing: what is more in one part is less in the next, and it does not add up.
 * Of numbers by chance it does. width: 1.
 */
static float measure_sum_deviation(const float *x, uint32_t from, uint32_t to, uint32_t width, uint32_t k,
                                   float clip) {
  float sum[NI_FOLD_MARKS], ordered[NI_FOLD_MARKS], least = INFINITY;
  (void)width;
  for (uint32_t phase = 0; phase < k; phase++) {
    uint32_t n = 0;
    double away = 0;
    for (uint32_t i = from + phase; i + k <= to; i += k) {
      sum[n] = 0;
      for (uint32_t j = 0; j < k; j++)
        sum[n] += x[i + j];
      ordered[n] = sum[n];
      n++;
    }
    const float middle = ni_fold_median(ordered, n);
    for (uint32_t i = 0; i < n; i++)
      away += fminf(clip, fabsf(sum[i] - middle));
    if (n)
      least = fminf(least, (float)(away / n));
  }
  return least;
}

typedef float (*fold_deviation)(const float *x, uint32_t from, uint32_t to, uint32_t width, uint32_t k,
                                float clip);

/*
 * The least number of rows that repeat: `part` as far off as single rows are, in each half of them, which
 * differ by `least_off` or more. 1: none. Most jobs have none, and then single rows, or the first half, say
 * so: the rest is not looked at.
 */
static uint32_t find_fold(fold_deviation measure, const float *x, uint32_t rows, uint32_t width, float clip,
                          float part, float least_off) {
  uint32_t may_be = (2U << MARKS_MOST) - 4; /* bit k: k rows, 2 to MARKS_MOST */
  for (uint32_t q = 0; q < PARTS && may_be; q++) {
    const uint32_t from = rows * q / PARTS, to = rows * (q + 1) / PARTS;
    float off[MARKS_MOST + 1], least;
    off[1] = least = to - from >= 4 ? measure(x, from, to, width, 1, clip) : INFINITY;
    if (!(off[1] >= least_off))
      return 1;
    for (uint32_t k = 2; k <= MARKS_MOST; k++) {
      off[k] = to - from >= TIMES * k ? measure(x, from, to, width, k, clip) : INFINITY;
      least = fminf(least, off[k]);
    }
    for (uint32_t k = 2; k <= MARKS_MOST; k++) {
      const bool good = isfinite(off[k]) && off[k] <= part * off[1] && off[k] <= 1.2f * least + 1e-6f;
      if (!good)
        may_be &= ~(1U << k);
    }
  }
  return may_be ? (uint32_t)__builtin_ctz(may_be) : 1;
}

uint32_t ni_fold_counts(const float *x, uint32_t n) {
  float ordered[NI_FOLD_MARKS];
  double off = 0;
  if (n == 0 || n > NI_FOLD_MARKS)
    return 1;
  memcpy(ordered, x, n * sizeof *x);
  const float middle = ni_fold_median(ordered, n);
  for (uint32_t i = 0; i < n; i++)
    off += fminf(fabsf(x[i] - middle), middle);
  if (off <= COUNTS_UNEVEN * middle * n)
    return 1;
  return find_fold(measure_sum_deviation, x, n, 1, middle, PART_OF_COUNTS, 0);
}

uint32_t ni_fold_gaps(const float *log_gap, uint32_t rows, uint32_t width) {
  return find_fold(measure_fold_deviation, log_gap, rows, width, GAPS_CLIP, PART_OF_GAPS, GAPS_UNEVEN);
}

/* The part of the operations that are others `period` later; INFINITY: more than ORDER_BROKEN. */
static float measure_broken_order(const uint16_t *what, uint32_t n, uint32_t period) {
  const uint32_t most = (uint32_t)(ORDER_BROKEN * (n - period));
  uint32_t broken = 0;
  for (uint32_t i = period; i < n && broken <= most; i++)
    broken += what[i] != what[i - period];
  return broken <= most ? (float)broken / (float)(n - period) : INFINITY;
}

uint32_t ni_fold_order(const uint16_t *what, uint32_t n) {
  const uint32_t longest = n / ORDER_PERIODS < NI_FOLD_PERIOD_MAX ? n / ORDER_PERIODS : NI_FOLD_PERIOD_MAX;
  float *broken = malloc((longest + 1) * sizeof *broken), least = INFINITY;
  uint32_t period = 0;
  for (uint32_t k = 1; broken && k <= longest; k++) {
    broken[k] = measure_broken_order(what, n, k);
    least = fminf(least, broken[k]);
  }
  for (uint32_t k = longest; broken && k > 0 && isfinite(least); k--)
    if (broken[k] <= ORDER_MORE * least + ORDER_CHANCE)
      period = k;
  free(broken);
  return period;
}
