#include "tables.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SHAPE(items, count, index, type, last, most) \
  {offsetof(struct ni_live, items), \
   offsetof(struct ni_live, count), \
   offsetof(struct ni_live, index), \
   sizeof(struct type), \
   offsetof(struct type, last) + sizeof((struct type *)0)->last, \
   NI_LIVE_##most##_MAX}
const struct ni_live_shape ni_live_shapes[NI_LIVE_TABLES] = {
    SHAPE(job, n_jobs, jobs, ni_live_job, uid, JOBS),
    SHAPE(class, n_classes, classes, ni_live_class, size_class, CLASSES),
    SHAPE(member, n_members, members, ni_live_member, job, MEMBERS),
    SHAPE(func, n_funcs, funcs, ni_live_func, func, FUNCS),
    SHAPE(nvidia, n_nvidia, nvidias, ni_live_nvidia, nnodes, NVIDIA),
    SHAPE(life, n_lives, lives, ni_live_life, job, LIVES),
    SHAPE(file, n_files, files, ni_live_file, ino, FILES),
};

bool ni_live_ready(struct ni_live *l) {
  bool ok = l->nvidia_shown || (l->nvidia_shown = calloc(NI_LIVE_NVIDIA_MAX, sizeof *l->nvidia_shown));
  for (unsigned t = 0; t < NI_LIVE_TABLES; t++) {
    if (!NI_LIVE_ITEMS(l, t))
      NI_LIVE_ITEMS(l, t) = calloc(ni_live_shapes[t].max, ni_live_shapes[t].size);
    ok &= NI_LIVE_ITEMS(l, t) != NULL;
  }
  return ok;
}

static uint64_t hash_key(unsigned table, const void *key) {
  uint64_t hash = table, word;
  for (size_t i = 0, n, all = ni_live_shapes[table].key; i < all; i += n) {
    n = all - i < sizeof word ? all - i : sizeof word;
    word = 0;
    memcpy(&word, (const char *)key + i, n);
    hash = ni_hash(hash, word);
  }
  return hash;
}

uint32_t ni_live_find(const struct ni_live *l, unsigned table, const void *key) {
  const struct ni_live_shape *s = &ni_live_shapes[table];
  uint64_t hash = hash_key(table, key);
  uint32_t k;
  for (size_t at = 0; (k = ni_index_next(NI_LIVE_AT(l, s->index), hash, &at)) != NI_INDEX_NONE;)
    if (memcmp(NI_LIVE_ITEMS(l, table) + k * s->size, key, s->key) == 0)
      break;
  return k;
}

uint32_t ni_live_add(struct ni_live *l, unsigned table, const void *key) {
  const struct ni_live_shape *s = &ni_live_shapes[table];
  size_t *n = &NI_LIVE_N(l, table);
  uint32_t k = ni_live_find(l, table, key);
  if (k != NI_INDEX_NONE)
    return k;
  if (*n >= s->max || ni_index_add(NI_LIVE_AT(l, s->index), hash_key(table, key), (uint32_t)*n) < 0) {
    l->full = table;
    return k;
  }
  char *item = NI_LIVE_ITEMS(l, table) + *n * s->size;
  memset(item + s->key, 0, s->size - s->key);
  memcpy(item, key, s->key);
  return (uint32_t)(*n)++;
}

/* Gives back the pages of items that are gone. */
static void release_pages(struct ni_live *l, unsigned table) {
  const struct ni_live_shape *s = &ni_live_shapes[table];
  uintptr_t items = (uintptr_t)NI_LIVE_ITEMS(l, table), page = (uintptr_t)sysconf(_SC_PAGESIZE);
  uintptr_t from = (items + NI_LIVE_N(l, table) * s->size + page - 1) & ~(page - 1),
            to = (items + s->max * s->size) & ~(page - 1);
  if (from < to)
    (void)madvise((void *)from, to - from, MADV_DONTNEED);
}

bool ni_live_reindex(struct ni_live *l, unsigned table) {
  struct ni_index *x = NI_LIVE_AT(l, ni_live_shapes[table].index);
  if (x->n)
    memset(x->place, 0, x->cap * sizeof *x->place);
  x->n = 0;
  release_pages(l, table);
  bool ok = true;
  for (size_t i = 0; ok && i < NI_LIVE_N(l, table); i++)
    ok = ni_index_add(x, hash_key(table, NI_LIVE_ITEMS(l, table) + i * ni_live_shapes[table].size),
                      (uint32_t)i) == 0;
  return ok;
}

/*
 * Keeps the items that refer, by the number at `of`, to an item that has a place in to[], and gives them that
 * number. map: where the items themselves go.
 */
static void compact_table(struct ni_live *l, unsigned table, size_t of, const uint32_t *to, uint32_t *map) {
  size_t size = ni_live_shapes[table].size, kept = 0;
  char *items = NI_LIVE_ITEMS(l, table);
  for (size_t i = 0; i < NI_LIVE_N(l, table); i++) {
    uint32_t number;
    memcpy(&number, items + i * size + of, sizeof number);
    if (map)
      map[i] = to[number] == NI_INDEX_NONE ? NI_INDEX_NONE : (uint32_t)kept;
    if (to[number] == NI_INDEX_NONE)
      continue;
    memmove(items + kept * size, items + i * size, size);
    memcpy(items + kept++ * size + of, &to[number], sizeof number);
  }
  NI_LIVE_N(l, table) = kept;
  ni_live_reindex(l, table);
}

bool ni_live_drop(struct ni_live *l, const bool *goes) {
  uint32_t to[NI_LIVE_JOBS_MAX], members[NI_LIVE_MEMBERS_MAX];
  size_t kept = 0, before = l->n_jobs;
  for (size_t i = 0; i < before; i++) {
    if (!goes[i])
      l->job[kept] = l->job[i];
    to[i] = goes[i] ? NI_INDEX_NONE : (uint32_t)kept++;
  }
  if (kept == before)
    return false;
  l->n_jobs = kept;
  ni_live_reindex(l, NI_LIVE_JOBS);
  compact_table(l, NI_LIVE_CLASSES, offsetof(struct ni_live_class, job), to, NULL);
  compact_table(l, NI_LIVE_LIVES, offsetof(struct ni_live_life, job), to, NULL);
  compact_table(l, NI_LIVE_MEMBERS, offsetof(struct ni_live_member, job), to, members);
  compact_table(l, NI_LIVE_FUNCS, offsetof(struct ni_live_func, member), members, NULL);
  return true;
}

static uint32_t job_of_item(const struct ni_live *l, unsigned table, uint32_t i) {
  if (table == NI_LIVE_JOBS || table == NI_LIVE_CLASSES)
    return table == NI_LIVE_JOBS ? i : l->class[i].job;
  return table == NI_LIVE_LIVES ? l->life[i].job
                                : l->member[table == NI_LIVE_FUNCS ? l->func[i].member : i].job;
}

bool ni_live_room(struct ni_live *l, uint32_t uid) {
  /* a job's; its user's, at his first job */
  uint32_t has[NI_LIVE_JOBS_MAX] = {0}, of[NI_LIVE_JOBS_MAX] = {0};
  uint32_t first[NI_LIVE_JOBS_MAX], most = 0, own = 0, users = 1, victim = NI_INDEX_NONE;
  bool goes[NI_LIVE_JOBS_MAX] = {false}, sated = l->sated >> l->full & 1;
  for (uint32_t i = 0; !sated && i < NI_LIVE_N(l, l->full); i++)
    has[job_of_item(l, l->full, i)]++;
  for (uint32_t j = 0; !sated && j < l->n_jobs; j++) {
    for (first[j] = 0; l->job[first[j]].uid != l->job[j].uid;)
      first[j]++;
    users += first[j] == j && l->job[j].uid != uid;
    own += l->job[j].uid == uid ? has[j] : 0;
    of[first[j]] += has[j];
    if (of[first[j]] > of[most])
      most = first[j];
  }
  bool may = own < ni_live_shapes[l->full].max / users; /* have what others have */
  for (uint32_t j = 0; !sated && j < l->n_jobs; j++) {
    const bool may_go = may || l->job[j].uid == uid;
    bool ended = has[j] && l->job[j].ended_ns && may_go;
    if (ended && (victim == NI_INDEX_NONE || (int64_t)(l->job[j].ended_ns - l->job[victim].ended_ns) < 0))
      victim = j;
  }
  const bool takes_one = !sated && may;
  for (uint32_t j = (uint32_t)l->n_jobs; takes_one && victim == NI_INDEX_NONE && j-- > 0;)
    if (has[j] && first[j] == most)
      victim = j;
  l->left_out += victim == NI_INDEX_NONE || !l->job[victim].ended_ns;
  if (victim == NI_INDEX_NONE) {
    l->sated |= 1u << l->full;
    return false;
  }
  goes[victim] = true;
  return ni_live_drop(l, goes);
}
