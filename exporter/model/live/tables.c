#include "tables.h"

#include <stdlib.h>

#define SHAPE(items, count, index, type, last, most)                                                                     \
  {offsetof(struct ni_live, items), offsetof(struct ni_live, count), offsetof(struct ni_live, index), sizeof(struct type), \
   offsetof(struct type, last) + sizeof((struct type *)0)->last, NI_LIVE_##most##_MAX}
const struct ni_live_shape ni_live_shapes[NI_LIVE_TABLES] = {
    SHAPE(job, n_jobs, jobs, ni_live_job, uid, JOBS), SHAPE(class, n_classes, classes, ni_live_class, size_class, CLASSES),
    SHAPE(member, n_members, members, ni_live_member, job, MEMBERS), SHAPE(func, n_funcs, funcs, ni_live_func, func, FUNCS),
    SHAPE(nvidia, n_nvidia, nvidias, ni_live_nvidia, nnodes, NVIDIA), SHAPE(life, n_lives, lives, ni_live_life, job, LIVES),
    SHAPE(file, n_files, files, ni_live_file, ino, FILES),
};

bool ni_live_ready(struct ni_live *l) {
  bool ok = l->nvidia_shown || (l->nvidia_shown = calloc(NI_LIVE_NVIDIA_MAX, sizeof *l->nvidia_shown));
  for (unsigned t = 0; t < NI_LIVE_TABLES; t++) {
    struct ni_index *x = NI_LIVE_AT(l, ni_live_shapes[t].index);
    size_t max = ni_live_shapes[t].max;
    if (!NI_LIVE_ITEMS(l, t)) NI_LIVE_ITEMS(l, t) = calloc(max, ni_live_shapes[t].size);
    if (!x->cap && (x->place = calloc(2 * max, sizeof *x->place))) x->cap = 2 * max; /* a power of two, as all bounds are */
    ok &= NI_LIVE_ITEMS(l, t) && x->cap;
  }
  return ok;
}

static uint64_t hash_of(unsigned table, const void *key) {
  uint64_t hash = table, word;
  for (size_t i = 0, n, all = ni_live_shapes[table].key; i < all; i += n) {
    n = all - i < sizeof word ? all - i : sizeof word, word = 0;
    memcpy(&word, (const char *)key + i, n);
    hash = ni_hash(hash, word);
  }
  return hash;
}

uint32_t ni_live_find(const struct ni_live *l, unsigned table, const void *key) {
  const struct ni_live_shape *s = &ni_live_shapes[table];
  uint64_t hash = hash_of(table, key);
  uint32_t k;
  for (size_t at = 0; (k = ni_index_next(NI_LIVE_AT(l, s->index), hash, &at)) != NI_INDEX_NONE;)
    if (memcmp(NI_LIVE_ITEMS(l, table) + k * s->size, key, s->key) == 0) break;
  return k;
}

uint32_t ni_live_add(struct ni_live *l, unsigned table, const void *key) {
  const struct ni_live_shape *s = &ni_live_shapes[table];
  size_t *n = &NI_LIVE_N(l, table);
  uint32_t k = ni_live_find(l, table, key);
  if (k != NI_INDEX_NONE) return k;
  if (*n >= s->max || ni_index_add(NI_LIVE_AT(l, s->index), hash_of(table, key), (uint32_t)*n) < 0) return l->full = table, k;
  char *item = NI_LIVE_ITEMS(l, table) + *n * s->size;
  memset(item + s->key, 0, s->size - s->key);
  memcpy(item, key, s->key);
  return (uint32_t)(*n)++;
}

void ni_live_reindex(struct ni_live *l, unsigned table) {
  struct ni_index *x = NI_LIVE_AT(l, ni_live_shapes[table].index);
  if (x->n) memset(x->place, 0, x->cap * sizeof *x->place);
  x->n = 0;
  for (size_t i = 0; i < NI_LIVE_N(l, table); i++)
    (void)ni_index_add(x, hash_of(table, NI_LIVE_ITEMS(l, table) + i * ni_live_shapes[table].size), (uint32_t)i);
}
