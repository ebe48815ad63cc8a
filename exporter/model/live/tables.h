/*
 * The arrays of the state (live.h) as what they have in common: a key at the beginning of each item, an index over it, a bound.
 *
 *   key, unused bytes 0 ─▶ ni_live_add() ─▶ number of the item, all 0 behind the key where it is new
 *
 * For live.c, live_tick.c, checkpoint.c. One thread.
 */
#ifndef NI_LIVE_TABLES_H
#define NI_LIVE_TABLES_H

#include "live.h"

/* In the order of the checkpoint: what others name by number comes before them. */
enum ni_live_table {
  NI_LIVE_JOBS = 0, NI_LIVE_CLASSES, NI_LIVE_MEMBERS, NI_LIVE_FUNCS, NI_LIVE_NVIDIAS, NI_LIVE_LIVES, NI_LIVE_FILES,
  NI_LIVE_TABLES
};
struct ni_live_shape {
  size_t item, n, cap, index; /* offsets in struct ni_live */
  size_t size, key, max;      /* bytes of an item, of its key; items */
};
extern const struct ni_live_shape ni_live_shapes[NI_LIVE_TABLES];

/* The array, and how many items are in it. */
void *ni_live_items(const struct ni_live *l, enum ni_live_table t);
size_t *ni_live_count(struct ni_live *l, enum ni_live_table t);
/* NI_INDEX_NONE: there is none. */
uint32_t ni_live_find(const struct ni_live *l, enum ni_live_table t, const void *key);
/* Finds or adds. NI_INDEX_NONE: beyond the bound, which is counted. Needs memory only where ni_live_room() was not asked. */
uint32_t ni_live_add(struct ni_live *l, enum ni_live_table t, const void *key);
/* Makes room for so many more, as far as the bound allows. false without memory. */
bool ni_live_room(struct ni_live *l, enum ni_live_table t, size_t more);
/* The index anew, after items have moved. Needs no memory where there was room. */
void ni_live_reindex(struct ni_live *l, enum ni_live_table t);

#endif
