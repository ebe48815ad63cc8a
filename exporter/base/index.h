/*
 * From hashes to numbers of things in the caller's array: open addressing, at most half full.
 *
 *   uint64_t hash = ni_hash(ni_hash(0, key.comm), key.rank);
 *   uint32_t k;
 *   for (size_t at = 0; (k = ni_index_next(&x, hash, &at)) != NI_INDEX_NONE;)
 *     if (same(&item[k], &key)) return k;
 *   if (!ni_array_room(item, n, cap) || ni_index_add(&x, hash, n) < 0) return -ENOMEM;
 *   item[n++] = key;
 *
 * Hashes have a seed that is another one in each process, so that nobody can write a file whose keys all fall
 * into one place.
 *
 * Threads: one for each index; ni_hash() any. Ownership: ni_index_free(). Failure: -ENOMEM.
 */
#ifndef NI_INDEX_H
#define NI_INDEX_H

#include <stddef.h>
#include <stdint.h>

#define NI_INDEX_NONE UINT32_MAX

struct ni_index_place {
  uint32_t hash, number; /* number + 1; 0: free */
};
struct ni_index { /* all 0: empty */
  struct ni_index_place *place;
  size_t n, cap; /* cap: a power of two, or 0 */
};

extern uint64_t ni_hash_seed; /* set before main() */

/* The hash so far (0 at first) with one more part. */
static inline uint64_t ni_hash(uint64_t hash, uint64_t part) {
  hash = (hash ^ ni_hash_seed) * 0x9e3779b97f4a7c15ULL ^ part;
  hash = (hash ^ hash >> 32 ^ ni_hash_seed >> 7) * 0xff51afd7ed558ccdULL;
  hash = (hash ^ hash >> 29) * 0xc4ceb9fe1a85ec53ULL;
  return hash ^ hash >> 32;
}
uint64_t ni_hash_text(uint64_t hash, const char *part);

/*
 * The next number whose hash may be this one, in the order of addition; *at is 0 at first. NI_INDEX_NONE: no
 * more.
 */
static inline uint32_t ni_index_next(const struct ni_index *x, uint64_t hash, size_t *at) {
  while (x->cap) {
    const struct ni_index_place *p = &x->place[((uint32_t)hash + (*at)++) & (x->cap - 1)];
    if (!p->number || p->hash == (uint32_t)hash)
      return p->number - 1;
  }
  return NI_INDEX_NONE;
}

/*
 * Adds a number below NI_INDEX_NONE; one of that hash may be there already. 0 or -ENOMEM: the index is as it
 * was.
 */
int ni_index_add(struct ni_index *x, uint64_t hash, uint32_t number);
void ni_index_free(struct ni_index *x);

#endif
