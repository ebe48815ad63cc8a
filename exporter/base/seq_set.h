/*
 * A set of sequence numbers that come nearly in order, as intervals: what is missing, what came twice.
 *
 * Memory is bounded: above NI_SEQ_SET_MAX intervals the lower half is folded away; counts stay exact, but a
 * number below `floor` that arrives later can no longer be told from a double (`unsure`). One thread.
 * ni_seq_set_free().
 */
#ifndef NI_SEQ_SET_H
#define NI_SEQ_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes/wire.h"

#define NI_SEQ_SET_MAX 65536

struct ni_seq_range {
  uint64_t from, to; /* both inside */
};

struct ni_seq_set {
  struct ni_seq_range *range; /* ascending, never touching */
  size_t n, cap;
  uint64_t distinct, doubles, unsure;
  uint64_t floor;
  uint64_t lowest, highest; /* with distinct > 0 */
};

/* 0, or -ENOMEM (the number is then not in the set). */
int ni_seq_set_add(struct ni_seq_set *s, uint64_t sn);
void ni_seq_set_free(struct ni_seq_set *s);

bool ni_seq_set_has(const struct ni_seq_set *s, uint64_t sn); /* below floor: unsure, then false */

/* Adds all of b to a; numbers in both count as doubles of a. 0 or -ENOMEM (a is unchanged). */
int ni_seq_set_merge(struct ni_seq_set *a, const struct ni_seq_set *b);

/* Numbers in [from, highest] that never came. from <= lowest. */
uint64_t ni_seq_set_missing(const struct ni_seq_set *s, uint64_t from);
/* Numbers below end that came; where some of them were folded away, as many as it can be. */
uint64_t ni_seq_set_below(const struct ni_seq_set *s, uint64_t end);
/* The first hole at or after from; 0: none. */
int ni_seq_set_first_hole(const struct ni_seq_set *s, uint64_t from, struct ni_seq_range *out);

/* Puts it, or takes one into an empty one: a set that can be, or w->bad. */
void ni_seq_set_wire(struct ni_wire *w, struct ni_seq_set *s);

#endif
