/*
 * Arrays that grow: one way to make room, so that no caller counts bytes or doubles capacities itself. And
 * sorted ones: one search.
 *
 *   if (!ni_array_room(l->item, l->n, l->cap)) return -ENOMEM;
 *   l->item[l->n++] = item;
 *
 * The array is the caller's, to be freed with free(). Pure; any thread.
 */
#ifndef NI_ARRAY_H
#define NI_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Is there room for item n, counted from 0? Makes it where there is not; false without memory: the array is
 * as it was. cap: size_t.
 */
#define ni_array_room(items, n, cap) \
  ((n) < (cap) || ni_array_more(&(items), &(cap), (n) + 1, sizeof *(items)))

/* The same where most have one item: the first one gets room for itself alone. */
#define ni_array_room_one(items, n, cap) \
  ((n) < (cap) || ni_array_exact(&(items), &(cap), (cap) ? 2 * (cap) : 1, sizeof *(items)))

/* items: address of the array's pointer, of whatever type. Exactly n items have room then, 1 at least. */
static inline bool ni_array_exact(void *items, size_t *cap, size_t n, size_t size) {
  void *p;
  if (n > SIZE_MAX / 2 / size)
    return false;
  memcpy(&p, items, sizeof p);
  if (!(p = realloc(p, n * size)))
    return false;
  memcpy(items, &p, sizeof p);
  *cap = n;
  return true;
}

/* Makes room for `want` items at least, and for twice as many as before. */
static inline bool ni_array_more(void *items, size_t *cap, size_t want, size_t size) {
  size_t more = *cap ? 2 * *cap : 4; /* few: some are there once a rank */
  return ni_array_exact(items, cap, more < want ? want : more, size);
}

/* Gives back what is beyond n items, where there is more; not the last one. */
#define ni_array_fit(items, n, cap) \
  ((void)((n) > 0 && (n) < (cap) && ni_array_exact(&(items), &(cap), n, sizeof *(items))))

/*
 * i becomes the first one of 0 to n of which `before`, an expression of i, does not hold. Those of which it
 * does come first.
 */
#define ni_array_search(i, n, before) \
  do { \
    size_t from_ = 0, to_ = (n); \
    while ((i) = from_ + (to_ - from_) / 2, from_ < to_) { \
      if (before) \
        from_ = (i) + 1; \
      else \
        to_ = (i); \
    } \
  } while (0)

/* A loop over an array of n: x points to each element of that type. The array may be NULL where n is 0; in C
 * nothing may be added to NULL, not even 0. */
#define NI_EACH(type, x, array, n) for (type *x = (array), *x##_end = (n) ? x + (n) : x; x < x##_end; x++)

#endif
