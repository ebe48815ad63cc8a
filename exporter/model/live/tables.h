/*
 * The arrays of the state (live.h) by what they have in common: a key at the beginning of each item, unused
 * bytes 0, an index, a bound. Room up to the bound is taken at once, and the machine gives what is used of
 * it, and gets it back. What an index has no memory for is left out like what is beyond the bound. For
 * live.c, live_tick.c, checkpoint.c. One thread.
 */
#ifndef NI_LIVE_TABLES_H
#define NI_LIVE_TABLES_H

#include "live.h"

/* In the order of the checkpoint. */
enum {
  NI_LIVE_JOBS,
  NI_LIVE_CLASSES,
  NI_LIVE_MEMBERS,
  NI_LIVE_FUNCS,
  NI_LIVE_NVIDIAS,
  NI_LIVE_LIVES,
  NI_LIVE_FILES,
  NI_LIVE_TABLES
};
extern const struct ni_live_shape {
  /* offsets in struct ni_live; bytes of an item and of its key; items */
  size_t items, n, index, size, key, max;
} ni_live_shapes[NI_LIVE_TABLES];
#define NI_LIVE_AT(l, field) ((void *)((char *)(uintptr_t)(l) + (field)))
#define NI_LIVE_ITEMS(l, table) (*(char **)NI_LIVE_AT(l, ni_live_shapes[table].items))
#define NI_LIVE_N(l, table) (*(size_t *)NI_LIVE_AT(l, ni_live_shapes[table].n))

/* Takes the room, once. false without memory. */
bool ni_live_ready(struct ni_live *l);
/*
 * The number of the item; NI_INDEX_NONE: there is none, or of add: there is no room, of which l->full tells.
 */
uint32_t ni_live_find(const struct ni_live *l, unsigned table, const void *key);
uint32_t ni_live_add(struct ni_live *l, unsigned table, const void *key);
/*
 * After items have moved, or gone from the end. false without memory, which where none came it has: then they
 * are not all found.
 */
bool ni_live_reindex(struct ni_live *l, unsigned table);
/*
 * Jobs go with all that is theirs, and items have other numbers then. goes: as many as there are jobs. false:
 * none goes.
 */
bool ni_live_drop(struct ni_live *l, const bool *goes);
/*
 * Where something of that user found no room (l->full, but for files and NVIDIA's sums): a job goes, by the
 * rule of live.h. false: none does, since he has his share, which is counted. l->sated: 0 at the beginning of
 * a batch.
 */
bool ni_live_room(struct ni_live *l, uint32_t uid);
#endif
