#include "tables.h"

#include "exporter/base/array.h"

#define KEY(type, last) (offsetof(struct type, last) + sizeof((struct type *)0)->last)
#define SHAPE(items, things, x, type, last, most)                                                                          \
  {offsetof(struct ni_live, items), offsetof(struct ni_live, n_##things), offsetof(struct ni_live, cap_##things),           \
   offsetof(struct ni_live, x), sizeof(struct type), KEY(type, last), NI_LIVE_##most##_MAX}
const struct ni_live_shape ni_live_shapes[NI_LIVE_TABLES] = {
    SHAPE(job, jobs, jobs, ni_live_job, uid, JOBS),
    SHAPE(class, classes, classes, ni_live_class, size_class, CLASSES),
    SHAPE(member, members, members, ni_live_member, job, MEMBERS),
    SHAPE(func, funcs, funcs, ni_live_func, func, FUNCS),
    SHAPE(nvidia, nvidia, nvidias, ni_live_nvidia, nnodes, NVIDIA),
    SHAPE(life, lives, lives, ni_live_life, job, LIVES),
    SHAPE(file, files, files, ni_live_file, ino, FILES),
};

static void *at(const struct ni_live *l, size_t offset) { return (char *)(uintptr_t)l + offset; }

void *ni_live_items(const struct ni_live *l, enum ni_live_table t) {
  void *p;
  memcpy(&p, at(l, ni_live_shapes[t].item), sizeof p);
  return p;
}

size_t *ni_live_count(struct ni_live *l, enum ni_live_table t) { return at(l, ni_live_shapes[t].n); }

static uint64_t hash_of(const struct ni_live_shape *s, const void *key) {
  uint64_t hash = s->key, word;
  for (size_t i = 0, n; i < s->key; i += n) {
    n = s->key - i < sizeof word ? s->key - i : sizeof word;
    word = 0;
    memcpy(&word, (const char *)key + i, n);
    hash = ni_hash(hash, word);
  }
  return hash;
}

uint32_t ni_live_find(const struct ni_live *l, enum ni_live_table t, const void *key) {
  const struct ni_live_shape *s = &ni_live_shapes[t];
  const char *items = ni_live_items(l, t);
  uint64_t hash = hash_of(s, key);
  uint32_t k;
  for (size_t from = 0; (k = ni_index_next(at(l, s->index), hash, &from)) != NI_INDEX_NONE;)
    if (memcmp(items + k * s->size, key, s->key) == 0) break;
  return k;
}

bool ni_live_room(struct ni_live *l, enum ni_live_table t, size_t more) {
  const struct ni_live_shape *s = &ni_live_shapes[t];
  size_t *cap = at(l, s->cap), want = *ni_live_count(l, t) + more;
  if (want > s->max) want = s->max;
  return (want <= *cap || ni_array_more(at(l, s->item), cap, want, s->size)) && ni_index_room(at(l, s->index), want) == 0;
}

uint32_t ni_live_add(struct ni_live *l, enum ni_live_table t, const void *key) {
  const struct ni_live_shape *s = &ni_live_shapes[t];
  size_t *n = ni_live_count(l, t);
  uint32_t k = ni_live_find(l, t, key);
  if (k != NI_INDEX_NONE) return k;
  if (*n >= s->max || !ni_live_room(l, t, 1) || ni_index_add(at(l, s->index), hash_of(s, key), (uint32_t)*n) < 0) {
    l->left_out++;
    return NI_INDEX_NONE;
  }
  char *item = (char *)ni_live_items(l, t) + *n * s->size;
  memset(item, 0, s->size);
  memcpy(item, key, s->key);
  return (uint32_t)(*n)++;
}

void ni_live_reindex(struct ni_live *l, enum ni_live_table t) {
  const struct ni_live_shape *s = &ni_live_shapes[t];
  struct ni_index *x = at(l, s->index);
  const char *items = ni_live_items(l, t);
  ni_index_clear(x);
  for (size_t i = 0; i < *ni_live_count(l, t); i++) (void)ni_index_add(x, hash_of(s, items + i * s->size), (uint32_t)i);
}
