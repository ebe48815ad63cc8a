/*
 * From the names of things in files to their numbers: a hash table whose places nobody can foresee, so that no file can be
 * written whose names all fall into one of them. A name is 64 bits, mixed from its parts; two names that mix to the same
 * number are one thing, which chance does once in 10^8 files of 100,000 names.
 *
 * Threads: one for each map. Ownership: ni_map_free(). Failure: -ENOMEM.
 */
#ifndef NI_MAP_H
#define NI_MAP_H

#include <stddef.h>
#include <stdint.h>

struct ni_map {
  struct ni_map_place {
    uint64_t name, began;
    uint32_t number; /* + 1; 0: nobody has it */
  } *place;
  size_t n, cap;
};

/* The name so far (0 at first) with one more part. */
uint64_t ni_map_name(uint64_t name, uint64_t part);
uint64_t ni_map_name_text(uint64_t name, const char *part);

/*
 * The number of the thing with that name that began then; began 0: whichever of that name began last. A thing of which nobody
 * knew when it began is taken for the first one that is asked for with a beginning. A new one gets the number `next`.
 */
int64_t ni_map_find(struct ni_map *m, uint64_t name, uint64_t began, uint32_t next);
int64_t ni_map_get(const struct ni_map *m, uint64_t name); /* as with began 0; -1: there is none */
void ni_map_free(struct ni_map *m);

/* The array of n things with room for one more: as it is, or doubled. NULL without memory. */
void *ni_room(void *array, size_t n, size_t *cap, size_t size);

#endif
