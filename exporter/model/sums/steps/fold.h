/*
 * How many rows make one period: rows of numbers that repeat after so many of them. steps.c asks it of what
 * lies between two marks, since what looks like the end of a step may come several times in one.
 *
 * Two ways. Counts (operations between marks) repeat if the sums of each k of them are alike: what is more
 * in one part of the step is less in the next. Gaps repeat if each is as long as the one k rows before. Both
 * have to hold in each half of the rows, clearly better than for single rows, and the least k is taken.
 *
 * The order of operations tells it as well, where no mark is known (ni_fold_order()).
 *
 * Pure; any thread. Memory: some KB of the stack; ni_fold_order() allocates as much.
 */
#ifndef NI_BLAME_FOLD_H
#define NI_BLAME_FOLD_H

#include <stdint.h>

enum {
  NI_FOLD_MARKS = 1024,     /* so many counts are looked at, at most */
  NI_FOLD_ROWS_MIN = 16,    /* fewer rows of gaps tell nothing */
  NI_FOLD_PERIOD_MAX = 4096 /* of what comes in one order */
};

/* The middle of n numbers, which are put in order in place; NAN of none. */
float ni_fold_median(float *x, uint32_t n);

/* n counts, at most NI_FOLD_MARKS. How many make one period, up to 8; 1: each does, or all are alike. */
uint32_t ni_fold_counts(const float *x, uint32_t n);

/* log_gap: [rows][width], logarithms of gaps. How many rows make one period, up to 8; 1: each does. */
uint32_t ni_fold_gaps(const float *log_gap, uint32_t rows, uint32_t width);

/*
 * what: n operations in their order, each as a number for what it is. After how many of them does the order
 * come again? The least such number up to NI_FOLD_PERIOD_MAX, of which there are 18 periods or more; 0: there
 * is none, or no memory. What comes in between now and then, as an evaluation does, breaks few of them.
 */
uint32_t ni_fold_order(const uint16_t *what, uint32_t n);

#endif
