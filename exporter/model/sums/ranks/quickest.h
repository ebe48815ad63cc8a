/*
 * How quick operations are at best, by their size, as one rank's pass goes through them: what transfers take
 * when nobody is waited for, bin by bin; and which operations take several times as long.
 *
 * A bin's quickest operation of a size stands for all of that size (`least` of a link's cell). Operations of
 * a bin that differ in size alone are compared by the byte: messages of a slot, and collectives of a function
 * with so many sizes that hardly any comes twice in a bin. The shortest of each size would be whatever it
 * waited then.
 *
 * Threads: one a rank. Ownership: ni_quickest_free(). Failure: -ENOMEM, at the begin only.
 */
#ifndef NI_BLAME_QUICKEST_H
#define NI_BLAME_QUICKEST_H

#include "places.h"

struct ni_token_least {
  float least; /* of the bin */
  uint32_t n, slot;
};

/* Operations of a bin that differ in size alone: the quickest of them, for its size. */
struct ni_rate_least {
  float us_per_byte;
  double bytes; /* of all of them; 0: none */
  uint32_t n, slot;
};

struct ni_quickest {
  const struct ni_blame_rank *out;
  const uint16_t *function; /* by token */
  struct ni_token_least token[NI_PLACE_TOKENS];
  struct ni_rate_least message[NI_BLAME_SLOTS], collective[NI_BLAME_FUNCTIONS];
  bool many_sizes[NI_BLAME_FUNCTIONS];
  float function_rate[NI_BLAME_FUNCTIONS]; /* of these: us a byte of the quickest one until now; 0: none */
  float *quickest_us;                      /* by token: the quickest collective until now; 0: none */
};

/* q: all 0. o: the rank, whose tokens are known; function: of each of them. */
int ni_quickest_begin(struct ni_quickest *q, const struct ni_blame_rank *o, const uint16_t *function);
void ni_quickest_free(struct ni_quickest *q);
/* An operation that took us; l: its slot's cell of the bin. */
void ni_quickest_count(struct ni_quickest *q, const struct ni_blame_op *op, float us,
                       struct ni_blame_link_cell *l);
/* The bin is over: adds to `least` and `alike` of its cells, which are the rank's max_slots at `at`. */
void ni_quickest_flush(struct ni_quickest *q, struct ni_blame_link_cell *at);

#endif
