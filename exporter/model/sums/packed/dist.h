/*
 * The distribution of one whole-numbered quantity: exact sums, and percentiles from a map of values to
 * counts.
 *
 * Model: values are integers from 0 on (ns, bytes per second), so sums are exact and the order of adding does
 * not matter. Values are put down as they come, counted and summed later, many at once, by sorting: that
 * takes a quarter of the time of looking each one up. Each distinct value has a count until there are more
 * than `limit` of them; then the counts move into a histogram of 128 steps per power of two (0.8 % wide, so a
 * percentile is within 0.4 %), and the result says so. The sums stay exact in any case. They are kept
 * relative to the first value, so that the variance of values that lie close together does not drown.
 *
 * Threads: one at a time; whoever asks for figures may change how the values are kept. Memory: a small
 * struct, since there are many of few values; 16 bytes per distinct value, 8 per value that was not counted
 * yet, of which there are limit / 2 at most; 1 KiB per power of two in the histogram. Ownership:
 * ni_dist_free(). Failure: -ENOMEM; the distribution is then to be thrown away. All zero but `limit` is an
 * empty one.
 */
#ifndef NI_DIST_H
#define NI_DIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exporter/base/bytes/wire.h"
#include "exporter/model/sums/model.h"

#define NI_DIST_STEPS 128 /* per power of two */
#define NI_DIST_LIMIT_GROUP (1u << 18)
#define NI_DIST_LIMIT_SLICE 1024

struct ni_dist_slot {
  uint64_t value, count;
};

struct ni_dist {
  uint32_t limit; /* of different values; 0: straight into the histogram */
  bool coarse;
  uint64_t n, first;
  uint64_t *fresh; /* as they came: in n, but in nothing below yet */
  size_t n_fresh, cap_fresh;
  uint64_t min, max;
  __int128 sum;              /* of value - first */
  unsigned __int128 square;  /* of (value - first)^2 */
  struct ni_dist_slot *slot; /* by value */
  size_t n_slots;
  uint64_t **step; /* coarse: 64, by power of two, of NI_DIST_STEPS counts each, or NULL */
};

/* Values above INT64_MAX are not allowed. */
int ni_dist_add(struct ni_dist *d, uint64_t value);
/* Adds all of b to a. */
int ni_dist_merge(struct ni_dist *a, struct ni_dist *b);
/*
 * Between processes of one summary: all but the limit, which is the receiver's; its struct is empty before. 0
 * or -ENOMEM.
 */
int ni_dist_wire(struct ni_wire *w, struct ni_dist *d);
/* scale: what one unit of the output is in units of the values (1000 for µs from ns). 0 or -ENOMEM. */
int ni_dist_stats(struct ni_dist *d, double scale, struct ni_stats *out);
/*
 * As ni_dist_stats() has it (linear between neighbours, within 0.4 %), of a histogram (limit 0), without
 * sorting: for many.
 */
double ni_dist_quantile_coarse(const struct ni_dist *d, double q, double scale);
int ni_dist_hist(struct ni_dist *d, double scale, struct ni_hist *out);
/* Box and whiskers. */
int ni_dist_box(struct ni_dist *d, double scale, struct ni_whisker *out);
void ni_dist_free(struct ni_dist *d);

#endif
