#include "names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { BLOCK_BYTES = 64 << 10 };

static uint64_t hash_of(const char *text, size_t len) {
  uint64_t h = 0xcbf29ce484222325ULL ^ len;
  for (size_t i = 0; i < len; i++) h = (h ^ (unsigned char)text[i]) * 0x100000001b3ULL;
  return h ^ (h >> 29);
}

int ni_names_init(struct ni_names *t) {
  *t = (struct ni_names){.n_buckets = 1024};
  void *p = mmap(NULL, NI_NAMES_MAX * sizeof *t->text, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  t->bucket = calloc(t->n_buckets, sizeof *t->bucket);
  if (p == MAP_FAILED || !t->bucket) {
    if (p != MAP_FAILED) munmap(p, NI_NAMES_MAX * sizeof *t->text);
    free(t->bucket);
    *t = (struct ni_names){0};
    return -ENOMEM;
  }
  t->text = p;
  t->text[0] = (struct ni_pq_str){"", 0};
  t->n = 1;
  pthread_mutex_init(&t->lock, NULL);
  return 0;
}

void ni_names_free(struct ni_names *t) {
  if (!t->text) return;
  munmap(t->text, NI_NAMES_MAX * sizeof *t->text);
  for (size_t i = 0; i < t->n_blocks; i++) free(t->block[i]);
  free(t->block);
  free(t->bucket);
  pthread_mutex_destroy(&t->lock);
  *t = (struct ni_names){0};
}

static char *store(struct ni_names *t, const char *text, size_t len) {
  if (len + 1 > t->block_left) {
    size_t size = len + 1 > BLOCK_BYTES ? len + 1 : BLOCK_BYTES;
    char **b = realloc(t->block, (t->n_blocks + 1) * sizeof *b);
    if (!b) return NULL;
    t->block = b;
    b[t->n_blocks] = malloc(size);
    if (!b[t->n_blocks]) return NULL;
    t->block_at = b[t->n_blocks++];
    t->block_left = size;
  }
  char *p = t->block_at;
  memcpy(p, text, len);
  p[len] = 0;
  t->block_at += len + 1;
  t->block_left -= len + 1;
  return p;
}

static int rehash(struct ni_names *t) {
  size_t n = 2 * t->n_buckets;
  uint32_t *b = calloc(n, sizeof *b);
  if (!b) return -ENOMEM;
  for (uint32_t code = 1; code < t->n; code++) {
    size_t k = hash_of(t->text[code].p, t->text[code].len) & (n - 1);
    while (b[k]) k = (k + 1) & (n - 1);
    b[k] = code;
  }
  free(t->bucket);
  t->bucket = b;
  t->n_buckets = n;
  return 0;
}

static int find_or_add(struct ni_names *t, const char *text, size_t len, uint32_t *code) {
  if (2 * (size_t)t->n >= t->n_buckets && rehash(t) < 0) return -ENOMEM;
  size_t k = hash_of(text, len) & (t->n_buckets - 1);
  for (; t->bucket[k]; k = (k + 1) & (t->n_buckets - 1)) {
    const struct ni_pq_str *s = &t->text[t->bucket[k]];
    if (s->len == len && memcmp(s->p, text, len) == 0) {
      *code = t->bucket[k];
      return 0;
    }
  }
  if (t->n == NI_NAMES_MAX) return -ENOSPC;
  char *p = store(t, text, len);
  if (!p) return -ENOMEM;
  t->text[t->n] = (struct ni_pq_str){p, (uint32_t)len};
  t->bucket[k] = *code = t->n++;
  return 0;
}

int ni_name(struct ni_names *t, struct ni_name_cache *cache, const char *text, uint32_t *code) {
  *code = 0;
  if (!text || !*text) return 0;
  size_t len = strlen(text);
  unsigned at = ((unsigned char)text[0] * 31u + (unsigned char)text[len - 1] * 7u + (unsigned)len) % NI_NAME_CACHE;
  if (cache && cache->slot[at].text && cache->slot[at].len == len && memcmp(cache->slot[at].text, text, len) == 0) {
    *code = cache->slot[at].code;
    return 0;
  }
  pthread_mutex_lock(&t->lock);
  int e = find_or_add(t, text, len, code);
  pthread_mutex_unlock(&t->lock);
  if (e == 0 && cache) {
    cache->slot[at].text = t->text[*code].p;
    cache->slot[at].len = (uint32_t)len;
    cache->slot[at].code = *code;
  }
  return e;
}
