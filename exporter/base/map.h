/*
 * From the names of things in files to their numbers. A name is 64 bits, mixed from its parts by ni_hash();
 * two names that mix to the same number are one thing, which chance does once in 10^8 files of 100,000 names.
 *
 * Threads: one for each map. Ownership: ni_map_free(). Failure: -ENOMEM.
 */
#ifndef NI_MAP_H
#define NI_MAP_H

#include "index.h"

struct ni_map { /* all 0: empty */
  struct ni_map_place {
    uint64_t name, began;
    int64_t number, first; /* first: the number of the first of that name */
  } *place;
  size_t n, cap;
  struct ni_index index; /* of place */
};

/*
 * The number of the thing with that name that began then; began 0: whichever of that name began last. A thing
 * of which nobody knew when it began is taken for the first one that is asked for with a beginning. One that
 * is not there is added, with the number `next`.
 */
int64_t ni_map_find_or_add(struct ni_map *m, uint64_t name, uint64_t began, uint32_t next);
int64_t ni_map_get(const struct ni_map *m, uint64_t name, uint64_t began); /* adds none; -1: there is none */
/*
 * For reading the same once more: no thing began yet, but all keep their numbers. The same asking in the same
 * order finds them.
 */
void ni_map_rewind(struct ni_map *m);
void ni_map_free(struct ni_map *m);

#endif
