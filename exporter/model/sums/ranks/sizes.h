/*
 * Whether what a rank does differs from step to step, by the sizes of its operations.
 *
 * Most of the collectives of its main function are of sizes that come seldom, and those of the middle half
 * differ by a factor. So do requests of inference make them; layers and buckets come again in each step, and
 * sequences differ by less. Pure; any thread. Failure: -ENOMEM.
 */
#ifndef NI_BLAME_SIZES_H
#define NI_BLAME_SIZES_H

#include "blame.h"

struct ni_size_bounds {
  double seldom; /* a size comes seldom if it has fewer operations */
  double times;  /* the larger ones of the middle half are so many times as large as the smaller ones */
};

/*
 * function: by token, which one it is (stream.h); main: the one with most of the collectives, which has more
 * than NI_BLAME_MANY_SIZES sizes; ops: by token.
 */
int ni_sizes_differ(const struct ni_blame_rank *o, const uint16_t *function, uint32_t main,
                    const uint64_t *ops, struct ni_size_bounds bounds, bool *out);

#endif
