#include "rollup.h"

#include <stdlib.h>
#include <string.h>

#define SLAB_ENTRIES 32u
#define SLABS_MAX (NI_ROLLUP_POOL_BYTES / (SLAB_ENTRIES * sizeof(struct ni_rollup_entry)))
#define FIRST_SLOTS 8u
#define LAST_SLOTS 256u /* 3/4 of it: NI_ROLLUP_ENTRIES */

struct key {
  uint64_t bytes;
  uint8_t kind, func, timing, cls;
};

static struct ni_rollup_entry *pool_get(struct ni_rollup_pool *p) {
  if (!p->free && p->n_slabs < SLABS_MAX) {
    struct ni_rollup_entry *slab = calloc(SLAB_ENTRIES, sizeof *slab);
    for (uint32_t i = 0; slab && i < SLAB_ENTRIES; i++) {
      slab[i].next = p->free;
      p->free = &slab[i];
    }
    p->n_slabs += slab != NULL;
  }
  struct ni_rollup_entry *e = p->free;
  if (e) {
    p->free = e->next;
    memset(e, 0, sizeof *e);
  }
  return e;
}

static void pool_put(struct ni_rollup_pool *p, struct ni_rollup_entry *e) {
  e->next = p->free;
  p->free = e;
}

static struct key key_of(const struct ni_rollup_sums *s) {
  return (struct key){s->bytes, s->kind, s->func, s->timing, s->cls};
}

/* The place of an entry, or the free place where it belongs. There is always one: at most 3/4 are taken. */
static struct ni_rollup_entry **find(const struct ni_rollup *r, struct key k) {
  uint64_t x = k.bytes ^ (uint64_t)k.kind << 56 ^ (uint64_t)k.func << 48 ^ (uint64_t)k.timing << 40 ^
      (uint64_t)k.cls << 32;
  uint32_t i = (uint32_t)(x * UINT64_C(0x9e3779b97f4a7c15) >> 32);
  for (;; i++) {
    struct ni_rollup_entry **at = &r->slot[i & (r->n_slots - 1)];
    if (!*at)
      return at;
    const struct ni_rollup_sums *s = &(*at)->s;
    if (s->bytes == k.bytes && s->kind == k.kind && s->func == k.func && s->timing == k.timing &&
        s->cls == k.cls)
      return at;
  }
}

/* A table of n places with the entries of the old one. 0: no memory, nothing changed. */
static int resize(struct ni_rollup *r, uint32_t n) {
  struct ni_rollup_entry **old = r->slot, **slot = calloc(n, sizeof(struct ni_rollup_entry *));
  uint32_t n_old = r->n_slots;
  if (!slot)
    return 0;
  r->slot = slot;
  r->n_slots = n;
  for (uint32_t i = 0; old && i < n_old; i++)
    if (old[i])
      *find(r, key_of(&old[i]->s)) = old[i];
  free(old);
  return 1;
}

/* The entry of a key, made if there may be one more; NULL otherwise. */
static struct ni_rollup_entry *entry_of(struct ni_rollup *r, struct ni_rollup_pool *pool, struct key k,
                                        int may_make) {
  struct ni_rollup_entry **at = r->slot ? find(r, k) : NULL;
  if (at && *at)
    return *at;
  if (!may_make || r->n >= NI_ROLLUP_ENTRIES)
    return NULL;
  if (!at || r->n >= r->n_slots / 4 * 3) {
    if (!resize(r, r->n_slots ? (4 * r->n_slots < LAST_SLOTS ? 4 * r->n_slots : LAST_SLOTS) : FIRST_SLOTS))
      return NULL;
    at = find(r, k);
  }
  struct ni_rollup_entry *e = pool_get(pool);
  if (!e)
    return NULL;
  e->s = (struct ni_rollup_sums){
      .kind = k.kind, .func = k.func, .timing = k.timing, .cls = k.cls, .bytes = k.bytes};
  *at = e;
  r->n++;
  r->n_exact += k.cls == 0;
  return e;
}

void ni_rollup_add(struct ni_rollup *r, struct ni_rollup_pool *pool, uint8_t func,
                   const struct ni_record *rec, uint64_t now_ns) {
  struct key k = {rec->msg_bytes, (uint8_t)rec->kind, func, (uint8_t)rec->timing, 0};
  struct ni_rollup_entry *e = entry_of(r, pool, k, r->n_exact < NI_ROLLUP_EXACT);
  if (!e) {
    uint32_t log2 = k.bytes ? 63u - (uint32_t)__builtin_clzll(k.bytes) : 0;
    k.cls = (uint8_t)(1 + log2);
    k.bytes = k.bytes ? UINT64_C(1) << log2 : 0;
    e = entry_of(r, pool, k, 1);
  }
  struct ni_rollup_sums *s = e ? &e->s : &r->others[rec->kind];
  if (e)
    e->hist[ni_hist_bucket(rec->exec_ns)]++;
  else
    *s = (struct ni_rollup_sums){.kind = (uint8_t)rec->kind,
                                 .cls = NI_ROLLUP_OTHERS,
                                 .count = s->count,
                                 .sum_bytes = s->sum_bytes,
                                 .sum_ns = s->sum_ns,
                                 .min_ns = s->min_ns,
                                 .max_ns = s->max_ns};
  if (r->from_ns == 0)
    r->from_ns = now_ns;
  if (s->count == 0 || rec->exec_ns < s->min_ns)
    s->min_ns = rec->exec_ns;
  if (rec->exec_ns > s->max_ns)
    s->max_ns = rec->exec_ns;
  s->sum_bytes += rec->msg_bytes;
  s->sum_ns += rec->exec_ns;
  if (++s->count >= NI_ROLLUP_FULL)
    r->due = 1;
}

struct ni_rollup_sums *ni_rollup_next(struct ni_rollup *r, uint32_t *at) {
  for (; *at < NI_KIND_COUNT + r->n_slots; ++*at) {
    struct ni_rollup_entry *e = *at < NI_KIND_COUNT ? NULL : r->slot[*at - NI_KIND_COUNT];
    struct ni_rollup_sums *s = *at < NI_KIND_COUNT ? &r->others[*at] : e ? &e->s : NULL;
    if (s && s->count)
      return s;
  }
  return NULL;
}

uint32_t *ni_rollup_hist(struct ni_rollup_sums *s) {
  return s->cls == NI_ROLLUP_OTHERS ? NULL : ((struct ni_rollup_entry *)(void *)s)->hist;
}

uint64_t ni_rollup_last_bytes(const struct ni_rollup_sums *s) {
  if (s->cls == 0)
    return 0;
  return s->cls >= 63 ? INT64_MAX : (UINT64_C(1) << s->cls) - 1;
}

void ni_rollup_said(struct ni_rollup_sums *s) {
  uint32_t *hist = ni_rollup_hist(s);
  s->count = s->sum_bytes = s->sum_ns = s->min_ns = s->max_ns = 0;
  s->idle = 0;
  if (hist)
    memset(hist, 0, NI_HIST_BUCKETS * sizeof *hist);
}

void ni_rollup_tidy(struct ni_rollup *r, struct ni_rollup_pool *pool) {
  uint32_t gone = 0;
  r->due = 0;
  r->from_ns = 0;
  for (uint32_t i = 0; i < r->n_slots; i++) {
    struct ni_rollup_entry *e = r->slot[i];
    if (!e)
      continue;
    if (e->s.count || !e->s.idle) {
      e->s.idle = 1; /* ni_rollup_said takes it away when something is said of it */
      continue;
    }
    r->slot[i] = NULL;
    r->n--;
    r->n_exact -= e->s.cls == 0;
    pool_put(pool, e);
    gone++;
  }
  if (!gone)
    return;
  if (r->n == 0) {
    free(r->slot);
    r->slot = NULL;
    r->n_slots = 0;
    return;
  }
  /* A chain must not have gaps: the rest is put in anew. */
  struct ni_rollup_entry *kept[LAST_SLOTS];
  uint32_t n = 0;
  for (uint32_t i = 0; i < r->n_slots; i++)
    if (r->slot[i])
      kept[n++] = r->slot[i];
  memset(r->slot, 0, r->n_slots * sizeof *r->slot);
  for (uint32_t i = 0; i < n; i++)
    *find(r, key_of(&kept[i]->s)) = kept[i];
}

void ni_rollup_free(struct ni_rollup *r, struct ni_rollup_pool *pool) {
  for (uint32_t i = 0; i < r->n_slots; i++)
    if (r->slot[i])
      pool_put(pool, r->slot[i]);
  free(r->slot);
  memset(r, 0, sizeof *r);
}
